/**
 * The methods that an application has marked, found in its providers and controllers → the queues of a worker. What cannot be meant is
 * refused when the application starts: two methods for the same jobs, a provider of which there is not exactly one.
 */
import { type DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { Queue, Untyped } from '../job/queue.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { QueueWork } from '../worker/options.ts';
import type { Handler } from '../worker/run/handlers.ts';
import { type Mark, marksOf } from './decorators.ts';

/** A marked method of an instance. */
interface Found extends Mark {
  /** For people: `Mails.send`. */
  readonly where: string;
  readonly call: Handler<Untyped>;
}

type Wrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** @throws DuestreamError `bad-config` */
export function worksIn(discovery: DiscoveryService): readonly QueueWork<Untyped>[] {
  const wrappers = [...discovery.getProviders(), ...discovery.getControllers()];
  // One instance may be known by several names.
  const byInstance = new Map(wrappers.map((wrapper) => [instanceOf(wrapper), wrapper]));
  const byQueue = new Map<string, Found[]>();
  for (const [instance, wrapper] of byInstance) {
    if (instance === undefined) continue;
    for (const found of marksIn(instance, wrapper)) {
      const name = nameOf(found.queue);
      byQueue.set(name, [...(byQueue.get(name) ?? []), found]);
    }
  }
  return [...byQueue].map(([name, found]) => workOf(name, found));
}

const nameOf = (queue: Queue<Untyped> | string): string => (typeof queue === 'string' ? queue : queue.name);

/** Also of a provider that a factory made; undefined for a value that is no object, and for one that was not made. */
function instanceOf({ instance }: Wrapper): object | undefined {
  const given: unknown = instance;
  return typeof given === 'object' && given !== null ? given : undefined;
}

function marksIn(instance: object, wrapper: Wrapper): readonly Found[] {
  const prototype: unknown = Object.getPrototypeOf(instance);
  if (typeof prototype !== 'object' || prototype === null) return [];
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((key) => {
    const method: unknown = Reflect.get(prototype, key);
    if (typeof method !== 'function') return [];
    const where = `${prototype.constructor.name}.${key}`;
    return marksOf(method).map((mark) => {
      if (wrapper.isTransient || !wrapper.isDependencyTreeStatic()) throw notOne(where);
      return { ...mark, where, call: (job, context) => Reflect.apply(method, instance, [job, context]) };
    });
  });
}

const notOne = (where: string): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `${where} handles jobs, and its provider has the scope of a request, or is transient; allowed: the default scope, in it and in all that it is given`,
  );

function workOf(name: string, found: readonly Found[]): QueueWork<Untyped> {
  const definition = found.map(({ queue }) => queue).find((queue) => typeof queue !== 'string');
  const handlers = found.filter(({ kind }) => kind === 'handler');
  const [abandoned, other] = found.filter(({ kind }) => kind === 'abandoned');
  if (abandoned && other) throw twice(`what takes back work of queue ${name}`, abandoned, other);
  if (handlers.length === 0) {
    throw new DuestreamError(
      'bad-config',
      `${abandoned?.where} takes back work of queue ${name}, and no method handles its jobs; allowed: HandlerOf above one`,
    );
  }
  return {
    queue: definition ?? name,
    handler: handlerOf(name, handlers),
    concurrency: onlyOne(
      handlers.filter(({ concurrency }) => concurrency !== undefined),
      name,
    )?.concurrency,
    onAbandoned: abandoned?.call,
  };
}

function onlyOne([first, other]: readonly Found[], queue: string): Found | undefined {
  if (first && other) throw twice(`the concurrency of queue ${queue}`, first, other);
  return first;
}

/** One method for all jobs, or one per name; `default` is for those without a name. */
function handlerOf(queue: string, handlers: readonly Found[]): QueueWork<Untyped>['handler'] {
  const byName = new Map<string, Found>();
  for (const one of handlers) {
    const name = one.name ?? 'default';
    const before = byName.get(name);
    if (before) throw twice(`jobs ${one.name === undefined ? '' : `named ${name} `}of queue ${queue}`, before, one);
    byName.set(name, one);
  }
  const [only] = handlers.length === 1 ? handlers : [];
  if (only && only.name === undefined) return only.call;
  return Object.fromEntries([...byName].map(([name, { call }]) => [name, call]));
}

const twice = (what: string, one: Found, other: Found): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `${what} are given to ${one.where} and to ${other.where}; allowed: one method. A provider that two modules list is made twice: list it in one, and export it there`,
  );
