/**
 * Connections behind sentinels. A connection leaves its primary as soon as a sentinel names another one. A primary that
 * froze, and wakes up when a replica has taken its place, takes writes until the sentinels have told it, which may be ten
 * seconds later; all of these writes are lost. A connection that only waits for its first READONLY stays there for so long.
 *
 *  a sentinel ──+switch-master──▶ one connection per sentinel and process ──▶ every connection to that primary dials anew
 *
 * A process without the right to subscribe asks the sentinels every second. A sentinel that was away is asked when it is
 * back. A connection moves only when a sentinel names a *new* primary: a sentinel that knows less than the others, and
 * repeats its old answer, moves no connection.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { SENTINEL_CHANNEL } from './access.ts';
import type { Place } from './address.ts';
import { connectProblemOf } from './connect-problem.ts';
import { close, isClosed, onClosed, redial } from './dialing.ts';

/** A process that may not subscribe asks each sentinel this often. */
const ASK_EVERY_MS = 1000;
/** A sentinel that is away is dialled again after this time. */
const AGAIN_MS = 1000;
/** A process listens to so many sentinels at most: three are usual, and one that answers is enough. */
const SENTINELS_MAX = 9;

/** The sentinels of one primary, and the connections of this process that follow them. */
interface Watch {
  readonly followers: Set<Redis>;
  readonly listeners: readonly Redis[];
}

const watches = new Map<string, Watch>();

/** The connection follows its sentinels from its first `ready` until it is closed for good. */
export function followSentinels(redis: Redis, address: RedisOptions): void {
  const key = keyOf(address);
  redis.on('ready', () => {
    if (isClosed(redis)) return;
    const watch = watches.get(key) ?? openWatch(key, address);
    watch.followers.add(redis);
  });
  onClosed(redis, () => {
    const watch = watches.get(key);
    if (!watch?.followers.delete(redis) || watch.followers.size > 0) return;
    watches.delete(key);
    for (const listener of watch.listeners) close(listener);
  });
}

function openWatch(key: string, address: RedisOptions): Watch {
  const followers = new Set<Redis>();
  const leave = (place: Place) => {
    for (const redis of followers) if (!isAt(redis, natOf(place, redis.options.natMap))) redial(redis);
  };
  const listeners = (address.sentinels ?? []).slice(0, SENTINELS_MAX).map((place) => listen(address, place, leave));
  const watch = { followers, listeners };
  watches.set(key, watch);
  return watch;
}

/** One sentinel. `onOther` hears of a primary that is another one than this sentinel named before. */
function listen(
  address: RedisOptions,
  { host = 'localhost', port = 26_379 }: Partial<Place>,
  onOther: (place: Place) => void,
): Redis {
  const { name = '', family, sentinelUsername, sentinelPassword, sentinelTLS, connectTimeout } = address;
  const user = { username: sentinelUsername ?? undefined, password: sentinelPassword ?? undefined };
  const sentinel = new Redis({
    host,
    port,
    family,
    ...user,
    tls: sentinelTLS,
    connectTimeout,
    protocol: 2,
    replyMapping: 'legacy',
    enableReadyCheck: false,
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResubscribe: false,
    keepAlive: 5000,
    disconnectTimeout: 200,
    maxRetriesPerRequest: 0,
    retryStrategy: () => AGAIN_MS * (0.5 + Math.random()),
  });
  let named: string | undefined;
  let callOff: (() => void) | undefined;
  const hear = (place: Place) => {
    const before = named;
    named = `${place.host} ${place.port}`;
    if (before !== undefined && before !== named) onOther(place);
  };
  const ask = () =>
    sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).then((reply: unknown) => {
      if (Array.isArray(reply)) hear({ host: String(reply[0]), port: Number(reply[1]) });
    }, quiet);
  const askOn = () => {
    if (sentinel.status !== 'ready') return;
    callOff = systemClock.timer(ASK_EVERY_MS, () => void ask().finally(askOn));
  };
  sentinel.on('error', quiet);
  sentinel.on('close', () => callOff?.());
  sentinel.on('ready', () => {
    // Both in one write: nothing is announced between the answer and the subscription.
    void ask();
    sentinel.subscribe(SENTINEL_CHANNEL).catch(askOn);
  });
  sentinel.on('message', (_channel: string, message: string) => {
    const [of, , , toHost = '', toPort] = message.split(' ');
    if (of === name) hear({ host: toHost, port: Number(toPort) });
  });
  return sentinel;
}

/** The place may have a host name instead of an address. Then the connection counts as elsewhere, and dials anew. */
function isAt({ stream }: Redis, { host, port }: Place): boolean {
  const socket: typeof stream | undefined = stream;
  return socket !== undefined && 'remotePort' in socket && socket.remotePort === port && socket.remoteAddress === host;
}

function natOf(place: Place, natMap: RedisOptions['natMap']): Place {
  const name = `${place.host}:${place.port}`;
  return (typeof natMap === 'function' ? natMap(name) : natMap?.[name]) ?? place;
}

function keyOf({ sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS }: RedisOptions): string {
  return JSON.stringify([sentinels, name, sentinelUsername, sentinelPassword, sentinelTLS !== undefined]);
}

const quiet = () => undefined;

/**
 * Says why no sentinel answers, as an error of the connection. The client library says of a sentinel that it cannot reach
 * only that the connection is closed. Some problems need a person, such as a certificate that nobody trusts: this finds
 * them by one more connection to the first sentinel, on which no command is sent.
 */
export function explainSentinels(redis: Redis, { sentinels = [], sentinelTLS }: Partial<RedisOptions>): void {
  let isAsking = false;
  redis.on('error', (error) => {
    const [first] = sentinels ?? [];
    if (isAsking || !first || !sentinelTLS || !/^All sentinels.*Connection is closed/s.test(messageOf(error))) return;
    isAsking = true;
    const place = { host: first.host ?? 'localhost', port: first.port ?? 26_379 };
    const silent = { enableReadyCheck: false, disableClientInfo: true, disconnectTimeout: 200 };
    const probe = new Redis({ ...place, ...silent, tls: sentinelTLS, connectTimeout: 1000, retryStrategy: () => null });
    probe.on('error', (why) => {
      if (connectProblemOf(why) && redis.status !== 'end') redis.emit('error', why);
    });
    probe.once('ready', () => close(probe));
    probe.once('end', () => {
      isAsking = false;
    });
  });
}
