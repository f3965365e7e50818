/**
 * `K:minutes`: a ring of a day. Field `0` to `1439` is the state when that minute of the day began, `at` is the minute at
 * which its leader has looked last, and `<letter>.<bucket>` is how many times there were within a bound, ever; with an f before the letter, within a
 * fine one. `x<letter>` is a minute and the longest time that workers have added for it: they compare and write, so of two at one moment
 * one may be lost. Plain commands are
 * enough: states do not depend on what was written before, and additions commute. A state that nobody writes any more is
 * overwritten a day later, so the key cannot grow.
 */
import {
  type Buckets,
  FINE_BOUNDS_MS,
  type Fine,
  MINUTE_COUNTERS,
  MINUTES_MAX,
  type MinuteMark,
  type MinuteState,
  markText,
  noBuckets,
  readMark,
  readState,
  SPREADS,
  type Spread,
  stateText,
  type Tally,
} from '../../job/minutes.ts';
import type { Redis } from '../connection/connect.ts';
import { outageOf } from '../connection/outage.ts';
import type { PartitionRef } from '../keys.ts';

const LETTERS: Readonly<Record<Spread, string>> = { promotion: 'p', start: 's', run: 'r' };
const BUCKETS = noBuckets().map((_, at) => at);
const COUNTER_FIELDS = MINUTE_COUNTERS.map((name) => `n.${name}`);
const TOTAL_FIELDS = SPREADS.flatMap((name) => BUCKETS.map((at) => fieldOf(name, at)));

const FINE = [...FINE_BOUNDS_MS.keys(), FINE_BOUNDS_MS.length];
const fineField = (name: Spread, bound: number): string => `f${LETTERS[name]}.${bound}`;
const longestField = (name: Spread): string => `x${LETTERS[name]}`;

function fieldOf(name: Spread, bucket: number): string {
  return `${LETTERS[name]}.${bucket}`;
}

const slotOf = (minute: number): string => String(minute % MINUTES_MAX);

/** A state as it is written, with the minute that it is of. */
export interface WrittenState extends MinuteMark {
  readonly text: string;
}

/** The counters and all times that were ever added, by the bounds that all versions know. */
export async function stateNow(redis: Redis, { keys }: PartitionRef): Promise<MinuteState> {
  const [counters, totals] = await Promise.all([
    redis.hmget(keys.meta, ...COUNTER_FIELDS),
    redis.hmget(keys.minutes, ...TOTAL_FIELDS),
  ]);
  const numbers = totals.map((one) => Number(one ?? 0));
  const spread = (at: number): Buckets => numbers.slice(at * BUCKETS.length, (at + 1) * BUCKETS.length);
  return {
    counters: counters.map((one) => Number(one ?? 0)),
    promotion: spread(0),
    start: spread(1),
    run: spread(2),
  };
}

/** All times that were ever added, by the fine bounds; the longest that was added for a minute. */
export type FineTotals = Readonly<Record<Spread, Fine>>;

export async function fineNow(redis: Redis, { keys }: PartitionRef, minute: number): Promise<FineTotals> {
  const of = async (name: Spread): Promise<Fine> => {
    const fields = FINE.map((at) => fineField(name, at));
    const [longest, ...totals] = await redis.hmget(keys.minutes, longestField(name), ...fields);
    const counts = totals.flatMap((total, at) => (total === null ? [] : [[at, Number(total)] as const]));
    return { counts: new Map(counts), maxMs: longestOf(longest, minute, minute - 1) };
  };
  const [promotion, start, run] = await Promise.all([of('promotion'), of('start'), of('run')]);
  return { promotion, start, run };
}

/** Of a minute, or of the one before: a worker that came late has added for that. */
const longestOf = (text: string | null | undefined, ...minutes: readonly number[]): number => {
  const [at = 0, ms = 0] = (text ?? '').split(' ').map(Number);
  return minutes.includes(at) ? ms : 0;
};

/** The state of one minute, if it was written, without what came before it. */
export async function writtenState(
  redis: Redis,
  { keys }: PartitionRef,
  minute: number,
): Promise<WrittenState | undefined> {
  const state = readState(await redis.hget(keys.minutes, slotOf(minute)));
  if (state?.minute !== minute) return undefined;
  const { since, fine: _before, ...counted } = state;
  return { minute, since, text: stateText(counted) };
}

/** Writes states, and when the leader has looked last. */
export async function writeStates(
  redis: Redis,
  { keys }: PartitionRef,
  { at, states }: { readonly at: MinuteMark; readonly states: readonly WrittenState[] },
): Promise<void> {
  const fields = states.flatMap((one) => [slotOf(one.minute), `${markText(one)} ${one.text}`]);
  await redis.hset(keys.minutes, 'at', markText(at), ...fields);
}

/** When a leader has looked last; undefined where none ever did. */
export async function lookedAt(redis: Redis, { keys }: PartitionRef): Promise<MinuteMark | undefined> {
  return readMark(await redis.hget(keys.minutes, 'at'));
}

/**
 * Adds times to those there are. What Redis has refused stays in the tally; the rest is taken out of it, also where a reply was
 * lost: no time is counted twice.
 */
export async function addTimes(
  redis: Redis,
  { keys }: PartitionRef,
  { name, tally, minute }: { readonly name: Spread; readonly tally: Tally; readonly minute: number },
): Promise<void> {
  const { buckets, fine, maxMs } = tally;
  if (buckets.every((count) => count === 0)) return;
  tally.maxMs = 0;
  const add = async (field: string, count: number, putBack: () => void) => {
    try {
      await redis.hincrby(keys.minutes, field, count);
    } catch (error) {
      if (outageOf(error) !== 'full') throw error;
      putBack();
    }
  };
  const coarse = buckets.map(async (count, at) => {
    if (count === 0) return;
    buckets[at] = 0;
    await add(fieldOf(name, at), count, () => {
      buckets[at] = (buckets[at] ?? 0) + count;
      tally.maxMs = Math.max(tally.maxMs, maxMs);
    });
  });
  const finer = [...fine].map(async ([at, count]) => {
    fine.delete(at);
    await add(fineField(name, at), count, () => fine.set(at, (fine.get(at) ?? 0) + count));
  });
  await Promise.all([...coarse, ...finer, noteLongest(redis, keys.minutes, { name, maxMs, minute })]);
}

async function noteLongest(
  redis: Redis,
  key: string,
  { name, maxMs, minute }: { readonly name: Spread; readonly maxMs: number; readonly minute: number },
): Promise<void> {
  const field = longestField(name);
  if (longestOf(await redis.hget(key, field), minute) >= maxMs) return;
  await redis.hset(key, field, `${minute} ${Math.ceil(maxMs)}`).catch((error: unknown) => {
    if (outageOf(error) !== 'full') throw error;
  });
}

/** The states of these minutes that there are, in their order, and when the leader has looked last. */
export async function readMinutes(
  redis: Redis,
  { keys }: PartitionRef,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<{ readonly at: MinuteMark | undefined; readonly states: readonly (MinuteMark & MinuteState)[] }> {
  const minutes = Array.from({ length: Math.min(MINUTES_MAX, to - from + 1) }, (_, nth) => to - nth).reverse();
  const [at, ...texts] = await redis.hmget(keys.minutes, 'at', ...minutes.map(slotOf));
  const states = texts.flatMap((text, nth) => {
    const state = readState(text);
    return state !== undefined && state.minute === minutes[nth] ? [state] : [];
  });
  return { at: readMark(at), states };
}
