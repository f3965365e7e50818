/**
 * A worker as an application embeds it: the worker itself, with its events in the log that it is given, and with metrics of its own
 * or in a registry that it shares. The library
 * of the metrics is loaded when it starts: a process that only schedules does without. What a daemon runs needs none of this:
 * there the daemon has the metrics.
 */

import { logEvents } from '../job/event-log.ts';
import type { Queue, Untyped } from '../job/queue.ts';
import { checkObject } from '../kernel/checks.ts';
import { type Log, parseLog } from '../kernel/log.ts';
import { version } from '../kernel/version.ts';
import type { Registry } from '../metrics/metrics.ts';
import type { AnyOptions, ManyQueuesOptions, WorkerOptions as PlainOptions } from '../worker/options.ts';
import type { PlainHandlers, QueueHandlers } from '../worker/run/handlers.ts';
import { createWatchedWorker, type Worker as Plain, type WatchedWorker } from '../worker/worker.ts';

interface WithRegistry {
  /**
   * Where the metrics are put: the registry of a daemon or of another worker, or one of prom-client that the application
   * has. Default: a registry of its own.
   */
  readonly registry?: Registry | undefined;
}

/** Options of a worker of one queue. */
export interface WorkerOptions extends PlainOptions, WithRegistry {}

/** Options of a worker of several queues. */
export interface WorkerQueuesOptions<Datas extends readonly unknown[]> extends ManyQueuesOptions<Datas>, WithRegistry {}

/** A worker inside your process. It does nothing before `start`. */
export interface Worker extends Plain {
  /** Start lateness, run duration and the rest of what this worker counts, as text for Prometheus. */
  readonly metrics: () => Promise<string>;
}

/** What only a process that belongs to us can measure, and what daemons look at. */
const UNMEASURED = ['rejections', 'eventLoopLag', 'redisEvicts'] as const;

/**
 * A worker of one queue: `createWorker(queue, handlers, options)`, or of several over shared connections:
 * `createWorker({ redis, queues: [{ queue, handler }] })`. A worker of N queues has N + 1 connections and one heartbeat;
 * N workers of one queue each have 2 N connections and N heartbeats. It connects at `start`.
 *
 * @param queue a defined queue, or its name.
 * @param handlers a function for all jobs, an object of functions by job name, or what `inBatches` makes.
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const worker = createWorker(emails, async (job, { signal }) => send(job.data, signal), { redis: 'redis://127.0.0.1:6379' });
 * await worker.start();
 * @example
 * const worker = createWorker({
 *   redis: 'redis://127.0.0.1:6379',
 *   queues: [
 *     { queue: emails, handler: (job) => send(job.data), concurrency: 20 },
 *     { queue: bills, handler: (job) => remind(job.data) },
 *   ],
 * });
 */
export function createWorker<Data = Untyped>(
  queue: Queue<Data>,
  handlers: QueueHandlers<NoInfer<Data>>,
  options: WorkerOptions,
): Worker;
export function createWorker<Data = Untyped>(
  queue: string,
  handlers: PlainHandlers<Data>,
  options: WorkerOptions,
): Worker;
export function createWorker<Data = Untyped>(
  queue: Queue<Data> | string,
  handlers: QueueHandlers<NoInfer<Data>>,
  options: WorkerOptions,
): Worker;
export function createWorker<const Datas extends readonly unknown[]>(options: WorkerQueuesOptions<Datas>): Worker;
export function createWorker(
  ...given:
    | readonly [options: AnyOptions & WithRegistry]
    | readonly [queue: Queue | string, handlers: QueueHandlers<never>, options: WorkerOptions]
): Worker {
  if (given.length === 1) {
    checkObject(given[0], 'createWorker');
    const { registry, ...options } = given[0];
    return measured(createWatchedWorker([options]), options.log, registry);
  }
  const [queue, handlers, all] = given;
  checkObject(all, 'createWorker');
  const { registry, ...options } = all;
  return measured(createWatchedWorker([queue, handlers, options]), options.log, registry);
}

function measured(
  { notLive, notReady, relay, declared, ...worker }: WatchedWorker,
  log: Log | undefined,
  registry: Registry | undefined,
): Worker {
  let opened: ReturnType<typeof open> | undefined;
  let isOver = false;
  const unlog = logEvents(worker.events, parseLog(log));

  async function open() {
    const { createMetrics } = await import('../metrics/metrics.ts');
    const state = { ready: worker.isReady };
    const metrics = createMetrics({ version, registry, state, without: UNMEASURED, declared });
    const unobserve = metrics.observe(worker.events);
    const close = () => {
      unobserve();
      metrics.close();
    };
    if (isOver) close();
    return { scrape: metrics.scrape, close };
  }

  const metrics = () => (opened ??= open());

  async function end(): Promise<void> {
    isOver = true;
    unlog();
    (await opened)?.close();
  }

  const stop: Plain['stop'] = async (options) => {
    await worker.stop(options);
    await end();
  };

  return {
    ...worker,
    async start() {
      await metrics();
      try {
        await worker.start();
      } catch (error) {
        await end();
        throw error;
      }
    },
    stop,
    [Symbol.asyncDispose]: () => stop(),
    metrics: async () => (await metrics()).scrape(),
  };
}
