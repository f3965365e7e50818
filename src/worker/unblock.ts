/** Ends a blocking read from another connection, by the id that Redis gave the blocking one. */
import type { Redis } from '../redis/connection/connect.ts';

/** Ends a blocking read with an empty reply, so that nothing can be delivered into a closing socket. */
export async function unblock(commands: Redis, blocking: Redis): Promise<void> {
  const id = clientIds.get(blocking);
  try {
    if (id !== undefined) await commands.call('CLIENT', 'UNBLOCK', id);
  } catch {
    // Not permitted or not reachable: the read ends by itself within BLOCK_MS, or with the connection.
  }
}

/**
 * A script is sent by its name, together with the read that follows it. Where Redis has forgotten the script, the client
 * library sends it again with its text, and that would stand behind the read until the read ends: so the read is ended.
 */
export function unblockForTexts(commands: Redis, blocking: Redis, isReading: () => boolean): void {
  const send = blocking.sendCommand.bind(blocking);
  blocking.sendCommand = (command, stream) => {
    // No other script is sent on this connection while a read is under way.
    if (command.name === 'evalsha' && isReading()) void unblock(commands, blocking);
    return send(command, stream);
  };
}

/** Remembers the server's id of each blocking connection; it changes with every reconnect. */
const clientIds = new WeakMap<Redis, number>();

/** Learns the id of a blocking connection now and after every reconnect. */
export function watchClientId(blocking: Redis): void {
  const learn = () => {
    blocking
      .call('CLIENT', 'ID')
      .then((id) => clientIds.set(blocking, Number(id)))
      .catch(() => undefined);
  };
  blocking.on('ready', learn);
  if (blocking.status === 'ready') learn();
}
