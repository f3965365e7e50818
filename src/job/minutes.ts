/**
 * Counts and lateness by the minute, for charts. What is kept are no counts of a minute but **states**: the durable counters
 * of a partition, and how many times lateness and run time were within each bound, all of them as they were when a minute
 * began. What happened in a minute is the difference of two states. So a state that is written twice, or by two leaders,
 * counts nothing twice, and one that is missing loses nothing: its minute is told together with the next.
 *
 *     <minute> <since> <counters> <promotion> <start> <run>
 *
 * `minute` is the number of minutes since 1970, by the clock of Redis. From `since` on the leader has looked at the beginning
 * of each minute. Lists are numbers in base 36 with commas; 0 is written as nothing, and so is the end of a list.
 */

export const MINUTE_MS = 60_000;
/** States of so many minutes are kept: a day. */
export const MINUTES_MAX = 1440;

/** The counters that are kept, as `K:meta` names them behind `n.`. */
export const MINUTE_COUNTERS = [
  ...(['scheduled', 'promoted', 'done', 'retried', 'deferred', 'dead', 'cancelled', 'expired'] as const),
];
export type MinuteCounter = (typeof MINUTE_COUNTERS)[number];

/** What is spread over bounds: from due time to promotion, from due time to start, and how long handlers ran. */
export const SPREADS = ['promotion', 'start', 'run'] as const;
export type Spread = (typeof SPREADS)[number];

/** Times above it are not told apart. */
export const LONGEST_MS = 300_000;

/** A time is within the first bound that is not less; the last bucket has what is above all. */
export const BOUNDS_MS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 250, 1000, 5000, 30_000, LONGEST_MS];

/** How many times were within each bound and above the one before. */
export type Buckets = readonly number[];

export const noBuckets = (): number[] => Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);

export function bucketOf(ms: number): number {
  let at = 0;
  while (at < BOUNDS_MS.length && ms > (BOUNDS_MS[at] ?? 0)) at += 1;
  return at;
}

/** What is counted, as it was at one moment. */
export interface MinuteState extends Readonly<Record<Spread, Buckets>> {
  readonly counters: Buckets;
}

/** A state and when it was. */
export interface MinuteMark {
  readonly minute: number;
  readonly since: number;
}

export const stateText = ({ counters, ...spreads }: MinuteState): string =>
  [counters, ...SPREADS.map((name) => spreads[name])].map(listText).join(' ');

export const markText = ({ minute, since }: MinuteMark): string => `${minute} ${since}`;

/** Undefined for what is none, whoever wrote it. */
export function readMark(text: string | null | undefined): MinuteMark | undefined {
  const [, minute, since] = /^(\d{1,10}) (\d{1,10})(?: |$)/.exec(text ?? '') ?? [];
  return minute === undefined ? undefined : { minute: Number(minute), since: Number(since) };
}

export function readState(text: string | null | undefined): (MinuteMark & MinuteState) | undefined {
  const mark = readMark(text);
  const lists = (text ?? '').split(' ').slice(2);
  if (!mark || lists.length !== 1 + SPREADS.length) return undefined;
  const [counters = '', promotion = '', start = '', run = ''] = lists;
  const size = BOUNDS_MS.length + 1;
  return {
    ...mark,
    counters: listOf(counters, MINUTE_COUNTERS.length),
    promotion: listOf(promotion, size),
    start: listOf(start, size),
    run: listOf(run, size),
  };
}

/** What happened between two states. A counter that fell has been lost, or the clock was set: then nothing is told. */
export const between = (before: Buckets, after: Buckets): Buckets =>
  after.map((value, at) => Math.max(0, value - (before[at] ?? 0)));

export const sumOf = (all: readonly Buckets[], length: number): Buckets =>
  Array.from({ length }, (_, at) => all.reduce((sum, one) => sum + (one[at] ?? 0), 0));

/**
 * The time within which a share of the times are, as if those of a bucket lay evenly between its bounds. Above the last bound
 * nobody knows: then it is that bound, which no other share has. Undefined where there is none.
 */
export function quantileOf(buckets: Buckets, share: number): number | undefined {
  const count = buckets.reduce((sum, one) => sum + one, 0);
  let before = 0;
  for (const [at, inside] of buckets.entries()) {
    const nth = share * count - before;
    if (inside === 0 || nth > inside) {
      before += inside;
      continue;
    }
    const to = BOUNDS_MS[at];
    if (to === undefined) return LONGEST_MS;
    const from = BOUNDS_MS[at - 1] ?? 0;
    const ms = from + ((to - from) * nth) / inside;
    return Math.min(LONGEST_MS - 1, Number(ms.toPrecision(3)));
  }
  return undefined;
}

const listText = (list: Buckets): string =>
  list
    .map((value) => (value === 0 ? '' : value.toString(36)))
    .join(',')
    .replace(/,+$/, '');

function listOf(text: string, length: number): Buckets {
  const parts = text.split(',');
  return Array.from({ length }, (_, at) => {
    const value = Number.parseInt(parts[at] ?? '', 36);
    return Number.isSafeInteger(value) ? value : 0;
  });
}
