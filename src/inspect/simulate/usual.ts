/**
 * Jobs that nobody has made yet, by what is usual: as many as came due in such an hour of the past, less those of the hour that
 * are known by now, at random times. History knows no groups, so these jobs have none.
 */
import { quantileOf, type Times } from '../../job/minutes.ts';
import { span } from '../../kernel/humanize.ts';
import type { QueueMinutes } from '../minutes.ts';
import type { GroupTable, JobColumns } from './columns.ts';

/** How many jobs came due in an hour of the past that is like the one that begins then; undefined: nobody knows. */
export type UsualHour = (hourMs: number) => number | undefined;

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const WEEK_HOURS = 168;
/** An hour of which less is known says nothing. */
const KNOWN_MIN = 0.5;

type Past = Pick<QueueMinutes, 'counts' | 'known' | 'startMs' | 'stepMs'>;

/** From hours of weeks, and minutes of a day: the same hours of the week, where two of them are known; else the same hours of the day. */
export function usualOf(pasts: readonly Past[]): UsualHour {
  const sums = pasts.flatMap((past) => [sumsOf(past, WEEK_HOURS), sumsOf(past, DAY_HOURS)]);
  return (hourMs) => {
    const found = sums.map((sum) => sum(hourMs)).find(({ hours }, at) => hours >= (at === 0 ? 2 : KNOWN_MIN));
    return found && found.jobs / found.hours;
  };
}

/** What is known of an hour, of all that are a period or more apart. */
function sumsOf({ counts, known, startMs, stepMs }: Past, period: number) {
  const hourOf = (atMs: number): number => Math.floor(atMs / HOUR_MS) % period;
  const sums = Array.from({ length: period }, () => ({ jobs: 0, hours: 0 }));
  for (const [step, jobs] of counts.promoted.entries()) {
    const sum = sums[hourOf(startMs + step * stepMs)];
    if (!sum || known[step] !== true) continue;
    sum.jobs += jobs;
    sum.hours += stepMs / HOUR_MS;
  }
  return (hourMs: number) => sums[hourOf(hourMs)] ?? { jobs: 0, hours: 0 };
}

interface Span {
  readonly nowMs: number;
  readonly untilMs: number;
  readonly random: () => number;
  readonly most: number;
}

/** Adds them behind the jobs that are known. @returns how many; undefined: nobody knows what is usual in any of the hours */
export function addUsual(
  { jobs, groups }: { readonly jobs: JobColumns; readonly groups: GroupTable },
  usual: UsualHour,
  { nowMs, untilMs, random, most }: Span,
): number | undefined {
  const known = knownByHour(jobs, nowMs, untilMs);
  const before = jobs.count;
  let isKnown = false;
  for (const [nth, count] of known.entries()) {
    const hourMs = (Math.floor(nowMs / HOUR_MS) + nth) * HOUR_MS;
    const [fromMs, toMs] = [Math.max(nowMs, hourMs), Math.min(untilMs, hourMs + HOUR_MS)];
    const whole = usual(hourMs);
    if (whole === undefined) continue;
    isKnown = true;
    const expected = (whole * (toMs - fromMs)) / HOUR_MS - count;
    const made = Math.min(poisson(Math.max(0, expected), random), most - jobs.count);
    const times = Float64Array.from({ length: Math.max(0, made) }, () => fromMs + random() * (toMs - fromMs)).sort();
    for (const atMs of times) jobs.add(Math.ceil(atMs), Math.floor(random() * groups.partitionCount), 1);
  }
  return isKnown ? jobs.count - before : undefined;
}

/** How many jobs of each hour are known. */
function knownByHour({ dueMs, count }: JobColumns, nowMs: number, untilMs: number): readonly number[] {
  const first = Math.floor(nowMs / HOUR_MS);
  const hours = Array.from({ length: Math.ceil(untilMs / HOUR_MS) - first }, () => 0);
  for (let job = 0; job < count; job += 1) {
    const atMs = dueMs[job] ?? 0;
    if (atMs <= nowMs) continue;
    const hour = Math.floor(atMs / HOUR_MS) - first;
    if (hour < hours.length) hours[hour] = (hours[hour] ?? 0) + 1;
  }
  return hours;
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Above this the normal distribution is as good. */
const EXACT_MAX = 50;

function poisson(mean: number, random: () => number): number {
  if (mean <= 0) return 0;
  if (mean > EXACT_MAX) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal));
  }
  const least = Math.exp(-mean);
  let count = -1;
  for (let product = 1; product > least; count += 1) product *= random();
  return count;
}

/** How long jobs ran. */
export interface RunTimes {
  /** A share of them ran no longer. */
  readonly within: (share: number) => number;
  readonly runs: number;
  /** In short. */
  readonly text: string;
}

/** Shares at which a time is looked up. */
const STEPS = 256;

/** As they were counted; undefined where nobody counted any. */
export function runTimesOf(times: Times): RunTimes | undefined {
  const runs = times.buckets.reduce((sum, one) => sum + one, 0);
  if (runs === 0) return undefined;
  const table = Float64Array.from({ length: STEPS }, (_, at) => quantileOf(times, (at + 0.5) / STEPS) ?? 0);
  const within = (share: number) => table[Math.min(STEPS - 1, Math.floor(share * STEPS))] ?? 0;
  return { runs, within, text: `${span(within(0.5))}, 99 % within ${span(within(0.99))}` };
}
