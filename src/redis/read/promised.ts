/** Jobs of a promise of lateness (`job/promise.ts`): those that were counted, in hours, days and minutes, and those that stand now. */
import { DAY_HOURS, DAY_MS, HOUR_MINUTES, HOUR_MS, togetherUnder } from '../../job/happened.ts';
import { MINUTE_MS } from '../../job/minutes.ts';
import { PACE_SPANS_MS, type Promised, promisedSum, type Recent, type Terms } from '../../job/promise.ts';
import type { Redis } from '../connection/connect.ts';
import { GROUP, type PartitionRef } from '../keys.ts';
import { fieldsOf, list, type Reply, scoresOf, text } from '../scripts/scripts.ts';
import { lastHour, minutesBetween, readDays, readHours } from './history.ts';

/** The minutes of so many hours are surely there. */
const MINUTES_HOURS = 22;

const NONE = { kept: 0, late: 0, expired: 0 };

/** From the hour of an instant on until now, of this promise alone. */
export async function promisedSince(
  redis: Redis,
  refs: readonly PartitionRef[],
  { promise, fromMs, nowMs }: { readonly promise: Terms; readonly fromMs: number; readonly nowMs: number },
): Promise<Promised> {
  const [ref] = refs;
  if (!ref) return { ...promise, ...NONE };
  const hour = Math.floor(nowMs / HOUR_MS);
  const from = Math.max(Math.floor(fromMs / HOUR_MS), Math.floor(promise.since / HOUR_MINUTES));
  const fullDay = Math.ceil(from / DAY_HOURS);
  const today = Math.floor(hour / DAY_HOURS);
  const made = Math.min((await lastHour(redis, ref)) ?? -1, hour - 1);
  // Hours in which nothing happened have no line, and those of a leader that is away are not made yet.
  const first = Math.max(made + 1, hour - MINUTES_HOURS, from) * HOUR_MINUTES;
  const [hours, days, minutes] = await Promise.all([
    readHours(redis, ref, { from, to: Math.min(fullDay * DAY_HOURS, hour) - 1 }),
    fullDay > today ? new Map<number, never>() : readDays(redis, ref, { from: fullDay, to: today }),
    minutesBetween(redis, refs, { first, ends: Math.floor(nowMs / MINUTE_MS) }),
  ]);
  const all = [...hours.values(), ...days.values(), togetherUnder(promise, minutes, first)];
  return (
    promisedSum(all.map(({ promised }) => promised).filter((one) => one?.since === promise.since)) ?? {
      ...promise,
      ...NONE,
    }
  );
}

/** Of a month that is over, or of its days so far: of the promise that began last. Undefined: nothing was promised. */
export async function promisedIn(
  redis: Redis,
  ref: PartitionRef,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<Promised | undefined> {
  const days = await readDays(redis, ref, { from: Math.floor(fromMs / DAY_MS), to: Math.ceil(toMs / DAY_MS) - 1 });
  return promisedSum([...days.values()].map(({ promised }) => promised));
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
