/**
 * A handler module → one worker per queue in it, all with this process's configuration. What the configuration says of
 * a queue wins over the definition in code.
 */
import { queueOptions } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { DuestreamError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { hintOf } from '../core/nearest.ts';
import { defineQueue, type Queue } from '../core/queue.ts';
import type { RedisInput } from '../redis/connection/connect.ts';
import type { Handlers } from '../worker/handlers.ts';
import { createWorker, type Worker } from '../worker/worker.ts';

/** The workers of a module, not started yet. `only` narrows them to some of its queues. */
export function createWorkers(
  handlers: Handlers,
  {
    config,
    redis,
    log,
    only,
  }: { readonly config: Config; readonly redis: RedisInput; readonly log: Log; readonly only?: readonly string[] },
): readonly Worker[] {
  const names = Object.keys(handlers.map);
  const missing = only?.find((name) => !names.includes(name));
  if (missing !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `queue ${missing} is not in the handler module${hintOf(missing, names) || ';'} it has ${names.join(', ')}`,
    );
  }
  return names
    .filter((name) => only === undefined || only.includes(name))
    .map((name) => {
      const queue = definitionOf(name, { handlers, config });
      const onAbandoned = Object.hasOwn(handlers.onAbandoned, name) ? handlers.onAbandoned[name] : undefined;
      return createWorker(queue, handlers.map[name] ?? {}, { ...workerOptions(config), redis, log, onAbandoned });
    });
}

function definitionOf(name: string, { handlers, config }: { handlers: Handlers; config: Config }): Queue<never> {
  const coded = handlers.queues.find((queue) => queue.name === name);
  const said = queueOptions(config, name);
  const { attempts, crashes, backoff, partitions, delivery, timeoutMs } = coded ?? defineQueue(name);
  const timeout = coded ? timeoutMs : config.worker.timeoutMs;
  return defineQueue<never>(name, { attempts, crashes, backoff, partitions, delivery, timeout, ...said });
}

function workerOptions({ worker, done, namespace }: Config) {
  return {
    namespace,
    concurrency: worker.concurrency,
    jobLease: worker.jobLeaseMs,
    extendEvery: worker.extendEveryMs,
    beatTtl: worker.beatTtlMs,
    grace: worker.graceMs,
    shutdown: worker.shutdownMs,
    abortGrace: worker.abortGraceMs,
    recycleAtPercent: worker.recycleAtPercent,
    doneWindow: done.max === 0 ? 0 : done.windowMs,
  };
}
