/** Ends a blocking read from another connection, by the id that Redis gave the blocking one. */
import { membersOf } from '../redis/connection/cluster/members.ts';
import type { Redis } from '../redis/connection/connect.ts';

/** Ends blocking reads with an empty reply, so that nothing can be delivered into a closing socket. */
export async function unblock(commands: Redis, blocking: Redis): Promise<void> {
  await Promise.all(membersOf(blocking).map((waiting) => unblockOne(commands, waiting)));
}

async function unblockOne(commands: Redis, waiting: Redis): Promise<void> {
  const id = clientIds.get(waiting);
  try {
    if (id !== undefined) await besides(commands, waiting)?.call('CLIENT', 'UNBLOCK', id);
  } catch {
    // Not permitted or not reachable: the read ends by itself within BLOCK_MS, or with the connection.
  }
}

/** An id is that of one server: in a cluster it is said to the node where the other one waits. */
function besides(commands: Redis, { options: { host, port } }: Redis): Redis | undefined {
  const members = membersOf(commands);
  if (members.length === 1) return members[0];
  return members.find(({ options }) => options.host === host && options.port === port);
}

/** Remembers the server's id of each blocking connection; it changes with every reconnect. */
const clientIds = new WeakMap<Redis, number>();
const watched = new WeakSet<Redis>();

/** Learns the id of a blocking connection now and after every reconnect; those of a cluster as they come up. */
export function watchClientId(blocking: Redis): void {
  const learn = () => {
    for (const one of membersOf(blocking)) if (!watched.has(one)) watch(one);
  };
  blocking.on('ready', learn);
  learn();
}

function watch(waiting: Redis): void {
  watched.add(waiting);
  const learn = () => {
    waiting
      .call('CLIENT', 'ID')
      .then((id) => clientIds.set(waiting, Number(id)))
      .catch(() => undefined);
  };
  waiting.on('ready', learn);
  if (waiting.status === 'ready') learn();
}
