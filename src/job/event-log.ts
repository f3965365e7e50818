/**
 * What happens in a daemon, a worker or a subscriber as lines of its log: each event at the level that `eventLevels` says. The
 * log is that of the command, or one that an application gives.
 */

import { type Clock, systemClock } from '../kernel/clock.ts';
import { oneLine } from '../kernel/errors.ts';
import { type Log, silentLog } from '../kernel/log.ts';
import { withoutCredentials } from '../kernel/reason.ts';
import { type EventSource, type Events, type Listeners, listenToAll } from './events.ts';
import type { Attempted } from './outcome.ts';

/**
 * Subscribes the log to the events. Per-job events are debug, what somebody should look at is warn. What an outage makes
 * many of is told sparingly.
 */
export function logEvents(events: EventSource, log: Log, clock: Clock = systemClock): () => void {
  if (log === silentLog) return () => undefined;
  // Each has a bucket of its own: a hundred new leaders must not drown that Redis is back, or what was missed.
  const to = { log, few: fewer(log, clock), rare: fewer(log, clock) };
  const outage = createOutageLog({ log: fewer(log, clock), clock });
  const off = listenToAll(
    events,
    {
      ...ofJobs(to),
      ...ofWorkers(to),
      ...ofTheRest(to),
      'redis.away': (e) => outage.away({ ...e, why: safe(e.why) }),
      'redis.back': outage.back,
    },
    [
      'mover.passed',
      'schedule.fired',
      'parked.waiting',
      'claim.answered',
      'run.settled',
      'polls.waiting',
      'target.called',
    ],
  );
  return () => {
    off();
    outage.stop();
  };
}

/** Where a line goes: written always, or only so often. */
interface Lines {
  readonly log: Log;
  readonly few: ReturnType<typeof fewer>;
  readonly rare: ReturnType<typeof fewer>;
}

/** What becomes of jobs. */
function ofJobs({ log, rare }: Lines) {
  return {
    'jobs.promoted': ({ queue, partition, count, deadLetters, tookMs }) => {
      if (deadLetters > 0)
        log.warn({ queue, partition, deadLetters }, 'members that cannot be jobs became dead letters');
      log.debug({ queue, partition, count, tookMs: round(tookMs) }, 'jobs promoted');
    },
    'job.started': (e) => log.debug({ ...e, lateMs: round(e.lateMs) }, 'job started'),
    'job.completed': (e) => log.debug({ ...e, tookMs: round(e.tookMs) }, 'job completed'),
    'job.retried': ({ error, ...e }) =>
      log.info({ ...e, tookMs: round(e.tookMs), ...failure(error) }, 'job failed, will retry'),
    'job.deferred': ({ reason, ...e }) =>
      log.debug(
        { ...e, tookMs: round(e.tookMs), ...(reason !== undefined && { reason: safe(reason) }) },
        'job deferred',
      ),
    'job.dead': ({ error, ...e }) => log.warn({ ...e, tookMs: round(e.tookMs), ...failure(error) }, 'job is dead'),
    'job.failed': ({ error, ...e }) =>
      log.warn(
        { ...e, tookMs: round(e.tookMs), ...failure(error) },
        'job failed and is not tried again: it was over before its handler began',
      ),
    'job.expired': (e) =>
      log.info(e, e.dead ? 'job was too late: it became a dead letter' : 'job was too late: it was dropped'),
    'job.cancelled': (e) => log.debug(e, 'job cancelled'),
    'job.overran': (e) =>
      rare.warn(
        { ...e, tookMs: round(e.tookMs) },
        'a handler goes on after its time-out: its place was given away, and its job may start beside it',
      ),
    'job.fenced': (e) => rare.warn(e, 'Redis refused the end of an older start: the job was started again elsewhere'),
  } satisfies Partial<Listeners>;
}

/** What workers meet. */
function ofWorkers({ log, few, rare }: Lines) {
  const suspects = sparing(SUSPECTS_EVERY_MS, (e: Events['suspects.waiting'], missed) =>
    log.warn({ ...e, missed }, 'workers died under these jobs: they are started one at a time'),
  );
  return {
    'jobs.parked': sparing(PARKED_EVERY_MS, ({ queue, partition, count }, missed) =>
      log.warn({ queue, partition, count, missed }, 'jobs of a later version wait: update the workers'),
    ),
    'log.refused': (e) => rare.warn(e, 'Redis is full: lines that handlers said of their jobs are not kept'),
    'jobs.missed': (e) => rare.warn(e, 'a subscriber did not get all jobs of its queue'),
    'suspects.waiting': (e) => {
      if (e.waiting > 0) suspects(e);
    },
    'slots.lost': (e) => rare.warn(e, 'handlers ignore their abort signal; their slots are lost'),
    'worker.exhausted': (e) => log.error(e, 'too many slots are lost; restart the process to free them'),
    'worker.paused': (e) =>
      rare.warn(e, 'this worker is paused and takes nothing new: "duestream workers resume" lets it go on'),
    'worker.resumed': (e) => few.info(e, 'this worker goes on after a pause'),
    'promise.rejected': sparing(REJECTED_EVERY_MS, ({ error }, missed) =>
      log.error(
        { error: safe(error), missed },
        'unhandled rejection: a promise of a handler was rejected and nothing caught it',
      ),
    ),
    'entries.reclaimed': (e) => rare.warn(e, 'took over the jobs of a dead worker'),
    'entries.adopted': (e) => rare.warn(e, 'found jobs that Redis delivered in a lost reply'),
    'runs.reclaimed': (e) => rare.warn(e, 'took back runs that a worker over HTTP has lost'),
    'runs.overtime': (e) => rare.warn(e, 'a worker over HTTP goes on after the time-out of a job, which failed'),
    'consumer.retired': (e) => few.info(e, 'removed a dead worker from the consumer group'),
  } satisfies Partial<Listeners>;
}

/** Leaders, schedules, damage, and the state of Redis. */
function ofTheRest({ log, few, rare }: Lines) {
  return {
    'leader.elected': (e) => few.info(e, 'leader elected'),
    'leader.lost': (e) => few.info(e, 'leader lost'),
    'leader.away': (e) => rare.warn(e, 'no daemon leads this queue, and its delayed jobs wait: run "duestream start"'),
    'leader.back': (e) => few.info(e, 'a daemon leads this queue again'),
    'clock.off': (e) =>
      rare.warn(e, 'the clocks of this host and of Redis differ: set both by NTP, due times count by that of Redis'),
    'clock.right': (e) => few.info(e, 'the clocks of this host and of Redis agree again'),
    'versions.differ': (e) =>
      rare.warn(
        e,
        'other versions of duestream run beside this process: bring all to one; "duestream queues workers" says which version each one has',
      ),
    'versions.agree': (e) => few.info(e, 'all processes have this version of duestream again'),
    'process.ticked': ({ lagMs }) => {
      if (lagMs < LAG_TOLD_MS) return;
      log.warn({ lagMs: round(lagMs) }, 'the event loop was blocked: by a handler, or because the process was frozen');
    },
    'schedule.missed': (e) => rare.warn(e, 'instants of a schedule passed while no daemon ran'),
    'schedule.unreadable': (e) => log.error(e, 'a schedule cannot be read and does not fire: put it again'),
    'partition.repaired': (e) => rare.warn(e, 'somebody else removed parts of jobs; they are repaired'),
    'schema.refused': (e) => log.error({ ...e, why: safe(e.why) }, 'the namespace has another schema: stopping'),
    'target.gone': (e) => rare.warn(e, 'a target is gone for good: it answers 410'),
    'target.closed': (e) => rare.warn(e, 'a host cannot be reached: jobs of its group wait'),
    'redis.evicts': (e) =>
      log.error(e, 'Redis may evict keys and jobs with them: run CONFIG SET maxmemory-policy noeviction'),
    'redis.keeps': (e) => log.info(e, 'Redis no longer evicts keys'),
    'redis.changed': ({ empty, ...e }) =>
      rare.warn(
        e,
        e.before === e.runId
          ? 'Redis has lost this namespace: somebody removed its keys'
          : empty
            ? 'another Redis server answers, and it has no keys of this namespace'
            : 'another Redis server answers',
      ),
  } satisfies Partial<Listeners>;
}

const PARKED_EVERY_MS = 60_000;
const SUSPECTS_EVERY_MS = 10_000;
const REJECTED_EVERY_MS = 1000;
/** What a lease or a heartbeat begins to notice. */
const LAG_TOLD_MS = 1000;

/** Tells at most once in a while, and then how many times it did not. */
function sparing<T>(everyMs: number, tell: (payload: T, missed: number) => void): (payload: T) => void {
  let toldMs = Number.NEGATIVE_INFINITY;
  let missed = 0;
  return (payload) => {
    const nowMs = systemClock.monotonicMs();
    if (nowMs - toldMs < everyMs) {
      missed += 1;
      return;
    }
    tell(payload, missed);
    toldMs = nowMs;
    missed = 0;
  };
}

/** What a job failed with: as much as is kept of it, and where it was thrown. */
const failure = ({ kind, message, stack }: Attempted) => ({
  kind,
  error: safe(message),
  ...(stack !== undefined && { stack: withoutCredentials(stack) }),
});

/** One line without credentials. */
export function safe(text: string): string {
  return withoutCredentials(oneLine(text));
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}

/*
 * Outages. A process has a loop per partition, and each loop reports on its own that Redis is away. The log gets one line
 * when an outage begins, one every half minute, and one when it is over, for each answer of Redis. Other events that an
 * outage multiplies (leaders lost and elected, jobs taken over) pass through a bucket: the log counts the lines that do
 * not fit, and the next line says how many it left out.
 */

export type LineWriter = Pick<Log, 'info' | 'warn'>;

export interface OutageLog {
  readonly away: (event: Events['redis.away']) => void;
  readonly back: (event: Events['redis.back']) => void;
  /** Ends the reminders. */
  readonly stop: () => void;
}

interface Episode {
  readonly sinceMs: number;
  readonly services: Set<string>;
  readonly callOff: () => void;
}

/** LineWriter at once, and then one per so many ms. */
export const LINES_MAX = 50;
export const LINE_EVERY_MS = 2000;
const REMIND_EVERY_MS = 30_000;
/** Different answers at a time; more become one. */
const EPISODES_MAX = 10;

/** At most so many lines: a bucket that fills slowly. `unsaid` of the next line says how many did not fit. */
export function fewer(log: LineWriter, clock: Pick<Clock, 'monotonicMs'>): LineWriter {
  let tokens = LINES_MAX;
  let atMs = clock.monotonicMs();
  let unsaid = 0;

  function say(level: 'info' | 'warn', fields: Readonly<Record<string, unknown>>, message: string): void {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(LINES_MAX, tokens + (nowMs - atMs) / LINE_EVERY_MS);
    atMs = nowMs;
    if (tokens < 1) {
      unsaid += 1;
      return;
    }
    tokens -= 1;
    log[level](unsaid > 0 ? { ...fields, unsaid } : fields, message);
    unsaid = 0;
  }

  return {
    info: (fields, message) => say('info', fields, message),
    warn: (fields, message) => say('warn', fields, message),
  };
}

export function createOutageLog({ log, clock }: { readonly log: LineWriter; readonly clock: Clock }): OutageLog {
  /** By what Redis says; '' is silence. */
  const episodes = new Map<string, Episode>();
  const newsOf = new Map<string, string>();

  function begin({ who, why, answered }: Events['redis.away']): Episode {
    const sinceMs = clock.monotonicMs();
    const services = new Set<string>();
    let callOff: () => void = () => undefined;
    const remind = () => {
      callOff = clock.timer(REMIND_EVERY_MS, () => {
        const forMs = Math.round(clock.monotonicMs() - sinceMs);
        const fields = { who: [...services][0], why, services: services.size, forMs };
        log.warn(fields, answered ? 'Redis still refuses' : 'Redis is still away');
        remind();
      });
    };
    remind();
    log.warn({ who, why }, answered ? 'Redis refuses' : 'Redis is away');
    return { sinceMs, services, callOff: () => callOff() };
  }

  /** Whether that was the last service of its episode. */
  function leave(who: string): Episode | undefined {
    const news = newsOf.get(who);
    newsOf.delete(who);
    const episode = news === undefined ? undefined : episodes.get(news);
    episode?.services.delete(who);
    if (news === undefined || episode === undefined || episode.services.size > 0) return undefined;
    episode.callOff();
    episodes.delete(news);
    return episode;
  }

  return {
    away(event) {
      const { who, why, answered } = event;
      const word = answered ? (/^\S{1,40}( \S{1,100})?/.exec(why)?.[0] ?? 'ERR') : '';
      const news = episodes.has(word) || episodes.size < EPISODES_MAX ? word : 'others';
      if (newsOf.get(who) === news) return;
      // The new one begins before the old one ends: in between, Redis was not back.
      const episode = episodes.get(news) ?? begin(event);
      episodes.set(news, episode);
      leave(who);
      episode.services.add(who);
      newsOf.set(who, news);
    },
    back({ who, stopped }) {
      const over = leave(who);
      if (!over || stopped) return;
      const awayMs = Math.round(clock.monotonicMs() - over.sinceMs);
      log.info({ awayMs }, episodes.size > 0 ? 'Redis is back for some services' : 'Redis is back');
    },
    stop() {
      for (const { callOff } of episodes.values()) callOff();
      episodes.clear();
    },
  };
}
