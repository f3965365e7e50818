/**
 * The roof: one process with the roles it was given. Mover promotes, http shows, worker runs handlers. Wiring and the
 * order of life only; what the parts do stands in their own rooms.
 *
 *  start  connect → queues of the configuration → movers → workers → http
 *  stop   not ready → workers finish or hand back → movers give their leases back → http → connections
 */
import { hostname } from 'node:os';
import { doneLimits } from '../config/done.ts';
import { queueOptions } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { systemClock } from '../core/clock.ts';
import { DuestreamError } from '../core/errors.ts';
import { forward } from '../core/event-list.ts';
import { createEmitter, type EventSource } from '../core/events.ts';
import { newJobId } from '../core/job.ts';
import { type Log, silentLog } from '../core/log.ts';
import { defineQueue } from '../core/queue.ts';
import { createHttp } from '../http/server.ts';
import { createMetrics, type Registry } from '../metrics/metrics.ts';
import { createGuard } from '../mover/guard.ts';
import { createMovers } from '../mover/movers.ts';
import { close, describe, openCommands, openSubscriber, type Redis, whenReady } from '../redis/connection/connect.ts';
import { declareQueue } from '../redis/transitions/queues.ts';
import type { Handlers } from '../worker/handlers.ts';
import { loadHandlers } from './handler-module.ts';
import { type DaemonInput, readDaemonInput } from './input.ts';
import { createLagWatch } from './lag.ts';
import { queueReadings } from './queue-readings.ts';
import { scheduleKeeperOf } from './schedule-keeper.ts';
import { version } from './version.ts';
import { createWorkers } from './workers.ts';

export type { DaemonInput };

export interface DaemonParts {
  readonly log?: Log;
  /** Handlers that are already in memory; otherwise `worker.module` is loaded when the role `worker` is on. */
  readonly handlers?: Handlers;
  /** Events of the process around it, which its log and its metrics show as well. */
  readonly around?: EventSource;
  /** Only these queues of the handlers. */
  readonly only?: readonly string[];
  /** Where the metrics are put, together with those of others or of the application. Default: a registry of its own. */
  readonly registry?: Registry | undefined;
}

export interface Daemon {
  /** @throws DuestreamError `unavailable` when Redis cannot be reached, `bad-input` for a bad handler module. */
  readonly start: () => Promise<void>;
  /** Stops in order; twice is fine. */
  readonly stop: () => Promise<void>;
  /** It runs, Redis answers, movers and workers do their work; what `/readyz` says. For the route of an application. */
  readonly ready: () => Promise<boolean>;
  /** Its loops turn; what `/livez` says. */
  readonly live: () => boolean;
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

/** A loop that has not turned for this long is stuck: every command has a time-out far below. */
const STUCK_AFTER_MS = 30_000;
/** How long start tries to reach Redis. */
const START_WITHIN_MS = 5000;

/**
 * A daemon with the roles of its configuration.
 *
 * @param input the part of the configuration that differs from the defaults; `redis` as for a producer.
 * @throws DuestreamError `bad-config` for unknown or impossible options, or a wrong file of schedules.
 * @example
 * const daemon = await createDaemon({ redis: { url: 'redis://127.0.0.1:6379' }, roles: ['mover', 'http'] });
 * await daemon.start();
 */
export async function createDaemon(input: DaemonInput, parts: DaemonParts = {}): Promise<Daemon> {
  const { config, redis: address } = readDaemonInput(input);
  const { log = silentLog } = parts;
  const has = (role: Config['roles'][number]) => config.roles.includes(role);
  const id = `d-${newJobId()}`;
  const events = createEmitter();
  const handlers = has('worker') ? (parts.handlers ?? (await loadHandlers(config.worker.module))) : undefined;
  const serving = { config, redis: address, log, ...(parts.only ? { only: parts.only } : {}) };
  const workers = handlers ? createWorkers(handlers, serving) : [];
  for (const worker of workers) forward(worker.events, events);
  const unforward = parts.around ? forward(parts.around, events) : () => {};
  const keeper = scheduleKeeperOf(config, { log, events, clock: systemClock });
  const lag = createLagWatch({ clock: systemClock, events });
  const redis = openCommands({ redis: address, name: 'daemon' });
  const subscriber = has('mover') ? openSubscriber({ redis: address, name: 'nudges' }) : undefined;
  const movers = subscriber ? moversOf({ config, redis, subscriber, id, events }) : undefined;
  const guard = createGuard({ redis, clock: systemClock, events });
  const metrics = createMetrics({
    version,
    state: { ready: () => state === 'running' },
    registry: parts.registry,
    without: [...(parts.around ? [] : ['rejections' as const]), ...(movers ? [] : ['redisEvicts' as const])],
    ...(movers ? queueReadings({ redis, movers, namespace: config.namespace }) : {}),
  });
  const unobserve = metrics.observe(events);
  const probes = { live, ready };
  const { host, port, token } = config.http;
  const http = has('http')
    ? createHttp({ host, port, token, log, ...probes, scrape: metrics.scrape, contentType: metrics.contentType })
    : undefined;
  let listening: { host: string; port: number } | undefined;
  let state: 'new' | 'running' | 'stopping' = 'new';
  let stopped: Promise<void> | undefined;
  const stopAsked = new AbortController();

  function live(): { ok: boolean; detail: Record<string, unknown> } {
    const turned = movers ? systemClock.monotonicMs() - movers.lastTurnMs() : 0;
    const stuckWorkers = workers.filter((worker) => !worker.live()).map(({ queue }) => queue);
    const ok = state !== 'running' || (turned < STUCK_AFTER_MS && stuckWorkers.length === 0);
    return { ok, detail: { state, version, moversTurnedMsAgo: Math.round(turned), stuckWorkers } };
  }

  async function ready(): Promise<{ ok: boolean; detail: Record<string, unknown> }> {
    const progressed = movers ? systemClock.monotonicMs() - movers.lastProgressMs() : 0;
    const late = progressed > 3 * Math.max(config.mover.safetyTickMs, config.mover.leaseMs);
    const notReady = workers.filter((worker) => !worker.ready()).map(({ queue }) => queue);
    const redisAnswers = await redis.ping().then(
      () => true,
      () => false,
    );
    const ok = state === 'running' && redisAnswers && !late && notReady.length === 0;
    return { ok, detail: { state, redisAnswers, moversProgressedMsAgo: Math.round(progressed), notReady } };
  }

  async function begin(): Promise<void> {
    const { signal } = stopAsked;
    const connections = subscriber ? [redis, subscriber] : [redis];
    await Promise.all(connections.map((one) => whenReady(one, START_WITHIN_MS, signal)));
    if (movers) await declareQueues(redis, config);
    await movers?.start();
    if (movers) guard.start();
    keeper?.start(redis);
    await Promise.all(workers.map((worker) => worker.start()));
    signal.throwIfAborted();
    lag.start();
    state = 'running';
    listening = await http?.start();
  }

  async function shutDown(): Promise<void> {
    state = 'stopping';
    await Promise.all(workers.map((worker) => worker.stop()));
    await guard.stop();
    await keeper?.stop();
    await movers?.stop();
    await http?.stop();
    lag.stop();
    unforward();
    unobserve();
    metrics.close();
    if (subscriber) close(subscriber);
    close(redis);
  }

  function stop(): Promise<void> {
    stopAsked.abort();
    stopped ??= shutDown();
    return stopped;
  }

  return {
    async start() {
      try {
        await begin();
      } catch (error) {
        const cutShort = stopAsked.signal.aborted;
        await stop();
        throw cutShort ? new DuestreamError('stopped', 'this daemon was stopped while it started') : error;
      }
    },
    stop,
    ready: async () => (await ready()).ok,
    live: () => live().ok,
    events,
    metrics: metrics.scrape,
    registry: metrics.registry,
    http: () => listening,
    redisLabel: describe(redis),
  };
}

/** What a configuration names exists from now on: it has movers before its first job, and the partitions it was given. */
async function declareQueues(redis: Redis, config: Config): Promise<void> {
  const { namespace } = config;
  for (const name of Object.keys(config.queues)) {
    const { partitions } = defineQueue(name, queueOptions(config, name));
    await declareQueue(redis, { namespace, queue: name, partitions });
  }
}

function moversOf(parts: {
  config: Config;
  redis: Redis;
  subscriber: Redis;
  id: string;
  events: ReturnType<typeof createEmitter>;
}) {
  const { config, redis, subscriber, id, events } = parts;
  const { dead, mover, namespace } = config;
  return createMovers({
    ...{ redis, subscriber, namespace, events, options: mover, clock: systemClock, beatTtlMs: 15_000 },
    identity: { id, role: 'daemon', host: hostname(), pid: process.pid, startedMs: systemClock.wallMs(), queues: [] },
    limits: {
      ...{ batch: 500, retentionMs: dead.retentionMs, deadLettersMax: dead.max },
      ...doneLimits(config),
    },
  });
}
