/**
 * What every verb is handed: the configuration, the way to speak, and a connection that is closed behind it.
 *
 * Which Redis: `--redis` > environment and file > `.duestream/dev.json` > default.
 */
import { createDeadLetters, type DeadLetters } from '../client/dead/dead-letters.ts';
import { createProducer, type Producer } from '../client/producer.ts';
import { createSchedules, type Schedules } from '../client/schedules/schedules.ts';
import { unknownSchedule } from '../client/schedules/unknown-schedule.ts';
import { type Loaded, loadConfig } from '../config/load.ts';
import type { Config } from '../config/options.ts';
import { redisOf } from '../config/redis-options.ts';
import { queueNames, refsOfQueue } from '../inspect/refs.ts';
import { hintOf } from '../kernel/did-you-mean.ts';
import type { DuestreamError } from '../kernel/errors.ts';
import type { Change } from '../redis/audit.ts';
import { hasStandIn } from '../redis/connection/cluster/members.ts';
import { close, openCommands, type Redis, whenReady } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { checkSchema } from '../redis/schema.ts';
import { DEV_FILE, readDevFile } from './dev/dev-file.ts';
import type { Invocation } from './terminal/invocation.ts';
import { createOutput, type Output } from './terminal/output.ts';

export interface Session {
  readonly invocation: Invocation;
  readonly loaded: Loaded;
  readonly config: Config;
  readonly out: Output;
  /** What a verb has changed; it is written to the audit when the verb has ended. */
  readonly changes: Changed[];
}

/** One change, by whom is known. */
export type Changed = Omit<Change, 'who' | 'way'> & {
  /** It is noted although no job was changed by it. */
  readonly isWhole?: boolean;
};

/** @throws DuestreamError `bad-config` */
export function openSession(invocation: Invocation, flags: Readonly<Record<string, unknown>>): Session {
  const loaded = withDevServer(loadConfig({ flags, env: invocation.env, cwd: invocation.cwd }), invocation.cwd);
  return { invocation, loaded, config: loaded.config, out: createOutput(invocation, flags.json === true), changes: [] };
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

/** Lends a connection to a namespace that this version can read. @throws DuestreamError `wrong-schema` */
export function withRedis<T>(session: Session, act: (redis: Redis) => Promise<T>): Promise<T> {
  return withAnyRedis(session, async (redis) => {
    await checkSchema(redis, session.config.namespace);
    return act(redis);
  });
}

/**
 * The same, whatever the namespace holds. A refused connection fails at once: a person waits for the answer. Behind
 * Sentinels and in a cluster another server may take over within the time to connect.
 */
export async function withAnyRedis<T>({ config }: Session, act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = openCommands({ redis: redisOf(config), name: 'cli' });
  const giveUp = (error: Error) => {
    if (REFUSED.has(codeOf(error)) && !hasStandIn(redis)) close(redis);
  };
  redis.on('error', giveUp);
  try {
    await whenReady(redis, config.redis.connectTimeoutMs);
    redis.off('error', giveUp);
    return await act(redis);
  } finally {
    close(redis);
  }
}

/** Lends a producer with the limits of the configuration. */
export async function withProducer<T>(session: Session, act: (producer: Producer) => Promise<T>): Promise<T> {
  const { config } = session;
  const windowMs = config.done.max === 0 ? 0 : config.done.windowMs;
  // A producer is subject with a Redis that refuses it; a person at a terminal is told at once.
  await withRedis(session, (redis) => redis.ping());
  const producer = createProducer({
    redis: redisOf(config),
    namespace: config.namespace,
    horizon: config.limits.horizonMs,
    dataBytesMax: config.limits.dataBytesMax,
    doneWindow: windowMs,
    retryBudget: windowMs === 0 ? RETRY_MS : Math.min(RETRY_MS, windowMs / 2),
    name: 'cli',
  });
  try {
    return await act(producer);
  } finally {
    await producer.stop();
  }
}

/** Lends the dead letters of a queue that exists. @throws `not-found` */
export async function withDeadLetters<T>(
  session: Session,
  queue: string,
  act: (dead: DeadLetters, partitions: number) => Promise<T>,
): Promise<T> {
  const { config } = session;
  const refs = await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const dead = createDeadLetters({
    redis: redisOf(config),
    namespace: config.namespace,
    horizon: config.limits.horizonMs,
    retryBudget: RETRY_MS,
  });
  try {
    return await act(dead, refs.length);
  } finally {
    await dead.stop();
  }
}

/** Lends the schedules of the namespace. */
export async function withSchedules<T>(session: Session, act: (schedules: Schedules) => Promise<T>): Promise<T> {
  const { config } = session;
  await withRedis(session, (redis) => redis.ping());
  const schedules = createSchedules({
    redis: redisOf(config),
    namespace: config.namespace,
    retryBudget: RETRY_MS,
  });
  try {
    return await act(schedules);
  } finally {
    await schedules.stop();
  }
}

/** The partitions of a queue that exists: reading and cancelling never declare one. @throws `not-found` */
export function partitionsOfQueue(
  { config: { namespace } }: Session,
  redis: Redis,
  name: string,
): Promise<readonly PartitionRef[]> {
  return refsOfQueue({ redis, namespace }, name);
}

/** What is said of a schedule that is not there. */
export function noSchedule(session: Session, name: string): Promise<DuestreamError> {
  return withRedis(session, (redis) => unknownSchedule(redis, session.config.namespace, name));
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
