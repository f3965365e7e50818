/** The model behind a real socket, by the real clock, so that it can be compared with a real server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createListener } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from '../../src/testing/redis/server.mjs';

/** @returns {Promise<{ socketPath: string, stop: () => Promise<void> }>} */
export async function listen() {
  const folder = mkdtempSync(join(tmpdir(), 'due-model-'));
  const socketPath = join(folder, 'm.sock');
  const server = createServer({
    nowUs: () => (performance.timeOrigin + performance.now()) * 1000,
    timer(ms, act) {
      const timer = setTimeout(act, ms);
      return () => clearTimeout(timer);
    },
  });
  const listener = createListener((socket) => {
    const connection = server.accept({
      send: (bytes) => socket.write(bytes, 'latin1'),
      cut: () => socket.destroy(),
    });
    socket.setEncoding('latin1');
    socket.on('data', (bytes) => connection.feed(String(bytes)));
    socket.on('error', () => socket.destroy());
    socket.on('close', connection.close);
  });
  await new Promise((resolve) => {
    listener.listen(socketPath, () => resolve(undefined));
  });
  return {
    socketPath,
    async stop() {
      await new Promise((resolve) => {
        listener.close(resolve);
      });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
