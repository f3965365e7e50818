/** What a partition does whose jobs cost more than one turn of a rate, and what a start may say of it. See `gates-stories.ts`. */
import { expect } from 'vitest';
import type { EntryId, Token } from '../../src/job/job.ts';
import { type Desk, NOW, type Story } from './gates-desk.ts';

/** One in 100 ms. */
const TEN = '100000 1 0 0 c';
/** The same of each group, and none of the queue. */
const OF_GROUPS = '0 1 0 0 100000 1 - paced c';
const MARK = '!0.3.0';
const HOUR_MS = 3_600_000;

const costing = (turns: number) => ({ header: `;c=${turns.toString(36)}`, inMs: -20 });

/** How far ahead of now the second of two rates is used, in µs. */
const aheadOfSecond = async (desk: Desk): Promise<number> =>
  Number((await desk.meta('gate2')) ?? Number.NaN) - desk.nowMs * 1000;

/** How far ahead of now a group has used its rate, in µs. */
const aheadOf = async (desk: Desk, group: string): Promise<number> =>
  Number((await desk.redis.hget(desk.ref.keys.groups, group))?.split(' ')[0]) - desk.nowMs * 1000;

const spent = (desk: Desk, id: string) => desk.redis.hget(desk.ref.keys.spends, desk.claim(id).entry);

/** A job of this cost runs, and others wait behind it. */
async function runs(desk: Desk, share: string, cost: number, [id = 'a', ...others]: readonly string[]): Promise<void> {
  await desk.begin(share);
  await desk.put([id], costing(cost));
  if (others.length > 0) await desk.put(others, { inMs: -10 });
  await desk.promote();
  expect(await desk.serve(1)).toEqual([id]);
}

const starting: readonly Story[] = [
  {
    title: 'a job that costs more passes with one turn free, and who comes next waits until what it owes is through',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.put(['a'], costing(5));
      await desk.put(['b', 'c'], { inMs: -10 });
      expect(await desk.promote()).toMatchObject({ nextMs: 450, gated: { through: 1, waiting: 2 } });
      expect(await desk.serve(9)).toEqual(['a']);
      expect(await desk.ahead()).toBe(500_000);
      desk.nowMs += 449;
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 1;
      expect(await desk.serve(9)).toEqual(['b']);
      expect(await desk.ahead()).toBe(150_000);
    },
  },
  {
    title: 'a job that costs more than the burst starts as well, and owes the rest',
    async tell(desk) {
      await runs(desk, '100000 3 0 0 c', 10, ['a', 'b']);
      expect(await desk.ahead()).toBe(1_000_000);
      expect((await desk.promote()).nextMs).toBe(750);
      desk.nowMs += 750;
      expect(await desk.serve(9)).toEqual(['b']);
    },
  },
  {
    title: 'a job costs a thousand turns at most, whatever its record says, and one where that says nothing of it',
    async tell(desk) {
      for (const [header, us] of [
        [';c=zzz', 100_000_000],
        [';c=0', 100_000],
        [';c=', 100_000],
        [';t=c=9', 100_000],
      ] as const) {
        await desk.redis.flushall();
        await desk.begin(TEN);
        await desk.put(['a'], { header });
        await desk.promote();
        expect([header, await desk.ahead()]).toEqual([header, us]);
      }
    },
  },
  {
    title: 'each job of a call has the turns that the ones before it leave',
    async tell(desk) {
      await desk.begin('100000 5 0 0 c');
      await desk.put(['a', 'b', 'c'], costing(2));
      await desk.put(['d'], { inMs: -10 });
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['a', 'b', 'c']);
      expect(await desk.ahead()).toBe(600_000);
    },
  },
  {
    title: 'jobs with costs go past the line together where each of them finds a turn',
    async tell(desk) {
      await desk.begin('100000 3 0 0 c');
      await desk.put(['a', 'b'], costing(2));
      expect(await desk.relay(5)).toEqual(['a', 'b']);
      expect(await desk.ahead()).toBe(400_000);
    },
  },
  {
    title: 'where one of them finds none, they wait in line for their turns',
    async tell(desk) {
      await desk.begin('100000 3 0 0 c');
      await desk.put(['a', 'b'], costing(3));
      expect(await desk.relay(5)).toEqual(['a']);
      expect([await desk.ahead(), await desk.waiting()]).toEqual([300_000, ['b']]);
    },
  },
  {
    title: 'of two rates a job uses as many turns of each as it costs',
    async tell(desk) {
      await runs(desk, '100000 1 0 0 r1000000,3 c', 3, ['a', 'b']);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([300_000, 3_000_000]);
      expect((await desk.promote()).nextMs).toBe(950);
    },
  },
  {
    title: 'a job uses as many turns of the rate of its group as it costs, and other groups go on',
    async tell(desk) {
      await desk.begin(OF_GROUPS);
      await desk.put(['{g}a'], costing(5));
      await desk.put(['{g}b', '{h}c'], { inMs: -10 });
      await desk.promote();
      expect((await desk.serve(9)).toSorted()).toEqual(['{g}a', '{h}c']);
      expect([await aheadOf(desk, 'g'), await aheadOf(desk, 'h')]).toEqual([500_000, 100_000]);
      desk.nowMs += 449;
      expect(await desk.serve(9)).toEqual([]);
      desk.nowMs += 1;
      expect(await desk.serve(9)).toEqual(['{g}b']);
    },
  },
  {
    title: 'who finds no turn of its group beside the line gives back what it would have cost',
    async tell(desk) {
      await desk.begin('100000 9 0 0 100000 1 - paced c');
      await desk.put(['{g}a'], costing(2));
      await desk.put(['{g}b'], { header: ';c=3', inMs: -10 });
      expect(await desk.relay(5)).toEqual(['{g}a']);
      expect([await desk.ahead(), await aheadOf(desk, 'g')]).toEqual([200_000, 200_000]);
    },
  },
  {
    title: 'in strict order a job that is tried again costs again, and keeps its group while it waits for its turn',
    async tell(desk) {
      await runs(desk, '100000 1 0 1 s c', 3, ['{g}a', '{g}b']);
      await desk.settle('retry', '{g}a');
      desk.nowMs += 1000;
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['{g}a']);
      expect([await desk.ahead(), await desk.keepers()]).toEqual([300_000, { g: '{g}a' }]);
    },
  },
];

const givingBack: readonly Story[] = [
  {
    title: 'a place that is given back unused gives back what its job costs, to the queue and to its group',
    async tell(desk) {
      await desk.begin('100000 1 0 0 100000 1 - paced c');
      await desk.put(['{g}a'], costing(5));
      await desk.promote();
      expect([await desk.ahead(), await aheadOf(desk, 'g')]).toEqual([500_000, 500_000]);
      await desk.limit('100000 1 7 0 100000 1 - paced c');
      expect([await desk.ahead(), await aheadOf(desk, 'g')]).toEqual([0, 0]);
    },
  },
  {
    title: 'a job that was cancelled in its place, or has another cost by then, gives back what it has used',
    async tell(desk) {
      await desk.begin('100000 9 0 0 c');
      await desk.put(['a'], costing(5));
      await desk.promote();
      await desk.cancel('a');
      expect(await desk.serve(1)).toEqual([]);
      expect(await desk.ahead()).toBe(0);
      await desk.put(['b'], costing(2));
      await desk.promote();
      expect(await desk.ahead()).toBe(200_000);
      await desk.redis.hset(desk.ref.keys.jobs, 'j:b', '1mi8or64g;c=9|{}');
      await desk.limit('100000 9 7 0 c');
      expect(await desk.ahead()).toBe(0);
    },
  },
  {
    title: 'a worker that hands a job back gives back what it has used',
    async tell(desk) {
      await desk.begin(TEN);
      await desk.put(['a'], costing(5));
      await desk.promote();
      const given = await desk.read();
      await desk.jobs.release(desk.ref, given, { consumer: 'w1', nowMs: desk.nowMs });
      expect(await desk.ahead()).toBe(0);
    },
  },
  {
    title: 'an entry says what it has used, and when',
    async tell(desk) {
      await desk.begin('100000 9 0 0 c');
      await desk.put(['a'], costing(5));
      await desk.put(['b'], { inMs: -10 });
      expect((await desk.relay(5)).toSorted()).toEqual(['a', 'b']);
      const entries = await desk.redis.xrange(desk.ref.keys.ready, '-', '+');
      expect(entries.map(([, fields]) => fields.slice(4))).toEqual([
        ['cost', `5 ${NOW}000`],
        ['cost', `1 ${NOW}000`],
      ]);
    },
  },
];

const clocks: readonly Story[] = [
  {
    title: 'a clock that was set back takes what is owed of both rates with it',
    async tell(desk) {
      await runs(desk, '100000 1 0 0 r1000000,3 c', 3, ['a', 'b', 'c']);
      desk.nowMs -= HOUR_MS;
      expect(await desk.serve(9)).toEqual([]);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([300_000, 3_000_000]);
      desk.nowMs += 950;
      expect(await desk.serve(9)).toEqual(['b']);
      // Turns were used at this moment, and not at that of before.
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([100_000, 3_050_000]);
      desk.nowMs -= HOUR_MS;
      expect(await desk.serve(9)).toEqual([]);
      expect(await aheadOfSecond(desk)).toBe(3_050_000);
    },
  },
  {
    title: 'a clock that was set back takes what a group owes with it',
    async tell(desk) {
      await runs(desk, OF_GROUPS, 5, ['{g}a']);
      desk.nowMs -= HOUR_MS;
      await desk.line('high {g}b');
      expect(await aheadOf(desk, 'g')).toBe(500_000);
      desk.nowMs += 450;
      expect(await desk.serve(9)).toEqual(['{g}b']);
    },
  },
  {
    title: 'rates that change after the clock was set back keep what is owed by the clock of now',
    async tell(desk) {
      await runs(desk, TEN, 5, ['a', 'b']);
      desk.nowMs -= HOUR_MS;
      await desk.limit('200000 1 0 0 c');
      expect(await desk.ahead()).toBe(1_000_000);
      desk.nowMs += 950;
      expect(await desk.serve(9)).toEqual(['b']);
    },
  },
];

const marked: readonly Story[] = [
  {
    title: 'costs begin and end with a mark that older processes take for a pause, and their debt ends with them',
    async tell(desk) {
      await runs(desk, TEN, 50, ['a', 'b']);
      expect(await desk.meta('paused')).toBe(MARK);
      await desk.limit('100000 1 0 0');
      expect(await desk.meta('paused')).toBeNull();
      // More than a turn ahead is taken for a step of the clock there.
      expect(await desk.serve(9)).toEqual(['b']);
    },
  },
];

const spending: readonly Story[] = [
  {
    title: 'a start that has used more than its job costs owes the rest, and one that has used less gets it back',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b']);
      expect(await desk.spend('a', 5)).toBe('ok');
      expect(await desk.ahead()).toBe(500_000);
      expect(await spent(desk, 'a')).toBe(`${desk.claim('a').token} 1 5`);
      expect(await desk.spend('a', 1, 2)).toBe('ok');
      expect(await desk.ahead()).toBe(100_000);
    },
  },
  {
    title: 'the same word made again changes nothing, nor does an earlier one that comes late',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b']);
      await desk.spend('a', 5);
      await desk.spend('a', 5);
      expect(await desk.ahead()).toBe(500_000);
      await desk.spend('a', 7, 2);
      expect(await desk.spend('a', 5)).toBe('ok');
      expect(await desk.ahead()).toBe(700_000);
    },
  },
  {
    title:
      'what was used more counts from the moment in which it is said, in the queue, in its second rate and in the group',
    async tell(desk) {
      await runs(desk, '100000 1 0 0 100000 1 - paced r1000000,3 c', 2, ['{g}a']);
      desk.nowMs += 10_000;
      await desk.spend('{g}a', 5);
      const ahead = [await desk.ahead(), await aheadOfSecond(desk), await aheadOf(desk, 'g')];
      expect(ahead).toEqual([300_000, 3_000_000, 300_000]);
    },
  },
  {
    title: 'what is given back and was through by then lets nobody start twice',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b', 'c']);
      desk.nowMs += 10_000;
      await desk.spend('a', 0);
      expect(await desk.serve(9)).toEqual(['b']);
    },
  },
  {
    title:
      'what was used before the limits were set stays used, in the queue and in the group, whatever its start says',
    async tell(desk) {
      await runs(desk, '100000 1 0 0 100000 1 - paced c', 5, ['{g}a']);
      desk.nowMs += 250;
      await desk.limit('1000000 1 0 0 1000000 1 - slower c');
      expect(await desk.ahead()).toBe(2_500_000);
      await desk.spend('{g}a', 0);
      expect(await desk.ahead()).toBe(2_500_000);
      expect(await aheadOf(desk, 'g')).toBe(250_000);
    },
  },
  {
    title: 'what was through when it is given back stays used, as others have waited for it',
    async tell(desk) {
      await runs(desk, '100000 1 0 0 100000 1 - paced r200000,1 c', 5, ['{g}a', '{g}b', '{g}c']);
      desk.nowMs += 950;
      expect(await desk.serve(9)).toEqual(['{g}b']);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([100_000, 250_000]);
      // Of five turns a twentieth of a second is left of the second rate, and nothing of the others.
      await desk.spend('{g}a', 1);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([100_000, 200_000]);
      expect(await aheadOf(desk, 'g')).toBe(100_000);
    },
  },
  {
    title: 'what is given back opens the lanes of the group, and the leader is told',
    async tell(desk) {
      await runs(desk, OF_GROUPS, 5, ['{g}a', '{g}b']);
      expect(await desk.serve(1)).toEqual([]);
      await desk.promote();
      expect(await desk.meta('wake')).toBe(String(NOW + 450));
      await desk.spend('{g}a', 1);
      expect(await desk.meta('wake')).toBe(String(NOW));
      expect(await aheadOf(desk, 'g')).toBe(100_000);
      desk.nowMs += 50;
      expect(await desk.serve(9)).toEqual(['{g}b']);
    },
  },
  {
    title: 'an entry that was taken over has used nothing for that, so all that its new start says is more',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b']);
      await desk.redis.hset(desk.ref.keys.spends, desk.claim('a').entry, '1 4 7');
      await desk.spend('a', 3);
      expect(await desk.ahead()).toBe(500_000);
      expect(await spent(desk, 'a')).toBe(`${desk.claim('a').token} 1 3`);
    },
  },
  {
    title: 'who has lost its job, or ended it, says nothing of turns any more',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b']);
      const claim = desk.claim('a');
      const said = { nth: 1, turns: 9 };
      expect(await desk.jobs.spend(desk.ref, { ...claim, ...said, token: '1' as Token }, desk.nowMs)).toBe('fenced');
      expect(await desk.jobs.spend(desk.ref, { ...claim, ...said, entry: '1-1' as EntryId }, desk.nowMs)).toBe(
        'fenced',
      );
      await desk.settle('complete', 'a');
      expect(await desk.jobs.spend(desk.ref, { ...claim, ...said }, desk.nowMs)).toBe('gone');
      expect([await desk.ahead(), await desk.redis.exists(desk.ref.keys.spends)]).toEqual([200_000, 0]);
    },
  },
  {
    title: 'in a queue without costs, and in one without limits, no word of turns counts',
    async tell(desk) {
      await runs(desk, '100000 1 0 0', 1, ['a']);
      expect(await desk.spend('a', 9)).toBe('uncounted');
      expect(await desk.ahead()).toBe(100_000);
      await desk.redis.hdel(desk.ref.keys.meta, 'gates');
      expect(await desk.spend('a', 9)).toBe('uncounted');
    },
  },
  {
    title: 'what was said of entries that are over goes with later words',
    async tell(desk) {
      await runs(desk, TEN, 2, ['a', 'b']);
      const { spends: key } = desk.ref.keys;
      const over = Array.from({ length: 66 }, (_, nth) => [`1-${nth}`, '1 1 1']).flat();
      await desk.redis.hset(key, ...over);
      await desk.spend('a', 3);
      // Its own, and where the next one goes on.
      expect((await desk.redis.hkeys(key)).toSorted()).toEqual(['-', desk.claim('a').entry]);
      await desk.redis.hset(key, ...over.slice(0, 60));
      await desk.spend('a', 4, 2);
      expect(await desk.redis.hlen(key)).toBe(32);
    },
  },
];

export const costStories: readonly Story[] = [...starting, ...givingBack, ...clocks, ...marked, ...spending];
