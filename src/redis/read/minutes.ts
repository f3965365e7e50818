/**
 * `K:minutes`: a ring of a day. Field `0` to `1439` is the state when that minute of the day began, `at` is the minute at
 * which its leader has looked last, and `<letter>.<bucket>` is how many times there were within a bound, ever. Plain commands are
 * enough: states do not depend on what was written before, and additions commute. A state that nobody writes any more is
 * overwritten a day later, so the key cannot grow.
 */
import {
  type Buckets,
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
} from '../../job/minutes.ts';
import type { Redis } from '../connection/connect.ts';
import { outageOf } from '../connection/outage.ts';
import type { PartitionRef } from '../keys.ts';

const LETTERS: Readonly<Record<Spread, string>> = { promotion: 'p', start: 's', run: 'r' };
const BUCKETS = noBuckets().map((_, at) => at);
const COUNTER_FIELDS = MINUTE_COUNTERS.map((name) => `n.${name}`);
const TOTAL_FIELDS = SPREADS.flatMap((name) => BUCKETS.map((at) => fieldOf(name, at)));

function fieldOf(name: Spread, bucket: number): string {
  return `${LETTERS[name]}.${bucket}`;
}

const slotOf = (minute: number): string => String(minute % MINUTES_MAX);

/** A state as it is written, with the minute that it is of. */
export interface WrittenState extends MinuteMark {
  readonly text: string;
}

/** The counters and all times that were ever added. */
export async function stateNow(redis: Redis, { keys }: PartitionRef): Promise<string> {
  const [counters, totals] = await Promise.all([
    redis.hmget(keys.meta, ...COUNTER_FIELDS),
    redis.hmget(keys.minutes, ...TOTAL_FIELDS),
  ]);
  const numbers = totals.map((one) => Number(one ?? 0));
  const spread = (at: number): Buckets => numbers.slice(at * BUCKETS.length, (at + 1) * BUCKETS.length);
  const state: MinuteState = {
    counters: counters.map((one) => Number(one ?? 0)),
    promotion: spread(0),
    start: spread(1),
    run: spread(2),
  };
  return stateText(state);
}

/** The state of one minute, if it was written. */
export async function writtenState(
  redis: Redis,
  { keys }: PartitionRef,
  minute: number,
): Promise<WrittenState | undefined> {
  const text = await redis.hget(keys.minutes, slotOf(minute));
  const mark = readMark(text);
  return text === null || mark?.minute !== minute ? undefined : { ...mark, text: text.split(' ').slice(2).join(' ') };
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
 * Adds times to those there are. What Redis has refused stays in `buckets`; the rest is taken out of it, also where a reply was
 * lost: no time is counted twice.
 */
export async function addTimes(redis: Redis, { keys }: PartitionRef, name: Spread, buckets: number[]): Promise<void> {
  await Promise.all(
    buckets.map(async (count, at) => {
      if (count === 0) return;
      buckets[at] = 0;
      try {
        await redis.hincrby(keys.minutes, fieldOf(name, at), count);
      } catch (error) {
        if (outageOf(error) === 'full') buckets[at] = (buckets[at] ?? 0) + count;
        else throw error;
      }
    }),
  );
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
