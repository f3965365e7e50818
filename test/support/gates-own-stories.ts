/**
 * What single groups of a gated partition have of their own: a rate, limits, a weight, and that nobody of them, or of the whole
 * queue, is let through until a time. Told with the other stories, see `gates-stories.ts`.
 */
import { expect } from 'vitest';
import { type GatePart, openLanes } from '../../src/redis/scripts/gates.ts';
import { type Desk, NOW, type Story } from './gates-desk.ts';

const SAID = 'it said 429';
/** Each group has a turn in 100 ms. */
const RATED = { groupRate: { limit: 10, perMs: 1000, burst: 1 } } as const;

const ids = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, nth) => `${prefix}${nth}`);
/** The groups of jobs, or their names where they have none. */
const groupsOf = (words: readonly string[]) => words.map((word) => /^\{(.+)\}/.exec(word)?.[1] ?? word);
/** Without when it last had a turn, and of which rate. */
async function stateOf(desk: Desk, group: string): Promise<string | null> {
  return (await desk.redis.hget(desk.ref.keys.groups, group))?.split('\x01')[0] ?? null;
}
/** Everything that is kept of single groups. */
const kept = async (desk: Desk) => (await desk.redis.hkeys(desk.ref.keys.groups)).sort();

/** One at a time, each over before the next. */
async function oneByOne(desk: Desk, count: number): Promise<string[]> {
  const order: string[] = [];
  for (let turn = 0; turn < count; turn += 1) order.push(...(await desk.serve(1, { over: order.slice(-1) })));
  return order;
}

const rates: readonly Story[] = [
  {
    title: 'each group has a rate of its own, and the leader looks when the next of them has a turn',
    async tell(desk) {
      await desk.begin(RATED);
      await desk.put(['{a}1', '{a}2', '{b}1', '{b}2', 'x', 'y']);
      expect(await desk.promote()).toMatchObject({ nextMs: 50, gated: { through: 1, waiting: 5 } });
      expect(await desk.serve(9)).toEqual(['{a}1', '{b}1', 'x', 'y']);
      expect([await desk.lanes(), await openLanes(desk.redis, desk.ref)]).toEqual([['1a', '1b'], 0]);
      expect(await kept(desk)).toEqual(['a', 'b']);
      desk.nowMs += 49;
      expect(await desk.serve(9)).toEqual([]);
      expect((await desk.promote()).nextMs).toBe(1);
      desk.nowMs += 1;
      expect(await desk.serve(9)).toEqual(['{a}2', '{b}2']);
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000 + 200_000}.00 0`);
    },
  },
  {
    title: 'who goes past the line uses a turn of its group, and needs one',
    async tell(desk) {
      await desk.begin(RATED);
      await desk.line('{a}1');
      expect(await desk.serve(1)).toEqual(['{a}1']);
      await desk.put(['{a}2']);
      expect(await desk.promote()).toMatchObject({ nextMs: 50, gated: { through: 0, waiting: 1 } });
    },
  },
  {
    title: 'two lanes of a group use its rate together',
    async tell(desk) {
      await desk.begin({ groupRate: { limit: 10, perMs: 1000, burst: 3 } });
      await desk.line('high {a}1', 'high {a}2', '{a}3', 'high {a}4');
      expect((await desk.serve(9)).sort()).toEqual(['{a}1', '{a}2', '{a}3']);
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000 + 300_000}.00 0`);
    },
  },
  {
    title: 'who is handed back gives the turn of its group back',
    async tell(desk) {
      await desk.begin(RATED);
      await desk.line('{a}1', '{a}2', '{b}1');
      const given = await desk.read();
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000 + 100_000}.00 0`);
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000}.00 0`);
      expect(await kept(desk)).toEqual(['a', 'b']);
    },
  },
  {
    title: 'with another rate a group has the turns used that it had before, and none for the change',
    async tell(desk) {
      const perHour = (limit: number) => ({ groupRate: { limit, perMs: 3_600_000, burst: 1 } });
      await desk.begin(perHour(1));
      await desk.line('{a}1', '{a}2', '{b}1');
      expect(await desk.serve(9)).toEqual(['{a}1', '{b}1']);
      for (const more of [2, 4, 8]) {
        desk.nowMs += 1000;
        await desk.limit(perHour(more));
        expect(await desk.serve(9)).toEqual([]);
      }
      desk.nowMs = NOW + 450_000 - 51;
      expect(await desk.serve(9)).toEqual([]);
      // Its state of the faster rate is over, and of the slower one it is not.
      await desk.limit(perHour(1));
      desk.nowMs = NOW + 450_001;
      expect(await desk.mend([{ kind: 'unused', name: 'a' }])).toEqual(['sound']);
      await desk.limit({ groups: { a: { rate: { limit: 8, perMs: 3_600_000, burst: 1 } } }, ...perHour(1) });
      expect(await desk.serve(9)).toEqual(['{a}2']);
    },
  },
  {
    title: 'a group that is closed and opened has its rate used as before',
    async tell(desk) {
      await desk.begin(RATED);
      await desk.line('{a}1', '{a}2');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.close('a', 20, SAID);
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000 + 100_000}.00 ${NOW + 20} ${SAID}`);
      await desk.open('a');
      await desk.limit({ groupRate: { limit: 20, perMs: 1000, burst: 1 } });
      expect(await desk.serve(9)).toEqual(['{a}2']);
      expect(await stateOf(desk, 'a')).toBe(`${NOW * 1000 + 100_000}.00 0`);
    },
  },
  {
    title: 'a group that is closed and opened while it has no rate has its turns used as before',
    async tell(desk) {
      const perHour = { groupRate: { limit: 1, perMs: 3_600_000, burst: 1 } };
      await desk.begin(perHour);
      await desk.line('{a}1', '{a}2');
      expect(await desk.serve(9)).toEqual(['{a}1']);
      await desk.limit({ perGroup: 9 });
      await desk.close('a', 20, SAID);
      await desk.open('a');
      await desk.limit(perHour);
      expect(await desk.serve(9)).toEqual([]);
    },
  },
  {
    title: 'a worker that uses the turn of a group tells the leader when the next comes',
    async tell(desk) {
      await desk.begin({ ...RATED, concurrency: 1 });
      await desk.line('x', '{a}1', '{a}2');
      expect(await desk.serve(1)).toEqual(['x']);
      expect(Number(await desk.meta('wake'))).toBeGreaterThan(NOW + 50);
      expect(await desk.serve(1, { over: ['x'] })).toEqual(['{a}1']);
      expect(await desk.meta('wake')).toBe(String(NOW + 50));
    },
  },
  {
    title: 'where the queue is closed for longer, nobody looks for the turn of a group',
    async tell(desk) {
      await desk.begin(RATED);
      await desk.line('{a}1', '{a}2');
      await desk.close('', 1000);
      expect((await desk.promote()).nextMs).toBe(1000);
    },
  },
];

const limits: readonly Story[] = [
  {
    title:
      'of the limits of a group the exact name counts, then the longest beginning, and what they leave out is as all have it',
    async tell(desk) {
      const groups = {
        'a*': { concurrency: 3 },
        'ab*': { concurrency: 2 },
        abc: { concurrency: 4 },
        'f*': { concurrency: 0 },
        heavy: { weight: 2 },
      };
      await desk.begin({ perGroup: 1, groups });
      const names = ['ab', 'abd', 'ax', 'abc', 'free', 'heavy', 'other'];
      await desk.line(...names.flatMap((name) => ids(`{${name}}`, 5)));
      const started = groupsOf(await desk.serve(50));
      expect(names.map((name) => started.filter((one) => one === name).length)).toEqual([2, 2, 3, 4, 5, 1, 1]);
      expect(await desk.flaws()).toEqual([]);
      // Nothing is kept of a group without a rate that is not closed.
      expect(await kept(desk)).toEqual(['', ' a*', ' ab*', ' abc', ' f*', ' heavy']);
    },
  },
  {
    title: 'jobs without a group have no limit of groups, and no weight',
    async tell(desk) {
      await desk.begin('0 1 1 1');
      await desk.line('x', 'y', 'z');
      expect(await oneByOne(desk, 3)).toEqual(['x', 'y', 'z']);
    },
  },
  {
    title: 'limits of single groups that rise open lanes, and those that are taken away hold no longer',
    async tell(desk) {
      await desk.begin({ perGroup: 1, groups: { a: { concurrency: 1 }, b: { concurrency: 2 } } });
      await desk.line(...ids('{a}', 4), ...ids('{b}', 4));
      expect((await desk.serve(9)).sort()).toEqual(['{a}0', '{b}0', '{b}1']);
      expect(await desk.lanes()).toEqual([]);
      expect(await desk.limit({ perGroup: 1, groups: { a: { concurrency: 2 } } }, { slice: 1 })).toBe('ok');
      expect(await kept(desk)).toEqual(['', ' a']);
      expect(await desk.lanes()).toEqual(['1a']);
      expect(await desk.serve(9)).toEqual(['{a}1']);
      // Of b as many run as all may have, and one more.
      expect(await desk.serve(9, { over: ['{b}0'] })).toEqual([]);
      expect(await desk.limit('0 1 0 1')).toBe('ok');
      expect(await kept(desk)).toEqual([]);
      expect(await desk.serve(9, { over: ['{b}1', '{a}0'] })).toEqual(['{b}2']);
    },
  },
];

const weights: readonly Story[] = [
  {
    title: 'a group with a weight has so many turns before the others have one each',
    async tell(desk) {
      await desk.begin({ concurrency: 1, groups: { a: { weight: 3 } } });
      await desk.line(...ids('{a}', 9), ...ids('{b}', 4), ...ids('x', 4));
      const order = groupsOf(await oneByOne(desk, 12));
      expect(order).toEqual(['a', 'a', 'a', 'b', 'x0', 'a', 'a', 'a', 'b', 'x1', 'a', 'a']);
    },
  },
  {
    title: 'of two groups neither has more turns because a call takes an odd number',
    async tell(desk) {
      await desk.begin('0 1 3 0');
      await desk.line(...ids('{a}', 12), ...ids('{b}', 12));
      const order: string[] = [];
      for (let turn = 0; turn < 6; turn += 1) order.push(...(await desk.serve(3, { over: order.slice(-3) })));
      expect(groupsOf(order).filter((group) => group === 'a')).toHaveLength(9);
      expect(order).toHaveLength(18);
    },
  },
  {
    title: 'a lane whose first place is stale keeps its turn where its group has room for one',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      await desk.line('{a}0');
      await desk.serve(1);
      await desk.line('{a}1', '{a}2');
      await desk.redis.zadd(desk.ref.keys.scheduled, desk.nowMs + 5000, 'j:{a}1');
      expect(await desk.serve(3, { over: ['{a}0'] })).toEqual(['{a}2']);
      expect(await desk.lanes()).toEqual([]);
    },
  },
];

const closing: readonly Story[] = [
  {
    title: 'a queue that is closed lets nobody through until the very millisecond, and the longest closing counts',
    async tell(desk) {
      await desk.begin();
      expect(await desk.close('', 1000, SAID)).toBe('ok');
      expect(await desk.close('', 500, 'other')).toBe('same');
      expect(await desk.close('', 1000, 'other')).toBe('same');
      expect([await desk.meta('closing'), await kept(desk)]).toEqual([SAID, []]);
      await desk.put(['a', 'b', 'c']);
      expect(await desk.promote()).toMatchObject({ nextMs: 1000, gated: { through: 0, waiting: 3 } });
      desk.nowMs += 999;
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 1;
      expect(await desk.promote()).toMatchObject({ nextMs: undefined, gated: { through: 1, waiting: 2 } });
      expect(await desk.serve(9)).toEqual(['a', 'b', 'c']);
    },
  },
  ...[
    { where: 'no group has limits of its own', limits: '0 1 0 0' },
    { where: 'some group has limits of its own', limits: { groups: { other: { concurrency: 1 } } } },
  ].map(
    (of): Story => ({
      title: `a group that is closed lets nobody through until the very millisecond, where ${of.where}`,
      async tell(desk) {
        await desk.begin(of.limits);
        expect(await desk.close('a', 1000, SAID)).toBe('ok');
        expect(await desk.close('a', 500, 'other')).toBe('same');
        expect(await desk.close('a', 1000, 'other')).toBe('same');
        expect(await desk.close('b', 400)).toBe('ok');
        expect(await stateOf(desk, 'a')).toBe(`0.00 ${NOW + 1000} ${SAID}`);
        expect([await stateOf(desk, 'b'), await desk.meta('closing')]).toEqual([`0.00 ${NOW + 400}`, null]);
        await desk.put(['{a}1']);
        expect(await desk.promote()).toMatchObject({ nextMs: 1000, gated: { through: 0, waiting: 1 } });
        await desk.put(['{b}1', '{c}1', 'x']);
        expect(await desk.promote()).toMatchObject({ nextMs: 400, gated: { through: 1, waiting: 3 } });
        expect((await desk.serve(9)).sort()).toEqual(['x', '{c}1']);
        desk.nowMs += 400;
        expect(await desk.serve(9)).toEqual(['{b}1']);
        desk.nowMs += 599;
        expect(await desk.serve(9)).toEqual([]);
        desk.nowMs += 1;
        expect(await desk.promote()).toMatchObject({ nextMs: undefined, gated: { through: 1, waiting: 0 } });
        expect(await desk.serve(9)).toEqual(['{a}1']);
      },
    }),
  ),
  {
    title: 'what uses a turn forgets nothing that is closed, and what is closed forgets no turn',
    async tell(desk) {
      await desk.begin({ ...RATED, rate: { limit: 1000, perMs: 1000, burst: 100 } });
      await desk.line('{a}1');
      await desk.close('b', 1000, SAID);
      await desk.close('a', 2000, SAID);
      await desk.line('{b}1', '{c}1');
      expect(await desk.serve(9)).toEqual(['{a}1', '{c}1']);
      const used = [await stateOf(desk, 'a'), await stateOf(desk, 'b'), await stateOf(desk, 'c')];
      const arrival = NOW * 1000 + 100_000;
      expect(used).toEqual([`${arrival}.00 ${NOW + 2000} ${SAID}`, `0.00 ${NOW + 1000} ${SAID}`, `${arrival}.00 0`]);
      expect((await desk.meta('gate'))?.split(' ').slice(4)).toEqual(['0', String(NOW + 2000)]);
    },
  },
  {
    title: 'a queue that is opened lets who waits through, and the leader looks at once',
    async tell(desk) {
      await desk.begin();
      await desk.close('', 1000, SAID);
      await desk.line('a', 'b');
      expect(await desk.meta('wake')).toBe(String(NOW + 1000));
      expect(await desk.open('')).toBe('ok');
      expect([await desk.meta('wake'), await desk.meta('closing')]).toEqual([String(NOW), null]);
      expect(await desk.open('')).toBe('same');
      expect(await desk.serve(9)).toEqual(['a', 'b']);
      await desk.close('', 100);
      desk.nowMs += 100;
      expect(await desk.open('')).toBe('same');
    },
  },
  {
    title: 'a group that is opened has its turn at once, unless it is full',
    async tell(desk) {
      await desk.begin('0 1 0 1');
      await desk.line('{b}1');
      await desk.serve(1);
      await desk.close('a', 1000, SAID);
      await desk.close('b', 1000, SAID);
      await desk.line('{a}1', 'high {a}2', '{b}2');
      expect((await desk.lanes()).sort()).toEqual(['0a', '1a']);
      expect([await desk.open('a'), await desk.open('b')]).toEqual(['ok', 'ok']);
      expect([await stateOf(desk, 'a'), await desk.open('a')]).toEqual(['0.00 0', 'same']);
      expect([(await desk.lanes()).sort(), await openLanes(desk.redis, desk.ref)]).toEqual([['0a', '1a'], 2]);
      expect(await desk.meta('wake')).toBe(String(NOW));
      expect(await desk.serve(9)).toEqual(['{a}2']);
      await desk.close('c', 100);
      desk.nowMs += 100;
      expect(await desk.open('c')).toBe('same');
    },
  },
  {
    title: 'a queue that is not gated is not closed',
    async tell(desk) {
      await desk.begin();
      await desk.redis.hdel(desk.ref.keys.meta, 'gates', 'gate');
      const replies = [await desk.close('', 1000), await desk.close('a', 1000), await desk.open('a')];
      expect(replies).toEqual(['ungated', 'ungated', 'ungated']);
      expect([await kept(desk), await desk.meta('closing')]).toEqual([[], null]);
    },
  },
  ...(['queue', 'group'] as const).map(
    (scope): Story => ({
      title: `a job that is put aside and closes its ${scope}: nobody of it is let through meanwhile`,
      async tell(desk) {
        await desk.begin('0 1 1 0');
        await desk.line('{a}1', '{a}2', '{b}1');
        expect(await desk.serve(1)).toEqual(['{a}1']);
        await putAside(desk, '{a}1', scope);
        const [ofQueue, ofGroup] = [await desk.meta('closing'), await stateOf(desk, 'a')];
        expect([ofQueue, ofGroup]).toEqual(scope === 'queue' ? [SAID, null] : [null, `0.00 ${NOW + 100} ${SAID}`]);
        expect(await desk.ready()).toEqual(scope === 'queue' ? [] : ['{b}1']);
        const other = scope === 'queue' ? [] : await desk.serve(1);
        expect(await desk.serve(1, { over: other })).toEqual([]);
        desk.nowMs += 100;
        expect(await desk.serve(1)).toEqual([scope === 'queue' ? '{b}1' : '{a}2']);
      },
    }),
  ),
  {
    title: 'a job without a group that closes its group closes nothing',
    async tell(desk) {
      await desk.begin('0 1 1 0');
      await desk.line('x', 'y');
      await desk.serve(1);
      await putAside(desk, 'x', 'group');
      expect([await desk.ready(), await desk.meta('closing'), await kept(desk)]).toEqual([['y'], null, []]);
    },
  },
];

async function putAside(desk: Desk, id: string, scope: 'queue' | 'group'): Promise<void> {
  const closing = { scope, forMs: 100, reason: SAID };
  const when = { windowMs: 600_000, delayMs: 1000, why: '{"m":"x"}', nowMs: desk.nowMs };
  await desk.jobs.defer(desk.ref, desk.claim(id), { ...when, closing });
  desk.claims.delete(id);
}

/** In the year 2286, which is ahead of every clock. */
const FAR_MS = 9_999_999_999_999;
const GROUPS: readonly GatePart[] = ['groups'];

const unused: readonly Story[] = [
  {
    title: 'of a group without a turn that is outstanding nothing has to be kept: it is found, and goes at this moment',
    async tell(desk) {
      await desk.begin({ groups: { a: { weight: 2 } } });
      const { groups } = desk.ref.keys;
      await desk.redis.hset(groups, {
        used: `${NOW * 1000}.00 0`,
        over: `0.00 ${NOW} ${SAID}`,
        rated: `${FAR_MS}000.00 0`,
        closed: `0.00 ${FAR_MS} ${SAID}`,
      });
      const found = await desk.flaws(200, GROUPS);
      expect(found.map(({ kind, name }) => `${kind} ${name}`).sort()).toEqual(['unused over', 'unused used']);
      const all = ['used', 'over', 'rated', 'closed', 'nobody'].map((name) => ({ kind: 'unused', name }) as const);
      desk.nowMs -= 1;
      expect(await desk.mend(all)).toEqual(Array(5).fill('sound'));
      desk.nowMs += 1;
      expect(await desk.mend(all)).toEqual(['repaired', 'repaired', 'sound', 'sound', 'sound']);
      expect(await desk.mend(all)).toEqual(Array(5).fill('sound'));
      expect(await kept(desk)).toEqual(['', ' a', 'closed', 'rated']);
    },
  },
  {
    title: 'a thousand groups are looked at, a slice at a time',
    async tell(desk) {
      await desk.begin();
      const names = ids('group-', 1000);
      await desk.redis.hset(desk.ref.keys.groups, Object.fromEntries(names.map((name) => [name, '0.00 0'])));
      const found = await desk.flaws(7, GROUPS);
      expect([...new Set(found.map(({ name }) => name))].sort()).toEqual(names.sort());
    },
  },
];

export const ownStories: readonly Story[] = [...rates, ...limits, ...weights, ...closing, ...unused];
