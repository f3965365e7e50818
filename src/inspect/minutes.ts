/**
 * What happened in a queue: by the minute over the last hour or day, by the hour over at most 90 days, by the day over at most 13
 * months. Counts, lateness and run times of all its partitions.
 */

import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import {
  DAY_HOURS,
  DAY_MS,
  type Happened,
  HOUR_MINUTES,
  HOUR_MS,
  minutesOf,
  spreadsOf,
  together,
} from '../job/happened.ts';
import {
  BOUNDS_MS,
  type Buckets,
  MINUTE_COUNTERS,
  MINUTE_MS,
  MINUTES_MAX,
  type MinuteCounter,
  quantileOf,
  type Spread,
  type Times,
  timesSum,
} from '../job/minutes.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import { timeAt } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { askEach, queuesIn, type UnreadQueue } from '../redis/read/each-queue.ts';
import { DAYS, HOUR_DAYS, minutesBetween, readDays, readHours } from '../redis/read/history.ts';
import { lookedAt, readMinutes } from '../redis/read/minutes.ts';
import { codeOf } from './failure.ts';

/** Times over the steps; null: there were none. */
export interface SpreadSteps {
  readonly count: readonly number[];
  /**
   * Half were within this: of many times to within 2 %, of a few to within an eighth. Where version 0.2 has counted, as if the times lay
   * evenly between two of the bounds, and 300,000 means: longer than that. Null: there were none.
   */
  readonly p50Ms: readonly (number | null)[];
  /** The same of 99 %. */
  readonly p99Ms: readonly (number | null)[];
  /** The longest. Null: there were none, or only older versions have counted. */
  readonly maxMs: readonly (number | null)[];
}

export interface SpreadTotal {
  readonly boundsMs: readonly number[];
  /** One more than there are bounds: the last has what is above all. */
  readonly counts: Buckets;
  readonly count: number;
  /**
   * Half were within this: of many times to within 2 %, of a few to within an eighth. Where version 0.2 has counted, as if the times lay
   * evenly between two of the bounds, and 300,000 means: longer than that. Null: there were none.
   */
  readonly p50Ms: number | null;
  /** The same of 99 %. */
  readonly p99Ms: number | null;
  /** The longest; null where nobody knows it, because none was counted, or by older versions alone. */
  readonly maxMs: number | null;
}

interface EachSpread<Of> {
  /** From the due time to the promotion. */
  readonly promotion: Of;
  /** From the due time to the start of the handler. */
  readonly start: Of;
  /** How long handlers ran. */
  readonly run: Of;
}

export interface QueueMinutes extends EachSpread<SpreadSteps> {
  /** Whether leaders keep them now: see `http.minutes`. */
  readonly on: boolean;
  readonly nowMs: number;
  /** When the first step began. */
  readonly startMs: number;
  readonly stepMs: number;
  readonly counts: Readonly<Record<MinuteCounter, readonly number[]>>;
  /** Whether leaders have kept the whole step, in every partition. What happened in a gap is told at its end. */
  readonly known: readonly boolean[];
  /** Over the whole time. */
  readonly total: EachSpread<SpreadTotal>;
}

/** A leader that has not looked for so many minutes keeps none. */
const STALE_MINUTES = 3;

/** How far back, and how long a step is. */
export type Back =
  /** A step is a minute within an hour, ten within a day. */
  | { readonly hours: 1 | 24 }
  /** A step is an hour or a day of UTC; the last one goes on. */
  | { readonly days: number; readonly by: 'hour' | 'day' };

export const DAYS_ALLOWED = `a whole number from 1 to ${DAYS}`;
/** Up to so many days are told by the hour where nobody says how. */
const BY_HOUR_DAYS = 7;

/** As people ask for it. @throws DuestreamError `bad-input` */
export function backOf({
  hours,
  days,
  by,
}: {
  readonly hours: 1 | 24;
  readonly days?: number | undefined;
  readonly by?: 'hour' | 'day' | undefined;
}): Back {
  if (days === undefined && by !== undefined) throw new DuestreamError('bad-input', `by is ${by}; it goes with days`);
  if (days === undefined) return { hours };
  const step = by ?? (days <= BY_HOUR_DAYS ? 'hour' : 'day');
  if (days < 1 || days > DAYS) throw new DuestreamError('bad-input', `days is ${days}; allowed: ${DAYS_ALLOWED}`);
  if (step === 'hour' && days > HOUR_DAYS) {
    throw new DuestreamError('bad-input', `days is ${days}; hours are kept for ${HOUR_DAYS}: ask by day`);
  }
  return { days, by: step };
}

/** @param nowMs default: the clock of Redis @throws DuestreamError `not-found` */
export async function queueMinutes(
  place: Namespaced,
  queue: string,
  back: Back & { readonly nowMs?: number },
): Promise<QueueMinutes> {
  return (await minutesAndTimes(place, queue, back)).minutes;
}

/** The same, with all times together, of which any share can be told. */
export async function minutesAndTimes(
  place: Namespaced,
  queue: string,
  { nowMs: said, ...back }: Back & { readonly nowMs?: number },
): Promise<{ readonly minutes: QueueMinutes; readonly times: Readonly<Record<Spread, Times>> }> {
  const refs = await refsOfQueue(place, queue);
  const nowMs = said ?? Math.floor(await timeAt(memberOf(place.redis, refs[0]?.keys.meta ?? '')));
  const read = 'hours' in back ? minutesIn(place, refs, { ...back, nowMs }) : longIn(place, refs, { ...back, nowMs });
  const found = await read;
  return { minutes: answerOf(found), times: totalsOf(found.steps) };
}

/** Steps of equal length, the oldest first. */
interface Steps {
  readonly isOn: boolean;
  readonly nowMs: number;
  readonly startMs: number;
  readonly stepMs: number;
  readonly steps: readonly Happened[];
}

async function minutesIn(
  { redis }: Namespaced,
  refs: readonly PartitionRef[],
  { hours, nowMs }: { readonly hours: 1 | 24; readonly nowMs: number },
): Promise<Steps> {
  const stepMinutes = hours === 1 ? 1 : 10;
  const now = Math.floor(nowMs / MINUTE_MS);
  const span = hours * HOUR_MINUTES;
  // A day is as much as is kept: its first minute has no state before it.
  const read = { from: now - Math.min(span + 1, MINUTES_MAX - 1), to: now };
  const found = await Promise.all(refs.map((ref) => readMinutes(redis, ref, read)));
  // The minute that has just ended counts once its state is written.
  const ends = found.every(({ at }) => at !== undefined && at.minute >= now) ? now : now - 1;
  const first = ends - span;
  const lists = found.map((one) => minutesOf(one, { first, ends }));
  const all = Array.from({ length: span }, (_, at) => together(lists.map((list) => list[at])));
  const steps = Array.from({ length: span / stepMinutes }, (_, at) =>
    together(all.slice(at * stepMinutes, (at + 1) * stepMinutes)),
  );
  const isOn = found.some(({ at }) => at !== undefined && now - at.minute <= STALE_MINUTES);
  return { isOn, nowMs, startMs: first * MINUTE_MS, stepMs: stepMinutes * MINUTE_MS, steps };
}

/** Hours or days up to that of now, of which the minutes tell so far. */
async function longIn(
  { redis }: Namespaced,
  refs: readonly PartitionRef[],
  { days, by, nowMs }: { readonly days: number; readonly by: 'hour' | 'day'; readonly nowMs: number },
): Promise<Steps> {
  const [ref] = refs;
  const today = Math.floor(nowMs / DAY_MS);
  const hour = Math.floor(nowMs / HOUR_MS);
  const minute = Math.floor(nowMs / MINUTE_MS);
  const going = ref && together(await minutesBetween(redis, refs, { first: hour * HOUR_MINUTES, ends: minute }));
  const span = by === 'hour' ? { from: hour - days * DAY_HOURS + 1, to: hour } : { from: today - days + 1, to: today };
  const lines = ref && (await (by === 'hour' ? readHours : readDays)(redis, ref, span));
  const earliest = Math.min(...(lines?.keys() ?? []));
  const steps = Array.from({ length: span.to - span.from + 1 }, (_, nth) => {
    const at = span.from + nth;
    const step = together([lines?.get(at), ...(at === span.to ? [going] : [])]);
    // Where nothing happened there is no line; before the first line nobody has kept any.
    return { ...step, isKnown: step.isKnown && (lines?.has(at) || at > earliest) };
  });
  const at = ref && (await lookedAt(redis, ref));
  const stepMs = by === 'hour' ? HOUR_MS : DAY_MS;
  const isOn = at !== undefined && minute - at.minute <= STALE_MINUTES;
  return { isOn, nowMs, startMs: span.from * stepMs, stepMs, steps };
}

const totalsOf = (steps: readonly Happened[]): Readonly<Record<Spread, Times>> =>
  spreadsOf((name) => timesSum(steps.map(({ spreads }) => spreads[name])));

function answerOf({ isOn, nowMs, startMs, stepMs, steps }: Steps): QueueMinutes {
  const times = totalsOf(steps);
  return {
    ...{ on: isOn, nowMs, startMs, stepMs },
    counts: countsOf(steps),
    known: steps.map(({ isKnown }) => isKnown),
    ...spreadsOf((name) => stepsOf(steps, name)),
    total: spreadsOf((name) => totalOf(times[name])),
  };
}

const countsOf = (steps: readonly Happened[]): QueueMinutes['counts'] => {
  const of = (name: MinuteCounter) => steps.map(({ counters }) => counters[MINUTE_COUNTERS.indexOf(name)] ?? 0);
  return {
    scheduled: of('scheduled'),
    promoted: of('promoted'),
    done: of('done'),
    retried: of('retried'),
    deferred: of('deferred'),
    dead: of('dead'),
    cancelled: of('cancelled'),
    expired: of('expired'),
  };
};

function stepsOf(steps: readonly Happened[], name: Spread): SpreadSteps {
  const all = steps.map(({ spreads }) => totalOf(spreads[name]));
  return {
    count: all.map(({ count }) => count),
    p50Ms: all.map(({ p50Ms }) => p50Ms),
    p99Ms: all.map(({ p99Ms }) => p99Ms),
    maxMs: all.map(({ maxMs }) => maxMs),
  };
}

function totalOf(times: Times): SpreadTotal {
  const [p50Ms, p99Ms] = [quantileOf(times, 0.5) ?? null, quantileOf(times, 0.99) ?? null];
  const { buckets, fine } = times;
  const maxMs = fine.counts.size === 0 ? null : fine.maxMs;
  return { boundsMs: BOUNDS_MS, counts: buckets, count: countIn(buckets), p50Ms, p99Ms, maxMs };
}

const countIn = (buckets: Buckets): number => buckets.reduce((sum, one) => sum + one, 0);

// How late jobs were in the last hour and how long they ran, over all queues and queue by queue: their buckets are
// added.

interface QueueLateness extends EachSpread<SpreadTotal> {
  readonly queue: string;
}

/** The spreads over all queues, and of each. */
export interface Lateness extends EachSpread<SpreadTotal> {
  /** Whether leaders keep them now, in any queue: see `http.minutes`. */
  readonly on: boolean;
  readonly nowMs: number;
  /** By name. */
  readonly queues: readonly QueueLateness[];
  /** Queues that did not answer, each with the reason. */
  readonly unread: readonly UnreadQueue[];
}

/** @param may which queues count */
export async function lastHour(
  place: Namespaced,
  { may, nowMs }: { readonly may: (queue: string) => boolean; readonly nowMs: number },
): Promise<Lateness> {
  const queues = await queuesIn(place.redis, place.namespace, may);
  const answered = await askEach(queues, ({ queue }) => queueMinutesOf(place, queue, nowMs));
  const [found, unread] = [answered.found.flat(), answered.unread];
  const all = (name: Spread) => totalOf(timesSum(found.map(({ times }) => times[name])));
  return {
    on: found.some(({ isOn }) => isOn),
    nowMs,
    promotion: all('promotion'),
    start: all('start'),
    run: all('run'),
    queues: found.map(({ queue, times }) => ({ queue, ...spreadsOf((name) => totalOf(times[name])) })),
    unread,
  };
}

/** Nothing of a queue that was removed since. */
async function queueMinutesOf(place: Namespaced, queue: string, nowMs: number) {
  try {
    const { isOn, steps } = await minutesIn(place, await refsOfQueue(place, queue), { hours: 1, nowMs });
    return [{ queue, isOn, times: totalsOf(steps) }];
  } catch (error) {
    if (codeOf(error) === 'not-found') return [];
    throw error;
  }
}
