/** Whether a queue keeps what it promises about lateness: over the last while that was promised, or in a month. For every window. */
import { layoutOfQueue, type Namespaced } from '../client/queues/refs.ts';
import { type Cause, causeWords } from '../job/account.ts';
import { DAY_MS, HOUR_MS } from '../job/happened.ts';
import { MINUTE_MS } from '../job/minutes.ts';
import { type Alert, alertOf, budgetOf, burnOf, promisedSum, type Recent, type Terms } from '../job/promise.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { memberOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { timeAt } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { askEach, queuesIn, type UnreadQueue } from '../redis/read/each-queue.ts';
import { lateSince, notedOf } from '../redis/read/minutes.ts';
import {
  type PromisedDay,
  promisedDaysIn,
  promisedDaysSince,
  promisedSince,
  recentOf,
  standingIn,
} from '../redis/read/promised.ts';
import { partitionsOf, type QueueLayout } from '../redis/scripts/queues.ts';
import { type HeldTime, heldLongest, queueDiary } from './diary.ts';

/** What a queue promises about lateness, and whether it keeps it. */
export interface Slo {
  /** A start that is later than this after its due time is late. */
  readonly withinMs: number;
  /** Which share of the jobs is to start in time. */
  readonly of: number;
  readonly overMs: number;
  /** Since when these terms are promised and counted. */
  readonly sinceMs: number;
  /** Jobs are counted from here, */
  readonly fromMs: number;
  /** up to here: now, or the end of the month. */
  readonly toMs: number;
  readonly kept: boolean;
  /** Jobs that count: starts, expired and standing ones. */
  readonly jobs: number;
  /** Which share of them started in time; null: there was no job. */
  readonly share: number | null;
  /** Starts that were late, and dead letters of jobs that were too late to start. */
  readonly late: number;
  /** Jobs that expired without a start. */
  readonly expired: number;
  /** Jobs that are due for longer than promised now, and that nobody has started. None of a month that is over. */
  readonly standing: number;
  /** So many jobs may be late, expired or standing: at least 10. */
  readonly budget: number;
  /** What is left of it; below 0 the promise is broken. */
  readonly left: number;
  /** How many times as fast as it may last the budget was used in the last hour; null of a month that is over. */
  readonly burn: number | null;
  /** The alert that rings by `deploy/alerts.yaml`: `page` or `ticket`. */
  readonly alert: Alert | null;
  /** The days that spent most of the budget, five at the most, the one with most jobs first. */
  readonly worst: readonly SloDay[];
}

/** What a day spent of a budget. */
export interface SloDay {
  /** When the day of UTC began. */
  readonly atMs: number;
  /** Starts that were late, dead letters of jobs that were too late to start, and jobs that expired without a start. */
  readonly jobs: number;
  /** Which share of the whole budget that is: above 1 the day alone was more than the budget. */
  readonly share: number;
  /** Late starts by the cause that held each longest, the most first. Workers have told them: empty where none has. */
  readonly causes: readonly SloCause[];
  /** What held the queue longest that day, as its diary tells it; null: nothing is told. */
  readonly held: SloHeld | null;
}

/** Why nothing could start, and for how long. */
export interface SloHeld extends Pick<HeldTime, 'what' | 'ms'> {
  readonly by?: string | undefined;
}

export interface SloCause {
  readonly cause: Cause;
  /** In words. */
  readonly text: string;
  /** Late starts. */
  readonly jobs: number;
}

/** The same with the name of its queue. */
export interface QueueSlo extends Slo {
  readonly queue: string;
}

/** Of all queues that promise anything. */
export interface Slos {
  readonly nowMs: number;
  /** By name. */
  readonly queues: readonly QueueSlo[];
  /** Queues that did not answer, each with the reason. */
  readonly unread: readonly UnreadQueue[];
}

export const MONTH_ALLOWED = 'a month such as 2026-11';

/** A month of UTC. @throws DuestreamError `bad-input` */
function monthOf(text: string): { readonly fromMs: number; readonly toMs: number } {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined) throw new DuestreamError('bad-input', `month is ${show(text)}; allowed: ${MONTH_ALLOWED}`);
  return { fromMs: Date.UTC(Number(year), Number(month) - 1, 1), toMs: Date.UTC(Number(year), Number(month), 1) };
}

/** @throws DuestreamError `not-found` where nothing is promised, or was in that month · `bad-input` */
export async function sloOf(place: Namespaced, queue: string, month?: string): Promise<QueueSlo> {
  const layout = await layoutOfQueue(place, queue);
  const slo = await sloIn(place, layout, month);
  if (slo) return slo;
  const when = month === undefined ? '' : ` in ${month}, or no leader has counted`;
  throw new DuestreamError(
    'not-found',
    `queue ${show(queue)} promised nothing about lateness${when}; "duestream queues set ${queue} --lateness 1s" promises that 99 % of its jobs start within 1 s`,
  );
}

/** @param may which queues count @throws DuestreamError `bad-input` */
export async function slos(
  place: Namespaced,
  { month, may = () => true }: { readonly month?: string | undefined; readonly may?: (queue: string) => boolean } = {},
): Promise<Slos> {
  if (month !== undefined) monthOf(month);
  const queues = await queuesIn(place.redis, place.namespace, may);
  const { found, unread } = await askEach(queues, (layout) => sloIn(place, layout, month));
  return { nowMs: await nowOf(place.redis, ''), queues: found.flatMap((one) => one ?? []), unread };
}

const nowOf = async (redis: Redis, key: string): Promise<number> => Math.floor(await timeAt(memberOf(redis, key)));

async function sloIn(place: Namespaced, layout: QueueLayout, month?: string): Promise<QueueSlo | undefined> {
  const { redis, namespace } = place;
  const { queue } = layout;
  const refs = partitionsOf(namespace, layout);
  const [ref] = refs;
  if (!ref) return undefined;
  const nowMs = await nowOf(redis, ref.keys.meta);
  const span = month === undefined ? undefined : monthOf(month);
  if (span && span.toMs <= nowMs) {
    const days = await promisedDaysIn(redis, ref, span);
    const [first] = days;
    if (!first) return undefined;
    return withDiary(place, { queue, ...answerOf(first.promised, { days, ...span, standing: 0 }) });
  }
  const promise = await termsOf(redis, ref, nowMs);
  if (!promise || (span && span.fromMs > nowMs)) return undefined;
  return withDiary(place, { queue, ...(await runningSlo(redis, refs, { promise, nowMs, ...span })) });
}

/** What is promised now. A promise that no leader has noted yet begins now. */
async function termsOf(redis: Redis, ref: PartitionRef, nowMs: number): Promise<Terms | undefined> {
  const { lateness } = ref;
  if (!lateness) return undefined;
  const { withinMs, of, overMs } = lateness;
  const noted = await notedOf(redis, ref);
  const isNoted = noted?.withinMs === withinMs && noted.of === of && noted.overMs === overMs;
  return { withinMs, of, overMs, since: isNoted ? noted.since : Math.floor(nowMs / MINUTE_MS) };
}

/** Up to now: of the last `over`, or from the beginning of a month on. */
async function runningSlo(
  redis: Redis,
  refs: readonly PartitionRef[],
  {
    promise,
    nowMs,
    fromMs = nowMs - promise.overMs,
  }: { readonly promise: Terms; readonly nowMs: number; readonly fromMs?: number },
): Promise<Slo> {
  const { withinMs } = promise;
  const standing = (await Promise.all(refs.map((ref) => standingIn(redis, ref, { withinMs, nowMs })))).reduce(
    (sum, one) => sum + one,
    0,
  );
  const days = await promisedDaysSince(redis, refs, { promise, fromMs, nowMs });
  const recent = await recentOf(redis, refs, { promise, nowMs });
  return answerOf(promise, { days, fromMs, toMs: nowMs, standing, recent });
}

function answerOf(
  terms: Terms,
  {
    days,
    standing,
    recent,
    fromMs,
    toMs,
  }: {
    readonly days: readonly PromisedDay[];
    readonly standing: number;
    readonly recent?: readonly Recent[];
    readonly fromMs: number;
    readonly toMs: number;
  },
): Slo {
  const { withinMs, of, overMs } = terms;
  const counted = promisedSum(days.map(({ promised }) => promised)) ?? { kept: 0, late: 0, expired: 0 };
  const { late, expired } = counted;
  const { jobs, budget, spent, isKept } = budgetOf(of, counted, standing);
  const sinceMs = terms.since * MINUTE_MS;
  const inHour = recent?.find(({ forMs }) => forMs === HOUR_MS)?.late ?? 0;
  return {
    ...{ withinMs, of, overMs, sinceMs },
    ...{ fromMs: Math.max(fromMs, sinceMs), toMs },
    kept: isKept,
    jobs,
    share: jobs === 0 ? null : (jobs - spent) / jobs,
    ...{ late, expired, standing, budget },
    left: Math.round((budget - spent) * 1000) / 1000,
    burn: recent ? burnOf({ budget, overMs, standing }, inHour) : null,
    alert: (recent && alertOf({ budget, overMs, standing }, recent)) ?? null,
    worst: worstOf(days, budget),
  };
}

const WORST_MAX = 5;

function worstOf(days: readonly PromisedDay[], budget: number): readonly SloDay[] {
  return days
    .map(({ day, promised: { late, expired }, lateBy }) => ({
      atMs: day * DAY_MS,
      jobs: late + expired,
      share: (late + expired) / budget,
      causes: [...lateBy]
        .map(([cause, jobs]) => ({ cause, text: causeWords(cause), jobs }))
        .sort((one, other) => other.jobs - one.jobs),
      held: null,
    }))
    .filter(({ jobs }) => jobs > 0)
    .sort((one, other) => other.jobs - one.jobs || other.atMs - one.atMs)
    .slice(0, WORST_MAX);
}

/** The same with what held the queue on its worst days. */
async function withDiary(place: Namespaced, slo: QueueSlo): Promise<QueueSlo> {
  const { queue, worst, toMs } = slo;
  if (worst.length === 0) return slo;
  const begins = worst.map(({ atMs }) => atMs);
  const range = { fromMs: Math.min(...begins), toMs: Math.min(Math.max(...begins) + DAY_MS, toMs) };
  const { intervals } = await queueDiary(place, queue, range);
  const heldOn = (fromMs: number): SloHeld | null => {
    const held = heldLongest(intervals, { fromMs, toMs: Math.min(fromMs + DAY_MS, toMs) });
    return held ? { what: held.what, ms: held.ms, by: held.by } : null;
  };
  return { ...slo, worst: worst.map((day) => ({ ...day, held: heldOn(day.atMs) })) };
}

/** What a scrape tells of the queue, by who leads its first partition. */
export async function promiseReading(redis: Redis, refs: readonly PartitionRef[]) {
  const [ref] = refs;
  if (!ref?.lateness) return undefined;
  const nowMs = await nowOf(redis, ref.keys.meta);
  const promise = await termsOf(redis, ref, nowMs);
  if (!promise) return undefined;
  const { withinMs, of, overMs } = promise;
  const noted = await notedOf(redis, ref);
  const promised = await promisedSince(redis, refs, { promise, fromMs: nowMs - overMs, nowMs });
  const standing = await Promise.all(refs.map((one) => standingIn(redis, one, { withinMs, nowMs })));
  const stand = standing.reduce((sum, one) => sum + one, 0);
  const { budget, spent } = budgetOf(of, promised, stand);
  return { budget, spent, standing: stand, overMs, late: noted ? await lateSince(redis, refs, noted) : 0 };
}
