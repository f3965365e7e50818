/**
 * Notices when the Redis behind our address is not the one we knew, or has lost what the namespace kept in it: a name
 * that leads elsewhere, a replica that took over, a restart without data, FLUSHALL. It tells and refuses nothing: a
 * replica that took over and a restart look just the same, and after a loss the work has to go on. Asks only after a
 * reconnect or when our own heartbeat is gone, so it costs nothing per command.
 */
import type { Emitter } from '../core/events.ts';
import type { Redis } from './connect.ts';
import { controlKeys } from './keys.ts';

export interface ServerWatch {
  /** `anew`: our heartbeat had vanished. To be called before the queues are declared again. */
  readonly look: (anew: boolean) => Promise<void>;
}

export function createServerWatch(parts: {
  readonly redis: Redis;
  readonly namespace: string;
  readonly who: string;
  readonly events: Emitter;
}): ServerWatch {
  const { redis, namespace, who, events } = parts;
  let known: string | undefined;
  let reconnected = true;
  redis.on('ready', () => {
    reconnected = true;
  });

  return {
    async look(anew) {
      if (!reconnected && !anew) return;
      const runId = await runIdOf(redis);
      // Without the right to ask, nobody can tell one server from another.
      if (runId === undefined) return;
      reconnected = false;
      const before = known;
      known = runId;
      if (before === undefined || (before === runId && !anew)) return;
      const empty = anew && (await redis.exists(controlKeys(namespace).queues).catch(() => 1)) === 0;
      if (before !== runId || empty) events.emit('redis.changed', { who, before, runId, empty });
    },
  };
}

async function runIdOf(redis: Redis): Promise<string | undefined> {
  const info = await redis.info('server').catch(() => '');
  return /^run_id:(\w+)/m.exec(info)?.[1];
}
