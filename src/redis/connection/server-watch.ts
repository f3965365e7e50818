/**
 * Notices when the data behind our address are not those we knew: a name that leads to another server, a restart that
 * lost everything, FLUSHALL. It tells and refuses nothing: after a loss the work has to go on. Asks only after a reconnect
 * or when our own heartbeat is gone, so it costs nothing per command.
 *
 * What is compared is an id that the data carry, not the server: every restart changes a server's run id, and a restart
 * that kept the data, or a replica that took over, is nothing to warn of. The run id only says which of the losses it is.
 */

import type { Emitter } from '../../job/events.ts';
import { newJobId } from '../../job/job-id.ts';
import { controlKeys } from '../keys.ts';
import { scripts } from '../scripts/script-table.ts';
import { run, text } from '../scripts/scripts.ts';
import { memberOf } from './cluster/members.ts';
import type { Redis } from './connect.ts';

export interface ServerWatch {
  /** `anew`: our heartbeat had vanished. To be called before the queues are declared again. */
  readonly look: (anew: boolean) => Promise<void>;
}

interface Known {
  readonly runId: string;
  /** Of the data. */
  readonly id: string;
}

export function createServerWatch(parts: {
  readonly redis: Redis;
  readonly namespace: string;
  readonly who: string;
  readonly events: Emitter;
}): ServerWatch {
  const { redis, namespace, who, events } = parts;
  const keys = controlKeys(namespace);
  let known: Known | undefined;
  let reconnected = true;
  redis.on('ready', () => {
    reconnected = true;
  });

  return {
    async look(anew) {
      if (!reconnected && !anew) return;
      reconnected = false;
      const found = await ask().catch(() => undefined);
      // Without an answer it is looked at again. Others tell of the outage.
      reconnected ||= found === undefined;
      // Without the right to ask, nobody can tell one server from another.
      if (found === undefined || found.runId === undefined) return;
      const { runId, id, empty } = found;
      const before = known;
      known = { runId, id };
      if (before && before.id !== id) events.emit('redis.changed', { who, before: before.runId, runId, empty });
    },
  };

  async function ask() {
    // Of a cluster: where the id of the data is.
    const runId = await runIdOf(memberOf(redis, keys.id));
    const id = text(await run(redis, scripts.identify, { keys, args: { candidate: newJobId() } }));
    return { runId, id, empty: (await redis.exists(keys.queues)) === 0 };
  }
}

async function runIdOf(redis: Redis): Promise<string | undefined> {
  const info = await redis.info('server').catch(() => '');
  return /^run_id:(\w+)/m.exec(info)?.[1];
}
