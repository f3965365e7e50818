/** What a module tells `duestream outbox` of a database: how to reach it, and the queues that its rows go to. */
import { type Queue, queueOf } from '../job/queue.ts';
import { asConfig, checkFunction, checkNames } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Dialect, parseDialect, type Run } from './database.ts';

/** A database with an outbox. */
export interface OutboxDatabase {
  /** `postgres` or `sqlite`. */
  readonly dialect: Dialect;
  /** Carries out one statement and commits it. */
  readonly run: Run;
  /** Definitions of the queues that jobs go to. A queue that is new and not among them has the defaults. */
  readonly queues?: readonly Queue[] | undefined;
  /** Closes the connections, when the command ends. */
  readonly close?: (() => unknown) | undefined;
}

const NAMES: readonly string[] = Object.keys({
  dialect: 0,
  run: 0,
  queues: 0,
  close: 0,
} satisfies Record<keyof OutboxDatabase, number>);

/** Known to every copy of this package in a process. */
const DEFINED = Symbol.for('duestream.outbox-database');

/**
 * Declares the database of a module for `duestream outbox relay <module>`, `ls`, `retry` and `rm`.
 *
 * @throws DuestreamError `bad-config`
 * @example
 * export default defineOutbox({ dialect: 'postgres', run, queues: [reminders], close: () => pool.end() });
 */
export function defineOutbox(given: OutboxDatabase): OutboxDatabase {
  return asConfig(() => databaseOf(given));
}

function databaseOf(given: OutboxDatabase): OutboxDatabase {
  checkNames(given, NAMES, 'defineOutbox');
  const { dialect, run, queues = [], close } = given;
  checkFunction(run, 'run');
  if (close !== undefined) checkFunction(close, 'close');
  const database = { dialect: parseDialect(dialect), run, queues: parseQueues(queues), close };
  return Object.freeze(Object.defineProperty(database, DEFINED, { value: true }));
}

/** Whether it is what `defineOutbox` returned, of whichever copy of this package. */
export const isOutboxDatabase = (value: unknown): value is OutboxDatabase =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, DEFINED);

/** @throws DuestreamError `bad-input` */
export function parseQueues(queues: unknown): readonly Queue[] {
  if (!Array.isArray(queues)) throw new DuestreamError('bad-input', `queues is ${show(queues)}; allowed: a list`);
  return queues.map((queue, at) => queueOf(queue, `queues[${at}]`));
}
