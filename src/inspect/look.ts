/**
 * What all viewers are told: one look at Redis, for all of them. Counts and rates are of the moment; Redis itself, the forecast and what
 * `doctor` finds come at slower beats, and nobody waits for them.
 */

import { slotsOf, type VersionCount, versionsOf } from '../client/queues/processes.ts';
import type { Namespaced } from '../client/queues/refs.ts';
import { type QueueNow, queuesNow } from '../client/queues/stats.ts';
import type { Why } from '../client/queues/why.ts';
import type { Forecast, ForecastOptions } from '../client/schedules/forecast.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { reasonOf } from '../kernel/reason.ts';
import { askAll } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { UnreadQueue } from '../redis/read/each-queue.ts';
import { type Examined, examine, type Result } from './doctor/doctor.ts';

/** What happens, per second, since the look before. */
export interface Rates {
  readonly scheduled: number;
  readonly promoted: number;
  /** What ended, and what workers hold more than before. */
  readonly started: number;
  readonly ended: number;
}

export interface LiveQueue extends Omit<QueueNow, 'counters' | 'nowMs'> {
  readonly perSecond: Rates;
  /** How many of its jobs the living workers run at a time; undefined: one of them is older and does not say it. */
  readonly slots?: number | undefined;
  /** What stands in the way first, in a sentence, where jobs wait for longer than they should; undefined: nothing, or nobody has looked yet. */
  readonly obstacle?: string | undefined;
}

/** What a look has seen, for somebody who may see all queues. */
export interface Look {
  readonly nowMs: number;
  readonly queues: readonly LiveQueue[];
  /** Queues that could not be read. */
  readonly unread: readonly UnreadQueue[];
  readonly processes: {
    readonly daemons: number;
    readonly workers: number;
    /** Of all processes that live. */
    readonly versions: readonly VersionCount[];
  };
  readonly redis: RedisNow | undefined;
  readonly forecast: NextHour | undefined;
  readonly doctor: { readonly atMs: number; readonly ok: boolean; readonly findings: readonly Result[] } | undefined;
}

/** What comes due within the hour. */
export interface NextHour extends Pick<Forecast, 'atMs' | 'busiest' | 'buckets' | 'backlogs'> {
  readonly nextHour: number;
  /** Of these: jobs that wait in Redis. */
  readonly scheduled: number;
  /** Of these: jobs that schedules will make. */
  readonly coming: number;
  /** How many they are of each queue, the most first; queues without any are left out. */
  readonly perQueue: readonly QueueDue[];
}

interface QueueDue {
  readonly queue: string;
  readonly jobs: number;
}

const REDIS_EVERY_MS = 5000;
const FORECAST_EVERY_MS = 15_000;
const DOCTOR_EVERY_MS = 60_000;
const WHY_EVERY_MS = 5000;
const HOUR_MS = 3_600_000;

/** What a look stands on. */
interface Backend {
  readonly place: () => Promise<Namespaced>;
  readonly schedules: { readonly forecast: (options: ForecastOptions) => Promise<Forecast> };
  /** Left out: nobody is told why jobs wait. */
  readonly why?: ((queue: string) => Promise<Why>) | undefined;
  readonly examined: Examined;
}

interface LookParts {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly log: Log;
}

export function createLook({ backend, clock, log }: LookParts): () => Promise<Look> {
  const slower = <T>(what: string, everyMs: number, read: () => Promise<T>) =>
    createSlower({ clock, log, what, everyMs, read });
  const redis = slower('Redis', REDIS_EVERY_MS, async () => redisNow((await backend.place()).redis));
  const forecast = slower('the forecast', FORECAST_EVERY_MS, () => nextHour(backend, clock));
  const doctor = slower('doctor', DOCTOR_EVERY_MS, () => findingsOf(backend, clock));
  let before = new Map<string, QueueNow>();
  const obstacles = slower('why jobs wait', WHY_EVERY_MS, () => obstaclesOf(backend, [...before.values()]));

  return async () => {
    const { queues, unread, processes } = await queuesNow(await backend.place());
    const known = [...processes.values()];
    const live = queues.map((one) => liveOf(one, before.get(one.queue)));
    before = new Map(queues.map((one) => [one.queue, one]));
    const held = obstacles();
    const look: Look = {
      nowMs: queues.length === 0 ? clock.wallMs() : Math.max(...queues.map(({ nowMs }) => nowMs)),
      queues: live.map((one) => ({
        ...one,
        slots: slotsOf(one.queue, processes),
        obstacle: held?.get(one.queue),
      })),
      unread,
      processes: {
        daemons: known.filter((one) => one?.role === 'daemon').length,
        workers: known.filter((one) => one?.role === 'worker').length,
        versions: versionsOf(processes),
      },
      redis: redis(),
      forecast: forecast(),
      doctor: doctor(),
    };
    return look;
  };
}

function liveOf({ counters, nowMs, ...counts }: QueueNow, before: QueueNow | undefined): LiveQueue {
  const seconds = before ? (nowMs - before.nowMs) / 1000 : 0;
  const grown = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + (counters[name] ?? 0) - (before?.counters[name] ?? 0), 0);
  const rate = (jobs: number) => (seconds > 0 ? Math.max(0, Math.round((jobs / seconds) * 10) / 10) : 0);
  const ended = grown(['done', 'dead', 'retried', 'deferred']);
  const perSecond = {
    scheduled: rate(grown(['scheduled'])),
    promoted: rate(grown(['promoted'])),
    started: rate(ended + counts.running - (before?.running ?? 0)),
    ended: rate(ended),
  };
  return { ...counts, perSecond };
}

// Why jobs wait, of the queues that are in trouble: those whose jobs wait longest first, and not of all where many are.

const TOLD_MAX = 10;
/** Below it a job may be on its way. */
const LATE_MS = 1000;

async function obstaclesOf({ why }: Backend, queues: readonly QueueNow[]): Promise<ReadonlyMap<string, string>> {
  if (!why) return new Map();
  const held = queues
    .filter(isHeld)
    .sort((a, b) => b.oldestDueAgeMs - a.oldestDueAgeMs)
    .slice(0, TOLD_MAX);
  const told = await Promise.all(
    held.map(async ({ queue }) => [queue, await why(queue).catch(() => undefined)] as const),
  );
  return new Map(
    told.flatMap(([queue, found]) => {
      const first = found?.reasons.find(({ code }) => code !== 'not-due' && code !== 'empty');
      return first ? [[queue, first.text.replace(`${queue}: `, '')]] : [];
    }),
  );
}

const isHeld = ({ paused, oldestDueAgeMs, leaders, workers, scheduled, waiting, ready, running }: QueueNow): boolean =>
  paused ||
  oldestDueAgeMs > LATE_MS ||
  (scheduled + waiting + ready + running > 0 && (workers === 0 || leaders.includes(undefined)));

/** The last answer, if there is one; every so often it asks anew beside, one question at a time. */
function createSlower<T>(of: {
  readonly clock: Clock;
  readonly log: Log;
  readonly what: string;
  readonly everyMs: number;
  readonly read: () => Promise<T>;
}): () => T | undefined {
  const { clock, log, what, everyMs, read } = of;
  let last: T | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  let isAsking = false;

  async function ask(): Promise<void> {
    isAsking = true;
    try {
      last = await read();
    } catch (error) {
      log.debug({ what, error: reasonOf(error) }, 'a part of the live view is as it was before');
    }
    isAsking = false;
  }

  return () => {
    if (!isAsking && clock.monotonicMs() - askedMs >= everyMs) {
      askedMs = clock.monotonicMs();
      void ask();
    }
    return last;
  };
}

async function nextHour({ schedules }: Backend, clock: Clock): Promise<NextHour> {
  const until = new Date(clock.wallMs() + HOUR_MS);
  const { atMs, buckets, queues, busiest, backlogs } = await schedules.forecast({
    until,
    by: 'minute',
    perQueue: true,
  });
  const sum = (of: 'jobs' | 'scheduled' | 'coming') => buckets.reduce((total, one) => total + one[of], 0);
  return {
    atMs,
    nextHour: sum('jobs'),
    scheduled: sum('scheduled'),
    coming: sum('coming'),
    perQueue: (queues ?? []).map(({ queue, jobs }) => ({ queue, jobs: jobs.reduce((all, one) => all + one, 0) })),
    busiest,
    buckets,
    backlogs,
  };
}

async function findingsOf({ place, examined }: Backend, clock: Clock): Promise<NonNullable<Look['doctor']>> {
  const results = await examine((await place()).redis, examined);
  const findings = results.filter(({ status }) => status !== 'ok');
  return { atMs: clock.wallMs(), ok: findings.every(({ status }) => status !== 'fail'), findings };
}

// How full Redis is, and what survives its restart. Of a cluster: all masters together, and the worst of what they
// keep.

/** From the best to the worst. `unknown`: AOF is on, and this user may not see how often it is synced. */
export const DURABILITIES = ['always', 'everysec', 'unknown', 'no', 'snapshots', 'none'] as const;
type Durability = (typeof DURABILITIES)[number];

interface RedisNow {
  readonly usedBytes: number;
  /** 0: there is no limit. */
  readonly maxBytes: number;
  readonly policy: string;
  readonly durability: Durability;
}

interface Asked {
  readonly info: () => Promise<string>;
  readonly config: (get: 'GET', name: string) => Promise<unknown>;
}

/** @throws whatever Redis failed with */
async function redisNow(redis: Redis): Promise<RedisNow> {
  const all = await askAll(redis, (one) => nowOf(one as Asked));
  return {
    usedBytes: all.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
    maxBytes: all.some(({ maxBytes }) => maxBytes === 0) ? 0 : all.reduce((sum, { maxBytes }) => sum + maxBytes, 0),
    policy: [...new Set(all.map(({ policy }) => policy))].join(', '),
    durability: DURABILITIES.findLast((one) => all.some(({ durability }) => durability === one)) ?? 'unknown',
  };
}

async function nowOf(redis: Asked): Promise<RedisNow> {
  const info = await redis.info();
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  return {
    usedBytes: Number(field('used_memory') ?? 0),
    maxBytes: Number(field('maxmemory') ?? 0),
    policy: field('maxmemory_policy') ?? 'unknown',
    durability: await durabilityOf(redis, field('aof_enabled') === '1'),
  };
}

async function durabilityOf(redis: Asked, hasLog: boolean): Promise<Durability> {
  const setting = await settingOf(redis, hasLog ? 'appendfsync' : 'save');
  if (!hasLog) return setting === '' ? 'none' : 'snapshots';
  return DURABILITIES.find((one) => one === setting) ?? 'unknown';
}

/** Undefined where CONFIG is forbidden, as it often is. */
async function settingOf(redis: Asked, name: string): Promise<string | undefined> {
  try {
    const reply = await redis.config('GET', name);
    return Array.isArray(reply) ? String(reply[1] ?? '') : undefined;
  } catch {
    return undefined;
  }
}
