/** What a leader asks ledgers for, and what it brings its partition: with ledgers and a partition that only note what they are told. */
import { expect, test } from 'vitest';
import type { SharedLimit } from '../../src/job/shared-limit.ts';
import { Borrowing, type Lending } from '../../src/mover/chores/borrower.ts';
import type { Ask, Borrowed, Gift, LendReply } from '../../src/redis/scripts/lending.ts';

const PACE: SharedLimit = { name: 'pace', revision: 1, rate: { limit: 10, perMs: 1000, burst: 5 } };
const PLACES: SharedLimit = { name: 'places', revision: 1, concurrency: 9 };
const OK = { kind: 'ok', turns: 0, share: 0, target: 0, of: 'rate', active: 1 } as const;

interface Seen extends Partial<Omit<Borrowed, 'limits'>> {
  readonly limits?: Readonly<Record<string, Partial<{ keeps: number; stock: number; used: number }>>>;
}

/** A leader of term 7, whose clock stands still unless it is told. */
function desk(limits: readonly SharedLimit[]) {
  const state = {
    nowMs: 1000,
    leads: true,
    limits,
    term: 'p:7:1000',
    seen: { line: 3, room: 3, running: 0 } as Seen,
    lends: { pace: OK, places: { ...OK, of: 'concurrency', share: 2, target: 2 } } as Record<string, LendReply | Error>,
    borrows: 'ok' as 'ok' | 'fenced' | 'lost',
    asks: [] as (Ask & { readonly name: string })[],
    gifts: [] as Gift[],
    /** How long a call to a ledger takes. */
    tookMs: 0,
  };
  const calls: Lending = {
    async lend({ name }, ask) {
      state.asks.push({ ...ask, name });
      state.nowMs += state.tookMs;
      const reply = state.lends[name];
      if (reply instanceof Error || reply === undefined) throw reply ?? new Error('no such limit');
      return reply;
    },
    async borrow(_, gifts) {
      state.gifts.push(...gifts);
      if (state.borrows === 'lost') throw new Error('lost');
      if (state.borrows === 'fenced') return { kind: 'fenced' };
      const { limits: stocks = {}, ...seen } = state.seen;
      const whole = Object.entries(stocks).map(
        ([name, one]) => [name, { keeps: 0, stock: 0, used: 0, ...one }] as const,
      );
      return { kind: 'ok', nowMs: 500_000, running: 0, room: 0, line: 0, ...seen, limits: new Map(whole) };
    },
  };
  const borrowing = new Borrowing({
    row: 'q:0',
    calls,
    leading: () => (state.leads ? { term: state.term, epoch: 7 } : undefined),
    limits: () => state.limits,
    clock: { monotonicMs: () => state.nowMs },
  });
  return {
    state,
    pass: () => borrowing.pass(),
    last: () => state.asks.at(-1),
    given: () => state.gifts.at(-1),
  };
}

test('turns end 250 ms after the ledger was asked, in the clock of the partition', async () => {
  const { state, pass, given } = desk([PACE]);
  state.lends.pace = { ...OK, turns: 2 };
  state.tookMs = 40;
  await pass();
  // The partition said 500,000 at 1000; the ledger was asked at 1000.
  expect(given()).toMatchObject({ name: 'pace', turns: 2, seq: 1, endsMs: 500_250 });
  state.nowMs += 30;
  await pass();
  // It said 500,000 again at 1040; the ledger was asked at 1070.
  expect(given()).toMatchObject({ seq: 2, endsMs: 500_280 });
});

test('no more turns are asked for than can be used: twice those of the last look, and no more than wait', async () => {
  const { state, pass, last } = desk([PACE]);
  const wants = async (seen: Seen) => {
    state.seen = seen;
    state.nowMs += 1000;
    await pass();
    return last()?.want;
  };
  expect(await wants({ line: 90, room: 90 })).toBe(1);
  expect(await wants({ line: 90, room: 90, limits: { pace: { used: 1 } } })).toBe(3);
  expect(await wants({ line: 90, room: 90, limits: { pace: { used: 3 } } })).toBe(5);
  expect(await wants({ line: 90, room: 90, limits: { pace: { used: 30, stock: 2 } } })).toBe(4);
  expect(await wants({ line: 90, room: 2, limits: { pace: { used: 30 } } })).toBe(1);
  expect(await wants({ line: 90, room: 0, limits: { pace: { used: 60 } } })).toBe(0);
});

test('without a place of the other limit no turn is asked for', async () => {
  const { state, pass } = desk([PACE, PLACES]);
  const wanted = () => state.asks.findLast(({ name }) => name === 'pace')?.want;
  await pass();
  expect(wanted()).toBe(0);
  state.seen = { line: 3, room: 3, running: 1, limits: { places: { keeps: 4 } } };
  state.nowMs += 1000;
  await pass();
  expect(wanted()).toBe(3);
});

test('places are given back when the partition has said what is left, and not before a gift of this term was answered', async () => {
  const { state, pass, last, given } = desk([PLACES]);
  state.lends.places = { ...OK, of: 'concurrency', share: 5, target: 2 };
  state.seen = { line: 9, room: 9, running: 4, limits: { places: { keeps: 4 } } };
  await pass();
  expect(last()).toMatchObject({ need: 13, back: undefined });
  expect(given()).toMatchObject({ kind: 'concurrency', share: 2, turns: 0 });
  await pass();
  expect(last()).toMatchObject({ seq: 2, back: 4 });
  state.lends.places = { ...OK, of: 'concurrency', share: 4, target: 2 };
  state.borrows = 'lost';
  await expect(pass()).rejects.toThrow('lost');
  // A gift may be on its way.
  state.borrows = 'ok';
  state.seen = { line: 9, room: 9, running: 2, limits: { places: { keeps: 2 } } };
  await pass();
  expect(last()?.back).toBeUndefined();
  await pass();
  expect(last()?.back).toBe(2);
});

test('where nobody waits nobody new is let in, and it rests when all was given back', async () => {
  const { state, pass, last, given } = desk([PLACES]);
  state.seen = { line: 0, running: 1, limits: { places: { keeps: 1 } } };
  state.lends.places = { ...OK, of: 'concurrency', share: 1, target: 1 };
  expect(await pass()).toBe(500);
  expect(given()?.share).toBe(0);
  state.seen = { line: 0, running: 0, limits: { places: { keeps: 0 } } };
  state.nowMs += 500;
  state.lends.places = { ...OK, of: 'concurrency' };
  await pass();
  expect(last()?.back).toBe(0);
  const { length } = state.asks;
  expect(await pass()).toBe(1000);
  expect(state.asks).toHaveLength(length);
});

test('a leader that is refused by a row of a later epoch looks once more, and takes the row over if it still leads', async () => {
  const { state, pass, last, given } = desk([PLACES]);
  state.lends.places = { kind: 'fenced', epoch: 9, seq: 4 };
  await pass();
  expect(last()).toMatchObject({ epoch: 7, over: undefined });
  state.lends.places = { ...OK, of: 'concurrency', share: 1, target: 1 };
  await pass();
  expect(last()).toMatchObject({ epoch: 7, over: 9, back: undefined });
  await pass();
  expect(last()?.over).toBeUndefined();
  state.borrows = 'fenced';
  const { length } = state.asks;
  state.nowMs += 1000;
  await pass();
  expect(state.asks).toHaveLength(length);
  expect(given()).toBeDefined();
});

test('one ledger that is away keeps no gift of the other from the partition, and is told of', async () => {
  const { state, pass, given } = desk([PACE, PLACES]);
  state.lends.pace = new Error('the node is away');
  await expect(pass()).rejects.toThrow('the node is away');
  expect(given()).toMatchObject({ name: 'places', share: 2 });
});

test('who does not lead asks nobody, and a new term begins anew', async () => {
  const { state, pass, last } = desk([PLACES]);
  state.leads = false;
  expect(await pass()).toEqual({ idleMs: 5000 });
  expect(state.asks).toEqual([]);
  state.leads = true;
  await pass();
  await pass();
  expect(last()?.seq).toBe(2);
  state.term = 'p:8:1000';
  await pass();
  expect(last()).toMatchObject({ seq: 1, back: undefined });
});

test('of many partitions each asks less often', async () => {
  const { state, pass } = desk([PACE]);
  expect(await pass()).toBe(50);
  state.lends.pace = { ...OK, active: 100 };
  expect(await pass()).toBe(200);
  state.lends.pace = { ...OK, active: 9000 };
  expect(await pass()).toBe(1000);
});

test('what a queue names no more is given back, and then nobody is asked any more', async () => {
  const { state, pass, last, given } = desk([PLACES]);
  state.seen = { line: 3, room: 3, running: 2, limits: { places: { keeps: 2 } } };
  await pass();
  state.limits = [];
  await pass();
  expect(last()).toMatchObject({ need: 0, back: undefined });
  expect(given()).toMatchObject({ name: 'places', share: 0 });
  // The partition knows by now that its queue names none.
  state.seen = { line: 0, room: 0, running: 0 };
  await pass();
  state.lends.places = { ...OK, of: 'concurrency' };
  await pass();
  expect(last()).toMatchObject({ back: 0 });
  expect(await pass()).toEqual({ idleMs: 5000 });
});
