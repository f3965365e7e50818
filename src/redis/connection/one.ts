/**
 * One connection to one server. ioredis would re-send a command whose reply was lost, so a script could run twice without
 * anybody knowing; here a lost reply is an error at once (`maxRetriesPerRequest: 0`, no offline queue) and only our own
 * layer (`outage.ts`) repeats the same call. Every command has a time-out (`wire.ts`), so that every promise settles: a frozen
 * server would otherwise keep a read pending for ever.
 *
 * Behind sentinels each dial asks them anew who the primary is, and a server with another role is dialled no further. When
 * they name another primary, every connection dials again (`sentinel.ts`); so does one whose server became a replica
 * and says so to a write (READONLY).
 */
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { loadedScripts } from '../scripts/scripts.ts';
import { urlOf } from './address.ts';
import { timeouts } from './call-end.ts';
import { connectProblemOf, refusalOf } from './connect-problem.ts';
import { ConnectionError, type ConnectionState, inOurWords, isReply, withoutCommand } from './connection-error.ts';
import { createDialing, isClosed, redial } from './dialing.ts';
import { outageOf } from './outage.ts';
import { explainSentinels, followSentinels } from './sentinel.ts';
import { Wire } from './wire.ts';

export interface Manner {
  /** Shows in CLIENT LIST. */
  readonly name: string;
  readonly connectTimeoutMs: number;
  /** No reply within this time counts as lost. */
  readonly commandTimeoutMs: number;
}

/** What the library is told of every connection: where it leads, and how commands are sent over it. */
export function optionsOf(
  address: RedisOptions,
  { name, connectTimeoutMs }: Manner,
): RedisOptions & { replyMapping: 'legacy' } {
  return {
    ...address,
    connectionName: `duestream:${name}`.replace(/[^!-~]/g, '_'),
    // CLIENT SETINFO says no more than that name, and a user of few rights may not: Redis would log each try.
    disableClientInfo: true,
    connectTimeout: connectTimeoutMs,
    // A sentinel that accepts and says nothing must not be waited for: there are others.
    sentinelCommandTimeout: address.sentinelCommandTimeout ?? Math.min(connectTimeoutMs, SENTINEL_TIMEOUT_MS),
    // Asked at once they say the same again, and all processes would ask at one moment.
    sentinelRetryStrategy:
      address.sentinelRetryStrategy ?? ((tries) => 50 + Math.random() * Math.min(100 * tries, 950)),
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
    reconnectOnError: (error) => (outageOf(error) === 'readonly' ? 1 : false),
    scripts: loadedScripts(),
    replyMapping: 'legacy',
  };
}

/** The next sentinel has its turn after this time. */
const SENTINEL_TIMEOUT_MS = 1000;

export function openOne(address: RedisOptions, manner: Manner): Redis {
  const dialing = createDialing();
  const redis = manyWait(new Redis({ ...optionsOf(address, manner), retryStrategy: dialing.down }));
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
  const { commandTimeoutMs } = manner;
  timeouts.set(redis, commandTimeoutMs);
  speakPlainly(redis, commandTimeoutMs);
  if (address.sentinels) {
    dialOn(redis, dialing.down);
    explainSentinels(redis, address);
    followSentinels(redis, address);
  }
  return redis;
}

/** Each call that waits until it is connected listens, and so does each queue: more than ten are no leak. */
export const manyWait = (redis: Redis): Redis => redis.setMaxListeners(0);

/** Dropped while it asks its sentinels, the library gives a connection up for good; only `close` may do that. */
function dialOn(redis: Redis, down: () => number): void {
  redis.on('end', () => {
    // It may be closed while it waits for its turn.
    const dial = () => void (isClosed(redis) || redis.connect().catch(() => undefined));
    if (!isClosed(redis)) systemClock.timer(down(), dial);
  });
}

/** What became of the commands of a handshake says less than the error of its connection. */
export function isHearsay(error: unknown, known: unknown): boolean {
  return error instanceof ConnectionError && known !== undefined;
}

/** The last error of a connection that has not come up since. */
const downs = new WeakMap<Redis, unknown>();

/**
 * Stands between the client library and whoever awaits a command. Errors get our words. A command without a reply for
 * its whole time-out means a socket that may be dead without knowing it (a NAT or a load balancer dropped it): TCP would
 * try for a quarter of an hour, so every such time-out dials again.
 *
 * The library keeps a settled command reachable until the next major collection, and all that hangs on it (`scripts.ts`,
 * `spent`). So its arguments, often the largest part, are taken off.
 */
function speakPlainly(redis: Redis, timeoutMs: number): void {
  const wire = new Wire(redis, timeoutMs);
  const send = redis.sendCommand.bind(redis);
  const where = urlOf({ options: redis.options });
  redis.sendCommand = (command, stream) => {
    const { reject, resolve } = command;
    const refuse = (error: Error) => {
      sent.isOver = true;
      if (/^Command timed out/.test(messageOf(error))) {
        // Where nobody waits for it any more, its rejection must not end the process.
        command.promise.catch(() => undefined);
        if (redis.status === 'ready') redial(redis);
      }
      // Without the right to INFO nobody can see whether Redis loads; the library would write so to the terminal.
      if (command.name === 'info' && redis.status === 'connect' && /^NOPERM/.test(messageOf(error))) {
        command.resolve(Buffer.alloc(0));
        return;
      }
      reject(rejectionOf(error, { where, last: downs.get(redis), timeoutMs }));
    };
    const settle = (reply: unknown) => {
      sent.isOver = true;
      resolve(reply);
      command.args = NO_ARGS;
    };
    // Two steps: V8 puts a function that is written where it is assigned straight into its old space.
    command.reject = refuse;
    command.resolve = settle;
    const sent = wire.sent(refuse);
    // A transaction or a pipeline is written by the library itself.
    if (stream) wire.flush();
    // During its handshake the library has rules of its own.
    return send(command, stream ?? (redis.status === 'ready' ? wire : undefined));
  };
}

const NO_ARGS: [] = [];

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
