/**
 * The roof: one process with the roles it was given. Mover promotes, http shows, worker runs handlers. Wiring and the
 * order of life only; what the parts do stands in their own rooms.
 *
 *  start  handler module, file of schedules → connect → queues of the configuration → movers → worker → http
 *  stop   not ready → worker finishes or hands back → movers give their leases back → http → connections
 */
import type { Config } from '../config/options.ts';
import { systemClock } from '../core/clock.ts';
import { DuestreamError, messageOf } from '../core/errors.ts';
import { createEmitter, type EventSource } from '../core/events.ts';
import { type Log, silentLog } from '../core/log.ts';
import { checkNames } from '../core/option-names.ts';
import { createHttp } from '../http/server.ts';
import { createMetrics, type Registry } from '../metrics/metrics.ts';
import { labelOf } from '../redis/connection/connect.ts';
import { createOpening } from '../redis/connection/opening.ts';
import { withRetry } from '../redis/connection/outage.ts';
import type { Handlers } from '../worker/handlers.ts';
import type { WatchedWorker } from '../worker/worker.ts';
import { declareQueues, forward, furnish, openAll } from './daemon-parts.ts';
import { loadHandlers } from './handler-module.ts';
import { healthOf } from './health.ts';
import { type DaemonInput, type DaemonSettings, readDaemonInput } from './input.ts';
import { createLagWatch } from './lag.ts';
import { queueReadings } from './queue-readings.ts';
import { type ScheduleKeeper, scheduleKeeperOf } from './schedule-keeper.ts';
import { version } from './version.ts';
import { createModuleWorker } from './workers.ts';

export type { DaemonInput };

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

export interface Daemon {
  /**
   * Loads the handler module and the file of schedules, connects, and begins to work. Twice is fine: calls at the same
   * time share one start. One that fails stops the daemon and leaves nothing behind.
   *
   * @throws DuestreamError `unavailable` or `refused` by Redis · `bad-input` for a bad handler module · `bad-config` for a
   * wrong file of schedules · `stopped` after a stop, or when it was stopped meanwhile
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

/** How long start tries to reach Redis. */
const START_WITHIN_MS = 5000;

const PARTS: readonly string[] = Object.keys({
  ...{ log: 0, handlers: 0, around: 0, only: 0, registry: 0 },
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

/** The same of a configuration that was loaded. @throws DuestreamError `bad-config` */
export function createDaemonOf(settings: DaemonSettings, parts: DaemonParts = {}): Daemon {
  checkNames(parts, PARTS, 'createDaemon');
  const { config } = settings;
  const { log = silentLog } = parts;
  const has = (role: Config['roles'][number]) => config.roles.includes(role);
  if (has('worker') && !parts.handlers && config.worker.module === '') {
    throw new DuestreamError('bad-config', 'the role worker has no handlers; allowed: worker.module, or handlers');
  }
  const events = createEmitter();
  const stopAsked = new AbortController();
  const unforwards: (() => void)[] = [];
  let worker = parts.handlers && has('worker') ? workerOf(parts.handlers) : undefined;
  if (parts.around) unforwards.push(forward(parts.around, events));
  const lag = createLagWatch({ clock: systemClock, events });
  const opening = createOpening({
    waitMs: START_WITHIN_MS,
    open: () => openAll(settings),
    furnish: async (connections) => furnish(settings, events, connections),
  });
  const movers = () => opening.opened()?.movers;
  const metrics = createMetrics({
    version,
    state: { ready: () => state === 'running' },
    registry: parts.registry,
    without: [...(parts.around ? [] : ['rejections' as const]), ...(has('mover') ? [] : ['redisEvicts' as const])],
    ...(has('mover') ? queueReadings({ opened: opening.opened, namespace: config.namespace }) : {}),
  });
  const unobserve = metrics.observe(events);
  const health = healthOf({
    ...{ mover: config.mover, clock: systemClock, movers, worker: () => worker },
    ...{ redis: () => opening.opened()?.redis, state: () => state },
  });
  const { host, port, token } = config.http;
  const http = has('http')
    ? createHttp({ host, port, token, log, ...health, scrape: metrics.scrape, contentType: metrics.contentType })
    : undefined;
  let keeper: ScheduleKeeper | undefined;
  let listening: { host: string; port: number } | undefined;
  let state: 'new' | 'running' | 'stopping' = 'new';
  let beginning: Promise<void> | undefined;
  let starting: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;
  let failure: string | undefined;

  function workerOf(handlers: Handlers): WatchedWorker {
    const made = createModuleWorker(handlers, { ...settings, log, only: parts.only });
    unforwards.push(forward(made.events, events));
    return made;
  }

  async function begin(): Promise<void> {
    const { signal } = stopAsked;
    if (has('worker')) worker ??= workerOf(await loadHandlers(config.worker.module));
    keeper = scheduleKeeperOf(config, { log, events, clock: systemClock });
    signal.throwIfAborted();
    const { redis, movers, guard } = await opening.use(signal);
    if (movers) await declareQueues(redis, config);
    await movers?.start();
    if (movers) guard.start();
    keeper?.start(redis);
    await worker?.start();
    signal.throwIfAborted();
    lag.start();
    state = 'running';
    listening = await http?.start();
  }

  function start(): Promise<void> {
    if (stopped) return Promise.reject(over(failure));
    starting ??= tryToStart();
    return starting;
  }

  async function tryToStart(): Promise<void> {
    beginning = begin();
    try {
      await beginning;
    } catch (error) {
      const cutShort = stopAsked.signal.aborted;
      if (!cutShort) failure = messageOf(error);
      await stop();
      throw cutShort ? new DuestreamError('stopped', 'this daemon was stopped while it started') : error;
    }
  }

  async function ready(): Promise<void> {
    if (stopped) throw over(failure);
    const { redis } = await opening.connected(stopAsked.signal);
    const { signal } = stopAsked;
    await withRetry('ready', () => redis.ping(), { clock: systemClock, budgetMs: START_WITHIN_MS, signal });
  }

  async function shutDown(): Promise<void> {
    state = 'stopping';
    // First of all, so that a start that is under way is cut short there too.
    const workerStopped = worker?.stop();
    await beginning?.catch(() => undefined);
    await (workerStopped ?? worker?.stop());
    const opened = opening.opened();
    await opened?.guard.stop();
    await keeper?.stop();
    await opened?.movers?.stop();
    await http?.stop();
    lag.stop();
    for (const unforward of unforwards) unforward();
    unobserve();
    metrics.close();
    opening.close();
  }

  function stop(): Promise<void> {
    stopAsked.abort(over());
    stopped ??= shutDown();
    return stopped;
  }

  return {
    ...{ start, stop, ready, events, registry: metrics.registry, metrics: metrics.scrape },
    [Symbol.asyncDispose]: stop,
    isReady: async () => (await health.ready()).ok,
    isLive: () => health.live().ok,
    http: () => listening,
    redisLabel: labelOf(settings.redis),
  };
}

const over = (failure?: string) =>
  new DuestreamError(
    'stopped',
    `this daemon ${failure === undefined ? 'was stopped' : `could not start (${failure})`}; create another one`,
  );
