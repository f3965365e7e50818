/**
 * What users write: a function per job, or a function per job name. A module that `duestream worker` loads exports a
 * map of them, made by `defineHandlers`.
 */

import type { Client } from '../../client/client.ts';
import { type ClientMiddleware, checkMiddleware } from '../../client/jobs/scheduling.ts';
import type { Abandoned } from '../../job/compensation.ts';
import type { JobSchemas } from '../../job/content.ts';
import { ABANDONED, type Job, parseJobName, parseName } from '../../job/job.ts';
import type { LogFields } from '../../job/log-lines.ts';
import { type Queue, queueOf, type Untyped } from '../../job/queue.ts';
import type { AnyJobOf, InputOf, NamedData, OutputIn } from '../../job/types.ts';
import { asConfig, checkFunction, checkNames, checkObject, hintOf } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import type { CommitJobOptions } from './commit-jobs.ts';

export type { CommitJobOptions };

/** What a handler can do to other jobs. */
export type HandlerCalls = Pick<Client, 'schedule' | 'reschedule' | 'cancel'>;

/** What a handler gets beside its job. */
export interface HandlerContext extends HandlerCalls {
  /** Aborts when the job's time is up, a cancel was requested, the lease was lost, or the worker shuts down. */
  readonly signal: AbortSignal;
  /**
   * The fencing number of this start, as a decimal text. It only grows: across retries, replays and reuse of the id. A
   * store that keeps the newest token it saw can refuse the effects of an older start.
   */
  readonly token: string;
  /** How often handlers of this job were started, this start included. */
  readonly attempt: number;
  /** `{queue:partition}`: a key with these braces lives on the job's slot and can take part in `commit`. */
  readonly tag: string;
  /**
   * Asks for a Redis command to be carried out in the same step in which the job is completed: either both happen or
   * none. It is sent when the handler has returned; if Redis refuses it, the start counts as failed.
   *
   * @throws DuestreamError `bad-input` for a key elsewhere, or in a queue that delivers at most once.
   * @example context.commit('HINCRBY', `${context.tag}:balances`, account, 10);
   */
  readonly commit: (command: string, key: string, ...args: readonly (string | number)[]) => void;
  /**
   * Schedules one more job of the same queue in the step in which this one is completed: either both happen or none. It goes
   * into the partition of this job, so its id is made here; without `delay` and `at` it is due when this one ends.
   *
   * @throws DuestreamError `bad-input` for an `id`, for data that the queue refuses, for a bare job, or in a queue that
   * delivers at most once; after the handler has ended
   * @example const { id } = await context.commitJob({ step: 2 }, { delay: '3d' });
   */
  readonly commitJob: (
    data: unknown,
    options?: CommitJobOptions,
  ) => Promise<{ readonly id: string; readonly dueMs: number }>;
  /**
   * Says how far the handler is, for people who look at the job while it runs: `client.get`, `duestream show`, the HTTP API,
   * and the page of the job. It never waits: Redis is told at once, and then about once a second; the newest call counts. It does
   * nothing after the handler has ended or lost its lease, nor in a queue that delivers at most once or is broadcast.
   *
   * @param fraction from 0 to 1
   * @param text at most 200 bytes without control characters
   * @throws DuestreamError `bad-input`
   * @example context.progress(0.4, 'row 400');
   */
  readonly progress: (fraction: number, text?: string) => void;
  /**
   * As a producer does, on the worker's connection. A handler may run twice: give the job an id that follows from this one,
   * so that the second run finds it there. It counts at once, whatever becomes of this job; `durability` is not for it.
   *
   * @example await context.schedule(reminders, { invoice }, { id: `remind:${job.id}`, delay: '3d' });
   */
  readonly schedule: HandlerCalls['schedule'];
  /** As a producer does. @example await context.reschedule(reminders, `remind:${job.id}`, { delay: '1d' }); */
  readonly reschedule: HandlerCalls['reschedule'];
  /** As a producer does. @example await context.cancel(reminders, `remind:${job.id}`); */
  readonly cancel: HandlerCalls['cancel'];
  /** Epoch ms, by this machine's clock, at which the signal aborts because the time is up. */
  readonly deadlineMs: number;
  /**
   * Called, it keeps a line with the job, for people who look at it: `client.get`, `duestream show`, the HTTP API and the page of the
   * job, for as long as the job, its end or its dead letter is kept. The newest 100 lines and 8 KiB of a job stay. It never waits:
   * lines go with the next call that the worker makes for the job. What its queue redacts is not in them. It does nothing after the
   * handler has ended or lost its lease, nor in a queue that delivers at most once or is broadcast.
   *
   * Its methods write to the log of the worker, with the queue, the job's id and the attempt already filled in.
   *
   * @throws DuestreamError `bad-input` for what is no text, or fields that are no object
   * @example context.log('paid', { invoice: 42 });
   * @example context.log.info({ invoice: 42 }, 'paid');
   */
  readonly log: HandlerLog;
}

/** What `context.log` is: a function that keeps a line with the job, and the log of the worker. */
export interface HandlerLog extends Log {
  (text: string, fields?: LogFields): void;
}

/**
 * Returns or resolves: the job is done. Throws: it is tried again after the queue's backoff, unless it throws `Defer`
 * or `Unrecoverable`.
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

/** One handler for all jobs of a queue, or one per job name; `default` takes jobs without a name. */
export type PlainHandlers<Data> = Handler<Data> | { readonly [jobName: string]: Handler<Data> };

/** One handler per name of a queue with `jobs`, or one for all, in which the name tells the data apart. */
export type NamedHandlers<Jobs> =
  | ((job: AnyJobOf<Jobs>, context: HandlerContext) => unknown)
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
