/** Ends a blocking read from another connection, by the id that Redis gave the blocking one. */
import type { Redis } from '../../redis/connection/connect.ts';

/** Ends a blocking read with an empty reply, so that nothing can be delivered into a closing socket. */
export async function unblock(commands: Redis, blocking: Redis): Promise<void> {
  const id = clientIds.get(blocking);
  try {
    if (id !== undefined) await commands.call('CLIENT', 'UNBLOCK', id);
  } catch {
    // Not permitted or not reachable: the read ends by itself within BLOCK_MS, or with the connection.
  }
}

/** From now on reads on this connection can be ended, and are where they stand in the way of a script. */
export function watchReads(commands: Redis, blocking: Redis): void {
  watchClientId(blocking);
  unblockForTexts(commands, blocking);
}

/**
 * A script is sent by its name, together with the read that follows it. Where Redis has forgotten the script, the client
 * library sends it again with its text, and that would stand behind the read until the read ends: so the read is ended.
 */
function unblockForTexts(commands: Redis, blocking: Redis): void {
  const send = blocking.sendCommand.bind(blocking);
  let reading: object | undefined;
  blocking.sendCommand = (command, stream) => {
    if (/^xreadgroup$/i.test(command.name)) {
      const over = () => {
        if (reading === command) reading = undefined;
      };
      reading = command;
      command.promise.then(over, over);
    } else if (command.name === 'evalsha' && reading) {
      // No other script is sent on this connection while a read is under way.
      void unblock(commands, blocking);
    }
    return send(command, stream);
  };
}

/** Remembers the server's id of each blocking connection; it changes with every reconnect. */
const clientIds = new WeakMap<Redis, number>();

/** Learns the id of a blocking connection now and after every reconnect. */
function watchClientId(blocking: Redis): void {
  const learn = () => {
    blocking
      .call('CLIENT', 'ID')
      .then((id) => clientIds.set(blocking, Number(id)))
      .catch(() => undefined);
  };
  blocking.on('ready', learn);
  if (blocking.status === 'ready') learn();
}
