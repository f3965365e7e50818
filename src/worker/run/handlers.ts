/**
 * What users write: a function per job, or a function per job name. A module that `duestream worker` loads exports a
 * map of them, made by `defineHandlers`.
 */

import { type ClientMiddleware, checkMiddleware } from '../../client/jobs/scheduling.ts';
import type { Abandoned } from '../../job/compensation.ts';
import type { JobSchemas } from '../../job/content.ts';
import { ABANDONED, type Job, parseJobName, parseName } from '../../job/job.ts';
import { type Queue, queueOf, type Untyped } from '../../job/queue.ts';
import type { AnyJobOf, InputOf, NamedData, OutputIn } from '../../job/types.ts';
import { asConfig, checkFunction, checkNames, checkObject, hintOf } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { type BatchHandler, isBatchHandler } from './batch.ts';
import type { CommitJobOptions } from './commit-jobs.ts';
import type { HandlerCalls, HandlerContext, HandlerLog } from './handler-context.ts';

export type { CommitJobOptions, HandlerCalls, HandlerContext, HandlerLog };

/**
 * Returns or resolves: the job is done. Throws: it is tried again after the queue's backoff, unless it throws `Defer`,
 * `Retry` or `Unrecoverable`.
 */
export type Handler<Data = unknown> = (job: Job<Data>, context: HandlerContext) => unknown;

/**
 * Called with each job, decoded and checked. `next` calls the handler, or the next middleware, and settles as that does. What
 * this returns or throws counts as the end of the handler: returning means done, also without `next`.
 */
export type HandleMiddleware = (job: Job<Untyped>, context: HandlerContext, next: () => Promise<unknown>) => unknown;

/** For workers and producers alike: `schedule` stands around what is scheduled, in a handler too; `handle` around handlers. */
export interface Middleware extends ClientMiddleware {
  readonly handle?: HandleMiddleware | undefined;
}

/** One handler for all jobs of a queue, or one per job name; `default` takes jobs without a name; or one for batches of jobs. */
export type PlainHandlers<Data> = Handler<Data> | { readonly [jobName: string]: Handler<Data> } | BatchHandler<Data>;

/** One handler per name of a queue with `jobs`, or one for all, in which the name tells the data apart; or one for batches. */
export type NamedHandlers<Jobs> =
  | ((job: AnyJobOf<Jobs>, context: HandlerContext) => unknown)
  | BatchHandler<NamedData<Jobs>>
  | { readonly [Name in keyof Jobs]: Handler<OutputIn<Jobs, Name>> };

/** What handles the jobs of a queue: `PlainHandlers`, or `NamedHandlers` where it was defined with `jobs`. */
export type QueueHandlers<Data = unknown> = 0 extends 1 & Data
  ? PlainHandlers<Data>
  : [Data] extends [never]
    ? PlainHandlers<Data>
    : [Data] extends [NamedData<infer Jobs>]
      ? NamedHandlers<Jobs>
      : PlainHandlers<Data>;

/** Queue name → what handles its jobs, for queues with `jobs`; where others are among them, anything. */
export type HandlersFor<Queues extends readonly Queue[]> = string extends Queues[number]['name']
  ? Readonly<Record<string, QueueHandlers<Untyped>>>
  : { readonly [One in Queues[number] as One['name']]: QueueHandlers<NonNullable<One['data']>> };

/** Queue name → what handles its jobs; `Data` says queue by queue what the jobs carry. */
export type HandlerMap<Data> = { readonly [Name in keyof Data]: QueueHandlers<Data[Name]> };

/** Queue name → what takes back the half-done work of its jobs. */
type AbandonedMap<Data> = { readonly [Name in keyof Data]?: Handler<Abandoned<InputOf<Data[Name]>>> };

/** What a handler module exports by default. */
export interface Handlers {
  readonly kind: 'duestream.handlers';
  readonly onAbandoned: Readonly<Record<string, Handler<Abandoned>>>;
  readonly map: Readonly<Record<string, QueueHandlers<never>>>;
  readonly queues: readonly Queue[];
  readonly use: readonly Middleware[];
}

/**
 * Declares the handlers of a module for `duestream worker <module>`. The type argument says what the jobs of each queue
 * carry; without it, the compiler lets their data pass as anything.
 *
 * @param map queue name → handler, or queue name → job name → handler.
 * @param options `queues`: definitions whose options and settings count instead of the defaults;
 * `use`: middleware around the handlers, the first one outermost;
 * `onAbandoned`: queue name → what takes back the half-done work of jobs that died after a crash or a timeout.
 * @throws DuestreamError `bad-config` for a queue name outside the grammar or a handler that is no function.
 * @example
 * export default defineHandlers<{ emails: { to: string }; bills: Bill }>({
 *   emails: { welcome: async (job, { signal }) => send(job.data.to, signal) },
 *   bills: async (job) => remind(job.data),
 * });
 */
export function defineHandlers(
  map: HandlerMap<Readonly<Record<string, Untyped>>>,
  options?: {
    readonly queues?: undefined;
    readonly use?: readonly Middleware[];
    readonly onAbandoned?: AbandonedMap<Readonly<Record<string, Untyped>>>;
  },
): Handlers;
export function defineHandlers<const Queues extends readonly Queue[]>(
  map: NoInfer<HandlersFor<Queues>>,
  options: {
    readonly queues: Queues;
    readonly use?: readonly Middleware[];
    readonly onAbandoned?: AbandonedMap<Readonly<Record<string, Untyped>>>;
  },
): Handlers;
export function defineHandlers<Data extends object = never>(
  map: NoInfer<HandlerMap<Data>>,
  options?: {
    readonly queues?: readonly Queue[];
    readonly use?: readonly Middleware[];
    readonly onAbandoned?: NoInfer<AbandonedMap<Data>>;
  },
): Handlers;
export function defineHandlers(given: object, options: HandlersOptions = {}): Handlers {
  return asConfig(() => handlersOf(given, options));
}

interface HandlersOptions {
  readonly queues?: readonly Queue[] | undefined;
  readonly use?: readonly Middleware[] | undefined;
  readonly onAbandoned?: object | undefined;
}

function handlersOf(given: object, options: HandlersOptions): Handlers {
  checkNames(options, OPTIONS, 'defineHandlers', 'bad-input');
  const use = listOf(options.use, 'use');
  const queues = listOf(options.queues, 'queues').map((queue, at) => queueOf(queue, `queues[${at}]`));
  use.forEach(checkMiddleware);
  const map: Handlers['map'] = Object.fromEntries(Object.entries(checkObject(given, 'defineHandlers', 'bad-input')));
  for (const [queue, handlers] of Object.entries(map)) {
    parseName(queue, 'queue');
    checkHandlers(queue, handlers, queues.find(({ name }) => name === queue)?.jobs);
  }
  const onAbandoned: Handlers['onAbandoned'] = Object.fromEntries(Object.entries(options.onAbandoned ?? {}));
  for (const [queue, handler] of Object.entries(onAbandoned)) checkAbandoned(queue, handler);
  const stray = Object.keys(onAbandoned).find((queue) => !Object.hasOwn(map, queue));
  if (stray !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `onAbandoned names queue ${show(stray)}${hintOf(stray, Object.keys(map)) || ';'} allowed: ${Object.keys(map).join(', ')}`,
    );
  }
  return Object.freeze({ kind: 'duestream.handlers', map, queues, use, onAbandoned });
}

/** Whether it is what `defineHandlers` returned, of whichever copy of this package. */
export const isHandlers = (value: unknown): value is Handlers =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'duestream.handlers';

const OPTIONS: readonly string[] = ['queues', 'use', 'onAbandoned'];

function listOf<Item>(given: readonly Item[] | undefined, what: string): readonly Item[] {
  if (given === undefined || Array.isArray(given)) return given ?? [];
  throw new DuestreamError('bad-input', `${what} of defineHandlers is ${show(given)}; allowed: a list`);
}

/** @throws DuestreamError `bad-input` */
export function checkHandlers(queue: string, handlers: QueueHandlers<never>, jobs?: JobSchemas): void {
  // It was checked when it was made.
  if (isBatchHandler(handlers)) return;
  if (typeof handlers === 'function') {
    checkFunction(handlers, `the handler of queue ${queue}`);
    return;
  }
  const isObject = typeof handlers === 'object' && handlers !== null && !Array.isArray(handlers);
  const entries: readonly (readonly [string, unknown])[] = isObject ? Object.entries(handlers) : [];
  if (entries.length === 0) {
    const allowed = 'a function, or an object of functions by job name';
    throw new DuestreamError('bad-input', `handlers of queue ${queue} are ${show(handlers)}; allowed: ${allowed}`);
  }
  for (const [name, handler] of entries) {
    parseJobName(name);
    if (jobs && !Object.hasOwn(jobs, name)) throw strayHandler(queue, name, Object.keys(jobs));
    checkFunction(handler, `the handler ${name} of queue ${queue}`);
  }
}

/** @throws DuestreamError `bad-input` */
export function checkAbandoned(queue: string, handler: unknown): void {
  if (handler !== undefined) checkFunction(handler, `onAbandoned of queue ${queue}`);
}

const strayHandler = (queue: string, name: string, names: readonly string[]): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `queue ${queue} has no jobs named ${name}${hintOf(name, names) || ';'} allowed as names of handlers: ${names.join(', ')}`,
  );

/** The handler for a job name. A single function takes every name. */
function pickHandler(handlers: PlainHandlers<never>, name: string): Handler<never> | undefined {
  if (typeof handlers === 'function') return handlers;
  if (isBatchHandler(handlers)) return ofBatch;
  return Object.hasOwn(handlers, name) ? handlers[name] : undefined;
}

/**
 * The handler for a job, inside of all middleware. A compensation job's data has its own shape: a handler that takes every
 * name must not take it for an order of its own.
 */
export function handlerFor(
  {
    handlers,
    onAbandoned,
    around,
  }: {
    readonly handlers: PlainHandlers<never>;
    readonly onAbandoned: Handler<Abandoned> | undefined;
    readonly around: (handler: Handler<never>) => Handler<never>;
  },
  name: string,
): Handler<never> | undefined {
  const handler = name === ABANDONED ? onAbandoned : pickHandler(handlers, name);
  return handler && around(handler);
}

/** Stands for the handler of a batch, which is called for many jobs at once: `gathering.ts` gathers them. */
function ofBatch(): never {
  throw new Error('bug: the handler of a batch was called for one job');
}
