/** Jobs of a promise of lateness (`job/promise.ts`): those that were counted, in hours, days and minutes, and those that stand now. */
import { type Cause, sumsTogether } from '../../job/account.ts';
import { DAY_HOURS, DAY_MS, type Happened, HOUR_MINUTES, HOUR_MS, togetherUnder } from '../../job/happened.ts';
import { MINUTE_MS } from '../../job/minutes.ts';
import { PACE_SPANS_MS, type Promised, promisedSum, type Recent, type Terms } from '../../job/promise.ts';
import type { Redis } from '../connection/connect.ts';
import { GROUP, type PartitionRef } from '../keys.ts';
import { fieldsOf, list, type Reply, scoresOf, text } from '../scripts/scripts.ts';
import { readCauses } from './causes.ts';
import { lastHour, minutesBetween, readDays, readHours } from './history.ts';

/** The minutes of so many hours are surely there. */
const MINUTES_HOURS = 22;

const NONE = { kept: 0, late: 0, expired: 0 };

/** What was promised in a day of UTC, and what held the starts that were late, as far as workers have told it. */
export interface PromisedDay {
  /** Since 1970. */
  readonly day: number;
  readonly promised: Promised;
  readonly lateBy: ReadonlyMap<Cause, number>;
}

/** A promise, and from when on it is looked at until now. */
interface Since {
  readonly promise: Terms;
  readonly fromMs: number;
  readonly nowMs: number;
}

/** From the hour of an instant on until now, of this promise alone. */
export async function promisedSince(redis: Redis, refs: readonly PartitionRef[], since: Since): Promise<Promised> {
  const { told } = await toldSince(redis, refs, since);
  return promisedSum(told.map(({ happened }) => happened.promised)) ?? { ...since.promise, ...NONE };
}

/** The same by the day. */
export async function promisedDaysSince(
  redis: Redis,
  refs: readonly PartitionRef[],
  since: Since,
): Promise<readonly PromisedDay[]> {
  const [ref] = refs;
  const { told, firstMinute } = await toldSince(redis, refs, since);
  if (!ref || firstMinute === undefined) return [];
  const span = { fromMs: firstMinute * MINUTE_MS, toMs: since.nowMs };
  const recent = [...(await readCauses(redis, ref, span))].map(([minute, { lateBy }]) => ({
    day: dayOfMinute(minute),
    lateBy,
  }));
  const days = [...new Set(told.map(({ day }) => day))].sort((one, other) => one - other);
  return days.flatMap((day) => {
    const own = told.filter((one) => one.day === day);
    const promised = promisedSum(own.map(({ happened }) => happened.promised));
    const late = [...own.map(({ happened }) => happened), ...recent.filter((one) => one.day === day)];
    return promised ? [{ day, promised, lateBy: sumsTogether(late.map(({ lateBy }) => lateBy)) }] : [];
  });
}

/** What happened in a part of a day, under the promise that is asked about. */
interface Told {
  readonly day: number;
  readonly happened: Happened;
}

/** @returns also the first minute of which no hour is made yet */
async function toldSince(
  redis: Redis,
  refs: readonly PartitionRef[],
  { promise, fromMs, nowMs }: Since,
): Promise<{ readonly told: readonly Told[]; readonly firstMinute: number | undefined }> {
  const [ref] = refs;
  if (!ref) return { told: [], firstMinute: undefined };
  const hour = Math.floor(nowMs / HOUR_MS);
  const from = Math.max(Math.floor(fromMs / HOUR_MS), Math.floor(promise.since / HOUR_MINUTES));
  const fullDay = Math.ceil(from / DAY_HOURS);
  const today = Math.floor(hour / DAY_HOURS);
  const made = Math.min((await lastHour(redis, ref)) ?? -1, hour - 1);
  // Hours in which nothing happened have no line, and those of a leader that is away are not made yet.
  const first = Math.max(made + 1, hour - MINUTES_HOURS, from) * HOUR_MINUTES;
  const ends = Math.floor(nowMs / MINUTE_MS);
  const [hours, days, minutes] = await Promise.all([
    readHours(redis, ref, { from, to: Math.min(fullDay * DAY_HOURS, hour) - 1 }),
    fullDay > today ? new Map<number, never>() : readDays(redis, ref, { from: fullDay, to: today }),
    minutesBetween(redis, refs, { first, ends }),
  ]);
  const all = [
    ...[...hours].map(([at, happened]) => ({ day: Math.floor(at / DAY_HOURS), happened })),
    ...[...days].map(([day, happened]) => ({ day, happened })),
    ...byDay(promise, minutes, first),
  ];
  return { told: all.filter(({ happened }) => happened.promised?.since === promise.since), firstMinute: first };
}

const DAY_MINUTES = DAY_HOURS * HOUR_MINUTES;
const dayOfMinute = (minute: number): number => Math.floor(minute / DAY_MINUTES);

/** Minutes of which no hour is made yet: they may lie on both sides of a midnight. */
function byDay(promise: Terms, minutes: readonly Happened[], first: number): readonly Told[] {
  const days = [...new Set(minutes.map((_, at) => dayOfMinute(first + at)))];
  return days.map((day) => {
    const from = Math.max(first, day * DAY_MINUTES);
    const own = minutes.slice(from - first, (day + 1) * DAY_MINUTES - first);
    return { day, happened: togetherUnder(promise, own, from) };
  });
}

/** The days of a month that is over, of the promise that began last. None: nothing was promised. */
export async function promisedDaysIn(
  redis: Redis,
  ref: PartitionRef,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<readonly PromisedDay[]> {
  const days = await readDays(redis, ref, { from: Math.floor(fromMs / DAY_MS), to: Math.ceil(toMs / DAY_MS) - 1 });
  const all = [...days].flatMap(([day, { promised, lateBy = new Map<Cause, number>() }]) =>
    promised ? [{ day, promised, lateBy }] : [],
  );
  const since = Math.max(...all.map(({ promised }) => promised.since));
  return all.filter(({ promised }) => promised.since === since);
}

/** Late jobs of the last five minutes up to three days, as the alerts compare them with the budget. */
export async function recentOf(
  redis: Redis,
  refs: readonly PartitionRef[],
  { promise, nowMs }: { readonly promise: Terms; readonly nowMs: number },
): Promise<readonly Recent[]> {
  const ends = Math.floor(nowMs / MINUTE_MS);
  const minutes = await minutesBetween(redis, refs, { first: ends - RECENT_MINUTES, ends });
  const lateOf = ({ late, expired }: Pick<Promised, 'late' | 'expired'>) => late + expired;
  return Promise.all(
    PACE_SPANS_MS.map(async (forMs) => {
      const span = forMs / MINUTE_MS;
      if (span > RECENT_MINUTES) {
        return { forMs, late: lateOf(await promisedSince(redis, refs, { promise, fromMs: nowMs - forMs, nowMs })) };
      }
      const { promised = NONE } = togetherUnder(promise, minutes.slice(-span), ends - span);
      return { forMs, late: lateOf(promised) };
    }),
  );
}

const RECENT_MINUTES = 360;

const PAGE = 1000;
const PAGES_MAX = 10;

/**
 * Jobs that are due for longer than a time and that nobody has started: they wait for the leader, in line, or in ready until a worker reads them.
 * Of the latter at most 10,000 are counted; those that a worker has read and not started yet are not.
 */
export async function standingIn(
  redis: Redis,
  { keys }: PartitionRef,
  { withinMs, nowMs }: { readonly withinMs: number; readonly nowMs: number },
): Promise<number> {
  const toMs = nowMs - withinMs;
  const inScores = async (kind: 'scheduled' | 'waiting') => {
    const { from, to } = scoresOf(kind, { toMs });
    return redis.zcount(keys.scheduled, String(from), `(${to}`);
  };
  const counts = await Promise.all([
    inScores('scheduled'),
    inScores('waiting'),
    standingInReady(redis, keys.ready, toMs),
  ]);
  return counts.reduce((sum, one) => sum + one, 0);
}

async function standingInReady(redis: Redis, ready: string, toMs: number): Promise<number> {
  if ((await redis.exists(ready)) === 0) return 0;
  // Some fields of a group may be null.
  const groups = list((await redis.call('XINFO', 'GROUPS', ready)) as Reply).map(list);
  const own = groups.find((fields) => fields.includes(GROUP)) ?? [];
  let after = text(own[own.indexOf('last-delivered-id') + 1] ?? '0-0');
  let standing = 0;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = list((await redis.call('XRANGE', ready, `(${after}`, '+', 'COUNT', PAGE)) as Reply).map(list);
    standing += page.filter(([, fields]) => Number(fieldsOf(fields).get('due') ?? Number.NaN) <= toMs).length;
    after = text(page.at(-1)?.[0] ?? after);
    if (page.length < PAGE) break;
  }
  return standing;
}
