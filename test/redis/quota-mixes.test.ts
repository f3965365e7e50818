/**
 * `maxBytes` whatever the mix: each script that writes or takes away a record keeps the sum. Compared with the bytes that are
 * there, which the test reads one by one.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Plan } from '../../src/client/calls/plan.ts';
import { encodeRecord, isTombstone } from '../../src/job/codec.ts';
import { debounceLetter } from '../../src/job/debounce.ts';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { stats } from '../../src/redis/read/inspect.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { allot, UNWEIGHED, type Weighing, weigh, weighAll } from '../../src/redis/scripts/quotas.ts';
import type { Claim, Effect, ScheduleItem } from '../../src/redis/scripts/replies.ts';
import { arm, fire, firedOf } from '../../src/redis/scripts/schedules.ts';
import { fireMember } from '../../src/schedule/schedule.ts';
import { effectsOf } from '../../src/worker/run/commit-jobs.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';
import { isSlice } from '../tiers.mjs';

const p = usePartition();
/** Later than any id of an entry, as the stream has the clock of the server: what was left there is known by its age. */
const NOW = T0 + 3000 * 86_400_000;
const LATER = NOW + 5000;
const SMALL = 60;
const LARGE = 4000;

const limit = (bytes: number) => allot(p.redis, p.ref, { quota: { pending: 0, bytes } });
/** A job whose record has so many bytes. */
const sized = (id: string, bytes: number, dueMs = NOW): ScheduleItem => {
  const data = 'x'.repeat(bytes - item(id, { dueMs, data: '' }).record.length);
  return item(id, { dueMs, data });
};
const many = (name: string, count: number, bytes: number, dueMs = NOW) =>
  Array.from({ length: count }, (_, nth) => sized(`${name}${nth}`, bytes, dueMs));
/** Without the table of transitions, which looks at every job before and after each call. */
const jobs = () => createJobs(p.redis);
async function put(items: readonly ScheduleItem[], mode: 'keep' | 'replace' = 'keep') {
  const reply = await jobs().schedule(p.ref, items, { mode, horizonMs: NOW, bytesMax: 1_000_000, nowMs: NOW });
  if ('kind' in reply) throw new Error('the queue was resized');
  return reply;
}
const cancel = (members: readonly string[]) => jobs().cancel(p.ref, members, { windowMs: 600_000, nowMs: NOW });
const used = async () => (await stats(p.redis, p.ref)).quota?.bytes ?? 0;
const held = () => p.meta('held');

/** The bytes of all records of jobs that are not over, and how many they are. */
async function there(): Promise<{ readonly bytes: number; readonly count: number }> {
  const records = (await p.redis.hvals(p.keys.jobs)).filter((value) => !isTombstone(value));
  return { bytes: records.reduce((sum, record) => sum + Buffer.byteLength(record), 0), count: records.length };
}
async function expectExact(): Promise<void> {
  const { bytes, count } = await there();
  expect([await used(), await held()]).toEqual([bytes, `${bytes} ${count}`]);
}
/** Promotes, starts and completes all that is due, in slices as large as a pass. */
async function runAll(): Promise<void> {
  for (let claims = await p.run({ nowMs: NOW }); claims.length > 0; claims = await p.run({ nowMs: NOW }))
    await p.complete(claims, { nowMs: NOW });
}

test('a debounced job weighs what is stored of it, however often newer data come', async () => {
  await limit(1_000_000);
  for (const [nth, nowMs] of [NOW, NOW + 1, NOW + 2].entries()) {
    const letter = debounceLetter(nowMs, { waitMs: 1000, maxMs: 60_000 });
    const record = encodeRecord(nowMs + 1000, `{"d":"${'x'.repeat(nth)}"}`, {}, letter);
    const settings = { mode: 'debounce', horizonMs: NOW, bytesMax: 1_000_000, nowMs } as const;
    await jobs().schedule(p.ref, [{ member: 'j:d', record, dueMs: nowMs + 1000 }], settings);
    await expectExact();
  }
  await cancel(['j:d']);
  await expectExact();
});

describe('as much is let through as was said, and not more', () => {
  test('when large jobs come in a burst after many small ones, which leave', async () => {
    const most = 40 * LARGE;
    await limit(most);
    await put(many('small', 1000, SMALL));
    await put(many('first', 20, LARGE, LATER));
    await runAll();
    await expectExact();
    const replies = await put(many('burst', 100, LARGE, LATER));
    expect(replies.filter(({ kind }) => kind === 'ok')).toHaveLength(20);
    expect((await there()).bytes).toBeLessThanOrEqual(most);
  });

  test('when large jobs leave and small ones come', async () => {
    const most = 40 * LARGE;
    await limit(most);
    await put(many('small', 1000, SMALL, LATER));
    await put(many('large', 25, LARGE));
    expect((await put([sized('more', LARGE)]))[0]).toMatchObject({ kind: 'full', what: 'bytes' });
    await runAll();
    await expectExact();
    const replies = await put(many('again', 2000, SMALL, LATER));
    const taken = replies.filter(({ kind }) => kind === 'ok').length;
    expect(taken).toBe(Math.floor((most - 1000 * SMALL) / SMALL));
  });

  test('when small jobs pass through for long, and large ones stay', async () => {
    await limit(60 * LARGE);
    await put(many('large', 50, LARGE, LATER));
    for (let round = 0; round < 5; round += 1) {
      await put(many(`small${round}-`, 400, SMALL));
      await runAll();
    }
    await expectExact();
    const replies = await put(many('more', 30, LARGE, LATER));
    expect(replies.filter(({ kind }) => kind === 'ok')).toHaveLength(10);
  });

  test('when jobs grow by an edit', async () => {
    await limit(40 * LARGE);
    await put(many('a', 20, SMALL, LATER));
    for (let nth = 0; nth < 20; nth += 1) await p.edit(`j:a${nth}`, { data: 'y'.repeat(LARGE) });
    await expectExact();
    const replies = await put(many('b', 30, LARGE, LATER));
    expect(replies.filter(({ kind }) => kind === 'ok')).toHaveLength(
      Math.floor((40 * LARGE - (await bytesOf('a'))) / LARGE),
    );
  });

  test('when jobs are cancelled in a burst, in scheduled and in ready', async () => {
    await limit(1_000_000);
    await put([...many('waits', 50, LARGE, LATER), ...many('ready', 50, LARGE), ...many('stays', 50, SMALL, LATER)]);
    await p.promote({ nowMs: NOW });
    await cancel(['waits', 'ready'].flatMap((name) => many(name, 50, LARGE).map(({ member }) => member)));
    await expectExact();
    await weighAll(p.redis, p.ref, 'mend');
    await expectExact();
  });

  test('when several producers write at the same time, in bulk', async () => {
    const most = 100 * LARGE;
    await limit(most);
    const calls = Array.from({ length: 10 }, (_, nth) =>
      put([...many(`large${nth}-`, 20, LARGE, LATER), ...many(`small${nth}-`, 100, SMALL)]),
    );
    await Promise.all([...calls, runAll(), runAll()]);
    await expectExact();
    const { bytes } = await there();
    expect(bytes).toBeLessThanOrEqual(most);
    expect(bytes).toBeGreaterThan(0.8 * most);
  });
});

const bytesOf = async (name: string) => {
  const all = Object.entries(await p.redis.hgetall(p.keys.jobs)).filter(([member]) => member.startsWith(`j:${name}`));
  return all.reduce((sum, [, record]) => sum + record.length, 0);
};

describe('the sum is what is there after', () => {
  const started = async (id: string) => {
    await put([sized(id, LARGE)]);
    return only(await p.run({ nowMs: NOW }));
  };

  test.each<readonly [string, () => Promise<unknown>]>([
    ['a retry', async () => p.retry(await started('a'), { nowMs: NOW })],
    ['a defer', async () => p.defer(await started('a'), { nowMs: NOW })],
    ['a burial', async () => p.bury(await started('a'), { nowMs: NOW })],
    [
      'a burial with a compensation job, and a replay',
      async () => {
        const compensation = { member: 'j:undo', record: sized('undo', 300).record };
        const id = await p
          .bury(await started('a'), { nowMs: NOW, compensation })
          .then(() => p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1));
        expect(await p.replay(only(id)[0], { nowMs: NOW })).toMatchObject({ kind: 'ok' });
      },
    ],
    [
      'commits that schedule the next job, of which one is refused half-way',
      async () => {
        const next = (id: string) => effectsOf(p.keys, [sized(id, 900, LATER) as Plan]);
        const commit = async (id: string, effects: readonly Effect[]) =>
          jobs().commit(p.ref, await started(id), { windowMs: 60_000, nowMs: NOW, effects });
        await commit('a', next('b'));
        await p.redis.set(`${p.keys.meta}:text`, 'x');
        const refused = { command: 'HSET', key: `${p.keys.meta}:text`, args: ['f', 'v'] };
        expect(await commit('c', [...next('d'), refused])).toMatch(/^half 5 /);
        expect((await there()).count).toBe(3);
      },
    ],
    ['a commit', async () => p.commit(await started('a'), [], { nowMs: NOW })],
    ['an end without a done window', async () => p.complete([await started('a')], { nowMs: NOW, windowMs: 0 })],
    ['an end that is held as a proof', async () => p.complete([await started('a')], { nowMs: NOW, hold: true })],
    [
      'the same end twice',
      async () => {
        const claim = await started('a');
        await p.complete([claim], { nowMs: NOW });
        await p.complete([claim], { nowMs: NOW });
      },
    ],
    ['a replacement', () => p.scheduleAll([sized('keep', 900, LATER)], { nowMs: NOW, mode: 'replace' })],
    [
      'a cancel of a running job, and its retry',
      async () => {
        const claim = await started('a');
        await p.cancel('j:a', { nowMs: NOW });
        await p.retry(claim, { nowMs: NOW });
      },
    ],
    [
      'an expiry',
      async () => {
        await p.schedule('a', { dueMs: NOW, nowMs: NOW, late: { maxLatenessMs: 1000, onLate: 'drop' } });
        expect(await p.expire(await p.deliver({ nowMs: NOW }), { nowMs: NOW + 2000 })).toEqual(['expired']);
      },
    ],
    [
      'an expiry with a compensation job',
      async () => {
        await p.schedule('a', { dueMs: NOW, nowMs: NOW, late: { maxLatenessMs: 1000, onLate: 'dead' } });
        const compensation = { member: 'j:undo', record: sized('undo', 300).record };
        const late = (await p.deliver({ nowMs: NOW })).map((delivery) => ({ ...delivery, compensation }));
        expect(await p.expire(late, { nowMs: NOW + 2000 })).toEqual(['dead']);
      },
    ],
    [
      'a job that nobody can run',
      async () => {
        await put([sized('a', LARGE)]);
        await p.put('j:a', 5);
        await p.promote({ nowMs: NOW });
      },
    ],
    [
      'the end of a bare member that somebody put',
      async () => {
        await p.put('bare', NOW);
        await p.complete(await p.run({ nowMs: NOW }), { nowMs: NOW });
      },
    ],
  ])('%s', async (_, act) => {
    await limit(1_000_000);
    await put([sized('keep', 200, LATER)]);
    await act();
    expect(await used()).toBe((await there()).bytes);
  });

  test('the jobs of a schedule', async () => {
    await limit(1_000_000);
    await put([sized('keep', 200, LATER)]);
    await arm(p.redis, p.ref, 'nightly');
    const [{ text: state } = { text: '' }] = await firedOf(p.redis, p.ref, ['nightly']);
    const at = (hour: number) => T0 + hour * 3_600_000;
    const items = [1, 2].map((hour) => {
      const member = fireMember('nightly', at(hour));
      return { ...sized(member.slice(2), 700, at(hour)), member };
    });
    const schedule = { name: 'nightly', state, reachedMs: at(2), lookMs: at(3), overlap: 'allow', items } as const;
    await fire(p.redis, p.ref, { term: await p.lead(), schedules: [schedule], nowMs: at(2) });
    expect((await there()).count).toBe(3);
    await expectExact();
  });

  test('what a leader has cast', async () => {
    await limit(1_000_000);
    await put([...many('a', 20, LARGE), sized('keep', 200, LATER)]);
    const broadcast = parseSettings({ broadcast: { age: '7d' } }).broadcast;
    if (!broadcast) throw new Error('no broadcast');
    for (const windowMs of [60_000, 0]) {
      const pass = { term: await p.lead(), leaseMs: 60_000, limit: 10, windowMs, broadcast, nowMs: NOW };
      expect(await p.jobs.cast(p.ref, pass)).toMatchObject({ count: 10 });
      await expectExact();
    }
  });
});

describe('a count', () => {
  const walk = async (spot: Weighing, slices: number) => {
    let at = spot;
    for (let slice = 0; slice < slices; slice += 1) {
      const reply = await weigh(p.redis, p.ref, at, { limit: 100, mode: 'mend' });
      if (reply.kind !== 'more') return undefined;
      at = reply;
    }
    return at;
  };
  /** To its end. */
  const walkOn = async (spot: Weighing) => {
    for (let at: Weighing | undefined = spot; at; ) at = await walk(at, 1);
  };
  const off = async () => (await used()) / (await there()).bytes;

  test('of all jobs in one call is right, whatever was noted', async () => {
    await limit(1_000_000);
    await put([...many('a', 30, SMALL), ...many('b', 30, LARGE, LATER)]);
    await p.promote({ nowMs: NOW });
    await p.cancel('j:a0', { nowMs: NOW });
    await p.redis.hset(p.keys.meta, 'held', '777 59');
    await walkOn(UNWEIGHED);
    await expectExact();
  });

  test('that a burst led astray changes the sum by a sixteenth at most', async () => {
    await limit(100_000_000);
    await put(many('small', 1000, SMALL, LATER));
    const begun = await walk(UNWEIGHED, 6);
    expect(begun).toBeDefined();
    for (let burst = 0; burst < 5; burst += 1) await put(many(`large${burst}-`, 200, LARGE, LATER));
    await walkOn(begun ?? UNWEIGHED);
    expect(await off()).toBeGreaterThanOrEqual(15 / 16 - 0.001);
    const again = await walk(UNWEIGHED, 12);
    await cancel(many('large0-', 200, LARGE).map(({ member }) => member));
    await walkOn(again ?? UNWEIGHED);
    expect(await off()).toBeLessThan(1.2);
    expect(await off()).toBeGreaterThan(0.8);
  });

  test('is taken whole where others have added or ended jobs without counting', async () => {
    await limit(100_000_000);
    await put([...many('a', 300, SMALL), ...many('b', 300, LARGE, LATER)]);
    const { bytes } = await there();
    await p.redis.hset(p.keys.meta, 'held', `${bytes * 3} 900`);
    expect(await used()).toBe(Math.floor((bytes * 3 * 600) / 900));
    await walkOn(UNWEIGHED);
    await expectExact();
    await p.redis.hset(p.keys.meta, 'held', '5000 10');
    expect(await used()).toBe(5000);
    await walkOn(UNWEIGHED);
    await expectExact();
  });

  test('brings a sum that is wrong nearer, though it has as many jobs as there are', async () => {
    await limit(100_000_000);
    await put([...many('a', 300, SMALL), ...many('b', 300, LARGE, LATER)]);
    const { bytes } = await there();
    await p.redis.hset(p.keys.meta, 'held', `${bytes * 2} 600`);
    for (let walks = 0; walks < 12; walks += 1) await walkOn(UNWEIGHED);
    await expectExact();
  });
});

describe('whatever the mix', () => {
  const LIMIT = 20_000;
  const id = fc.nat(30);
  const bytes = fc.oneof(fc.constant(SMALL), fc.integer({ min: 60, max: 400 }), fc.integer({ min: 1000, max: LARGE }));
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constant('burst'), fc.integer({ min: 1, max: 12 }), bytes) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('replace'), id, bytes) },
    { weight: 2, arbitrary: fc.tuple(fc.constant('edit'), id, bytes) },
    { weight: 3, arbitrary: fc.tuple(fc.constant('cancel'), id, fc.integer({ min: 1, max: 12 })) },
    {
      weight: 4,
      arbitrary: fc.tuple(fc.constantFrom('complete', 'retry', 'bury', 'commit', 'promote'), id, fc.nat(20)),
    },
    { weight: 1, arbitrary: fc.tuple(fc.constant('replay'), id, id) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('weigh'), id, fc.integer({ min: 5, max: 40 })) },
  );

  /** No more than a fifth above the limit is let in, and nothing is refused as long as four fifths are enough. */
  async function schedule(items: readonly ScheduleItem[], mode: 'keep' | 'replace'): Promise<void> {
    for (const one of items) {
      const before = await there();
      const same = (await p.redis.hget(p.keys.jobs, one.member)) ?? '.';
      const more = one.record.length - (isTombstone(same) ? 0 : same.length);
      const { kind } = only(await put([one], mode));
      const isIn = kind === 'ok' || kind === 'replaced';
      if (isIn && more > 0) expect(before.bytes + more).toBeLessThanOrEqual(1.2 * LIMIT);
      if (kind === 'full') expect(before.bytes + more).toBeGreaterThan(0.8 * LIMIT);
    }
  }

  type Steps = Readonly<Record<string, (a: number, b: number) => Promise<unknown>>>;
  const running = async (most: number) => (await p.run({ nowMs: NOW })).slice(0, most);
  const ofEach = async (most: number, settle: (claim: Claim) => Promise<unknown>) => {
    for (const claim of await running(most)) await settle(claim);
  };
  const members = async () => (await p.redis.hkeys(p.keys.jobs)).sort();
  const steps: Steps = {
    burst: (count, size) => schedule(many(`${count}-${size}-`, count, size, size % 3 === 0 ? LATER : NOW), 'keep'),
    async replace(nth, size) {
      const member = (await members())[nth];
      if (member !== undefined) await schedule([sized(member.slice(2), size)], 'replace');
    },
    async edit(nth, size) {
      const member = (await members())[nth];
      if (member !== undefined) await p.edit(member, { data: 'y'.repeat(size) });
    },
    cancel: async (from, count) => cancel((await members()).slice(from, from + count)),
    complete: async (_, count) => p.complete(await running(count), { nowMs: NOW }),
    retry: (_, count) => ofEach(count, (claim) => p.retry(claim, { nowMs: NOW, delayMs: 0 })),
    bury: (_, count) => ofEach(count, (claim) => p.bury(claim, { nowMs: NOW })),
    commit: (_, count) => ofEach(count, (claim) => p.commit(claim, [], { nowMs: NOW })),
    promote: (_, most) => p.promote({ nowMs: NOW, limit: most }),
    async replay() {
      const [oldest] = await p.redis.xrange(p.keys.dead, '-', '+', 'COUNT', 1);
      if (oldest) await p.replay(oldest[0], { nowMs: NOW });
    },
    weigh: (_, slice) => weighed(slice),
  };

  async function weighed(slice: number): Promise<void> {
    for (let spot: Weighing = UNWEIGHED; ; ) {
      const reply = await weigh(p.redis, p.ref, spot, { limit: slice, mode: 'mend' });
      if (reply.kind !== 'more') return;
      spot = reply;
    }
  }

  test('what is let through is within a fifth of the limit', { timeout: 300_000 }, async () => {
    const mixes = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(mixes, async (mix) => {
        await p.reset();
        await limit(LIMIT);
        for (const [word, a, b] of mix) {
          await steps[word]?.(a, b);
          const { bytes: real } = await there();
          expect(Math.abs((await used()) - real)).toBeLessThanOrEqual(0.2 * Math.max(real, LIMIT / 4));
        }
      }),
      { numRuns: isSlice ? 5 : 25, seed: 5 },
    );
  });
});
