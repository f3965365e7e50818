/** The end of a connection. */
import type { Redis } from 'ioredis';

/**
 * Drops the socket and stops reconnecting. Commands in flight are rejected. What has ended already is left alone: a
 * second drop would hold the process for two more seconds.
 */
export function close(redis: Redis): void {
  if (redis.status !== 'end') redis.disconnect(false);
}
