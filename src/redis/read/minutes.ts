/**
 * `K:minutes`: a ring of a day. Field `0` to `1439` is the state when that minute of the day began, `at` is the minute at
 * which its leader has looked last, and `<letter>.<bucket>` is how many times there were within a bound, ever; with an o before the letter, in
 * a bucket of `job/octaves.ts`. `x<letter>` is a minute and the longest time that workers have added for it: they compare and write, so of two at one moment
 * one may be lost. Of the first partition, where lateness is promised: `promise` is what a leader has seen last (`job/promise.ts`), `kept.<ms>`
 * and `late.<ms>` are how many started in time and how many did not, ever. Plain commands are
 * enough: states do not depend on what was written before, and additions commute. A state that nobody writes any more is
 * overwritten a day later, so the key cannot grow.
 */
import {
  type Buckets,
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
import { OCTAVES } from '../../job/octaves.ts';
import { type Noted, notedText, type Promised, readNoted } from '../../job/promise.ts';
import type { LatenessPromise } from '../../job/queue-settings.ts';
import type { Redis } from '../connection/connect.ts';
import { outageOf } from '../connection/outage.ts';
import type { PartitionRef } from '../keys.ts';

const LETTERS: Readonly<Record<Spread, string>> = { promotion: 'p', start: 's', run: 'r' };
const BUCKETS = noBuckets().map((_, at) => at);
const COUNTER_FIELDS = MINUTE_COUNTERS.map((name) => `n.${name}`);
const TOTAL_FIELDS = SPREADS.flatMap((name) => BUCKETS.map((at) => fieldOf(name, at)));

const FINE = Array.from({ length: OCTAVES }, (_, octave) => octave);
const fineField = (name: Spread, octave: number): string => `o${LETTERS[name]}.${octave}`;
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
export async function stateNow(
  redis: Redis,
  { keys }: PartitionRef,
): Promise<MinuteState & { readonly noted?: Noted | undefined }> {
  const [counters, totals] = await Promise.all([
    redis.hmget(keys.meta, ...COUNTER_FIELDS),
    redis.hmget(keys.minutes, ...TOTAL_FIELDS, 'promise'),
  ]);
  const noted = readNoted(totals.at(-1));
  const promised = noted && (await promisedNow(redis, keys.minutes, noted));
  const numbers = totals.map((one) => Number(one ?? 0));
  const spread = (at: number): Buckets => numbers.slice(at * BUCKETS.length, (at + 1) * BUCKETS.length);
  return {
    counters: counters.map((one) => Number(one ?? 0)),
    promotion: spread(0),
    start: spread(1),
    run: spread(2),
    ...(promised && { noted, promised }),
  };
}

const keptFields = (withinMs: number): readonly [string, string] => [`kept.${withinMs}`, `late.${withinMs}`];

/** What was counted since it began. */
async function promisedNow(redis: Redis, key: string, noted: Noted): Promise<Promised> {
  const { keptBefore, lateBefore, expiredBefore: _, ...terms } = noted;
  const [kept, late] = await redis.hmget(key, ...keptFields(noted.withinMs));
  const since = (total: string | null | undefined, before: number) => Math.max(0, Number(total ?? 0) - before);
  return { ...terms, kept: since(kept, keptBefore), late: since(late, lateBefore), expired: 0 };
}

/** What is promised, as a leader has seen it last. */
export const notedOf = async (redis: Redis, { keys }: PartitionRef): Promise<Noted | undefined> =>
  readNoted(await redis.hget(keys.minutes, 'promise'));

/** Jobs that were late since it began, and those that expired in all partitions: a number that only grows. */
export async function lateSince(redis: Redis, refs: readonly PartitionRef[], noted: Noted): Promise<number> {
  const [first] = refs;
  const { late } = await promisedNow(redis, first?.keys.minutes ?? '', noted);
  return late + Math.max(0, (await expiredIn(redis, refs)) - noted.expiredBefore);
}

/** Ever. */
async function expiredIn(redis: Redis, refs: readonly PartitionRef[]): Promise<number> {
  const all = await Promise.all(refs.map(({ keys }) => redis.hget(keys.meta, 'n.expired')));
  return all.reduce((sum, one) => sum + Number(one ?? 0), 0);
}

/** A promise begins: what was counted before, under other terms or under the same, is none of it. Undefined: there is none any more. */
export async function notePromise(
  redis: Redis,
  refs: readonly PartitionRef[],
  { asked, minute }: { readonly asked: LatenessPromise | undefined; readonly minute: number },
): Promise<void> {
  const [ref] = refs;
  if (!ref) return;
  const { keys } = ref;
  if (!asked?.isOn) {
    await redis.hdel(keys.minutes, 'promise');
    return;
  }
  const { withinMs, of, overMs } = asked;
  const [kept, late] = await redis.hmget(keys.minutes, ...keptFields(withinMs));
  const expiredBefore = await expiredIn(redis, refs);
  const before = { keptBefore: Number(kept ?? 0), lateBefore: Number(late ?? 0), expiredBefore };
  await redis.hset(keys.minutes, 'promise', notedText({ since: minute, withinMs, of, overMs, ...before }));
}

/** Starts in time and late ones, by the time that was promised when they were counted. */
export interface KeptTally {
  readonly withinMs: number;
  kept: number;
  late: number;
}

/** As `addTimes`: what Redis has refused stays. */
export async function addKept(
  redis: Redis,
  { minutes }: Pick<PartitionRef['keys'], 'minutes'>,
  tally: KeptTally,
): Promise<void> {
  const [keptField, lateField] = keptFields(tally.withinMs);
  const { kept, late } = tally;
  tally.kept = 0;
  tally.late = 0;
  const add = async (field: string, count: number, putBack: () => void) => {
    if (count === 0) return;
    try {
      await redis.hincrby(minutes, field, count);
    } catch (error) {
      if (outageOf(error) !== 'full') throw error;
      putBack();
    }
  };
  await Promise.all([
    add(keptField, kept, () => {
      tally.kept += kept;
    }),
    add(lateField, late, () => {
      tally.late += late;
    }),
  ]);
}

/** All times that were ever added, by octaves; the longest that was added for a minute. */
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
