/**
 * A handler module → one worker for all queues in it, with this process's configuration. What the configuration says of a
 * queue wins over the definition in code.
 */
import { queueOptions } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { asDefined, type Queue, queueFrom } from '../job/queue.ts';
import { hintOf } from '../kernel/did-you-mean.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { Log } from '../kernel/log.ts';
import type { RedisInput } from '../redis/connection/connect.ts';
import type { AnyWork } from '../worker/options.ts';
import type { Handlers } from '../worker/run/handlers.ts';
import { createWatchedWorker, type WatchedWorker } from '../worker/worker.ts';

export interface WorkerPlace {
  readonly config: Config;
  readonly redis: RedisInput;
  readonly log: Log;
  /** Only these queues of the module. */
  readonly only?: readonly string[] | undefined;
}

/** The worker of a module, not started yet. @throws DuestreamError `bad-input` for a queue that the module has not */
export function createModuleWorker(handlers: Handlers, { config, redis, log, only }: WorkerPlace): WatchedWorker {
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

function definitionOf(name: string, { handlers, config }: { handlers: Handlers; config: Config }): Queue {
  const coded = handlers.queues.find((queue) => queue.name === name);
  const said = queueOptions(config, name);
  const { attempts, crashes, backoff, partitions, delivery, timeoutMs, jobs, codec } = coded ?? queueFrom(name, {});
  const timeout = coded ? timeoutMs : config.worker.timeoutMs;
  const content = { ...(jobs && { jobs }), ...(codec && { codec }) };
  const defined = queueFrom(name, { attempts, crashes, backoff, partitions, delivery, timeout, ...content, ...said });
  const history = said.history === undefined && coded?.history;
  const redact = said.redact === undefined && coded?.redact;
  return asDefined({ ...defined, ...(history && { history }), ...(redact && { redact }) });
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
