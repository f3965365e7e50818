/** One look a second for all who watch, and none while nobody does. The looks and the time are the test's. */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/http/api/caller.ts';
import { type Beat, createPulse, VIEWERS_MAX } from '../../src/http/api/pulse.ts';
import { STREAM_BEATS_MAX, seenLook, streamOf } from '../../src/http/api/routes/live.ts';
import type { Look } from '../../src/inspect/look.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';

const counts = {
  scheduled: 1,
  ready: 0,
  running: 0,
  dead: 0,
  oldestDueAgeMs: 0,
  oldestInLine: false,
  waiting: 0,
  waitMs: 0,
  workers: 0,
  paused: false,
  partitions: 1,
};
const perSecond = { scheduled: 0, promoted: 0, started: 0, ended: 0 };
const queue = (name: string) => ({ ...counts, queue: name, leaders: ['host:1', undefined], perSecond });
const LOOK: Look = {
  nowMs: 1,
  queues: [queue('emails'), queue('sms')],
  unread: [],
  processes: { daemons: 1, workers: 2, versions: [] },
  redis: { usedBytes: 1, maxBytes: 0, policy: 'noeviction', durability: 'none' },
  forecast: undefined,
  doctor: undefined,
};
const all: Caller = { name: 'a', key: 'a', scopes: new Set(['read']), queues: undefined, way: 'api', login: 'none' };

/** A pulse whose beats come when the test says so. */
function pulseOf(answer: () => Promise<Look> = async () => LOOK) {
  let looks = 0;
  let go: (() => void) | undefined;
  const clock = {
    ...systemClock,
    sleep: (_ms: number, signal?: AbortSignal) =>
      new Promise<boolean>((resolve) => {
        go = () => resolve(true);
        signal?.addEventListener('abort', () => resolve(false), { once: true });
      }),
  };
  const pulse = createPulse(() => {
    looks += 1;
    return answer();
  }, clock);
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    pulse,
    looks: () => looks,
    settled,
    async beat() {
      go?.();
      await settled();
    },
  };
}

const nothing = () => undefined;

describe('a pulse', () => {
  test('looks while somebody watches, once for all, and rests when the last has left', async () => {
    const { pulse, looks, beat, settled } = pulseOf();
    expect(looks()).toBe(0);
    const seen: Beat[] = [];
    const leave = [1, 2, 3].map(() => pulse.join((one) => seen.push(one), nothing));
    await settled();
    expect([looks(), seen.length]).toEqual([1, 0 + 3 * 1]);
    await beat();
    expect([looks(), seen.length]).toEqual([2, 6]);
    for (const one of leave) one();
    await beat();
    await beat();
    expect(looks()).toBe(2);
    pulse.join((one) => seen.push(one), nothing);
    await settled();
    expect(looks()).toBe(3);
    expect(seen.at(-1)).toMatchObject({ kind: 'now', id: expect.stringMatching(/-3$/) });
  });

  test('says that Redis is away, since when, and that it is back', async () => {
    let isAway = true;
    const { pulse, beat, settled } = pulseOf(async () => {
      if (isAway) throw new DuestreamError('unavailable', 'secret address');
      return LOOK;
    });
    const seen: Beat[] = [];
    pulse.join((one) => seen.push(one), nothing);
    await settled();
    await beat();
    isAway = false;
    await beat();
    expect(seen.map(({ kind }) => kind)).toEqual(['away', 'away', 'now']);
    expect(seen[1]).toEqual(seen[0]);
    expect(JSON.stringify(seen)).not.toContain('secret');
  });

  test('has a bound for viewers, and takes none once it was stopped', () => {
    const { pulse } = pulseOf();
    const stopped: number[] = [];
    for (let nth = 0; nth < VIEWERS_MAX; nth += 1) pulse.join(nothing.bind(undefined), () => stopped.push(nth));
    expect(() => pulse.join(() => undefined, nothing)).toThrow(/live views/);
    pulse.stop();
    expect(stopped).toHaveLength(VIEWERS_MAX);
    expect(() => pulse.check()).toThrow(/another daemon/);
  });
});

describe('a viewer', () => {
  const watching = { caller: all, stillMay: async () => true, cut: nothing, eventsMax: 1000 };
  const textIn = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    const { done, value } = await reader.read();
    return done ? undefined : Buffer.from(value).toString();
  };

  test('is told nothing, and costs no look, before it reads', async () => {
    const { pulse, looks, settled } = pulseOf();
    const stream = streamOf({ ...watching, pulse });
    await settled();
    expect(looks()).toBe(0);
    const reader = stream.getReader();
    expect(await textIn(reader)).toBe('retry: 3000\n\n');
    expect(await textIn(reader)).toMatch(/^id: \S+-1\nevent: now\ndata: \{.*\}\n\n$/);
    await reader.cancel();
  });

  test('that does not read is cut off, and what it has not read is bounded', async () => {
    const { pulse, beat, looks } = pulseOf();
    let cuts = 0;
    const cut = () => {
      cuts += 1;
    };
    const reader = streamOf({ ...watching, pulse, cut }).getReader();
    await textIn(reader);
    for (let nth = 0; nth < 10; nth += 1) await beat();
    expect(cuts).toBe(1);
    expect(looks()).toBeLessThanOrEqual(5);
    // What waited for it is dropped, also where nobody could cut a connection.
    await expect(textIn(reader)).rejects.toThrow('does not read');
  });

  test('is asked to come again after five minutes, and cut a beat later if it does not go', async () => {
    const { pulse, beat, settled } = pulseOf();
    let cuts = 0;
    const cut = () => {
      cuts += 1;
    };
    const reader = streamOf({ ...watching, pulse, cut }).getReader();
    const texts: (string | undefined)[] = [await textIn(reader)];
    while (texts.at(-1) !== undefined) {
      const next = textIn(reader);
      await settled();
      await beat();
      texts.push(await next);
    }
    expect(texts.at(-2)).toBe('event: bye\ndata: {"code":"renew"}\n\n');
    expect(texts.filter((text) => text?.startsWith('id: '))).toHaveLength(STREAM_BEATS_MAX);
    for (let nth = 0; nth < 3; nth += 1) await beat();
    expect(cuts).toBe(1);
    const other = streamOf({ ...watching, pulse }).getReader();
    expect(await textIn(other)).toBe('retry: 3000\n\n');
    await other.cancel();
  });

  test('gets the same bytes as all who may see all', async () => {
    const { pulse } = pulseOf();
    const readers = [1, 2].map(() => streamOf({ ...watching, pulse }).getReader());
    for (const reader of readers) await textIn(reader);
    const [one, other] = await Promise.all(readers.map((reader) => reader.read()));
    expect(one?.value).toBe(other?.value);
    for (const reader of readers) await reader.cancel();
  });

  test('whose token was revoked is sent away', async () => {
    const { pulse, beat } = pulseOf();
    const reader = streamOf({ ...watching, pulse, stillMay: async () => false }).getReader();
    const texts: (string | undefined)[] = [await textIn(reader), await textIn(reader)];
    while (texts.at(-1) !== undefined) {
      const next = textIn(reader);
      await beat();
      texts.push(await next);
    }
    expect(texts.at(-2)).toBe('event: bye\ndata: {"code":"revoked"}\n\n');
    expect(texts.length).toBeLessThanOrEqual(9);
  });

  test('hears why it ends when the daemon stops', async () => {
    const { pulse } = pulseOf();
    const reader = streamOf({ ...watching, pulse }).getReader();
    await textIn(reader);
    pulse.stop();
    expect(await textIn(reader)).toBe('event: bye\ndata: {"code":"stopping"}\n\n');
    expect(await textIn(reader)).toBeUndefined();
  });

  test('of some queues sees those, and nothing of the rest', () => {
    const seen = JSON.stringify(seenLook(LOOK, { ...all, queues: ['sms'] }));
    expect(seen).not.toContain('emails');
    expect(JSON.parse(seen)).toMatchObject({
      queues: [{ queue: 'sms', leaders: ['host:1', null] }],
      total: { scheduled: 1 },
      processes: { leaders: 1, partitions: 2, led: 1 },
    });
    expect(JSON.parse(seen).redis).toBeUndefined();
    expect(seenLook(LOOK, all)).toMatchObject({ redis: { durability: 'none' }, total: { scheduled: 2 } });
  });
});
