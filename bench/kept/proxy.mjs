/** A way to a server that loses replies: the server has done what was asked, and who asked hears nothing but a closed connection. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const HOST = '127.0.0.1';

/** @typedef {Awaited<ReturnType<typeof openProxy>>} Proxy */

/** @param {number} target port of the server */
export async function openProxy(target) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  let isArmed = false;
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(target, HOST);
    let isDoomed = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (request) => {
      isDoomed = isDoomed || isArmed;
      isArmed = false;
      upstream.write(request);
    });
    upstream.on('data', (reply) => {
      if (!isDoomed) {
        client.write(reply);
        return;
      }
      lost += 1;
      client.destroy();
    });
  });
  server.listen(0, HOST);
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    /** The reply to the next request of anybody is lost, with its connection. */
    loseNextReply() {
      isArmed = true;
    },
    lost: () => lost,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
