/**
 * What a ledger and a partition do with what is lent, call by call: told to the scripts as they are by `test/redis/lend.test.ts`, and to
 * scripts that are broken on purpose by `test/proof/shared-limits.test.ts`.
 */
import { expect } from 'vitest';
import type { SharedLimit } from '../../src/job/shared-limit.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { limitKeys, partitionRef } from '../../src/redis/keys.ts';
import { type Ask, borrow, type Gift, lend, tellLedger } from '../../src/redis/scripts/lending.ts';
import { Desk, NOW } from './gates-desk.ts';
import { takeSnapshot } from './invariants.ts';
import { watched } from './model-moves.ts';

/** A ledger, and one partition that names two limits. */
export class LendingDesk {
  readonly desk: Desk;
  readonly #redis: Redis;
  readonly #calls: { readonly borrow: typeof borrow };
  nowMs = NOW;

  /** @param moves rows of the table of transitions that were seen; a move by no row of it fails */
  constructor(redis: Redis, moves?: Set<string>) {
    this.#redis = redis;
    this.desk = new Desk(redis, partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 }), moves);
    const look = () => takeSnapshot(redis, this.desk.ref.keys);
    this.#calls = moves ? watched({ borrow }, look, moves) : { borrow };
  }

  ask(limit: SharedLimit, row: string, ask: Partial<Ask> = {}) {
    const whole = { row: `${row}:0`, epoch: 1, seq: 1, want: 0, need: 0, ...ask };
    return lend(this.#redis, limitKeys('t', limit.name), { limit, ask: whole, nowMs: this.nowMs });
  }

  tell(limit: SharedLimit) {
    return tellLedger(this.#redis, limitKeys('t', limit.name), limit, this.nowMs);
  }

  rows(limit: SharedLimit) {
    return this.#redis.hkeys(limitKeys('t', limit.name).ledger);
  }

  give(gifts: readonly (Partial<Gift> & { readonly name: string })[], term = this.desk.term) {
    const whole = gifts.map(
      (gift): Gift => ({
        ...{ kind: 'rate', seq: 1, turns: 0, endsMs: this.desk.nowMs + 250, share: 0 },
        ...gift,
      }),
    );
    return this.#calls.borrow(this.#redis, this.desk.ref, { term, gifts: whole, nowMs: this.desk.nowMs });
  }

  /** Jobs are in line, and the limits are these. */
  async line(limits: string, ...words: readonly string[]): Promise<void> {
    await this.desk.begin(`0 1 0 0 l${limits}`);
    await this.desk.line(...words);
  }
}

interface LendingStory {
  readonly title: string;
  readonly tell: (desk: LendingDesk) => Promise<void>;
}

/** One turn in 100 ms, and three at once after a while. */
const TEN: SharedLimit = { name: 'pace', revision: 1, rate: { limit: 10, perMs: 1000, burst: 3 } };
const FOUR: SharedLimit = { name: 'places', revision: 1, concurrency: 4 };
const ONE: SharedLimit = { name: 'places', revision: 1, concurrency: 1 };

const ledgers: readonly LendingStory[] = [
  {
    title: 'a rate lends its burst, then as many turns as time has brought, 100 ms early at the most',
    async tell(desk) {
      expect(await desk.ask(TEN, 'a', { want: 9 })).toEqual({
        ...{ kind: 'ok', turns: 4, share: 0, target: 0, of: 'rate', active: 1 },
      });
      desk.nowMs += 99;
      expect(await desk.ask(TEN, 'a', { seq: 2, want: 9 })).toMatchObject({ turns: 0 });
      desk.nowMs += 1;
      expect(await desk.ask(TEN, 'a', { seq: 3, want: 9 })).toMatchObject({ turns: 1 });
      desk.nowMs += 60_000;
      expect(await desk.ask(TEN, 'a', { seq: 4, want: 9 })).toMatchObject({ turns: 4 });
    },
  },
  {
    title: 'turns go to whoever was served longest ago, and who was served after others gets a part',
    async tell(desk) {
      expect(await desk.ask(TEN, 'a', { want: 5 })).toMatchObject({ turns: 4 });
      expect(await desk.ask(TEN, 'b', { want: 5 })).toMatchObject({ turns: 0 });
      desk.nowMs += 100;
      expect(await desk.ask(TEN, 'a', { seq: 2, want: 5 })).toMatchObject({ turns: 0 });
      expect(await desk.ask(TEN, 'b', { seq: 2, want: 5 })).toMatchObject({ turns: 1 });
      // The other one has not asked for 150 ms.
      desk.nowMs += 150;
      expect(await desk.ask(TEN, 'b', { seq: 3, want: 1 })).toMatchObject({ turns: 1 });
    },
  },
  {
    title:
      'of two that were never served the first to ask has the turn, and who has got all that it wanted is no rival',
    async tell(desk) {
      await desk.ask(TEN, 'c', { want: 4 });
      await desk.ask(TEN, 'b', { want: 1 });
      desk.nowMs += 100;
      expect(await desk.ask(TEN, 'a', { want: 1 })).toMatchObject({ turns: 1 });
      desk.nowMs += 10_000;
      expect(await desk.ask(TEN, 'c', { seq: 2, want: 2 })).toMatchObject({ turns: 2 });
      desk.nowMs += 1;
      expect(await desk.ask(TEN, 'a', { seq: 2, want: 1 })).toMatchObject({ turns: 1 });
      desk.nowMs += 1;
      expect(await desk.ask(TEN, 'a', { seq: 3, want: 9 })).toMatchObject({ turns: 1 });
    },
  },
  {
    title: 'who has asked within a second is there, and no longer',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { need: 0 });
      await desk.ask(FOUR, 'b', { need: 1 });
      desk.nowMs += 999;
      // Who needs no place takes none from the others, and who was there a second ago does.
      expect(await desk.ask(FOUR, 'c', { need: 9 })).toMatchObject({ share: 2, active: 3 });
      await desk.ask(FOUR, 'c', { seq: 2, need: 0, back: 0 });
      desk.nowMs += 1;
      expect(await desk.ask(FOUR, 'c', { seq: 3, need: 9 })).toMatchObject({ share: 3, active: 1 });
    },
  },
  {
    title: 'a place that is free goes to whoever asks first of those that had none, and is not asked back at once',
    async tell(desk) {
      await desk.ask(ONE, 'a', { need: 1 });
      await desk.ask(ONE, 'b', { need: 1 });
      await desk.ask(ONE, 'c', { need: 1 });
      desk.nowMs += 600;
      await desk.ask(ONE, 'b', { seq: 2, need: 1 });
      await desk.ask(ONE, 'c', { seq: 2, need: 1 });
      expect(await desk.ask(ONE, 'a', { seq: 2, need: 1 })).toMatchObject({ target: 0 });
      await desk.ask(ONE, 'a', { seq: 3, need: 1, back: 0 });
      expect(await desk.ask(ONE, 'b', { seq: 3, need: 1 })).toMatchObject({ share: 1, target: 1 });
      await desk.ask(ONE, 'b', { seq: 4, need: 0, back: 0 });
      await desk.ask(ONE, 'c', { seq: 3, need: 0 });
      // It was asked back from this one before, and is not any more.
      expect(await desk.ask(ONE, 'a', { seq: 4, need: 1 })).toMatchObject({ share: 1, target: 1 });
    },
  },
  {
    title: 'the same call gets the same answer and nothing more',
    async tell(desk) {
      const first = await desk.ask(TEN, 'a', { want: 2 });
      expect(await desk.ask(TEN, 'a', { want: 2 })).toEqual(first);
      expect(await desk.ask(TEN, 'b', { want: 9 })).toMatchObject({ turns: 2 });
      const places = await desk.ask(FOUR, 'a', { need: 3 });
      expect(places).toMatchObject({ share: 3, target: 3 });
      expect(await desk.ask(FOUR, 'a', { need: 3 })).toEqual(places);
    },
  },
  {
    title: 'a call of a former leader, or an older one of the same, is refused',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { epoch: 7, seq: 5, need: 2 });
      expect(await desk.ask(FOUR, 'a', { epoch: 6, seq: 9, need: 4 })).toEqual({ kind: 'fenced', epoch: 7, seq: 5 });
      expect(await desk.ask(FOUR, 'a', { epoch: 7, seq: 4, need: 4, back: 0 })).toMatchObject({ kind: 'fenced' });
      expect(await desk.ask(FOUR, 'a', { epoch: 7, seq: 6, need: 2 })).toMatchObject({ share: 2 });
    },
  },
  {
    title: 'a new leader asks once before it gives back',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { need: 3 });
      expect(await desk.ask(FOUR, 'a', { epoch: 2, need: 3, back: 1 })).toEqual({ kind: 'claim' });
      expect(await desk.ask(FOUR, 'a', { epoch: 2, need: 1 })).toMatchObject({ share: 3 });
      expect(await desk.ask(FOUR, 'a', { epoch: 2, seq: 2, need: 1, back: 1 })).toMatchObject({ share: 1 });
      expect(await desk.ask(FOUR, 'b', { need: 3 })).toMatchObject({ share: 2 });
    },
  },
  {
    title: 'a row of an earlier life of the queue is taken over by a leader that says so, with its places',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { epoch: 9, seq: 30, need: 3 });
      expect(await desk.ask(FOUR, 'a', { need: 1, over: 8 })).toMatchObject({ kind: 'fenced', epoch: 9 });
      expect(await desk.ask(FOUR, 'a', { need: 1, over: 9 })).toMatchObject({ share: 3 });
      expect(await desk.ask(FOUR, 'a', { seq: 2, need: 0, back: 0 })).toMatchObject({ share: 0 });
    },
  },
  {
    title: 'who needs places alone has all, and each a fair part of them when others come',
    async tell(desk) {
      expect(await desk.ask(FOUR, 'a', { need: 9 })).toMatchObject({ share: 4, target: 4 });
      expect(await desk.ask(FOUR, 'b', { need: 9 })).toMatchObject({ share: 0 });
      expect(await desk.ask(FOUR, 'a', { seq: 2, need: 9 })).toMatchObject({ share: 4, target: 2 });
      expect(await desk.ask(FOUR, 'a', { seq: 3, need: 9, back: 2 })).toMatchObject({ share: 2, target: 2 });
      expect(await desk.ask(FOUR, 'b', { seq: 2, need: 9 })).toMatchObject({ share: 2, target: 2 });
    },
  },
  {
    title: 'a share without a leader stays where it is',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { need: 3 });
      desk.nowMs += 3_600_000;
      expect(await desk.ask(FOUR, 'b', { need: 9 })).toMatchObject({ share: 1 });
    },
  },
  {
    title: 'a place that others want is handed on after half a second, and stays asked back until it is given',
    async tell(desk) {
      expect(await desk.ask(ONE, 'a', { need: 1 })).toMatchObject({ share: 1, target: 1 });
      expect(await desk.ask(ONE, 'b', { need: 1 })).toMatchObject({ share: 0 });
      desk.nowMs += 500;
      await desk.ask(ONE, 'b', { seq: 2, need: 1 });
      expect(await desk.ask(ONE, 'a', { seq: 2, need: 1 })).toMatchObject({ share: 1, target: 1 });
      desk.nowMs += 1;
      expect(await desk.ask(ONE, 'a', { seq: 3, need: 1 })).toMatchObject({ share: 1, target: 0 });
      desk.nowMs += 999;
      // Nobody asks any more, and it is asked back all the same.
      expect(await desk.ask(ONE, 'a', { seq: 4, need: 1 })).toMatchObject({ share: 1, target: 0 });
      await desk.ask(ONE, 'b', { seq: 3, need: 1 });
      // It still has it, or says something that cannot be.
      expect(await desk.ask(ONE, 'a', { seq: 5, need: 1, back: 1 })).toMatchObject({ share: 1, target: 0 });
      expect(await desk.ask(ONE, 'a', { seq: 6, need: 1, back: 9 })).toMatchObject({ share: 1, target: 0 });
      expect(await desk.ask(ONE, 'a', { seq: 7, need: 1, back: 0 })).toMatchObject({ share: 0 });
      expect(await desk.ask(ONE, 'b', { seq: 4, need: 1 })).toMatchObject({ share: 1, target: 1 });
    },
  },
  {
    title: 'a concurrency that falls lends nothing and asks places back until the sum is right',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { need: 2 });
      await desk.ask(FOUR, 'b', { need: 2 });
      const three: SharedLimit = { name: 'places', revision: 2, concurrency: 3 };
      await desk.tell(three);
      expect(await desk.ask(FOUR, 'a', { seq: 2, need: 9 })).toMatchObject({ share: 2, target: 1 });
      expect(await desk.ask(FOUR, 'a', { seq: 3, need: 9, back: 1 })).toMatchObject({ share: 1, target: 1 });
      expect(await desk.ask(FOUR, 'c', { need: 9 })).toMatchObject({ share: 0 });
    },
  },
  {
    title: 'the later revision of a limit holds, and the turns that were used stay used',
    async tell(desk) {
      await desk.ask(TEN, 'a', { want: 9 });
      await desk.tell({ name: 'pace', revision: 3, rate: { limit: 1, perMs: 1000, burst: 1 } });
      expect((await desk.rows(TEN)).toSorted()).toEqual(['a:0', 'gate', 'rule']);
      desk.nowMs += 999;
      expect(await desk.ask(TEN, 'a', { seq: 2, want: 9 })).toMatchObject({ turns: 0 });
      desk.nowMs += 1;
      expect(await desk.ask(TEN, 'a', { seq: 3, want: 9 })).toMatchObject({ turns: 1 });
      await desk.tell({ name: 'pace', revision: 2, rate: { limit: 1000, perMs: 1000, burst: 9 } });
      expect(await desk.ask(TEN, 'a', { seq: 4, want: 9 })).toMatchObject({ turns: 0 });
      await desk.tell({ name: 'pace', revision: 4, concurrency: 2 });
      expect(await desk.ask(TEN, 'a', { seq: 5, want: 9, need: 9 })).toMatchObject({
        of: 'concurrency',
        share: 2,
        turns: 0,
      });
    },
  },
  {
    title: 'after the clock of the ledger was set back one turn is free at once',
    async tell(desk) {
      await desk.ask(TEN, 'a', { want: 9 });
      desk.nowMs -= 3_600_000;
      expect(await desk.ask(TEN, 'a', { seq: 2, want: 9 })).toMatchObject({ turns: 1 });
      expect(await desk.ask(TEN, 'a', { seq: 3, want: 9 })).toMatchObject({ turns: 0 });
    },
  },
  {
    title: 'a row that has no places and was silent for a minute goes, and one that has some stays',
    async tell(desk) {
      await desk.ask(FOUR, 'a', { need: 1 });
      await desk.ask(FOUR, 'b', { need: 0 });
      desk.nowMs += 60_000;
      await desk.ask(FOUR, 'c', { need: 0 });
      expect((await desk.rows(FOUR)).toSorted()).toEqual(['a:0', 'b:0', 'c:0', 'gate', 'rule']);
      desk.nowMs += 1;
      await desk.ask(FOUR, 'c', { seq: 2, need: 0 });
      expect((await desk.rows(FOUR)).toSorted()).toEqual(['a:0', 'c:0', 'gate', 'rule']);
    },
  },
];

const partitions: readonly LendingStory[] = [
  {
    title: 'a partition starts nobody until something is lent, and then as many as there are turns',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace', 'a', 'b', 'c');
      expect(await desk.serve(5)).toEqual([]);
      expect(await lending.give([{ name: 'pace', turns: 2 }])).toMatchObject({ running: 1, room: 2, line: 2 });
      expect(await desk.serve(5)).toEqual(['a', 'b']);
      expect(await lending.give([])).toMatchObject({
        running: 2,
        limits: new Map([['pace', { keeps: 0, stock: 0, used: 2 }]]),
      });
      expect(await desk.serve(5)).toEqual([]);
    },
  },
  {
    title: 'a turn that has ended is void, to the millisecond',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace', 'a', 'b', 'c', 'd');
      await lending.give([{ name: 'pace', turns: 3 }]);
      expect(await desk.serve(1)).toEqual(['a']);
      // The bell has let the next one through.
      desk.nowMs += 249;
      expect(await desk.serve(1)).toEqual(['b']);
      desk.nowMs += 1;
      await desk.line('e');
      expect(await desk.serve(5)).toEqual(['c']);
      expect(await desk.serve(5)).toEqual([]);
    },
  },
  {
    title: 'turns that come when they have ended start nobody',
    async tell(lending) {
      await lending.line('pace', 'a');
      await lending.give([{ name: 'pace', turns: 1, endsMs: lending.desk.nowMs }]);
      expect(await lending.desk.serve(5)).toEqual([]);
    },
  },
  {
    title: 'a gift counts once, and not after a later one',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('places', 'a', 'b', 'c', 'd');
      await lending.give([{ name: 'places', kind: 'concurrency', seq: 4, share: 1 }]);
      await lending.give([{ name: 'places', kind: 'concurrency', seq: 3, share: 9 }]);
      await lending.give([{ name: 'places', kind: 'concurrency', seq: 4, share: 9 }]);
      expect(await desk.serve(5)).toEqual(['a']);
      await lending.give([{ name: 'places', kind: 'concurrency', seq: 5, share: 2 }]);
      expect(await desk.serve(5)).toEqual(['b']);
    },
  },
  {
    title: 'a gift of a former leader is refused, and the first one of a new leader counts',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace', 'a', 'b');
      await lending.give([{ name: 'pace', seq: 70, turns: 0 }]);
      const former = desk.term;
      await desk.redis.del(desk.ref.keys.leader);
      await desk.begin('0 1 0 0 lpace');
      expect(await lending.give([{ name: 'pace', seq: 71, turns: 1 }], former)).toEqual({ kind: 'fenced' });
      expect(await desk.serve(5)).toEqual([]);
      await lending.give([{ name: 'pace', seq: 1, turns: 1 }]);
      expect(await desk.serve(5)).toEqual(['a']);
    },
  },
  {
    title: 'a share that falls lets nobody in, and what runs keeps its places until it ends',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('places', 'a', 'b', 'c', 'd');
      await lending.give([{ name: 'places', kind: 'concurrency', share: 3 }]);
      expect(await desk.serve(3)).toEqual(['a', 'b', 'c']);
      const keeps = async (seq: number, share: number) => {
        const seen = await lending.give([{ name: 'places', kind: 'concurrency', seq, share }]);
        return seen.kind === 'ok' ? seen.limits.get('places')?.keeps : undefined;
      };
      expect(await keeps(2, 1)).toBe(3);
      expect(await desk.serve(3, { over: ['a'] })).toEqual([]);
      expect(await keeps(3, 1)).toBe(2);
      expect(await desk.serve(3, { over: ['b', 'c'] })).toEqual(['d']);
      expect(await keeps(4, 5)).toBe(5);
    },
  },
  {
    title: 'two limits hold at once',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace,places', 'a', 'b', 'c');
      await lending.give([{ name: 'pace', turns: 3 }]);
      expect(await desk.serve(5)).toEqual([]);
      await lending.give([{ name: 'places', kind: 'concurrency', share: 2 }]);
      expect(await desk.serve(5)).toEqual(['a', 'b']);
      expect(await desk.serve(5, { over: ['a'] })).toEqual(['c']);
    },
  },
  {
    title: 'a job that is due where nobody waits takes a turn as well, and one whose group is full does not',
    async tell(lending) {
      const { desk } = lending;
      await desk.begin('0 1 0 1 lpace');
      const pace = async () => {
        const seen = await lending.give([]);
        return seen.kind === 'ok' ? seen.limits.get('pace') : undefined;
      };
      await lending.give([{ name: 'pace', turns: 2 }]);
      await desk.put(['{x}a']);
      expect(await desk.promote()).toMatchObject({ gated: { through: 1, waiting: 0 } });
      expect(await pace()).toEqual({ keeps: 0, stock: 1, used: 1 });
      expect(await desk.serve(5)).toEqual(['{x}a']);
      await desk.put(['{x}b']);
      expect(await desk.promote()).toMatchObject({ gated: { through: 0, waiting: 1 } });
      expect(await pace()).toEqual({ keeps: 0, stock: 1, used: 1 });
      await desk.line('c');
      expect(await desk.serve(5)).toEqual(['c']);
      expect(await pace()).toEqual({ keeps: 0, stock: 0, used: 2 });
    },
  },
  {
    title: 'turns add up, those that end first are used first, and those that have ended are forgotten',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace', 'a', 'b', 'c', 'd');
      await desk.pause();
      const [, epoch] = desk.term.split(':');
      const ends = [desk.nowMs + 100, desk.nowMs + 200, desk.nowMs + 250];
      await lending.give([{ name: 'pace', seq: 1, turns: 1, endsMs: ends[0] ?? 0 }]);
      await lending.give([{ name: 'pace', seq: 2, turns: 1, endsMs: ends[1] ?? 0 }]);
      await lending.give([{ name: 'pace', seq: 3, turns: 2, endsMs: ends[2] ?? 0 }]);
      expect(await desk.meta('lent')).toBe(`pace=r,${epoch}:3,0,1@${ends[0]}/1@${ends[1]}/2@${ends[2]}`);
      await desk.resume();
      desk.nowMs += 100;
      expect(await desk.serve(1)).toEqual(['a']);
      // The bell has taken one as well.
      expect(await desk.meta('lent')).toBe(`pace=r,${epoch}:3,2,1@${ends[2]}`);
      expect(await desk.serve(5)).toEqual(['b', 'c']);
    },
  },
  {
    title: 'a partition asks for no more than its own limits let through, and for nothing while it is paused or closed',
    async tell(lending) {
      const { desk } = lending;
      await lending.line('pace', 'a', 'b', 'c', 'd', 'e');
      expect(await lending.give([])).toMatchObject({ room: 5, line: 5 });
      await desk.pause();
      expect(await lending.give([{ name: 'pace', turns: 2 }])).toMatchObject({ running: 0, room: 0, line: 5 });
      await desk.resume();
      await desk.close('', 100);
      expect(await lending.give([])).toMatchObject({ running: 0, room: 0 });
      await desk.open('');
      await desk.limit('0 1 3 0 lpace');
      expect(await lending.give([])).toMatchObject({ running: 1, room: 2 });
      await desk.limit('50000 1 0 0 lpace');
      expect(await lending.give([])).toMatchObject({ room: 3 });
      expect(await lending.give([{ name: 'other', turns: 1 }])).toMatchObject({ kind: 'ok' });
    },
  },
  {
    title: 'of two rates of its own the slower one says what a partition can use, and a turn is one of all three',
    async tell(lending) {
      const { desk } = lending;
      await desk.begin('1000 50 0 0 r1000000,2 lpace');
      await desk.line('a', 'b', 'c', 'd', 'e');
      expect(await lending.give([])).toMatchObject({ room: 3, line: 5 });
      await lending.give([{ name: 'pace', seq: 1, turns: 4 }]);
      expect(await desk.serve(5)).toEqual(['a', 'b']);
      expect(await lending.give([])).toMatchObject({ room: 1, line: 3 });
    },
  },
  {
    title:
      'limits begin and end with a mark that older processes take for a pause, and come back where one took them away',
    async tell({ desk }) {
      await desk.begin('0 1 0 0');
      expect(await desk.meta('paused')).toBeNull();
      await desk.limit('0 1 0 0 lpace');
      expect(await desk.meta('paused')).toBe('!0.3.0');
      await desk.redis.hset(desk.ref.keys.meta, 'gates', '0 1 0 0');
      await desk.line('a');
      expect(await desk.serve(9)).toEqual([]);
      expect(await desk.limit('0 1 0 0 lpace')).toBe('ok');
      expect(await desk.limit('0 1 0 0')).toBe('ok');
      expect(await desk.meta('paused')).toBeNull();
      await desk.promote();
      expect(await desk.serve(9)).toEqual(['a']);
    },
  },
  {
    title: 'a queue that names no limit takes no gift',
    async tell(lending) {
      await lending.desk.begin('0 1 0 0');
      expect(await lending.give([{ name: 'pace', turns: 1 }])).toMatchObject({ room: 0, limits: new Map() });
      expect(await lending.desk.meta('lent')).toBeNull();
    },
  },
];

export const lendingStories: readonly LendingStory[] = [...ledgers, ...partitions];
