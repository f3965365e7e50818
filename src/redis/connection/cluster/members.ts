/**
 * What stands behind a connection. Nearly all commands name a key and need not know; whoever asks something of a server
 * itself (its clock, its memory policy, its clients) asks for its connection here. For one primary, that is the
 * connection that was given.
 */
import type { Redis } from 'ioredis';

export interface Members {
  /** A connection to each master. */
  readonly all: () => readonly Redis[];
  /** To the master of a key's slot, as far as it is known. */
  readonly of: (key: string) => Redis | undefined;
}

const clusters = new WeakMap<object, Members>();

export function isCluster(redis: object): boolean {
  return clusters.has(redis);
}

/** Whether another server may take the place of the one that is away. */
export function hasStandIn(redis: Redis): boolean {
  return isCluster(redis) || redis.options.sentinels !== undefined;
}

/** The connections that are one for the rest of us. */
export function membersOf<R extends object>(redis: R): readonly (R | Redis)[] {
  return clusters.get(redis)?.all() ?? [redis];
}

/** The one that has this key. While nobody knows, the whole, which refuses what is sent then. */
export function memberOf<R extends object>(redis: R, key: string): R | Redis {
  return clusters.get(redis)?.of(key) ?? redis;
}

/**
 * Asks every member. While one is away the answers of the others count.
 *
 * @throws what the first failed with, if none has answered
 */
export async function askAll<R extends object, T>(redis: R, ask: (member: R | Redis) => Promise<T>) {
  const asked = await Promise.allSettled(membersOf(redis).map(ask));
  const answers = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const [failed] = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  if (answers.length === 0 && failed !== undefined) throw failed;
  return answers;
}

export function enlist(cluster: Redis, members: Members): void {
  clusters.set(cluster, members);
}

/** Where the servers behind a connection are: `10.0.0.5:6379`, `[fd00::5]:6379`. None of one that is away, or behind a file. */
export function placesOf(redis: Redis): readonly string[] {
  return membersOf(redis).flatMap(({ stream }) => {
    const socket: object | undefined = stream;
    if (socket === undefined || !('remoteAddress' in socket) || !('remotePort' in socket)) return [];
    const { remoteAddress: address, remotePort: port } = socket;
    if (typeof address !== 'string' || typeof port !== 'number') return [];
    return [address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`];
  });
}
