/**
 * What a worker can be told, read once and checked: the options that it has in common with the configuration are those of
 * `job/worker-options.ts`; here is what only code can say, and what becomes of both forms of `createWorker`.
 */

import type { Abandoned } from '../job/compensation.ts';
import { parseName } from '../job/job.ts';
import { type DeliveryMode, type Queue, queueOf } from '../job/queue.ts';
import type { InputOf } from '../job/types.ts';
import {
  READS,
  type ReadMode,
  type WorkerOptionInputs,
  type WorkerOptionName,
  workerOption,
  workerOptions,
} from '../job/worker-options.ts';
import { asConfig, checkNames } from '../kernel/checks.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { type DurationInput, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Log, parseLog } from '../kernel/log.ts';
import { isProfile, PROFILES, type Profile, RHYTHMS } from '../kernel/rhythm.ts';
import { parseAddress, type RedisInput } from '../redis/connection/address.ts';
import { type BatchHandler, checkBatch, isBatchHandler } from './run/batch.ts';
import { checkAbandoned, checkHandlers, type Handler, type QueueHandlers } from './run/handlers.ts';

/** Options of a whole worker. `concurrency` counts for each of its queues that says nothing else. */
export interface WorkerSettings extends WorkerOptionInputs {
  /** A URL, an object with its `url` and options beside it, or options of ioredis: see `RedisInput`. */
  readonly redis: RedisInput;
  /** Default `duestream`. */
  readonly namespace?: string | undefined;
  /**
   * How it waits for jobs of an idle queue. `block` (default): in a read, so that Redis hands it each job at once. `poll`: it
   * looks every `pollEvery`, and is told of jobs where Redis has sharded channels; for services that refuse reads that block.
   */
  readonly read?: ReadMode | undefined;
  /**
   * How often it looks while it waits. `quiet`, for a Redis that is paid per command: heartbeats and reads of a minute, so
   * that jobs of a dead worker are taken over after 4 min. Default `default`.
   */
  readonly profile?: Profile | undefined;
  readonly log?: Log | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** Options of a worker of one queue. */
export interface WorkerOptions extends WorkerSettings {
  /**
   * Called when a job of this queue has died and a crash or a timeout is in its history, so that its work may be half
   * done outside. It is a job of its own: at least once, with attempts and a dead letter.
   */
  readonly onAbandoned?: Handler<Abandoned> | undefined;
}

/** One queue of a worker of several. */
export interface QueueWork<Data> {
  /** A defined queue, or its name. */
  readonly queue: Queue<Data> | string;
  /** A function for all jobs, an object of functions by job name, or what `inBatches` makes. */
  readonly handler: QueueHandlers<NoInfer<Data>>;
  /** How many handlers of this queue run at once, or batches. Default: that of the worker. */
  readonly concurrency?: number | undefined;
  /** As in `WorkerOptions`. */
  readonly onAbandoned?: Handler<Abandoned<InputOf<Data>>> | undefined;
}

/** Options of a worker of several queues; the compiler knows the data of each. */
export interface ManyQueuesOptions<Datas extends readonly unknown[]> extends WorkerSettings {
  readonly queues: { readonly [At in keyof Datas]: QueueWork<Datas[At]> };
}

/** `QueueWork` where its data are not known. */
export interface AnyWork extends Omit<QueueWork<never>, 'queue' | 'onAbandoned'> {
  readonly queue: Queue | string;
  readonly onAbandoned?: Handler<Abandoned> | undefined;
}

/** `ManyQueuesOptions` where the data are not known. */
export type AnyOptions = WorkerSettings & { readonly queues: readonly AnyWork[] };

/** What a worker does with one queue, checked. */
export interface Work {
  readonly queue: Queue;
  readonly handlers: QueueHandlers<never>;
  /** Handlers that run at once. */
  readonly concurrency: number;
  /** Jobs that are run at once: more where a handler takes a batch of them. */
  readonly slots: number;
  readonly batch: BatchHandler<never> | undefined;
  readonly onAbandoned: Handler<Abandoned> | undefined;
}

const COMMON = ['redis', 'namespace', 'read', 'profile', 'log', 'clock', ...Object.keys(workerOptions)];
const OF_QUEUE = ['queue', 'handler', 'concurrency', 'onAbandoned'];

/** @throws DuestreamError `bad-config` for a name that there is not, or a value outside its range */
export function readWorkerOptions(options: WorkerSettings) {
  checkNames(options, COMMON, 'createWorker');
  return asConfig(() => {
    parseAddress(options.redis);
    const rhythm = RHYTHMS[profileOf(options.profile)];
    const valueFor = (name: WorkerOptionName) => workerOption(name, options[name]);
    const jobLeaseMs = valueFor('jobLease');
    return {
      redis: options.redis,
      namespace: parseName(options.namespace ?? 'duestream', 'namespace'),
      read: readMode(options.read),
      pollEveryMs: valueFor('pollEvery'),
      concurrency: valueFor('concurrency'),
      jobLeaseMs,
      // Two extensions may be lost, and the lease holds.
      extendEveryMs: Math.round(jobLeaseMs / 3),
      beatTtlMs: workerOption('beatTtl', options.beatTtl ?? rhythm.beatTtlMs),
      graceMs: workerOption('grace', options.grace ?? rhythm.graceMs),
      shutdownMs: valueFor('shutdown'),
      abortGraceMs: valueFor('abortGrace'),
      recycleAtPercent: valueFor('recycleAtPercent'),
      windowMs: valueFor('doneWindow'),
      log: parseLog(options.log),
      clock: options.clock ?? systemClock,
      random: Math.random,
      rhythm,
      dispatches: false,
    };
  });
}

function readMode(given: unknown): ReadMode {
  const known = READS.find((one) => one === (given ?? 'block'));
  if (known) return known;
  throw new DuestreamError('bad-input', `read is ${show(given)}; allowed: ${READS.join(', ')}`);
}

/** `dispatches`: it is of the role dispatcher, and serves queues that have a target and no others. */
export type Settings = Omit<ReturnType<typeof readWorkerOptions>, 'dispatches'> & { readonly dispatches: boolean };

function profileOf(given: unknown): Profile {
  if (given === undefined) return 'default';
  if (isProfile(given)) return given;
  throw new DuestreamError('bad-input', `profile is ${show(given)}; allowed: ${PROFILES.join(', ')}`);
}

/** @throws DuestreamError `bad-config` */
export function readWork(works: readonly AnyWork[], settings: Settings): readonly Work[] {
  if (!Array.isArray(works) || works.length === 0) {
    throw new DuestreamError('bad-config', 'a worker has no queues; allowed: one or more { queue, handler }');
  }
  const read = works.map((work) => {
    checkNames(work, OF_QUEUE, 'a queue of createWorker');
    return asConfig(() => workOf(work, settings));
  });
  const twice = read.find(({ queue }, at) => read.findIndex((one) => one.queue.name === queue.name) < at);
  if (twice === undefined) return read;
  throw new DuestreamError('bad-config', `queue ${twice.queue.name} is given twice; allowed: each queue once`);
}

function workOf({ queue, handler, concurrency, onAbandoned }: AnyWork, settings: Settings): Work {
  const definition = queueOf<unknown>(queue);
  checkHandlers(definition.name, handler, definition.jobs);
  checkAbandoned(definition.name, onAbandoned);
  if (definition.target && !settings.dispatches) throw ofDispatchers(definition.name, 'bad-input');
  checkDelivery(definition.delivery, { windowMs: settings.windowMs, onAbandoned });
  const batch = isBatchHandler(handler) ? handler : undefined;
  if (batch) checkBatch(batch, definition);
  const atOnce = workerOption('concurrency', concurrency ?? settings.concurrency);
  return {
    queue: definition,
    handlers: handler,
    concurrency: atOnce,
    slots: atOnce * (batch?.size ?? 1),
    batch,
    onAbandoned,
  };
}

/** What is said to a worker of a queue whose jobs call a URL. */
export const ofDispatchers = (queue: string, code: 'bad-config' | 'bad-input' = 'bad-config'): DuestreamError =>
  new DuestreamError(
    code,
    `queue ${queue} has a target: its jobs call a URL, and daemons with the role dispatcher send the requests; start one of these, or take the target back with "duestream queues set ${queue} --target none"`,
  );

/** How long a stop may take, if it says so itself. @throws DuestreamError `bad-input` */
export function shutdownOf(options: { readonly shutdown?: DurationInput | undefined }, otherwiseMs: number): number {
  checkNames(options, ['shutdown'], 'stop', 'bad-input');
  return options.shutdown === undefined ? otherwiseMs : workerOption('shutdown', options.shutdown);
}

/** What a queue's way of delivery needs of its workers. @throws DuestreamError `bad-input` */
export function checkDelivery(
  delivery: DeliveryMode,
  { windowMs, onAbandoned }: { readonly windowMs: number; readonly onAbandoned: Handler<never> | undefined },
): void {
  if (delivery === 'effectively-once' && windowMs === 0) {
    throw new DuestreamError(
      'bad-input',
      'doneWindow is 0 in a queue that delivers effectively once; allowed: more than 0',
    );
  }
  // Over before its handler begins, such a job cannot die half-way, and its compensation job would itself run at most
  // once.
  if (delivery === 'at-most-once' && onAbandoned) {
    throw new DuestreamError(
      'bad-input',
      'onAbandoned is set in a queue that delivers at most once; allowed: in queues that deliver at least or effectively once',
    );
  }
}
