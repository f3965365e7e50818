/**
 * The roof: one process with the roles it was given. Mover promotes, http shows, worker runs handlers, dispatcher calls URLs. Wiring
 * and the order of life only; what the parts do stands in their own rooms.
 *
 *  start  handler module, file of schedules → connect → queues of the configuration → movers → worker → dispatcher → http
 *  stop   not ready → worker and dispatcher finish or hand back → movers give their leases back → http → connections
 *  another schema is found   connections close first, so that nothing is written any more; then a stop
 */
import { hostname } from 'node:os';
import { once, registryAnswers } from '../client/calls/retry.ts';
import { setLimit } from '../client/limits/limits.ts';
import { queueOptions } from '../config/load.ts';
import { type Config, doneLimits } from '../config/options.ts';
import { logEvents } from '../job/event-log.ts';
import { createEmitter, type Emitter, type EventSource, forward } from '../job/events.ts';
import { newJobId } from '../job/job-id.ts';
import { type Queue, queueFrom } from '../job/queue.ts';
import { POLICIES_MAX, policyOf, type QueuePolicies } from '../job/queue-policy.ts';
import { parseShared } from '../job/shared-limit.ts';
import { asConfig, checkNames, hintOf } from '../kernel/checks.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { createLife, type Life } from '../kernel/life.ts';
import { type Log, parseLog } from '../kernel/log.ts';
import { createLoop } from '../kernel/loop.ts';
import { RHYTHMS } from '../kernel/rhythm.ts';
import { version } from '../kernel/version.ts';
import { createMetrics, type Registry } from '../metrics/metrics.ts';
import { LeaderPool } from '../mover/leader-pool.ts';
import type { NearWorker } from '../mover/promotion/lone-worker.ts';
import { labelOf, openCommands, openSubscriber, type Redis, type RedisInput } from '../redis/connection/connect.ts';
import { evictionOf } from '../redis/connection/memory.ts';
import {
  createOpening,
  type Opening,
  START_WITHIN_MS,
  startPolicy,
  whileStarting,
} from '../redis/connection/opening.ts';
import { pauseAfter } from '../redis/connection/outage.ts';
import { checkSchema } from '../redis/schema.ts';
import { claimNamespace, declarationOf, declareQueue, unheldOf } from '../redis/scripts/queues.ts';
import type { AnyWork } from '../worker/options.ts';
import { type Handlers, isHandlers } from '../worker/run/handlers.ts';
import { createWatchedWorker, type WatchedWorker } from '../worker/worker.ts';
import { createDispatcher, type Dispatcher } from './dispatcher.ts';
import { loadHandlers } from './handler-module.ts';
import { createLagWatch, healthOf, queueReadings } from './health.ts';
import { createHttpWindow } from './http-window.ts';
import { type DaemonInput, type DaemonSettings, readDaemonInput } from './input.ts';
import { type ScheduleKeeper, scheduleKeeperOf } from './schedule-keeper.ts';

export type { DaemonInput };

/** What only code can give a daemon, beside its configuration. */
export interface DaemonParts {
  readonly log?: Log | undefined;
  /** Handlers that are already in memory; otherwise `worker.module` is loaded when the role `worker` is on. */
  readonly handlers?: Handlers | undefined;
  /** Events of the process around it, which its log and its metrics show as well. */
  readonly around?: EventSource | undefined;
  /** Only these queues of the handlers. */
  readonly only?: readonly string[] | undefined;
  /** Where the metrics are put, together with those of others or of the application. Default: a registry of its own. */
  readonly registry?: Registry | undefined;
}

/** A daemon inside your process: leader, workers and HTTP by its roles. It does nothing before `start`. */
export interface Daemon {
  /**
   * Loads the handler module and the file of schedules, connects, and begins to work. Twice is fine: calls at the same
   * time share one start. One that fails stops the daemon and leaves nothing behind.
   *
   * @throws DuestreamError `unavailable` or `refused` by Redis · `bad-input` for a bad handler module · `bad-config` for a
   * wrong file of schedules · `wrong-schema` for a namespace of another layout · `stopped` after a stop, or when it was stopped meanwhile
   */
  readonly start: () => Promise<void>;
  /**
   * Connects unless that has happened, and resolves when Redis answers. It leads nothing and runs nothing; `start` goes on
   * with the same connections. In an outage it waits for 5 s, and may be called again.
   *
   * @throws DuestreamError `unavailable`, `refused`, `stopped`
   */
  readonly ready: () => Promise<void>;
  /** Stops in order; twice is fine, also before a start. */
  readonly stop: () => Promise<void>;
  /** `stop`, for `await using daemon = createDaemon(…)`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>;
  /** It runs, Redis answers, movers and workers do their work; what `/readyz` says. For the route of an application. */
  readonly isReady: () => Promise<boolean>;
  /** Its loops turn; what `/livez` says. */
  readonly isLive: () => boolean;
  /** Events of every part. */
  readonly events: EventSource;
  /** What `/metrics` says: this daemon's metrics as text for Prometheus. For the route of an application. */
  readonly metrics: () => Promise<string>;
  /** The same as a registry of prom-client, to be shared with workers or merged. A registry that was given is returned. */
  readonly registry: Registry;
  /** Where health and metrics are served; undefined before start or without the role. */
  readonly http: () => { readonly host: string; readonly port: number } | undefined;
  /** Where Redis is, without credentials. */
  readonly redisLabel: string;
}

const PARTS: readonly string[] = Object.keys({
  log: 0,
  handlers: 0,
  around: 0,
  only: 0,
  registry: 0,
} satisfies Record<keyof DaemonParts, number>);

/**
 * A daemon with the roles of its configuration. It connects, and reads files, at `start`.
 *
 * @param input the part of the configuration that differs from the defaults; `redis` as for a producer.
 * @throws DuestreamError `bad-config` for unknown or impossible options.
 * @example
 * const daemon = createDaemon({ redis: 'redis://127.0.0.1:6379', roles: ['mover', 'http'] });
 * await daemon.start();
 */
export function createDaemon(input: DaemonInput, parts: DaemonParts = {}): Daemon {
  return createDaemonOf(readDaemonInput(input), parts);
}

/** What a daemon is made of before it connects. */
interface Made {
  readonly settings: DaemonSettings;
  readonly parts: DaemonParts;
  readonly events: Emitter;
  readonly opening: Opening<Services>;
  /** Ends what forwards events of the parts. */
  readonly unforwards: (() => void)[];
  worker: WatchedWorker | undefined;
  keeper: ScheduleKeeper | undefined;
  /** Undefined without its role. */
  readonly dispatcher: Dispatcher | undefined;
  listening: { readonly host: string; readonly port: number } | undefined;
}

/**
 * The same of a configuration that was loaded.
 *
 * @param tellEvents how its log tells what happens; the way of `dev` is its own
 * @throws DuestreamError `bad-config`
 */
export function createDaemonOf(
  settings: DaemonSettings,
  parts: DaemonParts = {},
  tellEvents: (events: EventSource, log: Log) => () => void = logEvents,
): Daemon {
  const made = madeOf(settings, checkParts(parts));
  const { events, opening } = made;
  const untell = tellEvents(events, parseLog(parts.log));
  const lag = createLagWatch({ clock: systemClock, events });
  const isRunning = () => life.state() === 'running';
  const metrics = createMetrics({ version, state: { ready: isRunning }, ...scrapedOf(made) });
  const unobserve = metrics.observe(events);
  const health = healthOfMade(made, () => life.state());
  const shown = { ...health, scrape: metrics.scrape, contentType: metrics.contentType };
  const http = has(settings.config, 'http') ? httpOf(made, shown) : undefined;
  const life: Life<undefined> = createLife({
    what: 'daemon',
    async begin(signal) {
      await begin(made, signal);
      lag.start();
      made.listening = await http?.start();
    },
    async end(begun) {
      await shutDown(made, begun);
      await http?.stop();
      lag.stop();
      for (const unforward of made.unforwards) unforward();
      unobserve();
      metrics.close();
      opening.close();
      untell();
    },
    atFailure: undefined,
  });
  const stop = () => life.stop(undefined);
  events.on('schema.refused', () => {
    opening.close();
    made.worker?.abandon();
    stop().catch(() => undefined);
  });
  return {
    start: life.start,
    stop,
    events,
    registry: metrics.registry,
    metrics: metrics.scrape,
    [Symbol.asyncDispose]: stop,
    async ready() {
      life.check();
      const { redis } = await opening.connected(life.signal);
      await registryAnswers(redis, made.settings.config.namespace, startPolicy(systemClock, life.signal));
    },
    isReady: async () => (await health.ready()).ok,
    isLive: () => health.live().ok,
    http: () => made.listening,
    redisLabel: labelOf(settings.redis),
  };
}

const healthOfMade = (made: Made, state: Life<undefined>['state']) =>
  healthOf({
    config: made.settings.config,
    clock: systemClock,
    movers: () => made.opening.opened()?.movers,
    worker: () => made.worker,
    dispatcher: made.dispatcher,
    redis: () => made.opening.opened()?.redis,
    state,
  });

const httpOf = ({ settings, parts, events, opening }: Made, shown: Parameters<typeof createHttpWindow>[1]) =>
  createHttpWindow(settings, shown, { log: parts.log, events, redis: () => opening.opened()?.redis });

/** @throws DuestreamError `bad-config` */
function checkParts(parts: DaemonParts): DaemonParts {
  checkNames(parts, PARTS, 'createDaemon');
  if (parts.handlers !== undefined && !isHandlers(parts.handlers)) {
    throw new DuestreamError(
      'bad-config',
      `handlers is ${show(parts.handlers)}; allowed: what defineHandlers returned`,
    );
  }
  return { ...parts, log: asConfig(() => parseLog(parts.log)) };
}

function madeOf(settings: DaemonSettings, parts: DaemonParts): Made {
  const { config } = settings;
  if (has(config, 'worker') && !parts.handlers && config.worker.module === '') {
    throw new DuestreamError('bad-config', 'the role worker has no handlers; allowed: worker.module, or handlers');
  }
  const events = createEmitter();
  const opening = createOpening({
    waitMs: START_WITHIN_MS,
    open: () => openConnections(settings),
    furnish: async (connections) => createServices(settings, events, connections, () => made.worker),
  });
  const none = { worker: undefined, keeper: undefined, listening: undefined };
  const dispatcher = has(config, 'dispatcher') ? dispatcherOf(settings, events, parts) : undefined;
  const made: Made = { settings, parts, events, opening, dispatcher, unforwards: [], ...none };
  if (parts.handlers && has(config, 'worker')) made.worker = workerOf(made, parts.handlers);
  if (parts.around) made.unforwards.push(forward(parts.around, events));
  return made;
}

const has = (config: Config, role: Config['roles'][number]) => config.roles.includes(role);

function workerOf({ settings, parts, events, unforwards }: Made, handlers: Handlers): WatchedWorker {
  const { only } = parts;
  const log = parseLog(parts.log);
  const worker = createModuleWorker(handlers, { ...settings, log, only });
  unforwards.push(forward(worker.events, events));
  return worker;
}

const dispatcherOf = ({ config, redis }: DaemonSettings, events: Emitter, { log }: DaemonParts): Dispatcher =>
  createDispatcher({
    ...{ config, redis, events, log: parseLog(log) },
    clock: systemClock,
    workerSettings: workerOptions(config),
  });

/** Which metrics there are, and where those of whole queues come from. */
function scrapedOf(made: Made) {
  const { settings, parts, opening } = made;
  const { config } = settings;
  const moves = has(config, 'mover');
  return {
    registry: parts.registry,
    without: [...(parts.around ? [] : ['rejections' as const]), ...(moves ? [] : ['redisEvicts' as const])],
    declared: async (queues: readonly string[]) => made.worker?.declared(queues),
    ...(moves
      ? queueReadings({
          opened: opening.opened,
          namespace: config.namespace,
          groupsMax: config.http.metricGroups,
        })
      : {}),
  };
}

async function begin(made: Made, signal: AbortSignal): Promise<void> {
  const { settings, parts, events, opening } = made;
  const { config } = settings;
  const handlers = has(config, 'worker') ? (parts.handlers ?? (await loadHandlers(config.worker.module))) : undefined;
  if (handlers) made.worker ??= workerOf(made, handlers);
  const log = parseLog(parts.log);
  made.keeper = scheduleKeeperOf(config, { log, events, clock: systemClock });
  signal.throwIfAborted();
  const { redis, movers, guard } = await opening.use(signal);
  const announce = () =>
    movers ? declareQueues(redis, { config, handlers }, log) : checkSchema(redis, config.namespace);
  await whileStarting('daemon', announce, { clock: systemClock, signal });
  await movers?.start(signal);
  if (movers) guard.start();
  made.keeper?.start(redis);
  await made.worker?.start();
  made.dispatcher?.start(redis);
  signal.throwIfAborted();
}

async function shutDown(made: Made, begun: Promise<void>): Promise<void> {
  // First of all, so that a start that is under way is cut short there too.
  const workerStopped = made.worker?.stop();
  await begun;
  await Promise.all([workerStopped ?? made.worker?.stop(), made.dispatcher?.stop()]);
  const opened = made.opening.opened();
  await opened?.guard.stop();
  await made.keeper?.stop();
  await opened?.movers?.stop();
}

/** One connection for commands and, in the role mover, one that receives nudges. */
function openConnections({ config, redis }: DaemonSettings): readonly [Redis, ...Redis[]] {
  const nudges = config.roles.includes('mover') ? [openSubscriber({ redis, name: 'nudges' })] : [];
  return [openCommands({ redis, name: 'daemon' }), ...nudges];
}

/** The services that use the connections. */
function createServices(
  { config }: DaemonSettings,
  events: ReturnType<typeof createEmitter>,
  [redis, subscriber]: readonly [Redis, ...Redis[]],
  nearWorker: () => NearWorker | undefined,
) {
  const id = `d-${newJobId()}`;
  const movers = subscriber ? moversOf({ config, redis, subscriber, id, events, nearWorker }) : undefined;
  const lookMs = RHYTHMS[config.profile].evictionMs;
  return { redis, movers, guard: createGuard({ redis, clock: systemClock, events, lookMs }) };
}

type Services = ReturnType<typeof createServices>;

/** Declares each queue of the configuration, so that it has movers before its first job, and the partitions it was given. */
async function declareQueues(
  redis: Redis,
  of: { readonly config: Config; readonly handlers: Handlers | undefined },
  log: Log,
): Promise<void> {
  const { namespace, mover, queues } = of.config;
  await claimNamespace(redis, namespace, mover.lingerMs);
  await declareLimits(redis, of.config);
  for (const name of Object.keys(queues)) {
    const queue = definitionOf(name, of);
    const layout = await declareQueue(redis, declarationOf(namespace, queue));
    for (const text of unheldOf(layout, queue)) log.warn({ queue: name, what: text }, 'the definition does not hold');
  }
}

/** Limits that queues share are there before a queue names them. The file of the daemon that started last counts. */
async function declareLimits(redis: Redis, { namespace, sharedLimits }: Config): Promise<void> {
  for (const [name, said] of Object.entries(sharedLimits)) {
    const by = { by: `the file of a daemon on ${hostname()}`, why: '', atMs: systemClock.wallMs() };
    await setLimit({ redis, namespace, steps: once }, { name, shared: parseShared(name, said), by });
  }
}

/** Charts are looked at by the HTTP API; without it nothing is kept for them, unless somebody asks for it. */
function keepsMinutes({ roles, http }: Config): boolean {
  if (http.minutes !== 'auto') return http.minutes === 'on';
  return roles.includes('http') && http.api === 'on';
}

function moversOf(parts: {
  config: Config;
  redis: Redis;
  subscriber: Redis;
  id: string;
  events: ReturnType<typeof createEmitter>;
  nearWorker: () => NearWorker | undefined;
}) {
  const { config, redis, subscriber, id, events, nearWorker } = parts;
  const { dead, mover, namespace, profile } = config;
  const rhythm = RHYTHMS[profile];
  return new LeaderPool({
    minutes: keepsMinutes(config),
    redis,
    subscriber,
    namespace,
    events,
    nearWorker,
    options: { ...mover, safetyTickMs: rhythm.safetyTickMs },
    clock: systemClock,
    beatTtlMs: rhythm.daemonBeatTtlMs,
    rhythm,
    identity: {
      id,
      role: 'daemon',
      host: hostname(),
      pid: process.pid,
      version,
      startedMs: systemClock.wallMs(),
      queues: [],
      keepsOrder: true,
      ...(judgesRuns(config) && { policies: policiesOf(config) }),
    },
    limits: {
      batch: 500,
      retentionMs: dead.retentionMs,
      deadLettersMax: dead.max,
      ...doneLimits(config),
    },
  });
}

const judgesRuns = (config: Config): boolean =>
  has(config, 'http') && config.http.work === 'on' && config.http.api === 'on';

/** How it judges runs of workers over HTTP, for `doctor` to compare. */
function policiesOf(config: Config): QueuePolicies {
  const names = Object.keys(config.queues).slice(0, POLICIES_MAX);
  const named = names.map((name) => [name, policyOf(definitionOf(name, { config }))] as const);
  const below = { timeoutMs: config.worker.timeoutMs };
  return { named: Object.fromEntries(named), others: policyOf(queueFrom('others', {}, below)) };
}

interface ModuleWorkerOptions {
  readonly config: Config;
  readonly redis: RedisInput;
  readonly log: Log;
  /** Only these queues of the module. */
  readonly only?: readonly string[] | undefined;
}

/**
 * One worker for all queues of a handler module, not started yet. The configuration of a queue wins over its definition in
 * code.
 *
 * @throws DuestreamError `bad-input` for a queue that the module has not
 */
export function createModuleWorker(
  handlers: Handlers,
  { config, redis, log, only }: ModuleWorkerOptions,
): WatchedWorker {
  const names = Object.keys(handlers.map);
  const missing = only?.find((name) => !names.includes(name));
  if (missing !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `queue ${missing} is not in the handler module${hintOf(missing, names) || ';'} it has ${names.join(', ')}`,
    );
  }
  const queues = names
    .filter((name) => only === undefined || only.includes(name))
    .map((name): AnyWork => {
      const onAbandoned = Object.hasOwn(handlers.onAbandoned, name) ? handlers.onAbandoned[name] : undefined;
      return { queue: definitionOf(name, { handlers, config }), handler: handlers.map[name] ?? {}, onAbandoned };
    });
  const worker = createWatchedWorker([{ ...workerOptions(config), redis, log, queues }]);
  handlers.use.forEach(worker.use);
  return worker;
}

/** What the configuration says of a queue, and for the rest what its definition in code says. */
function definitionOf(name: string, { handlers, config }: { handlers?: Handlers | undefined; config: Config }): Queue {
  const coded = handlers?.queues.find((queue) => queue.name === name);
  return queueFrom(name, queueOptions(config, name), coded ?? { timeoutMs: config.worker.timeoutMs });
}

function workerOptions({ worker, done, namespace, profile }: Config) {
  return {
    namespace,
    read: worker.read,
    pollEvery: worker.pollEveryMs,
    profile,
    concurrency: worker.concurrency,
    jobLease: worker.jobLeaseMs,
    beatTtl: worker.beatTtlMs,
    grace: worker.graceMs,
    shutdown: worker.shutdownMs,
    abortGrace: worker.abortGraceMs,
    recycleAtPercent: worker.recycleAtPercent,
    doneWindow: done.max === 0 ? 0 : done.windowMs,
  };
}

// Looks every few seconds whether Redis may evict keys, and says so once per change. It only tells: what is due is
// promoted all the same, because a job that waits in an evicting Redis is in more danger than one that runs.

export interface Guard {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** One look. Returns milliseconds until the next. */
  readonly pass: () => Promise<number>;
}

export function createGuard(parts: {
  readonly redis: Redis;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly lookMs?: number;
}): Guard {
  const { redis, clock, events, lookMs = RHYTHMS.default.evictionMs } = parts;
  let told: string | undefined;

  async function pass(): Promise<number> {
    // Others tell of the outage, and a user without the right to INFO is told by `doctor`.
    const found = await evictionOf(redis).catch(() => 'unknown' as const);
    if (found === 'unknown') return lookMs;
    if (found && found.policy !== told) {
      events.emit('redis.evicts', { policy: found.policy, limitBytes: found.limitBytes, jobs: found.jobs });
    }
    if (!found && told !== undefined) events.emit('redis.keeps', { after: told });
    told = found?.policy;
    return lookMs;
  }

  const loop = createLoop({ who: 'guard', pass, clock, events, pauseAfter });
  return { start: loop.start, stop: loop.stop, pass };
}
