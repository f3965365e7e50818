/** How a page watches: by events, and where none come through, by looks. Stream, answers and time are the test's. */
import { describe, expect, test } from 'vitest';
import {
  AGAIN_MS,
  createWatching,
  POLL_MS,
  POLLS_MAX,
  type Polled,
  polledOf,
  SILENT_MS,
  type StreamListener,
  type Watched,
} from '../../src/dashboard/watching.ts';

type Look = { readonly n: number };

const nothing = () => undefined;

/** A page, and the world around it. */
function rig() {
  let shown: Watched<Look> = { now: undefined, state: 'connecting', hasGap: false, why: '' };
  let listener: StreamListener<Look> | undefined;
  let answer: () => Promise<Polled<Look>> = () => Promise.reject(new Error('no answer was given'));
  let timer: { readonly ms: number; readonly act: () => void } | undefined;
  const counts = { streams: 0, polls: 0 };
  const watching = createWatching<Look>({
    openStream(given) {
      counts.streams += 1;
      listener = given;
      return () => {
        if (listener === given) listener = undefined;
      };
    },
    poll() {
      counts.polls += 1;
      return answer();
    },
    after(ms, act) {
      const mine = { ms, act };
      timer = mine;
      return () => {
        if (timer === mine) timer = undefined;
      };
    },
    tell(change) {
      shown = { ...shown, ...change };
    },
    wordsFor: (problem) => (problem instanceof Error ? problem.message : String(problem)),
  });
  return {
    watching,
    counts,
    shown: () => shown,
    /** What the open stream hears; fails where none is open. */
    stream(): StreamListener<Look> {
      if (!listener) throw new Error('no stream is open');
      return listener;
    },
    isStreaming: () => listener !== undefined,
    answers(given: () => Promise<Polled<Look>>) {
      answer = given;
    },
    /** Lets the wait pass that is set, which must be this one, and what follows from it. */
    async pass(ms: number) {
      expect(timer?.ms).toBe(ms);
      const due = timer;
      timer = undefined;
      due?.act();
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    },
    waits: () => timer?.ms,
  };
}

const look = (id: string, n = 1): Polled<Look> => ({ kind: 'now', id, now: { n } });

describe('while events come', () => {
  test('each is shown, and a number that is missing, or another run of the daemon, is a gap', () => {
    const { watching, stream, shown, waits } = rig();
    watching.open();
    stream().now('a-1', { n: 1 });
    stream().now('a-2', { n: 2 });
    expect(shown()).toEqual({ now: { n: 2 }, state: 'live', hasGap: false, why: '' });
    expect(waits()).toBe(SILENT_MS);
    stream().now('a-4', { n: 4 });
    expect(shown().hasGap).toBe(true);
    const other = rig();
    other.watching.open();
    other.stream().now('a-1', { n: 1 });
    other.stream().now('b-2', { n: 2 });
    expect(other.shown().hasGap).toBe(true);
  });

  test('Redis may be away for as long as it takes, and the page does not poll', async () => {
    const { watching, stream, shown, waits, counts } = rig();
    watching.open();
    stream().away();
    expect(shown()).toMatchObject({ state: 'away', why: 'Redis does not answer the daemon.' });
    expect(waits()).toBeUndefined();
    stream().broken();
    expect(waits()).toBe(SILENT_MS);
    stream().now('a-1', { n: 1 });
    expect([shown().state, counts.polls]).toEqual(['live', 0]);
  });

  test('a farewell is told, and the stream is opened again', async () => {
    const { watching, stream, shown, pass, isStreaming } = rig();
    watching.open();
    stream().bye('stopping');
    expect([shown().state, shown().why, isStreaming()]).toEqual([
      ...['ended', 'The daemon stops. Another one may answer soon.', false],
    ]);
    await pass(AGAIN_MS);
    expect(isStreaming()).toBe(true);
  });

  test('a stream that has lasted its time is followed by another at once, and nothing of it is seen', () => {
    const { watching, stream, shown, isStreaming } = rig();
    watching.open();
    stream().now('a-1', { n: 1 });
    const first = stream();
    first.bye('renew');
    expect([shown().state, isStreaming(), stream() === first]).toEqual(['live', true, false]);
    stream().now('a-2', { n: 2 });
    expect(shown()).toMatchObject({ state: 'live', hasGap: false });
  });

  test('nothing is asked after it was closed, and what comes after a pause is no gap', () => {
    const { watching, stream, shown, waits, isStreaming } = rig();
    watching.open();
    stream().now('a-1', { n: 1 });
    watching.close();
    expect([isStreaming(), waits()]).toEqual([false, undefined]);
    watching.forget();
    watching.open();
    stream().now('a-9', { n: 9 });
    expect(shown()).toMatchObject({ state: 'live', hasGap: false });
  });
});

describe('where no event gets through', () => {
  test('a refused stream is replaced by looks at once, and the page says so', async () => {
    const { watching, stream, shown, pass, answers, counts, isStreaming } = rig();
    let n = 0;
    answers(async () => {
      n += 1;
      // Others watch as well, so numbers are left out.
      return look(`a-${n * 7}`, n);
    });
    watching.open();
    stream().refused();
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    expect(shown()).toMatchObject({ now: { n: 1 }, state: 'polling', hasGap: false });
    expect(shown().why).toContain('asks every 3 seconds');
    expect(isStreaming()).toBe(false);
    await pass(POLL_MS);
    expect([shown().now?.n, shown().hasGap, counts.streams]).toEqual([2, false, 1]);
  });

  test('so is a stream that opens and stays silent', async () => {
    const { watching, stream, shown, pass, answers } = rig();
    answers(async () => look('a-20'));
    watching.open();
    stream().now('a-1', { n: 1 });
    await pass(SILENT_MS);
    expect(shown()).toMatchObject({ state: 'polling', hasGap: false });
  });

  test('another run of the daemon, and a look that failed, are gaps', async () => {
    const { watching, shown, pass, answers, stream, isStreaming } = rig();
    answers(async () => look('a-1'));
    watching.open();
    await pass(SILENT_MS);
    answers(() => Promise.reject(new TypeError('nobody answers')));
    await pass(POLL_MS);
    expect(shown()).toMatchObject({ state: 'away', why: 'nobody answers', hasGap: false });
    await pass(AGAIN_MS);
    expect(isStreaming()).toBe(true);
    stream().now('a-3', { n: 3 });
    expect(shown()).toMatchObject({ state: 'live', hasGap: true });

    const other = rig();
    other.answers(async () => look('a-1'));
    other.watching.open();
    await other.pass(SILENT_MS);
    other.answers(async () => look('b-1'));
    await other.pass(POLL_MS);
    expect(other.shown()).toMatchObject({ state: 'polling', hasGap: true });
  });

  test('the stream is tried again after many looks, and a late answer of before is left out', async () => {
    const { watching, shown, pass, answers, stream, isStreaming } = rig();
    answers(async () => look('a-1'));
    watching.open();
    await pass(SILENT_MS);
    for (let nth = 1; nth < POLLS_MAX; nth += 1) await pass(POLL_MS);
    expect(isStreaming()).toBe(false);
    await pass(POLL_MS);
    expect(isStreaming()).toBe(true);
    let late: (polled: Polled<Look>) => void = nothing;
    answers(
      () =>
        new Promise((resolve) => {
          late = resolve;
        }),
    );
    stream().refused();
    watching.open();
    stream().now('a-50', { n: 50 });
    late(look('a-2', 2));
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    expect(shown()).toMatchObject({ now: { n: 50 }, state: 'live' });
  });

  test('a look says that Redis is away, too', async () => {
    const { watching, shown, pass, answers } = rig();
    answers(async () => ({ kind: 'away' }));
    watching.open();
    await pass(SILENT_MS);
    expect(shown()).toMatchObject({ state: 'away', why: 'Redis does not answer the daemon.' });
    answers(async () => look('a-1'));
    await pass(POLL_MS);
    expect(shown().state).toBe('polling');
  });
});

describe('a look', () => {
  test('is read from a stream that ends after its first event', () => {
    const text = 'retry: 3000\n\nid: a-7\nevent: now\ndata: {"n":7}\n\nevent: bye\ndata: {"code":"enough"}\n\n';
    expect(polledOf<Look>(text)).toEqual({ kind: 'now', id: 'a-7', now: { n: 7 } });
    expect(polledOf<Look>('retry: 3000\n\nevent: away\ndata: {"code":"unavailable"}\n\n')).toEqual({ kind: 'away' });
    expect(() => polledOf('<html>a proxy</html>')).toThrow('without a look');
  });
});
