/**
 * A worker as an application embeds it: the worker itself, with metrics of its own or in a registry that it shares. What a
 * daemon runs needs none of this: there the daemon has the metrics.
 */

import type { Queue, Untyped } from '../core/queue.ts';
import { createMetrics, type Registry } from '../metrics/metrics.ts';
import type { QueueHandlers } from '../worker/handlers.ts';
import type { WorkerOptions as PlainOptions } from '../worker/options.ts';
import { createWorker as createPlain, type Worker as Plain } from '../worker/worker.ts';
import { version } from './version.ts';

export interface WorkerOptions extends PlainOptions {
  /**
   * Where the metrics are put: the registry of a daemon or of another worker, or one of prom-client that the application
   * has. Default: a registry of its own.
   */
  readonly registry?: Registry | undefined;
}

export interface Worker extends Plain {
  /** Start lateness, run duration and the rest of what this worker counts, as text for Prometheus. */
  readonly metrics: () => Promise<string>;
  /** The same as a registry of prom-client. A registry that was given is returned. */
  readonly registry: Registry;
}

/** What only a process that belongs to us can measure, and what daemons look at. */
const UNMEASURED = ['rejections', 'eventLoopLag', 'redisEvicts'] as const;

/**
 * A worker for one queue.
 *
 * @param queue a defined queue, or its name.
 * @param handlers a function for all jobs, or an object of functions by job name.
 * @throws DuestreamError `bad-input` for options outside their range.
 * @example
 * const worker = createWorker(emails, async (job, { signal }) => send(job.data, signal), { redis: 'redis://127.0.0.1:6379' });
 * await worker.start();
 */
export function createWorker<Data = Untyped>(
  queue: Queue<Data> | string,
  handlers: QueueHandlers<Data>,
  { registry, ...options }: WorkerOptions,
): Worker {
  const worker = createPlain(queue, handlers, options);
  const metrics = createMetrics({ version, registry, state: { ready: worker.ready }, without: UNMEASURED });
  const unobserve = metrics.observe(worker.events);
  let started = false;

  function end(): void {
    unobserve();
    metrics.close();
  }

  return {
    ...worker,
    async start() {
      // A second start is refused, and the first goes on.
      if (started) return worker.start();
      started = true;
      await worker.start().catch((error: unknown) => {
        end();
        throw error;
      });
    },
    async stop(how) {
      await worker.stop(how);
      end();
    },
    metrics: metrics.scrape,
    registry: metrics.registry,
  };
}
