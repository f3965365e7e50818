/** What happened in a queue by the minute, over the last hour or day: counts, lateness and run times of all its partitions. */

import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import {
  BOUNDS_MS,
  type Buckets,
  between,
  MINUTE_COUNTERS,
  MINUTE_MS,
  MINUTES_MAX,
  type MinuteCounter,
  type MinuteMark,
  type MinuteState,
  NO_FINE,
  noBuckets,
  quantileOf,
  type Spread,
  sumOf,
  type Times,
  timesSum,
} from '../job/minutes.ts';
import { askEach, queuesIn, type UnreadQueue } from '../redis/read/each-queue.ts';
import { readMinutes } from '../redis/read/minutes.ts';
import { codeOf } from './failure.ts';

/** Times over the steps; null: there were none. */
export interface SpreadSteps {
  readonly count: readonly number[];
  /**
   * Half were within this, to 5 %. Where an older version has counted, as if the times of a bucket lay evenly between its
   * bounds, and 300,000 means: longer than that. Null: there were none.
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
   * Half were within this, to 5 %. Where an older version has counted, as if the times of a bucket lay evenly between its
   * bounds, and 300,000 means: longer than that. Null: there were none.
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

/** What happened in one minute. */
interface Minute {
  readonly isKnown: boolean;
  readonly counters: Buckets;
  readonly spreads: Readonly<Record<Spread, Times>>;
}

/** A leader that has not looked for so many minutes keeps none. */
const STALE_MINUTES = 3;

/** @param hours a step is a minute within an hour, ten within a day @throws DuestreamError `not-found` */
export async function queueMinutes(
  place: Namespaced,
  queue: string,
  of: { readonly hours: 1 | 24; readonly nowMs: number },
): Promise<QueueMinutes> {
  return (await minutesIn(place, queue, of)).minutes;
}

/** The same, with all times together, which can be added to those of other queues. */
async function minutesIn(
  place: Namespaced,
  queue: string,
  { hours, nowMs }: { readonly hours: 1 | 24; readonly nowMs: number },
): Promise<{ readonly minutes: QueueMinutes; readonly times: Readonly<Record<Spread, Times>> }> {
  const refs = await refsOfQueue(place, queue);
  const stepMinutes = hours === 1 ? 1 : 10;
  const now = Math.floor(nowMs / MINUTE_MS);
  const span = hours * 60;
  // A day is as much as is kept: its first minute has no state before it.
  const read = { from: now - Math.min(span + 1, MINUTES_MAX - 1), to: now };
  const found = await Promise.all(refs.map((ref) => readMinutes(place.redis, ref, read)));
  // The minute that has just ended counts once its state is written.
  const ends = found.every(({ at }) => at !== undefined && at.minute >= now) ? now : now - 1;
  const first = ends - span;
  const lists = found.map((one) => minutesOf(one, { first, ends }));
  const all = Array.from({ length: span }, (_, at) => together(lists.map((list) => list[at])));
  const steps = Array.from({ length: span / stepMinutes }, (_, at) =>
    together(all.slice(at * stepMinutes, (at + 1) * stepMinutes)),
  );
  const times = spreadsOf((name) => timesSum(steps.map(({ spreads }) => spreads[name])));
  const minutes = {
    on: found.some(({ at }) => at !== undefined && now - at.minute <= STALE_MINUTES),
    nowMs,
    startMs: first * MINUTE_MS,
    stepMs: stepMinutes * MINUTE_MS,
    counts: countsOf(steps),
    known: steps.map(({ isKnown }) => isKnown),
    ...spreadsOf((name) => stepsOf(steps, name)),
    total: spreadsOf((name) => totalOf(times[name])),
  };
  return { minutes, times };
}

/** Of one partition: minute n is what happened between the states with which it and the next began. */
function minutesOf(
  { at, states }: { readonly at: MinuteMark | undefined; readonly states: readonly (MinuteMark & MinuteState)[] },
  { first, ends }: { readonly first: number; readonly ends: number },
): readonly Minute[] {
  const byMinute = new Map(states.map((state) => [state.minute, state]));
  const marks = at ? [...states, at] : states;
  const isLooked = (minute: number) => marks.some((one) => one.since <= minute && minute + 1 <= one.minute);
  let before = states.find(({ minute }) => minute <= first);
  const minutes: Minute[] = [];
  for (let minute = first; minute < ends; minute += 1) {
    before ??= byMinute.get(minute);
    const after = byMinute.get(minute + 1);
    minutes.push({ ...happened(before, after), isKnown: isLooked(minute) });
    before = after ?? before;
  }
  return minutes;
}

function happened(before: MinuteState | undefined, after: MinuteState | undefined): Omit<Minute, 'isKnown'> {
  const isTold = before !== undefined && after !== undefined;
  return {
    counters: isTold ? between(before.counters, after.counters) : [],
    spreads: spreadsOf((name) => {
      if (!isTold) return { buckets: noBuckets(), fine: NO_FINE };
      return { buckets: between(before[name], after[name]), fine: after.fine?.[name] ?? NO_FINE };
    }),
  };
}

function together(some: readonly (Minute | undefined)[]): Minute {
  const all = some.flatMap((one) => (one ? [one] : []));
  return {
    isKnown: all.every(({ isKnown }) => isKnown),
    counters: sumOf(
      all.map(({ counters }) => counters),
      MINUTE_COUNTERS.length,
    ),
    spreads: spreadsOf((name) => timesSum(all.map(({ spreads }) => spreads[name]))),
  };
}

const countsOf = (steps: readonly Minute[]): QueueMinutes['counts'] => {
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

const spreadsOf = <T>(of: (name: Spread) => T): Readonly<Record<Spread, T>> => ({
  promotion: of('promotion'),
  start: of('start'),
  run: of('run'),
});

function stepsOf(steps: readonly Minute[], name: Spread): SpreadSteps {
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
    on: found.some(({ minutes }) => minutes.on),
    nowMs,
    promotion: all('promotion'),
    start: all('start'),
    run: all('run'),
    queues: found.map(({ queue, minutes }) => ({ queue, ...minutes.total })),
    unread,
  };
}

/** Nothing of a queue that was removed since. */
async function queueMinutesOf(place: Namespaced, queue: string, nowMs: number) {
  try {
    return [{ queue, ...(await minutesIn(place, queue, { hours: 1, nowMs })) }];
  } catch (error) {
    if (codeOf(error) === 'not-found') return [];
    throw error;
  }
}
