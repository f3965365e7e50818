/**
 * Connections to Redis, one profile per use. Where there is one primary a connection is one socket (`one.ts`); a cluster
 * looks like one connection too, behind which every command finds the node of its key (`cluster/`).
 */
import type { Redis } from 'ioredis';
import { DuestreamError } from '../../kernel/errors.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import { CONNECT_TIMEOUT_MS, parseAddress, type RedisAddress, type RedisInput, urlOf } from './address.ts';
import { COMMAND_TIMEOUT_MS } from './call-end.ts';
import { openCluster } from './cluster/cluster.ts';
import {
  connectProblemOf,
  type DialProgress,
  guessOf,
  refusalOf,
  Unreachable,
  watchDialing,
} from './connect-problem.ts';
import { ConnectionError, codeOf, wordsOf } from './connection-error.ts';
import { close } from './dialing.ts';
import { isHearsay, openOne } from './one.ts';

export type { Redis, RedisAddress, RedisInput };
export { close };

export interface ConnectSettings {
  readonly redis: RedisInput;
  /** Shows in CLIENT LIST. */
  readonly name: string;
  /** No reply within this time counts as lost. Default: what `redis` says, else 4 s. */
  readonly commandTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  /** Commands may wait in Redis for so long, and have as much more time. */
  readonly waitsMs?: number;
}

/** A read without a reply for so long after its wait is lost: it is dropped here, whatever arrives. */
const BLOCKING_MARGIN_MS = 3000;

/** For scripts and short commands. */
export function openCommands(settings: ConnectSettings): Redis {
  return open(settings, { timeoutMs: (commandTimeoutMs) => commandTimeoutMs + (settings.waitsMs ?? 0) });
}

/**
 * For XREADGROUP BLOCK and nothing else, on one primary: a blocked connection serves nobody. Its reads wait for `waitsMs`. Where
 * commands are given more time than by default, its reads are given as much more.
 */
export function openBlocking({ waitsMs = RHYTHMS.default.blockMs, ...settings }: ConnectSettings): Redis {
  return open(settings, {
    timeoutMs: (commandTimeoutMs) => waitsMs + BLOCKING_MARGIN_MS + Math.max(0, commandTimeoutMs - COMMAND_TIMEOUT_MS),
  });
}

/** For SSUBSCRIBE and nothing else. Its user subscribes again after each `ready`. */
export function openSubscriber(settings: ConnectSettings): Redis {
  return open(settings, { timeoutMs: (commandTimeoutMs) => commandTimeoutMs, subscribes: true });
}

/** Resolves when the connection can carry commands. @throws the first connection error, or the signal's reason. */
export function whenReady(redis: Redis, timeoutMs = 5000, signal?: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    let last: Error | undefined;
    const { progress, stop } = watchDialing(redis);
    const done = (act: () => void) => {
      clearTimeout(timer);
      stop();
      redis.off('ready', onReady).off('error', onError).off('end', onEnd);
      signal?.removeEventListener('abort', onAbort);
      act();
    };
    const onReady = () => done(resolve);
    const onError = (error: Error) => {
      if (!isHearsay(error, last)) last = error;
      const refusal = refusalOf(error);
      const trouble = refusal ?? connectProblemOf(error);
      const code = refusal ? 'refused' : 'unavailable';
      if (trouble) done(() => reject(new Unreachable(describe(redis), trouble, { code, cause: error })));
    };
    const onEnd = () => fail();
    const onAbort = () => done(() => reject(signal?.reason));
    const fail = () => done(() => reject(unreachable(redis, last, progress)));
    const timer = setTimeout(fail, timeoutMs);
    redis.on('ready', onReady).on('error', onError).on('end', onEnd);
    signal?.addEventListener('abort', onAbort);
    if (signal?.aborted) onAbort();
  });
}

function unreachable(redis: Redis, cause: Error | undefined, progress: DialProgress): DuestreamError {
  const where = describe(redis);
  const guess = guessOf(cause, { tls: redis.options.tls !== undefined, progress });
  const seen = cause === undefined ? undefined : new ConnectionError(wordsOf(cause), { code: codeOf(cause) });
  if (guess) return new Unreachable(where, guess, { cause: seen });
  return new DuestreamError('unavailable', `cannot reach Redis at ${where}: ${seen?.message ?? 'no answer'}`, {
    cause: seen,
  });
}

/** Where a connection points to, without credentials. */
export const describe = (redis: Redis): string => labels.get(redis) ?? urlOf(redis);

/** The same of an address that nobody has dialled yet. */
export const labelOf = (input: RedisInput): string => urlOf(parseAddress(input));

/**
 * From now on connections to this address are made here. The test kit has its Redis in this process.
 *
 * @param open makes one; the name is that of its use
 */
export const serveHere = (address: RedisAddress, open: (name: string) => Redis): void => void here.set(address, open);

const here = new WeakMap<RedisAddress, (name: string) => Redis>();

/** Of clusters: a connection by itself knows one server alone. */
const labels = new WeakMap<Redis, string>();

function open(
  settings: ConnectSettings,
  {
    timeoutMs,
    subscribes = false,
  }: { readonly timeoutMs: (commandTimeoutMs: number) => number; readonly subscribes?: boolean },
): Redis {
  const made = typeof settings.redis === 'object' ? here.get(settings.redis)?.(settings.name) : undefined;
  if (made) return made;
  const address = parseAddress(settings.redis);
  const manner = {
    name: settings.name,
    connectTimeoutMs: settings.connectTimeoutMs ?? address.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    commandTimeoutMs: timeoutMs(settings.commandTimeoutMs ?? address.commandTimeoutMs ?? COMMAND_TIMEOUT_MS),
  };
  const { options, nodes } = address;
  if (nodes === undefined) return openOne(options, manner);
  const cluster = openCluster({ seeds: nodes, options, manner, subscribes });
  labels.set(cluster, urlOf(address));
  return cluster;
}
