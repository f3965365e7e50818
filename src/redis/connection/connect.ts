/**
 * Connections to Redis, one profile per use. ioredis would re-send a command whose reply was lost, so a script could
 * run twice without anybody knowing; here a lost reply is an error at once (`maxRetriesPerRequest: 0`, no offline
 * queue) and only our own layer (`outage.ts`) repeats the same call. Every command has a time-out, so that every
 * promise settles: a frozen server would otherwise keep a read pending for ever.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { DuestreamError, messageOf } from '../../core/errors.ts';
import { scriptOptions } from '../transitions/scripts.ts';
import { CONNECT_TIMEOUT_MS, parseAddress, type RedisAddress, type RedisInput } from './address.ts';
import { connectProblemOf, guessOf, refusalOf, Unreachable } from './connect-problem.ts';
import {
  ConnectionError,
  type ConnectionState,
  codeOf,
  inOurWords,
  isReply,
  withoutCommand,
  wordsOf,
} from './connection-error.ts';
import { type DialProgress, watchDialing } from './dial-progress.ts';
import { createDialing, redial } from './dialing.ts';

export type { Redis, RedisAddress, RedisInput };

export interface ConnectSettings {
  readonly redis: RedisInput;
  /** Shows in CLIENT LIST. */
  readonly name: string;
  /** No reply within this time counts as lost. Default: what `redis` says, else 4 s. */
  readonly commandTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 4000;

/** How long a blocking read waits for data. Never an alarm clock: Redis serves such time-outs up to 100 ms late. */
export const BLOCK_MS = 2000;
/** A read without a reply for so long is lost: it is dropped here, whatever arrives. */
const BLOCKING_TIMEOUT_MS = 5000;

/** For scripts and short commands. */
export function openCommands(settings: ConnectSettings): Redis {
  return open(settings, (commandTimeoutMs) => commandTimeoutMs);
}

/**
 * For XREADGROUP BLOCK and nothing else: a blocked connection serves nobody. Where commands are given more time than by
 * default, its reads are given as much more.
 */
export function openBlocking(settings: ConnectSettings): Redis {
  return open(settings, (commandTimeoutMs) => BLOCKING_TIMEOUT_MS + Math.max(0, commandTimeoutMs - COMMAND_TIMEOUT_MS));
}

/** For SSUBSCRIBE and nothing else. Its user subscribes again after each `ready`. */
export function openSubscriber(settings: ConnectSettings): Redis {
  return openCommands(settings);
}

/** No reply within this time counts as lost. */
export function timeoutOf(redis: Redis): number {
  return redis.options.commandTimeout ?? COMMAND_TIMEOUT_MS;
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

/**
 * Drops the socket and stops reconnecting. Commands in flight are rejected. What has ended already is left alone: a
 * second drop would hold the process for two more seconds.
 */
export function close(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect(false);
}

/** Where a connection points to, without credentials. */
export const describe = (redis: Redis): string => whereIs(redis.options);

/** The same of an address that nobody has dialled yet. */
export const labelOf = (input: RedisInput): string => whereIs(parseAddress(input).options);

function whereIs({ path, host = 'localhost', port = 6379, db, tls, sentinels, name }: RedisOptions): string {
  if (sentinels) return `sentinel://${sentinels.map((one) => `${one.host}:${one.port ?? 26379}`).join(',')}/${name}`;
  return path ? `unix://${path}` : `redis${tls ? 's' : ''}://${host}:${port}${db ? `/${db}` : ''}`;
}

function open(settings: ConnectSettings, timeoutMs: (commandTimeoutMs: number) => number): Redis {
  const dialing = createDialing();
  const address = parseAddress(settings.redis);
  const options: RedisOptions & { replyMapping: 'legacy' } = {
    ...address.options,
    connectionName: `duestream:${settings.name}`.replace(/[^!-~]/g, '_'),
    // CLIENT SETINFO says no more than that name, and a user of few rights may not: Redis would log each try.
    disableClientInfo: true,
    connectTimeout: settings.connectTimeoutMs ?? address.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    commandTimeout: timeoutMs(settings.commandTimeoutMs ?? address.commandTimeoutMs ?? COMMAND_TIMEOUT_MS),
    // @no-resend
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResubscribe: false,
    keepAlive: 5000,
    // How long a closed socket may linger: it would hold an ending process for the default of 2 s.
    disconnectTimeout: 200,
    noDelay: true,
    protocol: 2,
    // A server that loads its data is asked about it this often; commands are refused meanwhile.
    maxLoadingRetryTime: 500,
    retryStrategy: dialing.down,
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 1 : false),
    scripts: scriptOptions,
    replyMapping: 'legacy',
  };
  const redis = new Redis(options);
  // Errors reach whoever awaits a command and whoever listens to outage; without a listener Node would exit.
  redis.on('error', (error) => {
    if (!isHearsay(error, downs.get(redis))) downs.set(redis, isReply(error) ? withoutCommand(error) : error);
    // A reply that no command waits for: this connection has lost count, so no further reply of it can be believed.
    if (/^Command queue state error/.test(messageOf(error))) redial(redis);
  });
  redis.on('ready', () => {
    downs.delete(redis);
    dialing.up();
  });
  // What was refused before the first command is likely to be refused again; all else is over.
  redis.on('connect', () => refusalOf(downs.get(redis)) ?? downs.delete(redis));
  speakPlainly(redis);
  return redis;
}

/** What became of the commands of a handshake says less than the error of its connection. */
function isHearsay(error: unknown, known: unknown): boolean {
  return error instanceof ConnectionError && known !== undefined;
}

/** The last error of a connection that has not come up since. */
const downs = new WeakMap<Redis, unknown>();

/**
 * Stands between the client library and whoever awaits a command. Errors get our words. A command without a reply for
 * its whole time-out means a socket that may be dead without knowing it (a NAT or a load balancer dropped it): TCP would
 * try for a quarter of an hour, so every such time-out dials again.
 */
function speakPlainly(redis: Redis): void {
  const send = redis.sendCommand.bind(redis);
  const where = describe(redis);
  redis.sendCommand = (command, stream) => {
    const { reject } = command;
    command.reject = (error) => {
      if (/^Command timed out/.test(messageOf(error)) && redis.status === 'ready') redial(redis);
      // Without the right to INFO nobody can see whether Redis loads; the library would write so to the terminal.
      if (command.name === 'info' && redis.status === 'connect' && /^NOPERM/.test(messageOf(error))) {
        command.resolve(Buffer.alloc(0));
        return;
      }
      reject(rejectionOf(error, { where, last: downs.get(redis), timeoutMs: redis.options.commandTimeout }));
    };
    return send(command, stream);
  };
}

/** While a connection is refused, or nobody but a person can repair it, its commands say why. */
function rejectionOf(error: Error, state: ConnectionState): Error {
  if (/enableOfflineQueue/.test(error.message)) {
    if (isReply(state.last) && refusalOf(state.last)) return state.last;
    const trouble = connectProblemOf(state.last);
    if (trouble)
      return new ConnectionError(`not connected to Redis at ${state.where}: ${trouble.why}; ${trouble.remedy}`);
  }
  return inOurWords(error, state);
}
