/** The test kit lets jobs through as the limits of their queues say. */
import { describe, expect, test } from 'vitest';
import { Defer, defineQueue, fixed, type HandlerContext } from '../../src/index.ts';
import { createTestKit, type TestKitOptions } from '../../src/testing/index.ts';

const START_MS = Date.UTC(2026, 0);

function kitOf(queue: ReturnType<typeof defineQueue>, options: Partial<TestKitOptions> = {}) {
  const kit = createTestKit({ queues: [queue], handlers: { [queue.name]: () => undefined }, ...options });
  const starts = () => kit.runs.map(({ id, atMs }) => [id, atMs - START_MS] as const);
  const waiting = () => kit.jobs({ state: 'waiting' }).map(({ id }) => id);
  return { kit, starts, waiting };
}

const many = (ids: string, options: object = {}) => [...ids].map((id) => ({ data: 1, id, ...options }));

test('a group of one is a lock, and the queue has as many as it may', async () => {
  const q = defineQueue('q', { perGroup: 1, concurrency: 2 });
  const { kit, starts, waiting } = kitOf(q, { lasts: () => 100 });
  await kit.client.scheduleMany(q, [...many('abc', { group: 'x' }), ...many('d', { group: 'y' }), ...many('e')]);
  await kit.advance(50);
  expect(kit.jobs({ state: 'running' }).map(({ id }) => id)).toEqual(['{x}a', 'e']);
  expect(waiting()).toEqual(['{x}b', '{x}c', '{y}d']);
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['e', 0],
    ['{x}a', 0],
    ['{y}d', 100],
    ['{x}b', 100],
    ['{x}c', 200],
  ]);
});

test('in strict order a group waits for the retry of its job, and for who decides about its dead letter', async () => {
  const perGroup = { concurrency: 1, order: 'strict', onDead: 'hold' } as const;
  const q = defineQueue('q', { perGroup, attempts: 2, backoff: fixed('10s') });
  const { kit, starts, waiting } = kitOf(q, {
    handlers: {
      q: ({ id }, { attempt }) => {
        if (id === '{x}b' || (id === '{x}c' && attempt === 1)) throw new Error('not yet');
      },
    },
  });
  await kit.client.scheduleMany(q, [...many('cba', { group: 'x' }), ...many('d', { group: 'y' })]);
  await kit.advance('5s');
  expect(waiting()).toEqual(['{x}b', '{x}a']);
  await kit.advance('1h');
  expect(waiting()).toEqual(['{x}a']);
  await kit.client.groups.open(q, 'x');
  await kit.advance('1m');
  const inSeconds = starts().map(([id, atMs]) => [id, Math.floor(atMs / 1000)]);
  expect(inSeconds.filter(([id]) => id !== '{y}d')).toEqual([
    ['{x}c', 0],
    ['{x}c', 10],
    ['{x}b', 10],
    ['{x}b', 20],
    ['{x}a', 3605],
  ]);
  expect(inSeconds).toContainEqual(['{y}d', 0]);
});

test('a job keeps its place until its handler ends, also after its time-out: 5 s at most, and one that looks at its signal ends then', async () => {
  const q = defineQueue('q', { perGroup: 1, timeout: '1m', attempts: 1 });
  const lasts = { a: '63s', b: '2m', c: '2m', d: 0 };
  const { kit, starts } = kitOf(q, {
    lasts: ({ id }) => lasts[id.slice(-1) as keyof typeof lasts],
    handlers: { q: ({ id }, context) => (id.endsWith('c') ? context.signal.aborted : undefined) },
  });
  await kit.client.scheduleMany(q, many('abcd', { group: 'x' }));
  await kit.advance('10m');
  expect(starts().map(([id, atMs]) => [id.slice(-1), atMs / 1000])).toEqual([
    ['a', 0],
    ['b', 63],
    ['c', 63 + 65],
    ['d', 63 + 65 + 60],
  ]);
  expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['dead', 'dead', 'dead', 'done']);
});

test('an instant of a schedule waits for a handler that goes on after its time-out', async () => {
  const q = defineQueue('q', { timeout: '10s', attempts: 1 });
  const schedules = { s: { queue: 'q', every: '12s', overlap: 'skip' } } as const;
  const { kit } = kitOf(q, { schedules, lasts: () => '14s' });
  await kit.advance('1m');
  const starts = kit.runs.map(({ atMs }) => (atMs - START_MS) / 12_000);
  expect(starts.map((start, at) => start - (starts[at - 1] ?? start - 2))).toEqual(starts.map(() => 2));
});

test('jobs past their expiry that nobody can start end within a minute, and give their places back', async () => {
  const q = defineQueue('q', { rate: '1/h', maxPending: 4 });
  const { kit, starts, waiting } = kitOf(q);
  const late = (id: string, onLate: 'drop' | 'dead') => ({ data: 1, id, maxLateness: '10s', onLate }) as const;
  await kit.client.scheduleMany(q, [late('a', 'drop'), late('b', 'drop'), late('c', 'dead'), { data: 1, id: 'd' }]);
  await kit.advance('9s');
  expect([starts().map(([id]) => id), waiting()]).toEqual([['a'], ['b', 'c', 'd']]);
  await kit.advance('1m');
  expect(waiting()).toEqual(['d']);
  expect(kit.jobs().map(({ id, state, reason }) => [id, state, reason])).toEqual([
    ['a', 'done', undefined],
    ['b', 'expired', undefined],
    ['c', 'dead', 'expired'],
    ['d', 'waiting', undefined],
  ]);
  for (const id of ['e', 'f', 'g'])
    expect(await kit.client.schedule(q, 1, { id })).toMatchObject({ status: 'scheduled' });
});

test('a job past its expiry in a queue that is paused or has no worker ends, and one that has none stays', async () => {
  const [paused, idle] = [defineQueue('paused'), defineQueue('idle')];
  const kit = createTestKit({ queues: [paused, idle], handlers: { paused: () => undefined } });
  await kit.client.schedule(paused, 1, { id: 'p', maxLateness: '1s', delay: '1s' });
  await kit.client.schedule(paused, 1, { id: 'stays', delay: '1s' });
  await kit.client.schedule(idle, 1, { id: 'i', maxLateness: '1s' });
  await kit.queues.pause('paused');
  await kit.advance('1m');
  expect(
    kit
      .jobs()
      .map(({ id, state }) => `${id} ${state}`)
      .sort(),
  ).toEqual(['i expired', 'p expired', 'stays scheduled']);
});

test('priorities come in turns of 16 : 4 : 1, and groups one after the other', async () => {
  const q = defineQueue('q', { concurrency: 1 });
  const { kit, starts } = kitOf(q, { lasts: () => 1 });
  for (const [at, priority] of (['low', 'normal', 'high'] as const).entries()) {
    const list = Array.from({ length: 50 }, (_, nth) => ({
      data: 1,
      id: `${at}-${nth + 10}`,
      priority,
      group: `g${nth % 2}`,
    }));
    await kit.client.scheduleMany(q, list);
  }
  await kit.advance(42);
  const first = starts().map(([id]) => id);
  const of = (at: number) => first.filter((id) => id.includes(`}${at}-`));
  expect([of(2).length, of(1).length, of(0).length]).toEqual([32, 8, 2]);
  expect(of(2).slice(0, 4)).toEqual(['{g0}2-10', '{g1}2-11', '{g0}2-12', '{g1}2-13']);
});

test('a rate lets jobs through at its pace, with its burst and 50 ms of tolerance; a retry counts again', async () => {
  const q = defineQueue('q', { rate: { limit: 10, per: '1s', burst: 3 }, attempts: 2, backoff: fixed(1) });
  const failed = new Set<string>();
  const fails = ({ id }: { readonly id: string }) => {
    if (id === 'c' && !failed.has(id)) {
      failed.add(id);
      throw new Error('once');
    }
  };
  const { kit, starts } = kitOf(q, { handlers: { q: fails } });
  await kit.client.scheduleMany(q, many('abcde'));
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 0],
    ['b', 0],
    ['c', 0],
    ['d', 50],
    ['e', 150],
    ['c', 250],
  ]);
});

test('of two rates each holds: one keeps jobs apart, the other one holds them after its burst', async () => {
  const q = defineQueue('q', { rate: ['10/s', { limit: 60, per: '1m', burst: 3 }] });
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, many('abcde'));
  await kit.advance('2s');
  expect(starts()).toEqual([
    ['a', 0],
    ['b', 50],
    ['c', 150],
    ['d', 950],
    ['e', 1950],
  ]);
});

test('a job that expired before its turn gives the turn of the rate back', async () => {
  const q = defineQueue('q', { rate: '1/s' });
  const { kit, starts } = kitOf(q);
  await kit.client.scheduleMany(q, [...many('a'), ...many('bc', { maxLateness: '100ms' }), ...many('d')]);
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 0],
    ['d', 950],
  ]);
  expect(kit.jobs({ state: 'expired' })).toHaveLength(2);
});

test('a deferred job gives its place up, and comes back at its due time', async () => {
  const q = defineQueue('q', { concurrency: 1 });
  const defers = ({ id, attempt }: { readonly id: string; readonly attempt: number }) => {
    if (id === 'a' && attempt === 1) throw new Defer(250);
  };
  const { kit, starts } = kitOf(q, { handlers: { q: defers }, lasts: () => 100 });
  await kit.client.scheduleMany(q, many('abcd'));
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 0],
    ['b', 100],
    ['c', 200],
    ['d', 300],
    ['a', 400],
  ]);
});

test('an id that comes again after it was cancelled in line leaves the others there', async () => {
  const q = defineQueue('q', { concurrency: 1 });
  const { kit, waiting } = kitOf(q, { lasts: () => 100 });
  await kit.client.scheduleMany(q, many('abcd'));
  await kit.advance(1);
  await kit.client.cancel(q, ['b', 'c']);
  await kit.client.schedule(q, 2, { id: 'c', delay: '1h' });
  expect(waiting()).toEqual(['d']);
  await kit.advance('2h');
  expect(kit.runs.map(({ id }) => id)).toEqual(['a', 'd', 'c']);
});

test('limits are set, raised and taken back while jobs run', async () => {
  const q = defineQueue('q');
  const { kit, waiting } = kitOf(q, { lasts: () => 1000 });
  await kit.client.scheduleMany(q, many('ab'));
  await kit.advance(1);
  await kit.queues.set('q', { concurrency: 3 });
  await kit.client.scheduleMany(q, many('cdef'));
  await kit.advance(1);
  expect(waiting()).toEqual(['d', 'e', 'f']);
  await kit.queues.set(q, { concurrency: 4 });
  await kit.advance(1);
  expect(waiting()).toEqual(['e', 'f']);
  await kit.queues.set('q', { concurrency: false });
  await kit.advance(1);
  expect(waiting()).toEqual([]);
  await expect(kit.queues.set('q', { concurrency: 0 })).rejects.toThrow(
    'concurrency is 0; allowed: a whole number from 1',
  );
  await expect(kit.queues.set('q', { speed: 1 } as object)).rejects.toThrow('speed');
});

test.each([{}, { concurrency: 1 }])('a paused queue of %j starts nothing, and goes on where it was', async (limits) => {
  const q = defineQueue('q', limits);
  const { kit, starts } = kitOf(q, { lasts: () => 100 });
  await kit.client.scheduleMany(q, [...many('a'), ...many('bc', { delay: 50 })]);
  await kit.advance(10);
  expect(await kit.queues.pause('q')).toMatchObject({ status: 'changed', running: 1 });
  expect(await kit.queues.pause('q')).toMatchObject({ status: 'same' });
  await kit.advance('1s');
  expect(starts()).toEqual([['a', 0]]);
  expect(kit.jobs({ state: 'scheduled' }).map(({ id }) => id)).toEqual(['b', 'c']);
  expect(await kit.cancel('q', 'c')).toBe('cancelled');
  expect(await kit.queues.resume('q')).toMatchObject({ status: 'changed' });
  await kit.advance('1s');
  expect(starts()).toEqual([
    ['a', 0],
    ['b', 1010],
  ]);
});

describe('without a worker', () => {
  test('one job is ready, and the others wait in line', async () => {
    const q = defineQueue('q', { fair: true });
    const { kit, waiting } = kitOf(q, { handlers: { other: () => undefined } });
    await kit.client.scheduleMany(q, many('abc'));
    await kit.advance(1);
    expect(kit.jobs({ state: 'ready' }).map(({ id }) => id)).toEqual(['a']);
    expect(waiting()).toEqual(['b', 'c']);
  });

  test('what is ready goes in line when its queue gets limits', async () => {
    const { kit, waiting } = kitOf(defineQueue('q'), { handlers: { other: () => undefined } });
    await kit.client.scheduleMany('q', many('abc'));
    await kit.advance(1);
    expect(kit.jobs({ state: 'ready' })).toHaveLength(3);
    await kit.queues.set('q', { concurrency: 2 });
    await kit.advance(1);
    expect(kit.jobs({ state: 'ready' }).map(({ id }) => id)).toEqual(['a']);
    expect(waiting()).toEqual(['b', 'c']);
  });
});

test('partitions share the concurrency of their queue', async () => {
  const q = defineQueue('q', { concurrency: 3, partitions: 2 });
  const { kit } = kitOf(q, { lasts: () => 100 });
  await kit.client.scheduleMany(q, many('abcdefghij'));
  await kit.advance(1);
  expect(kit.jobs({ state: 'running' })).toHaveLength(3);
});

test('inline a job runs at once, whatever its queue allows', async () => {
  const q = defineQueue('q', { concurrency: 1, rate: '1/d' });
  const { kit, starts } = kitOf(q, { inline: true });
  await kit.client.scheduleMany(q, many('abc'));
  expect(starts()).toHaveLength(3);
});

test('a thousand locks with three jobs each pass in turns', async () => {
  const q = defineQueue('q', { perGroup: 1 });
  const { kit, starts } = kitOf(q, { lasts: () => 10 });
  const list = Array.from({ length: 3000 }, (_, nth) => ({ data: 1, id: `${nth}`, group: `g${nth % 1000}` }));
  await kit.client.scheduleMany(q, list);
  await kit.advance(100);
  expect(starts()).toHaveLength(3000);
  expect(Math.max(...starts().map(([, atMs]) => atMs))).toBe(20);
});

describe('limits of single groups', () => {
  const of = (group: string, count: number, options: object = {}) =>
    Array.from({ length: count }, (_, nth) => ({ data: 1, id: `${nth}`, group, ...options }));
  const momentsOf = (starts: () => readonly (readonly [string, number])[], group: string) =>
    starts().flatMap(([id, atMs]) => (id.startsWith(`{${group}}`) ? [atMs] : []));

  test('a rate of each group lets its jobs through at its pace, and nobody waits for another group', async () => {
    const q = defineQueue('q', {
      perGroup: { rate: '10/s' },
      groups: { big: { rate: '100/s' }, 'free-*': { rate: false } },
    });
    const { kit, starts } = kitOf(q);
    await kit.client.scheduleMany(q, [...of('a', 4), ...of('b', 2), ...of('big', 8), ...of('free-x', 3)]);
    await kit.advance('1s');
    expect(momentsOf(starts, 'a')).toEqual([0, 50, 150, 250]);
    expect(momentsOf(starts, 'b')).toEqual([0, 50]);
    // 50 ms of tolerance are five turns ahead.
    expect(momentsOf(starts, 'big')).toEqual([0, 0, 0, 0, 0, 0, 10, 20]);
    expect(momentsOf(starts, 'free-x')).toEqual([0, 0, 0]);
  });

  test('one that comes alone uses a turn of its group', async () => {
    const q = defineQueue('q', { perGroup: { rate: { limit: 10, per: '1s', burst: 1 } } });
    const { kit, starts } = kitOf(q);
    for (const id of 'abc') {
      await kit.client.schedule(q, 1, { id, group: 'x' });
      await kit.advance(0);
    }
    await kit.advance('1s');
    expect(starts()).toEqual([
      ['{x}a', 0],
      ['{x}b', 50],
      ['{x}c', 150],
    ]);
  });

  test('three groups of weight 1, 2 and 4 have their turns one after the other', async () => {
    const q = defineQueue('q', { concurrency: 1, groups: { b: { weight: 2 }, c: { weight: 4 } } });
    const { kit, starts } = kitOf(q, { lasts: () => 1 });
    await kit.client.scheduleMany(
      q,
      ['a', 'b', 'c'].flatMap((group) => of(group, 40)),
    );
    await kit.advance(28);
    const names = starts().map(([id]) => id[1]);
    expect(names.slice(0, 14).join('')).toBe('abbccccabbcccc');
  });

  test('they are set, shown and taken back while jobs wait', async () => {
    const q = defineQueue('q', { perGroup: 1 });
    const { kit, waiting } = kitOf(q, { lasts: () => '1h' });
    const { groups } = kit.client;
    await kit.client.scheduleMany(q, [...of('a', 3), ...of('ab', 3)]);
    await kit.advance(1);
    expect(waiting()).toHaveLength(4);
    expect(await groups.set(q, 'a*', { concurrency: 2, rate: '1/m', weight: 3 })).toMatchObject({ status: 'changed' });
    expect(await groups.set(q, 'a*', { concurrency: 2, rate: '1/m', weight: 3 })).toEqual({ status: 'same' });
    expect(await groups.set(q, 'ab', { concurrency: 3 })).toMatchObject({ status: 'changed' });
    await kit.advance(1);
    expect(waiting()).toEqual(['{a}2']);
    expect(await groups.get(q, 'a')).toMatchObject({
      perGroup: 2,
      intervalMs: 60_000,
      weight: 3,
      running: 2,
      isFull: true,
    });
    expect(await groups.unset(q, 'a*')).toMatchObject({ status: 'changed' });
    expect(await groups.unset(q, 'a*')).toEqual({ status: 'same' });
    expect(await groups.get(q, 'a')).toMatchObject({ perGroup: 1, weight: 1 });
    await expect(groups.set('nobody', 'a', { weight: 2 })).rejects.toMatchObject({ code: 'not-found' });
    await kit.queues.set(q, { groups: {} });
    expect(await groups.get(q, 'ab')).toMatchObject({ perGroup: 1 });
  });

  test('they hold, as limits of the queue that were set, against what a definition says later', async () => {
    const { kit } = kitOf(defineQueue('q', { fair: true }));
    await kit.queues.set('q', { perGroup: 2 });
    await kit.client.groups.set('q', 'a', { concurrency: 5 });
    const q = defineQueue('q', { perGroup: 9, groups: { a: { concurrency: 7 }, b: { concurrency: 8 } } });
    await kit.client.scheduleMany(q, [...of('a', 1), ...of('c', 1)]);
    const most = async (group: string) => (await kit.client.groups.get(q, group)).perGroup;
    expect([await most('a'), await most('b'), await most('c')]).toEqual([5, 8, 2]);
    expect(await kit.client.groups.unset(q, 'a')).toMatchObject({ status: 'changed' });
    expect(await most('a')).toBe(7);
  });

  test('a group is closed for a time, the longest wins, and it is opened', async () => {
    const q = defineQueue('q', { fair: true });
    const { kit, starts, waiting } = kitOf(q);
    const { groups } = kit.client;
    expect(await groups.close(q, 'a', { for: '10s', reason: 'their API says 429' })).toEqual({ status: 'changed' });
    expect(await groups.close(q, 'a', { for: '5s' })).toEqual({ status: 'same' });
    await kit.client.scheduleMany(q, [...of('a', 2), ...of('b', 1)]);
    await kit.advance('3s');
    expect(starts()).toEqual([['{b}0', 0]]);
    const { closed } = await groups.get(q, 'a');
    expect(closed).toEqual({ untilMs: START_MS + 10_000, reason: 'their API says 429' });
    expect((await kit.client.get(q, '{a}0'))?.waitsFor).toMatchObject({ obstacles: [{ kind: 'group-closed' }] });
    await kit.advance('8s');
    expect(momentsOf(starts, 'a')).toEqual([10_000, 10_000]);
    await groups.close(q, 'a', { for: '1h' });
    await kit.client.scheduleMany(q, of('a', 3, { delay: 1 }));
    await kit.advance('1m');
    expect(waiting()).toHaveLength(3);
    expect([await groups.open(q, 'a'), await groups.open(q, 'a')]).toEqual([{ status: 'changed' }, { status: 'same' }]);
    await kit.advance(1);
    expect(waiting()).toEqual([]);
  });

  test('a handler closes its group or its queue with a Defer, and a queue is closed and opened by hand', async () => {
    const q = defineQueue('q', { fair: true });
    const closes = ({ id, attempt }: { readonly id: string; readonly attempt: number }) => {
      if (attempt === 1 && id === '{a}0') throw new Defer('10s', { reason: '429', close: 'group' });
      if (attempt === 1 && id === '{b}0') throw new Defer('20s', { reason: '503', close: 'queue' });
    };
    const { kit, starts } = kitOf(q, { handlers: { q: closes } });
    await kit.client.scheduleMany(q, [
      ...of('a', 1),
      ...of('a', 3, { delay: '1s' }).slice(1),
      ...of('c', 1, { delay: '2s' }),
    ]);
    await kit.advance('11s');
    expect(starts()).toEqual([
      ['{a}0', 0],
      ['{c}0', 2000],
      ['{a}1', 10_000],
      ['{a}2', 10_000],
      ['{a}0', 10_000],
    ]);
    await kit.client.scheduleMany(q, [...of('b', 1), ...of('d', 1, { delay: '1s' })]);
    await kit.advance('19s');
    expect(starts()).toHaveLength(6);
    expect((await kit.client.get(q, '{d}0'))?.waitsFor).toMatchObject({ obstacles: [{ kind: 'queue-closed' }] });
    await kit.advance('2s');
    expect(starts()).toHaveLength(8);
    expect([
      await kit.queues.close(q, { for: '1h', reason: 'maintenance' }),
      await kit.queues.close(q, { for: '1s' }),
    ]).toEqual([{ status: 'changed' }, { status: 'same' }]);
    await kit.client.scheduleMany(q, of('e', 2));
    await kit.advance('10m');
    expect(starts()).toHaveLength(8);
    expect([await kit.queues.open(q), await kit.queues.open(q)]).toEqual([{ status: 'changed' }, { status: 'same' }]);
    await kit.advance(1);
    expect(starts()).toHaveLength(10);
    await expect(kit.queues.close('other', { for: '1s' })).rejects.toMatchObject({ code: 'not-found' });
  });
});

test('a priority is refused where the queue is not gated: of a new job, of an edit, and of a job that is committed', async () => {
  const q = defineQueue('q');
  const refusals: unknown[] = [];
  const commits = async ({ data }: { readonly data: unknown }, { commitJob }: HandlerContext) => {
    if (data === 2) return;
    await commitJob(2, { priority: 'low' }).catch((error: unknown) => refusals.push(error));
  };
  const { kit } = kitOf(q, { handlers: { q: commits } });
  const refusal = /priority "low", and queue q is not gated; allowed: after "duestream queues set q --fair"/;
  await expect(kit.schedule(q, 1, { priority: 'low' })).rejects.toThrow(refusal);
  await kit.schedule(q, 1, { id: 'a' });
  await expect(kit.client.edit(q, 'a', { priority: 'low' })).rejects.toThrow(refusal);
  await kit.advance(1);
  expect(refusals).toEqual([expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(refusal) })]);
  expect(kit.jobs({ state: 'scheduled' })).toEqual([]);
  await kit.queues.set(q, { fair: true });
  await kit.schedule(q, 1, { id: 'b', priority: 'low' });
  await kit.advance(1);
  expect(refusals).toHaveLength(1);
});

test('queues that share a limit start together what it allows', async () => {
  const [mails, reminders] = ['mails', 'reminders'].map((name) => defineQueue(name, { limits: ['provider'] }));
  if (!mails || !reminders) throw new Error('two queues');
  const nothing = () => undefined;
  const kit = createTestKit({
    queues: [mails, reminders],
    handlers: { mails: nothing, reminders: nothing },
    limits: { provider: { rate: '10/s' } },
  });
  await kit.client.scheduleMany(mails, many('abcdefghij'));
  await kit.client.scheduleMany(reminders, many('abcdefghij'));
  await kit.advance('1s');
  // 10 in a second, 1 of the burst and what 350 ms allow.
  expect(kit.runs.length).toBeGreaterThan(7);
  expect(kit.runs.length).toBeLessThanOrEqual(14);
  await kit.advance('2s');
  expect(kit.runs).toHaveLength(20);
  expect(new Set(kit.runs.map(({ queue }) => queue)).size).toBe(2);
  await kit.advance('30d');
});

describe('a job that costs more', () => {
  test('passes with one turn free, and who comes next waits until what it owes is through', async () => {
    const q = defineQueue('q', { rate: '10/s', costs: true });
    const { kit, starts } = kitOf(q);
    await kit.client.scheduleMany(q, [...many('a', { cost: 5 }), ...many('bc')]);
    await kit.advance('2s');
    expect(starts()).toEqual([
      ['a', 0],
      ['b', 450],
      ['c', 550],
    ]);
  });

  test('gives back what its handler says it has not used', async () => {
    const q = defineQueue('q', { rate: '10/s', costs: true });
    const counted: boolean[] = [];
    const handlers = { q: async (_: unknown, context: HandlerContext) => void counted.push(await context.spent(1)) };
    const { kit, starts } = kitOf(q, { handlers });
    await kit.client.scheduleMany(q, [...many('a', { cost: 5 }), ...many('bc')]);
    await kit.advance('2s');
    expect(starts()).toEqual([
      ['a', 0],
      ['b', 50],
      ['c', 150],
    ]);
    expect(counted).toEqual([true, true, true]);
  });

  test('is refused in a queue whose jobs cost one turn each, where no word of turns counts', async () => {
    const q = defineQueue('q', { rate: '10/s' });
    const counted: boolean[] = [];
    const handlers = { q: async (_: unknown, context: HandlerContext) => void counted.push(await context.spent(9)) };
    const { kit } = kitOf(q, { handlers });
    await expect(kit.client.schedule(q, 1, { cost: 2 })).rejects.toThrow(
      'the job has cost 2, and each job of queue q costs one turn; allowed: after "duestream queues set q --costs"',
    );
    await kit.client.schedule(q, 1, { cost: 1 });
    await kit.advance('2s');
    expect(counted).toEqual([false]);
  });
});
