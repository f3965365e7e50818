/** The end of a connection. */
import type { Redis } from 'ioredis';

const closed = new WeakSet<Redis>();
const farewells = new WeakMap<Redis, (() => void)[]>();

/**
 * Drops the socket and stops reconnecting. Commands in flight are rejected. What has ended already is left alone: a
 * second drop would hold the process for two more seconds.
 */
export function close(redis: Redis): void {
  closed.add(redis);
  for (const farewell of farewells.get(redis) ?? []) farewell();
  farewells.delete(redis);
  if (redis.status !== 'end') redis.disconnect(false);
}

/** It was ended here, and is not to be dialled again. */
export const isClosed = (redis: Redis): boolean => closed.has(redis);

/** Calls back when it is closed: the library tells nothing of the end of a connection that was about to dial again. */
export function onClosed(redis: Redis, farewell: () => void): void {
  farewells.set(redis, [...(farewells.get(redis) ?? []), farewell]);
}
