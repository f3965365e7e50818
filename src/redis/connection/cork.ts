/** Several commands of one moment on one connection, which would else be a system call each. */
import type { Redis } from './connect.ts';

/** What `send` sends on this connection goes in one write. It is sent, and nothing waits, when this returns what `send` did. */
export function together<T>(redis: Redis, send: () => T): T {
  // Without a connection there is none to hold back; what is sent then is refused or queued as always.
  const stream = redis.status === 'ready' ? redis.stream : undefined;
  stream?.cork();
  try {
    return send();
  } finally {
    stream?.uncork();
  }
}
