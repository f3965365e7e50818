/** A stream of ends that nobody reads, or whose caller goes early, is left: else it would hold its place for ever. */
import { describe, expect, test, vi } from 'vitest';
import type { JobEnd } from '../../src/client/client.ts';
import { eventsOf } from '../../src/http/api/routes/ends.ts';

describe('a stream that was begun is left', () => {
  /** One that stands at an end which nobody has taken. */
  function standing() {
    const left = vi.fn();
    async function* all(): AsyncGenerator<JobEnd, void> {
      try {
        for (;;) yield { id: 'a', status: 'unknown' };
      } finally {
        left();
      }
    }
    const ends = all();
    const gone = new AbortController();
    const leave = () => void ends.return();
    const stream = eventsOf({ ends, first: ends.next(), seen: (end) => end, leave, signal: gone.signal });
    return { left, gone, stream };
  }

  test('when nobody reads it, at first or any more', async () => {
    vi.useFakeTimers();
    try {
      const [never, once] = [standing(), standing()];
      const reader = once.stream.getReader();
      await vi.advanceTimersByTimeAsync(40_000);
      await reader.read();
      await vi.advanceTimersByTimeAsync(30_000);
      expect([never.left, once.left].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
      await vi.advanceTimersByTimeAsync(40_000);
      expect(once.left).toHaveBeenCalledOnce();
      await expect(reader.read()).rejects.toThrow('the viewer does not read');
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test('when the caller has gone before the answer, and when its reader cancels', async () => {
    const [early, reading] = [standing(), standing()];
    early.gone.abort();
    await expect.poll(() => early.left.mock.calls.length).toBe(1);
    await reading.stream.cancel();
    await expect.poll(() => reading.left.mock.calls.length).toBe(1);
  });
});
