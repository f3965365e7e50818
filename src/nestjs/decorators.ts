/**
 * What a class of a Nest application says of itself: this method handles jobs, this parameter is the client. The decorators are plain
 * functions, so a program without decorators calls them: `HandlerOf(emails)(Mails.prototype, 'send', descriptor)`.
 */
import { Inject, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Abandoned } from '../job/compensation.ts';
import type { Job } from '../job/job.ts';
import type { Queue, Untyped } from '../job/queue.ts';
import type { HandlerContext } from '../worker/run/handlers.ts';

/** What a method is for, beside its queue. */
export interface HandlerOptions {
  /** Only jobs of this name. Left out: all jobs of the queue; beside methods with names, those without a name. */
  readonly name?: string | undefined;
  /** How many handlers of this queue run at once. Default: that of the worker. One method of a queue says it. */
  readonly concurrency?: number | undefined;
}

/**
 * A decorator of a method that is called with a job and its context.
 *
 * @typeParam Method the method below it
 */
export type HandlerDecorator<Data> = <Method extends (job: Job<Data>, context: HandlerContext) => unknown>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/** A method as it was marked. */
export interface Mark extends HandlerOptions {
  readonly kind: 'handler' | 'abandoned';
  readonly queue: Queue<Untyped> | string;
}

/** By which the client is found. Copies of this package have the same. */
export const CLIENT: unique symbol = Symbol.for('duestream.client');

const MARKS = 'duestream.handlers';
const reflector = new Reflector();

/**
 * Marks a method that handles jobs of a queue, as the handler of a worker does: it returns, and the job is done; it throws, and
 * the job is tried again. A method may have several.
 *
 * @param queue a defined queue, or its name
 * @param options `name`: only jobs of this name · `concurrency` of the queue
 * @example
 * class Mails {
 *   async send(job: { data: { to: string } }): Promise<void> {}
 * }
 * // With decorators: `@HandlerOf('emails')` above the method.
 * HandlerOf('emails')(Mails.prototype, 'send', { value: Mails.prototype.send });
 */
export const HandlerOf = <Data = Untyped>(
  queue: Queue<Data> | string,
  { name, concurrency }: HandlerOptions = {},
): HandlerDecorator<Data> => marked({ kind: 'handler', queue, name, concurrency });

/**
 * Marks a method that takes back the half-done work of jobs of a queue that died after a crash or a timeout: `onAbandoned` of a worker.
 *
 * @example
 * class Trips {
 *   async takeBack(job: { data: { id: string } }): Promise<void> {}
 * }
 * AbandonedOf('trips')(Trips.prototype, 'takeBack', { value: Trips.prototype.takeBack });
 */
export const AbandonedOf = <Data = Untyped>(queue: Queue<Data> | string): HandlerDecorator<Abandoned<Data>> =>
  marked({ kind: 'abandoned', queue });

/**
 * Marks a parameter of a constructor, or a property, that is the client of the module.
 *
 * @example
 * class Orders {
 *   constructor(readonly jobs: unknown) {}
 * }
 * // With decorators: `constructor(@InjectClient() private readonly jobs: Client) {}`.
 * InjectClient()(Orders, undefined, 0);
 */
export const InjectClient = (): ParameterDecorator & PropertyDecorator => Inject(CLIENT);

/** The marks of a method; none where it has none. */
export const marksOf = (method: unknown): readonly Mark[] =>
  typeof method === 'function' ? (reflector.get<readonly Mark[] | undefined>(MARKS, method) ?? []) : [];

/** Nest keeps what is said of a method with its function. */
const marked =
  (mark: Mark) =>
  (target: object, key: string | symbol, descriptor: PropertyDescriptor): void => {
    SetMetadata(MARKS, [...marksOf(descriptor.value), mark])(target, key, descriptor);
  };
