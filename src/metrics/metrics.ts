/**
 * The metrics of one part of a process (a daemon, or a worker that an application embeds) as text for Prometheus or as a
 * registry. It listens to events and, at each scrape, asks for the counts of the partitions that this part leads; it
 * decides nothing and touches nothing.
 *
 * What must always hold: no timer and no listener outlives its owner, so Node's own process metrics are left out (the
 * library's collectors keep an observer of garbage collection that cannot be taken back). Redis away leaves the
 * queue-wide values out instead of showing old ones as new; the rest is still answered.
 */
import { type Gauge, Registry } from 'prom-client';
import { type EventSource, type Listeners, listenToAll } from '../job/events.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { outageOf } from '../redis/connection/outage.ts';
import type { ServerReading } from '../redis/connection/server-reading.ts';
import { createFamilies, type Families } from './families.ts';
import type { Series } from './histogram.ts';
import { createShowing } from './instruments.ts';
import { fillQueues, type PartitionReading, QUEUE_WIDE } from './readings.ts';

export type { Registry };

export interface MetricsOptions {
  /** Of this package. */
  readonly version: string;
  /** The partitions of this process. Only those it leads are shown with their counts. */
  readonly queueStats?: () => Promise<readonly PartitionReading[]>;
  /** How many workers have a valid heartbeat. */
  readonly alive?: () => Promise<number | undefined>;
  /** How full Redis is, and what time it is there. */
  readonly servers?: () => Promise<ServerReading | undefined>;
  /** Which of these queues are declared. */
  readonly declared?: Source['declared'];
  readonly state?: { readonly ready: () => boolean };
  /** Where the metrics are put. Default: a registry of their own. */
  readonly registry?: Registry | undefined;
  /** Families that nobody fills here. */
  readonly without?: Source['without'];
}

interface Metrics {
  /** Listens to a source of events until the returned function is called. */
  readonly observe: (events: EventSource) => () => void;
  /** Everything as text. Scrapes at the same time share one answer, so that many scrapers cost Redis as much as one. */
  readonly scrape: () => Promise<string>;
  /** Of the text. */
  readonly contentType: string;
  readonly registry: Registry;
  /** Nothing is read for it any more. What was counted stays. Twice is fine. */
  readonly close: () => void;
}

/** The version in every key; see the key table in `redis/keys.ts`. */
const WIRE = 'v1';

export function createMetrics(options: MetricsOptions): Metrics {
  const { registry = new Registry(), without = [] } = options;
  const shared = sharedOf(registry);
  const { families } = shared;
  let scraping: Promise<string> | undefined;
  const close = shared.join({
    read: () => read(options),
    declared: options.declared && ((queues) => declaredOf(options, queues)),
    ready: options.state?.ready,
    isQueueWide: options.queueStats !== undefined || options.alive !== undefined,
    without,
  });
  families.buildInfo.set({ version: options.version, node: process.versions.node, wire: WIRE }, 1);

  return {
    observe: (events) => observeEvents(events, shared),
    scrape() {
      scraping ??= registry.metrics().finally(() => {
        scraping = undefined;
      });
      return scraping;
    },
    contentType: registry.contentType,
    registry,
    close,
  };
}

async function declaredOf({ declared }: MetricsOptions, queues: readonly string[]) {
  try {
    return await declared?.(queues);
  } catch (error) {
    if (error instanceof DuestreamError || outageOf(error) !== 'unknown') return undefined;
    throw error;
  }
}

/** What Redis says, or undefined in an outage. A bug is not outage and reaches the caller. */
async function read({ queueStats, alive, servers }: MetricsOptions): Promise<Reading | undefined> {
  try {
    const [partitions, count, found] = await Promise.all([queueStats?.() ?? [], alive?.(), servers?.()]);
    return { partitions, alive: count, servers: found };
  } catch (error) {
    if (error instanceof DuestreamError || outageOf(error) !== 'unknown') return undefined;
    throw error;
  }
}

/**
 * Fills the metrics that this process counts from its events: lateness, duration, and the rare events of workers. Metrics
 * of whole queues are read from Redis (`readings.ts`), so that a restart forgets nothing. The returned function ends it.
 */
function observeEvents(
  events: EventSource,
  { families, away, queues, forgetters }: Pick<Shared, 'families' | 'away' | 'queues' | 'forgetters'>,
): () => void {
  const mine = new Set<string>();
  /** The label of a queue, which has series from now on. */
  const of = (queue: string) => {
    queues.add(queue);
    return { queue };
  };
  const { byQueue, ...cached } = cachesOf(of);
  const parts = partsOf(families, of);
  const forget = (queue: string) => {
    for (const one of [cached, ...Object.values(parts)]) one.delete(queue);
  };
  away.add(mine);
  forgetters.add(forget);
  const { passed, promoted, started, ran } = seriesOf(families, byQueue);
  const stop = listenToAll(
    events,
    {
      'mover.passed': ({ queue, tookMs }) => passed(queue).observe(seconds(tookMs)),
      'jobs.promoted': ({ queue, lateness }) => {
        for (const [lateMs, count] of lateness) promoted(queue).observe(seconds(lateMs), count);
      },
      'job.started': ({ queue, lateMs }) => started(queue).observe(seconds(lateMs)),
      'job.completed': ran('completed'),
      'job.retried': ran('retried'),
      'job.deferred': ran('deferred'),
      'job.dead': ran('dead'),
      'job.failed': ran('failed'),
      'schedule.fired': ({ queue, outcome, latenessMs }) => {
        families.scheduleFires.inc({ ...of(queue), outcome });
        if (outcome === 'ok') families.scheduleLateness.series(of(queue)).observe(seconds(latenessMs));
      },
      'schedule.missed': ({ queue }) => families.scheduleMissed.inc(of(queue)),
      'job.overran': ({ queue }) => families.overran.inc(of(queue)),
      'job.fenced': ({ queue }) => families.fenced.inc(of(queue)),
      'log.refused': ({ queue, lines }) => families.logRefused.inc(of(queue), lines),
      'entries.adopted': ({ queue, count }) => families.adopted.inc(of(queue), count),
      'parked.waiting': ({ queue, waiting }) => parts.parkedJobs.set(queue, waiting),
      'suspects.waiting': ({ queue, waiting }) => parts.waitingSuspects.set(queue, waiting),
      'slots.lost': ({ queue, lost }) => parts.lostSlots.set(queue, lost),
      ...remoteListeners(families, { of, parts }),
      ...targetListeners(families, of),
      'promise.rejected': () => families.rejections.inc(),
      'process.ticked': ({ lagMs }) => families.eventLoopLag.observe(seconds(lagMs)),
      'redis.away': ({ who, answered }) => (answered ? mine.delete(who) : mine.add(who)),
      'redis.back': ({ who }) => mine.delete(who),
      'redis.evicts': () => families.redisEvicts.set(1),
      'redis.keeps': () => families.redisEvicts.set(0),
    },
    PASSED_OVER,
  );
  return () => {
    stop();
    // Who is not listened to any more cannot say that it is back.
    away.delete(mine);
    for (const part of Object.values(parts)) part.leave();
    forgetters.delete(forget);
  };
}

/** What a dispatcher sends. */
const targetListeners = (families: Families, of: Labelled): Listeners<'target.called' | 'target.closed'> => ({
  'target.called': ({ queue, outcome, tookMs }) => {
    families.targetRequests.inc({ ...of(queue), class: outcome });
    // What the guard refuses was not sent.
    if (outcome !== 'refused') families.targetSeconds.observe(of(queue), seconds(tookMs));
  },
  'target.closed': ({ queue }) => families.targetClosings.inc(of(queue)),
});

/** What workers over HTTP do by this daemon. */
function remoteListeners(
  families: Families,
  { of, parts }: { readonly of: Labelled; readonly parts: ReturnType<typeof partsOf> },
): Listeners<'claim.answered' | 'run.settled' | 'runs.reclaimed' | 'runs.overtime' | 'polls.waiting'> {
  return {
    'claim.answered': ({ queue, outcome, jobs, waitedMs }) => {
      families.remoteClaims.inc({ ...of(queue), outcome });
      if (outcome === 'handed') families.remoteHanded.inc(of(queue), jobs);
      families.remotePollWait.observe(of(queue), seconds(waitedMs));
    },
    'run.settled': ({ queue, end, word }) => families.remoteSettled.inc({ ...of(queue), end, word }),
    'runs.reclaimed': ({ queue, cause, count }) => families.remoteTakenBack.inc({ ...of(queue), cause }, count),
    'runs.overtime': ({ queue }) => families.remoteTimeouts.inc(of(queue)),
    'polls.waiting': ({ queue, polls }) => parts.remotePolls.set(queue, polls),
  };
}

/** Counted in Redis, so that a restart forgets nothing, or no number at all. */
const PASSED_OVER = [
  ...([
    'leader.elected',
    'leader.lost',
    'leader.away',
    'leader.back',
    'clock.off',
    'clock.right',
    'versions.differ',
    'versions.agree',
    'job.expired',
    'job.cancelled',
    'jobs.parked',
    'schedule.unreadable',
    'target.gone',
  ] as const),
  ...([
    'entries.reclaimed',
    'consumer.retired',
    'partition.repaired',
    'worker.exhausted',
    'worker.paused',
    'worker.resumed',
    'jobs.missed',
    'redis.changed',
    'schema.refused',
  ] as const),
] as const;

/** Looked up once per queue: these are observed for each job. */
function cachesOf(of: Labelled) {
  const caches: Map<string, Series>[] = [];
  return {
    byQueue(seriesOf: (label: ReturnType<Labelled>) => Series): (queue: string) => Series {
      const cache = new Map<string, Series>();
      caches.push(cache);
      return (queue) => {
        const series = cache.get(queue) ?? seriesOf(of(queue));
        if (!cache.has(queue)) cache.set(queue, series);
        return series;
      };
    },
    delete(queue: string): void {
      for (const cache of caches) cache.delete(queue);
    },
  };
}

const seriesOf = (families: Families, byQueue: ReturnType<typeof cachesOf>['byQueue']) => ({
  passed: byQueue((label) => families.moverPassDuration.series(label)),
  promoted: byQueue((label) => families.promotionLateness.series(label)),
  started: byQueue((label) => families.startLateness.series(label)),
  ran(outcome: string) {
    const runs = byQueue((label) => families.runDuration.series({ ...label, outcome }));
    return (one: { readonly queue: string; readonly tookMs: number }) => runs(one.queue).observe(seconds(one.tookMs));
  },
});

type Labelled = (queue: string) => { readonly queue: string };

const partsOf = (families: Families, of: Labelled) => ({
  parkedJobs: partOf(families.parkedJobs, of),
  waitingSuspects: partOf(families.waitingSuspects, of),
  lostSlots: partOf(families.lostSlots, of),
  remotePolls: partOf(families.remotePolls, of),
});

/** What one listener adds to a gauge: workers of the same queue may share one. */
function partOf(gauge: Families['parkedJobs'], of: Labelled) {
  const values = new Map<string, number>();
  const set = (queue: string, value: number) => {
    gauge.inc(of(queue), value - (values.get(queue) ?? 0));
    values.set(queue, value);
  };
  return {
    set,
    /** Its series are gone. */
    delete: (queue: string) => values.delete(queue),
    leave(): void {
      for (const queue of values.keys()) set(queue, 0);
    },
  };
}

/** Metrics speak in base units. */
const seconds = (ms: number): number => ms / 1000;

// What belongs to a registry rather than to one part of a process: an application may give one registry to a daemon and
// to several workers. Each family is there once; the counts of the parts add up, and one scrape reads for all parts.
//
// What must always hold: a part that has ended adds nothing any more, and the reading of one scrape is one moment's.

interface Reading {
  readonly partitions: readonly PartitionReading[];
  /** Workers with a valid heartbeat, where the part asks for them. */
  readonly alive: number | undefined;
  readonly servers: ServerReading | undefined;
}

/** One part of a process, for as long as it lives. */
interface Source {
  /** What Redis says, or undefined in an outage. */
  readonly read: () => Promise<Reading | undefined>;
  /** Which of these queues are declared; its answer is undefined in an outage. Left out: the part asks nobody. */
  readonly declared: ((queues: readonly string[]) => Promise<ReadonlySet<string> | undefined>) | undefined;
  /** Whether the part is ready; undefined when nobody asks it. */
  readonly ready: (() => boolean) | undefined;
  readonly isQueueWide: boolean;
  /** Families that this part does not fill: they would show a 0 that nobody measured. */
  readonly without: readonly (keyof Families)[];
}

interface Shared {
  readonly families: Families;
  /** Per listener: who has lost Redis at the moment. */
  readonly away: Set<ReadonlySet<string>>;
  /** Queues that have series of what this process counts. */
  readonly queues: Set<string>;
  /** Per listener: what it keeps of a queue goes. */
  readonly forgetters: Set<(queue: string) => void>;
  readonly join: (source: Source) => () => void;
}

/** What daemons alone ask Redis for. */
const OF_REDIS = ['workersAlive', 'redisMemoryRatio', 'redisClockOffset'] as const;

const known = new WeakMap<Registry, Shared>();

/** The families of a registry, made when the first part comes. */
function sharedOf(registry: Registry): Shared {
  const found = known.get(registry) ?? create(registry);
  known.set(registry, found);
  return found;
}

function create(registry: Registry): Shared {
  const sources = new Set<Source>();
  const away = new Set<ReadonlySet<string>>();
  const queues = new Set<string>();
  const forgetters = new Set<(queue: string) => void>();
  let filling: Promise<void> | undefined;
  const show = createShowing(registry);

  /** The families of one scrape share one reading, so that many of them cost Redis as much as one. */
  function collect(): Promise<void> {
    filling ??= fill().finally(() => {
      filling = undefined;
    });
    return filling;
  }

  const families = createFamilies(collect);

  async function fill(): Promise<void> {
    const asked = [...sources];
    const [readings, gone] = await Promise.all([
      Promise.all(asked.map(({ read }) => read())),
      goneOf([...queues], asked),
    ]);
    // From here on nothing waits, so the values are of one moment.
    for (const queue of gone) {
      queues.delete(queue);
      removeQueue(families, queue);
      for (const forget of forgetters) forget(queue);
    }
    fillQueues(
      families,
      readings.flatMap((reading) => reading?.partitions ?? []),
    );
    setOrRemove(families.workersAlive, most(readings.flatMap((reading) => reading?.alive ?? [])));
    const servers = readings.flatMap((reading) => reading?.servers ?? []);
    setOrRemove(families.redisMemoryRatio, most(servers.flatMap(({ memoryRatio }) => memoryRatio ?? [])));
    const offsetMs = most(servers.map(({ clockOffsetMs }) => clockOffsetMs));
    setOrRemove(families.redisClockOffset, offsetMs === undefined ? undefined : offsetMs / 1000);
    const isRead = (one: Reading | undefined) => one?.partitions.every(({ leading }) => leading !== 'unread') === true;
    const isUp = readings.every(isRead) && [...away].every(({ size }) => size === 0);
    setOrRemove(families.redisUp, asked.length === 0 ? undefined : Number(isUp));
    const ready = asked.flatMap((source) => (source.ready ? [source.ready()] : []));
    setOrRemove(families.ready, ready.length === 0 ? undefined : Number(ready.every(Boolean)));
  }

  return {
    families,
    away,
    queues,
    forgetters,
    join(source) {
      for (const family of filledBy(families, source)) registry.registerMetric(family);
      sources.add(source);
      show(true);
      return () => {
        sources.delete(source);
        show(sources.size > 0);
      };
    },
  };
}

function filledBy(families: Families, { isQueueWide, without }: Source) {
  const queueWide: readonly string[] = isQueueWide ? [] : [...QUEUE_WIDE, ...OF_REDIS];
  const left = new Set<string>([...queueWide, ...without]);
  return Object.entries(families).flatMap(([name, family]) => (left.has(name) ? [] : [family]));
}

/** Queues that have series here and that no part knows any more. An outage says nothing. */
async function goneOf(queues: readonly string[], sources: readonly Source[]): Promise<readonly string[]> {
  const asked = sources.flatMap(({ declared }) => declared ?? []);
  if (queues.length === 0 || asked.length === 0) return [];
  const all = await Promise.all(asked.map((declared) => declared(queues)));
  return all.includes(undefined) ? [] : queues.filter((queue) => all.every((known) => !known?.has(queue)));
}

/** Removes the series that this process counted. A scrape fills the other series anew in any case. */
function removeQueue(families: Families, queue: string): void {
  const { moverPassDuration, promotionLateness, scheduleLateness, startLateness, runDuration } = families;
  for (const one of [moverPassDuration, promotionLateness, scheduleLateness, startLateness, runDuration]) {
    one.removeQueue(queue);
  }
  const { scheduleMissed, overran, fenced, adopted, parkedJobs, waitingSuspects, lostSlots } = families;
  for (const one of [scheduleMissed, overran, fenced, adopted]) one.remove({ queue });
  for (const one of [parkedJobs, waitingSuspects, lostSlots]) one.remove({ queue });
  removeRemote(families, queue);
  removeTarget(families, queue);
  for (const outcome of FIRE_OUTCOMES) families.scheduleFires.remove({ queue, outcome });
}

/** Of workers over HTTP. */
function removeRemote(families: Families, queue: string): void {
  const { remotePolls, remoteClaims, remoteHanded, remoteSettled, remoteTakenBack, remoteTimeouts, remotePollWait } =
    families;
  for (const one of [remotePolls, remoteHanded, remoteTimeouts, remotePollWait]) one.remove({ queue });
  for (const outcome of CLAIM_OUTCOMES) remoteClaims.remove({ queue, outcome });
  for (const cause of ['dead', 'lease']) remoteTakenBack.remove({ queue, cause });
  for (const end of RUN_ENDS) for (const word of RUN_WORDS) remoteSettled.remove({ queue, end, word });
}

/** Of a queue whose jobs call a URL. */
function removeTarget({ targetRequests, targetSeconds, targetClosings }: Families, queue: string): void {
  for (const one of [targetSeconds, targetClosings]) one.remove({ queue });
  for (const outcome of TARGET_OUTCOMES) targetRequests.remove({ queue, class: outcome });
}

const TARGET_OUTCOMES = ['1xx', '2xx', '3xx', '4xx', '5xx', '429', 'none', 'refused'];
const CLAIM_OUTCOMES = ['handed', 'again', 'empty', 'superseded', 'gone'];
const RUN_ENDS = ['complete', 'fail', 'defer', 'begin'];
const RUN_WORDS = ['ok', 'already', 'cancelled', 'fenced', 'gone'];

const FIRE_OUTCOMES = ['ok', 'already', 'skipped', 'waiting', 'ended'];

/** Sets the value, or removes it if nobody measured one. */
function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove();
  else gauge.set(value);
}

/** The number that is furthest from 0. */
function most(values: readonly number[]): number | undefined {
  return [...values].sort((a, b) => Math.abs(b) - Math.abs(a))[0];
}
