/** `groups`: who is in line and who runs, by group; who holds a group, and how many are in front of one in line. */
import { beforeEach, describe, expect, test } from 'vitest';
import { groupsOf, holdersOf, type SeenGroups, waitOf } from '../../src/redis/read/groups.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
/** Of each group one job at a time. */
const ONE_EACH = { share: '0 1 0 1', groups: [] };

beforeEach(async () => {
  await limit(p.redis, p.ref, { share: ONE_EACH, nowMs: T0 });
});

type Priority = 'high' | 'low' | undefined;
const job = (id: string, priority?: Priority, dueMs = T0) =>
  item(id, { dueMs, late: priority === undefined ? {} : { priority } });

/** They are due, and whoever may is let through. */
async function due(...jobs: readonly ReturnType<typeof job>[]): Promise<void> {
  await p.scheduleAll(jobs);
  await p.promote({ nowMs: T0 + 1000 });
}

async function found(after = '', most = 100): Promise<SeenGroups> {
  const seen = await p.withoutWrite(() => groupsOf(p.redis, p.ref, { after, limit: most }));
  if ('kind' in seen) throw new Error('it moved');
  return seen;
}
const names = async (after?: string, most?: number) => (await found(after, most)).groups.map(({ group }) => group);
const places = (high: number, normal: number, low: number) => ({ high, normal, low });

describe('the groups of a partition', () => {
  test('are none where nobody is, and there is no gate where there are no limits', async () => {
    expect(await found()).toMatchObject({ groups: [], ungrouped: 0, gate: { perGroup: 1 } });
    await p.redis.hdel(p.keys.meta, 'gates');
    expect(await found()).toMatchObject({ groups: [], gate: undefined });
  });

  test('are counted by who runs and who waits, of each priority, since the first was due', async () => {
    await due(job('{a}0'));
    expect(await p.start(await p.read())).toMatchObject([{ kind: 'run' }]);
    await due(job('{a}1', undefined, T0 + 40), job('{a}2', 'low', T0 + 20), job('{a}3', 'low', T0 + 30));
    await due(job('{a}4', 'high', T0 + 50), job('x'), job('y'));
    const { groups, ungrouped } = await found();
    const state = {
      most: 1,
      intervalUs: 0,
      burst: 1,
      weight: 1,
      nextTurnMs: 0,
      closedMs: 0,
      maxPending: 0,
      pending: 0,
      reason: '',
    };
    expect(groups).toEqual([{ group: 'a', running: 1, places: places(1, 1, 2), sinceMs: T0 + 20, state }]);
    // One of the two is let through for the worker that comes next.
    expect(ungrouped).toBe(1);
  });

  test('come in the order of their bytes, each once, in whichever of line and holds it is', async () => {
    await due(job('{b}1'), job('{B}1'), job('{_}1'), job('{a-b}1'), job('{a}1'), job('{a!}1'));
    await p.start(await p.read('w1', 3));
    await due(job('{B}2'), job('{~}1'), job('{0}1'));
    const all = await names();
    expect(all).toEqual(['0', 'B', '_', 'a', 'a!', 'a-b', 'b', '~'].toSorted());
    expect(await names('B', 3)).toEqual(all.slice(2, 5));
    expect(await names('a', 1)).toEqual(['a!']);
    expect(await names('~')).toEqual([]);
    // Nobody has to be in the group from which it goes on.
    expect(await names('a"')).toEqual(['a-b', 'b', '~']);
  });

  test('are looked at by their names, also where nobody is in them', async () => {
    await due(job('{a}1'), job('{b}1'));
    const seen = await groupsOf(p.redis, p.ref, { named: ['b', 'nobody'] });
    expect(seen).toMatchObject({
      groups: [
        { group: 'b', sinceMs: expect.any(Number) },
        { group: 'nobody', running: 0, places: places(0, 0, 0), sinceMs: undefined },
      ],
    });
  });

  test('of another layout are not told', async () => {
    const other = { ...p.ref, layoutGeneration: 7 };
    expect(await groupsOf(p.redis, other, { after: '', limit: 1 })).toEqual({ kind: 'moved', layoutGeneration: 0 });
  });

  test('cost as much with many jobs as with one', async () => {
    await due(...Array.from({ length: 300 }, (_, nth) => job(`{a}${nth}`)));
    expect((await found()).groups).toMatchObject([{ running: 1, places: places(0, 299, 0) }]);
  });
});

describe('who holds', () => {
  test('a group are its entries of ready, with the worker of those that were started', async () => {
    await limit(p.redis, p.ref, { share: { share: '0 1 0 2', groups: [] }, nowMs: T0 });
    await due(job('{a}1'), job('{b}1'), job('{a}2'), job('{a}3'));
    await p.start(await p.read('w1', 1), { nowMs: T0 + 2000 });
    await p.promote({ nowMs: T0 + 3000 });
    const holders = await holdersOf(p.redis, p.ref, { group: 'a', limit: 10 });
    expect(holders[0]).toMatchObject({
      id: '{a}1',
      bare: false,
      owner: 'w1',
      attempt: 1,
      startedMs: expect.any(Number),
    });
    expect(holders.slice(1).every(({ owner, startedMs }) => owner === undefined && startedMs === undefined)).toBe(true);
    expect(await holdersOf(p.redis, p.ref, { group: 'a', limit: 1 })).toHaveLength(1);
    expect(await holdersOf(p.redis, p.ref, { group: 'nobody', limit: 10 })).toEqual([]);
  });

  test('the queue are all its entries', async () => {
    await due(job('{a}1'), job('x'));
    await p.start(await p.read('w1', 10));
    const holders = await holdersOf(p.redis, p.ref, { limit: 10 });
    expect(holders.map(({ id, owner }) => [id, owner])).toEqual(holders.map(({ id }) => [id, 'w1']));
    expect(holders.length).toBeGreaterThan(0);
  });
});

test('in front of a job in line are those of its group and priority that were due before, or have a smaller id', async () => {
  await due(job('{a}0'));
  await p.start(await p.read());
  await due(job('{a}1'), job('{a}2'), job('{a}9', undefined, T0 - 5), job('{a}3', 'high'), job('{b}1'));
  const of = (member: string, priority: 'high' | 'normal' = 'normal', dueMs = T0) =>
    p.withoutWrite(() => waitOf(p.redis, p.ref, { member, priority, dueMs, nowMs: T0 }));
  expect(await of('j:{a}9', 'normal', T0 - 5)).toMatchObject({ ahead: 0, held: 1, pause: undefined });
  expect(await of('j:{a}1')).toMatchObject({ ahead: 1 });
  expect(await of('j:{a}2')).toMatchObject({ ahead: 2 });
  expect(await of('j:{a}3', 'high')).toMatchObject({ ahead: 0 });
  await p.redis.hset(p.keys.meta, 'paused', `${T0} the other side moves`);
  expect(await of('j:{a}2')).toMatchObject({
    gate: { perGroup: 1 },
    pause: { sinceMs: T0, reason: 'the other side moves' },
  });
});
