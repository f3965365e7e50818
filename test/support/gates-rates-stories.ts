/** What a partition with two rates does: each holds, and older processes are kept out by the mark. See `gates-stories.ts`. */
import { expect } from 'vitest';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { groupsOf } from '../../src/redis/read/groups.ts';
import type { Desk, Story } from './gates-desk.ts';

/** One in 100 ms; and one a second, of which three may be at once. */
const TWO: GateSettings = {
  rate: [
    { limit: 10, perMs: 1000, burst: 1 },
    { limit: 1, perMs: 1000, burst: 3 },
  ],
};
const MARK = '!0.3.0';
const SHARE = '100000 1 0 0 r1000000,3';
const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const;

/** How far ahead of now the second rate is used, in µs. */
const aheadOfSecond = async (desk: Desk): Promise<number> =>
  Number((await desk.meta('gate2')) ?? Number.NaN) - desk.nowMs * 1000;

const lookedIn = async (desk: Desk) => (await desk.promote()).nextMs;

const holding: readonly Story[] = [
  {
    title: 'of two rates the faster one keeps jobs apart, and the slower one lets its burst go and then holds',
    async tell(desk) {
      await desk.begin(TWO);
      expect(await desk.meta('gates')).toBe(SHARE);
      await desk.line(...LETTERS);
      const starts: (readonly [ms: number, id: string])[] = [];
      for (let ms = 0; ms <= 3000; ms += 10) {
        for (const id of await desk.serve(9)) starts.push([ms, id]);
        desk.nowMs += 10;
      }
      // The turn after the burst comes a second after the first job, 50 ms early.
      expect(starts).toEqual([
        ...[[0, 'a'] as const, [50, 'b'] as const, [150, 'c'] as const],
        ...[[950, 'd'] as const, [1950, 'e'] as const, [2950, 'f'] as const],
      ]);
    },
  },
  {
    title: 'the leader looks when both of two rates allow a job more',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.put(LETTERS.slice(0, 5));
      await desk.promote();
      expect(await desk.serve(1)).toEqual(['a']);
      // The faster one is shut.
      expect(await lookedIn(desk)).toBe(50);
      desk.nowMs += 50;
      expect(await desk.serve(1)).toEqual(['b']);
      expect(await lookedIn(desk)).toBe(100);
      desk.nowMs += 100;
      expect(await desk.serve(1)).toEqual(['c']);
      // Both are shut, and the slower one for longer.
      expect(await lookedIn(desk)).toBe(800);
      desk.nowMs += 120;
      // The faster one has a turn.
      expect(await lookedIn(desk)).toBe(680);
      desk.nowMs += 680;
      expect(await desk.promote()).toMatchObject({ gated: { through: 1 } });
    },
  },
  {
    title:
      'where both of two rates are shut, the leader looks when the later one opens, also if that is the faster one',
    async tell(desk) {
      await desk.begin({
        rate: [
          { limit: 10, perMs: 1000, burst: 1 },
          { limit: 8, perMs: 1000, burst: 2 },
        ],
      });
      await desk.line('a', 'b', 'c');
      expect(await desk.serve(1)).toEqual(['a']);
      desk.nowMs += 50;
      expect(await desk.serve(1)).toEqual(['b']);
      // The slower one opens 25 ms from now.
      expect(await lookedIn(desk)).toBe(100);
    },
  },
  {
    title: 'where one of two rates has a turn, the leader looks when the other one opens',
    async tell(desk) {
      await desk.begin({
        rate: [
          { limit: 10, perMs: 1000, burst: 1 },
          { limit: 8, perMs: 1000, burst: 1 },
        ],
      });
      await desk.line('a', 'b');
      expect(await desk.serve(1)).toEqual(['a']);
      desk.nowMs += 60;
      expect(await lookedIn(desk)).toBe(15);
    },
  },
  {
    title:
      'where both of two rates have a turn and the queue is full, the leader looks when the first of them has one more',
    async tell(desk) {
      await desk.begin({ ...TWO, concurrency: 1 });
      await desk.line('a', 'b');
      expect(await desk.serve(1)).toEqual(['a']);
      desk.nowMs += 5000;
      expect(await lookedIn(desk)).toBe(100);
    },
  },
  {
    title: 'the short way uses a turn of both rates, and goes by the one that has fewer',
    async tell(desk) {
      await desk.begin({
        rate: [
          { limit: 10, perMs: 1000, burst: 5 },
          { limit: 1, perMs: 1000, burst: 2 },
        ],
      });
      for (const id of ['a', 'b']) {
        await desk.put([id]);
        expect(await desk.promote()).toMatchObject({ gated: { through: 1, waiting: 0 } });
        expect(await desk.serve(1)).toEqual([id]);
      }
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([200_000, 2_000_000]);
      await desk.put(['c']);
      expect(await desk.promote()).toMatchObject({ gated: { through: 0, waiting: 1 } });
    },
  },
  {
    title: 'who gives a place back unused gives a turn of both rates back',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line('a', 'b');
      expect(await desk.unread()).toBe(1);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([100_000, 1_000_000]);
      await desk.limit({ ...TWO, concurrency: 7 });
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([0, 0]);
    },
  },
  {
    title: 'what is given back of a second rate that was not used stays unused',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line('a', 'b');
      await desk.redis.hset(desk.ref.keys.meta, 'gate2', '500.00');
      await desk.limit({ ...TWO, concurrency: 7 });
      expect(await desk.meta('gate2')).toBe('0.00');
    },
  },
  {
    title: 'who closes a queue with two rates uses no turn of them',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line('a', 'b');
      const used = [await desk.ahead(), await aheadOfSecond(desk)];
      await desk.close('', 50);
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual(used);
    },
  },
  {
    title: 'one of more partitions than the burst of the slower rate starts jobs at the places of that one',
    async tell(desk) {
      // Partition 1 of 4 has the places 500 ms, 2.5 s, 4.5 s and so on, and may use one 300 ms before it.
      await desk.begin('400000 1 0 0 r2000000,1,1/4/1');
      await desk.line(...LETTERS);
      const starts: number[] = [];
      for (let ms = 0; ms <= 5000; ms += 10) {
        if ((await desk.serve(9)).length > 0) starts.push(ms);
        desk.nowMs += 10;
      }
      expect(starts).toEqual([200, 2200, 4200]);
    },
  },
  {
    title: 'whoever looks at groups is told what both rates allow',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line('a', 'b', 'c', 'd');
      const looked = async () => {
        const seen = await groupsOf(desk.redis, desk.ref, { after: '', limit: 10 });
        if (!('groups' in seen)) throw new Error('nobody moves it');
        const { gate: { firstTurnMs, second } = {} } = seen;
        return [firstTurnMs, second?.nextTurnMs].map((ms) => (ms ?? Number.NaN) - desk.nowMs);
      };
      expect(await looked()).toEqual([50, -1050]);
      await desk.redis.hdel(desk.ref.keys.meta, 'gate2');
      expect((await looked())[1]).toBe(-desk.nowMs - 2050);
    },
  },
];

const changing: readonly Story[] = [
  {
    title: 'a second rate has the turns used that the first one had, and keeps them while the other changes',
    async tell(desk) {
      await desk.begin('1000000 5 0 0');
      await desk.line(...LETTERS);
      expect(await desk.serve(3)).toHaveLength(3);
      await desk.limit(TWO);
      // Three turns stay used, as far as a rate and its burst remember: of the faster one 150 ms.
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([150_000, 3_000_000]);
      await desk.limit({
        rate: [
          { limit: 20, perMs: 1000, burst: 1 },
          { limit: 1, perMs: 1000, burst: 3 },
        ],
      });
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([100_000, 3_000_000]);
    },
  },
  {
    title: 'a rate that is left of two has the turns used of the one that had more',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line(...LETTERS);
      expect(await desk.serve(1)).toEqual(['a']);
      desk.nowMs += 500;
      await desk.limit({ rate: { limit: 2, perMs: 1000, burst: 1 } });
      // Half a turn of the slower one, and none of the faster one.
      expect(await desk.ahead()).toBe(250_000);
    },
  },
  {
    title: 'of two rates the faster one may have more turns used, which count',
    async tell(desk) {
      await desk.begin('100000 5 0 0');
      await desk.line(...LETTERS);
      expect(await desk.serve(5)).toHaveLength(5);
      await desk.limit({
        rate: [
          { limit: 10, perMs: 1000, burst: 5 },
          { limit: 5, perMs: 1000, burst: 1 },
        ],
      });
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([500_000, 250_000]);
      await desk.limit({ rate: { limit: 20, perMs: 1000, burst: 5 } });
      expect(await desk.ahead()).toBe(250_000);
    },
  },
  {
    title: 'two rates that change keep as many turns used',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line(...LETTERS);
      expect(await desk.serve(1)).toEqual(['a']);
      await desk.limit({
        rate: [
          { limit: 20, perMs: 1000, burst: 1 },
          { limit: 2, perMs: 1000, burst: 3 },
        ],
      });
      expect([await desk.ahead(), await aheadOfSecond(desk)]).toEqual([50_000, 500_000]);
    },
  },
  {
    title: 'two rates of a queue that has started nothing have nothing used',
    async tell(desk) {
      await desk.begin('0 1 0 0');
      await desk.limit(TWO);
      expect([await desk.meta('gate'), await desk.meta('gate2')]).toEqual([null, null]);
      await desk.line('a', 'b');
      expect(await desk.serve(9)).toEqual(['a']);
    },
  },
];

const marked: readonly Story[] = [
  {
    title:
      'two rates begin and end with a mark that older processes take for a pause, and a real pause stays behind it',
    async tell(desk) {
      await desk.begin('100000 1 0 0');
      expect(await desk.meta('paused')).toBeNull();
      await desk.pauseWell();
      const said = await desk.meta('paused');
      await desk.limit(TWO);
      expect(await desk.meta('paused')).toBe(`${MARK} ${said}`);
      await desk.line('a');
      expect(await desk.serve(9)).toEqual([]);
      await desk.resumeWell();
      expect(await desk.meta('paused')).toBe(MARK);
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['a']);
      await desk.limit('100000 1 0 0');
      expect(await desk.meta('paused')).toBeNull();
    },
  },
  {
    title:
      'where an older process has taken the second rate away, nobody is let through until the leader gives it back as it was',
    async tell(desk) {
      await desk.begin(TWO);
      await desk.line(...LETTERS);
      expect(await desk.serve(1)).toEqual(['a']);
      desk.nowMs += 50;
      expect(await desk.serve(1)).toEqual(['b']);
      // An older process knows the first rate alone, or none.
      await desk.redis.hset(desk.ref.keys.meta, 'gates', '100000 1 0 0');
      desk.nowMs += 500;
      expect(await desk.serve(9)).toEqual([]);
      expect(await desk.limit(TWO)).toBe('ok');
      expect(await aheadOfSecond(desk)).toBe(1_450_000);
      expect(await desk.serve(9)).toEqual(['c']);
      // And a mark that somebody has taken away comes back.
      await desk.redis.hdel(desk.ref.keys.meta, 'paused');
      expect(await desk.limit(TWO)).toBe('ok');
      expect(await desk.limit(TWO)).toBe('same');
      expect(await desk.meta('paused')).toBe(MARK);
    },
  },
];

export const rateStories: readonly Story[] = [...holding, ...changing, ...marked];
