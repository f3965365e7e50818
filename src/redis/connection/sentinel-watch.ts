/**
 * Leaves a primary as soon as its sentinels name another one. A primary that froze, and wakes up when a replica has taken
 * its place, takes writes until the sentinels have told it, which may be ten seconds later; all of them are lost. Whoever
 * only waits for its first READONLY stays there for so long.
 *
 *  a sentinel ──+switch-master──▶ one connection per sentinel and process ──▶ every connection to that primary dials anew
 *
 * Without the right to subscribe the sentinels are asked every second. One that was away is asked when it is back. It counts
 * what a sentinel says *anew*: one that knows less than the others, and says what it always said, moves nobody.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../kernel/clock.ts';
import { SENTINEL_CHANNEL } from './access.ts';
import type { Place } from './address-url.ts';
import { close, isClosed, onClosed } from './closing.ts';
import { redial } from './dialing.ts';

/** Whose sentinels let nobody subscribe asks them this often. */
const ASK_EVERY_MS = 1000;
/** A sentinel that is away is dialled again after this time. */
const AGAIN_MS = 1000;
/** More than these are not listened to: three are usual, and one that answers is enough. */
const SENTINELS_MAX = 9;

/** The sentinels of one primary, and the connections of this process that follow them. */
interface Watch {
  readonly followers: Set<Redis>;
  readonly listeners: readonly Redis[];
}

const watches = new Map<string, Watch>();

/** From its first `ready` until it is closed for good. */
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

/** A name is not an address: who is connected to it is not known, and dials anew. */
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
