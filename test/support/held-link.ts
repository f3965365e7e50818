/**
 * The link between a primary and its replica, which can be held: what the primary sends then is lost, as with a network
 * that is cut off, while the connections stay. A replica that is only stopped still finds in its socket what was sent.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface HeldLink {
  readonly port: number;
  /** From now on nothing arrives, for good. */
  readonly hold: () => void;
  readonly close: () => Promise<void>;
}

export async function openHeldLink(primaryPort: number): Promise<HeldLink> {
  const sockets = new Set<Socket>();
  let isHeld = false;
  const link = createServer((replica) => {
    const primary = connect(primaryPort, '127.0.0.1');
    for (const socket of [replica, primary]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        replica.destroy();
        primary.destroy();
      });
    }
    replica.on('data', (bytes) => primary.write(bytes));
    primary.on('data', (bytes) => {
      if (!isHeld) replica.write(bytes);
    });
  });
  link.listen(0, '127.0.0.1');
  await once(link, 'listening');
  const address = link.address();
  if (typeof address !== 'object' || address === null) throw new Error('the link listens nowhere');
  return {
    port: address.port,
    hold() {
      isHeld = true;
    },
    async close() {
      link.close();
      for (const socket of sockets) socket.destroy();
      await once(link, 'close');
    },
  };
}
