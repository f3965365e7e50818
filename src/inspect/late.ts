/**
 * Why a queue was late within some time: a verdict in one sentence first, then the numbers behind it. How late starts were is
 * told by the minutes of leaders, and why by the sums of workers; both reach back a day. The diary beside them tells what
 * happened meanwhile. What waits still was not started, so it is in none of them.
 */
import { type Namespaced, refsOfQueue } from '../client/queues/refs.ts';
import { type Cause, causeWords } from '../job/account.ts';
import { together } from '../job/happened.ts';
import { BOUNDS_MS, MINUTE_MS, MINUTES_MAX, quantileOf, type Times } from '../job/minutes.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { counted, percent, span } from '../kernel/humanize.ts';
import { minutesBetween } from '../redis/read/history.ts';
import { type GroupWait, queueCauses } from './causes.ts';
import { heldLongest, heldText, type QueueDiary, queueDiary } from './diary.ts';

/** For how long starts waited together for one cause. */
export interface LateCause {
  readonly cause: Cause;
  /** In words. */
  readonly text: string;
  readonly ms: number;
  /** Of the lateness of all starts, from 0 to 1. */
  readonly share: number;
}

export interface LateMinute {
  readonly atMs: number;
  readonly starts: number;
  /** 99 % of its starts were within this. */
  readonly p99Ms: number;
}

export interface QueueLate {
  readonly queue: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** In one sentence. */
  readonly verdict: string;
  readonly starts: number;
  /** Those that were late by a second or more. */
  readonly late: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
  /** The share of the time of which leaders have told, from 0 to 1. */
  readonly known: number;
  /** The minute with the latest starts. */
  readonly worst: LateMinute | null;
  /** The most first. Empty where no worker has told any. */
  readonly causes: readonly LateCause[];
  /** Ten at the most, the longest wait first. */
  readonly groups: readonly GroupWait[];
  readonly diary: QueueDiary;
}

const LATE_MS = 1000;

/** @throws DuestreamError `not-found` */
export async function queueLate(
  place: Namespaced,
  queue: string,
  {
    hidesReasons = false,
    ...range
  }: {
    readonly fromMs: number;
    readonly toMs: number;
    /** Without the reasons of the diary: a handler may have given one. */
    readonly hidesReasons?: boolean;
  },
): Promise<QueueLate> {
  if (range.fromMs >= range.toMs) {
    throw new DuestreamError('bad-input', `from is ${isoOf(range.fromMs)}; allowed: before to, ${isoOf(range.toMs)}`);
  }
  const [{ all, worst }, { causes, groups }, told] = await Promise.all([
    startsIn(place, queue, range),
    queueCauses(place, queue, range),
    queueDiary(place, queue, range),
  ]);
  const diary = hidesReasons ? withoutReasons(told) : told;
  const whole = causes.reduce((sum, { ms }) => sum + ms, 0);
  const shares = causes.map(({ cause, ms }) => ({ cause, text: causeWords(cause), ms, share: ms / whole }));
  const facts = { queue, ...range, ...all, worst, causes: shares, groups, diary };
  return { ...facts, verdict: verdictOf(facts) };
}

const isoOf = (ms: number): string => new Date(ms).toISOString();

const withoutReasons = ({ entries, intervals, partitions }: QueueDiary): QueueDiary => ({
  entries: entries.map((one) => ({ ...one, why: undefined })),
  intervals: intervals.map((one) => ({ ...one, why: undefined })),
  partitions,
});

interface Starts {
  readonly starts: number;
  readonly late: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
  readonly known: number;
}

async function startsIn(
  place: Namespaced,
  queue: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<{ readonly all: Starts; readonly worst: LateMinute | null }> {
  const refs = await refsOfQueue(place, queue);
  const first = Math.floor(fromMs / MINUTE_MS);
  const ends = Math.min(Math.ceil(toMs / MINUTE_MS), first + MINUTES_MAX - 1);
  const minutes = await minutesBetween(place.redis, refs, { first, ends });
  const whole = together(minutes).spreads.start;
  const { starts, late } = countsOf(whole);
  const worst = minutes
    .flatMap(({ spreads: { start } }, at) => {
      const p99Ms = quantileOf(start, 0.99);
      return p99Ms === undefined ? [] : [{ atMs: (first + at) * MINUTE_MS, starts: countsOf(start).starts, p99Ms }];
    })
    .reduce<LateMinute | null>((most, one) => (most !== null && most.p99Ms >= one.p99Ms ? most : one), null);
  const all = {
    starts,
    late,
    p50Ms: quantileOf(whole, 0.5) ?? null,
    p99Ms: quantileOf(whole, 0.99) ?? null,
    maxMs: whole.fine.counts.size === 0 ? null : whole.fine.maxMs,
    known: minutes.filter(({ isKnown }) => isKnown).length / Math.max(1, minutes.length),
  };
  return { all, worst };
}

/** Of all versions: a second is one of the bounds that they share. */
function countsOf({ buckets }: Times): { readonly starts: number; readonly late: number } {
  const sum = (some: readonly number[]) => some.reduce((all, one) => all + one, 0);
  return { starts: sum(buckets), late: sum(buckets.slice(BOUNDS_MS.indexOf(LATE_MS) + 1)) };
}

// The verdict.

type Facts = Omit<QueueLate, 'verdict'>;

function verdictOf(facts: Facts): string {
  const { queue, starts, late, p99Ms, maxMs, known, causes } = facts;
  const held = heldLongest(facts.diary.intervals, facts);
  const also = held === undefined ? '' : `; ${heldText(held)}`;
  if (starts === 0) {
    // Jobs may have started in minutes that are not told.
    return `no start of ${queue} is told in this time${known === 0 ? ': no leader has kept minutes' : ''}${also}.`;
  }
  if (late === 0) {
    const within = p99Ms === null ? '' : `, 99 % of them within ${span(p99Ms)}`;
    return `${queue} was on time: ${counted(starts, 'start')}${within}${also}.`;
  }
  const most = maxMs === null ? '' : `, the latest by ${span(maxMs)}`;
  const [first] = causes;
  const why = first ? `; ${percent(first.share)} of the lateness: ${first.text}` : '';
  const one = late === 1 ? 'was' : 'were';
  return `${queue} was late: ${late} of ${counted(starts, 'start')} ${one} late by a second or more${most}${why}${also}.`;
}
