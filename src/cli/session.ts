/**
 * What every command is handed: the configuration, the way to speak, and one connection that is closed behind it.
 *
 * Which Redis: `--redis` > environment and file > `.duestream/dev.json` > default.
 */

import { isDeepStrictEqual } from 'node:util';
import { type Command, InvalidArgumentError } from 'commander';
import type { ClientOptions } from '../client/calls/settings.ts';
import { type Client, createClientOf } from '../client/client.ts';
import type { DeadLetters } from '../client/dead/dead-letters.ts';
import { type Note, type Noted, noting } from '../client/operations.ts';
import { queueNames, refsOfQueue } from '../client/queues/refs.ts';
import { unknownSchedule } from '../client/schedules/schedule-places.ts';
import { definitionsIn } from '../client/schedules/schedule-store.ts';
import type { Schedules } from '../client/schedules/schedules.ts';
import { type Loaded, loadConfig } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { hintOf } from '../kernel/checks.ts';
import type { DuestreamError } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { audit, userHere } from '../redis/audit.ts';
import { hasStandIn } from '../redis/connection/cluster/members.ts';
import { close, openCommands, type Redis, whenReady } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { checkSchema } from '../redis/schema.ts';
import { DEV_FILE, readDevFile } from './dev/dev-file.ts';
import { createOutput, type Invocation, type Output } from './terminal/output.ts';

export interface Session {
  readonly invocation: Invocation;
  readonly loaded: Loaded;
  readonly config: Config;
  readonly out: Output;
  /** What a command has changed; it is written to the audit when the command has ended. */
  readonly changes: Changes;
  readonly line: Line;
}

/** One entry for a change that takes several calls. */
class Changes {
  readonly all: Noted[] = [];

  readonly note: Note = async (change) => {
    const { count, ids = [] } = change;
    const at = this.all.findIndex((one) => isDeepStrictEqual({ ...one, count, ids }, { ...change, ids }));
    const before = this.all[at];
    const all = { count: (before?.count ?? 0) + count, ids: [...(before?.ids ?? []), ...ids] };
    this.all.splice(at === -1 ? this.all.length : at, 1, { ...change, ...all });
  };
}

/** The changes are made already, so a failure to write the audit is reported and does not change the exit status. */
export async function noteChanges(session: Session): Promise<void> {
  const { changes, config } = session;
  if (changes.all.length === 0) return;
  const by = { who: userHere(), way: 'cli' } as const;
  try {
    await withRedis(session, async (redis) => {
      for (const change of changes.all) await audit({ redis, namespace: config.namespace }, { ...change, ...by });
    });
  } catch (error) {
    session.out.note(`this change is not in the audit: ${reasonOf(error)}`);
  }
}

/** @throws DuestreamError `bad-config` */
export function openSession(invocation: Invocation, flags: Readonly<Record<string, unknown>>): Session {
  const loaded = withDevServer(loadConfig({ flags, env: invocation.env, cwd: invocation.cwd }), invocation.cwd);
  const { config } = loaded;
  const out = createOutput(invocation, flags.json === true);
  const changes = new Changes();
  return { invocation, loaded, config, out, changes, line: new Line(config, changes) };
}

/** Whether somebody named a Redis: a flag, the environment or a file. */
export function namesRedis({ origins }: Loaded): boolean {
  const from = origins['redis.url'];
  return from !== undefined && from.from !== 'default' && from.name !== DEV_FILE;
}

function withDevServer(loaded: Loaded, cwd: string): Loaded {
  const server = namesRedis(loaded) ? undefined : readDevFile(cwd);
  if (server === undefined) return { ...loaded, config: withRedisUrl(loaded.config, loaded.config.redis.url) };
  return {
    config: withRedisUrl(loaded.config, server.url),
    origins: { ...loaded.origins, 'redis.url': { from: 'file', name: DEV_FILE } },
  };
}

/** The same configuration with another Redis. A plain path is the path of a socket. */
export function withRedisUrl(config: Config, url: string): Config {
  const redis = Object.freeze({ ...config.redis, url: url.startsWith('/') ? `unix://${url}` : url });
  return Object.freeze({ ...config, redis });
}

/** Lends the connection to a namespace that this version can read. @throws DuestreamError `wrong-schema` */
export function withRedis<T>(session: Session, act: (redis: Redis) => Promise<T>): Promise<T> {
  return withAnyRedis(session, async (redis) => {
    await checkSchema(redis, session.config.namespace);
    return act(redis);
  });
}

/** The same, whatever the namespace holds. */
export const withAnyRedis = async <T>(session: Session, act: (redis: Redis) => Promise<T>): Promise<T> =>
  act(await session.line.redis());

/** Lends a client with the limits of the configuration, over the connection of the command. */
export const withClient = async <T>(session: Session, act: (client: Client) => Promise<T>): Promise<T> =>
  withRedis(session, async (redis) => act(session.line.client(redis)));

/** Lends the dead letters of a queue that exists. @throws `not-found` */
export const withDeadLetters = <T>(
  session: Session,
  queue: string,
  act: (dead: DeadLetters, partitions: number) => Promise<T>,
): Promise<T> =>
  withClient(session, async ({ deadLetters }) => {
    const refs = await withAnyRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
    return act(deadLetters, refs.length);
  });

/** Lends the schedules of the namespace. */
export const withSchedules = <T>(session: Session, act: (schedules: Schedules) => Promise<T>): Promise<T> =>
  withClient(session, ({ schedules }) => act(schedules));

/** The one connection of a command, made when it is first needed, and the client over it. */
class Line {
  readonly #config: Config;
  readonly #changes: Changes;
  #redis: Redis | undefined;
  #client: Client | undefined;

  constructor(config: Config, changes: Changes) {
    this.#config = config;
    this.#changes = changes;
  }

  /**
   * A connection that is ready. A refused connection fails at once: a person waits for the answer. Behind Sentinels and in a
   * cluster another server may take over within the time to connect.
   */
  async redis(): Promise<Redis> {
    if (this.#redis) return this.#redis;
    const redis = openCommands({ redis: redisOf(this.#config), name: 'cli' });
    const giveUp = (error: Error) => {
      if (REFUSED.has(codeOf(error)) && !hasStandIn(redis)) close(redis);
    };
    redis.on('error', giveUp);
    try {
      await whenReady(redis, this.#config.redis.connectTimeoutMs);
    } catch (error) {
      close(redis);
      throw error;
    }
    redis.off('error', giveUp);
    this.#redis = redis;
    return redis;
  }

  client(connection: Redis): Client {
    this.#client ??= noting(createClientOf(clientOptions(this.#config), connection), this.#changes);
    return this.#client;
  }

  async end(): Promise<void> {
    await this.#client?.close();
    if (this.#redis) close(this.#redis);
  }
}

function clientOptions(config: Config): ClientOptions {
  const windowMs = config.done.max === 0 ? 0 : config.done.windowMs;
  return {
    redis: redisOf(config),
    namespace: config.namespace,
    horizon: config.limits.horizonMs,
    dataBytesMax: config.limits.dataBytesMax,
    closedMax: config.mover.closedMax,
    doneWindow: windowMs,
    retryBudget: windowMs === 0 ? RETRY_MS : Math.min(RETRY_MS, windowMs / 2),
    name: 'cli',
  };
}

/** The partitions of a queue that exists: reading and cancelling never declare one. @throws `not-found` */
export function partitionsOfQueue(
  { config: { namespace } }: Session,
  redis: Redis,
  name: string,
): Promise<readonly PartitionRef[]> {
  return refsOfQueue({ redis, namespace }, name);
}

/** The same for a command that asks Redis for nothing else itself: a misspelt name declares no queue. @throws `not-found` */
export const checkQueue = (session: Session, name: string): Promise<readonly PartitionRef[]> =>
  withRedis(session, (redis) => partitionsOfQueue(session, redis, name));

/** The refusal for a schedule that does not exist. */
export function noSchedule(session: Session, name: string): Promise<DuestreamError> {
  return withRedis(session, (redis) =>
    unknownSchedule(definitionsIn({ redis, namespace: session.config.namespace }), name),
  );
}

/** Of a call that would make a new queue: what its name may have meant instead; '' where it exists or is like no other. */
export async function newQueueHint(session: Session, name: string): Promise<string> {
  if (session.out.json) return '';
  // A user that may only produce may not read the registry: the job counts, and the hint is left out.
  const known = await withRedis(session, (redis) => queueNames({ redis, namespace: session.config.namespace })).catch(
    () => [name],
  );
  return known.includes(name) ? '' : hintOf(name, known);
}

/** A call is repeated no longer than this, and only while its repetition is recognised. */
const RETRY_MS = 10_000;

const REFUSED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTFOUND', 'EACCES']);

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined;
}

// How a command is put on the command line. A command is a function from a session and its own arguments to an exit
// status; `Register` says its name, flags, help and example. Commands know neither the process nor each other.

/** 0 ok, 1 failed, 75 the time is up; other statuses come from errors. */
export type Exit = 0 | 1 | 69 | 75;

/** Runs the command that a command line names. */
export interface Runner {
  /** Opens a session with the flags of the command, runs the command and keeps its exit status. */
  readonly run: (command: Command, act: (session: Session) => Promise<Exit>) => Promise<void>;
}

/** Adds one command to the program or to its group. */
export type Register = (parent: Command, runner: Runner) => void;

const examples = new WeakMap<Command, readonly string[]>();

/** Shows examples below the help, and keeps them for the reference. */
export function withExamples(command: Command, lines: readonly string[]): Command {
  examples.set(command, lines);
  return command.addHelpText('after', `\nExamples:\n${lines.map((text) => `  $ ${text}`).join('\n')}`);
}

export function examplesOf(command: Command): readonly string[] {
  return examples.get(command) ?? [];
}

/** A parser of whole numbers for a flag. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Allowed: a whole number from ${min} to ${max}.`);
  };
}

/** Collects a flag that may be given several times. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
