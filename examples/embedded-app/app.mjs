/**
 * A web application that brings its own scheduler: client, worker and mover live in its process, begin with it and
 * end with it. It holds no global state, so a process can have several; it touches neither signals nor the process:
 * that is the business of whoever starts it (`main.mjs`).
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { createClient, createWorker, defineQueue } from 'duestream';
import { createDaemon } from 'duestream/daemon';
import { Hono } from 'hono';

/** @typedef {{ order: string }} Reminder */
/** @typedef {{ redis: string, namespace?: string, port?: number, remindAfter?: string | number }} AppOptions */

/** @type {import('duestream').Queue<Reminder>} */
const reminders = defineQueue('reminders', { attempts: 5, timeout: '10s' });

/** @param {AppOptions} options */
export async function startApp({ redis, namespace = 'shop', port = 0, remindAfter = '1h' }) {
  /** What has begun, to be ended in reverse. @type {(() => Promise<unknown>)[]} */
  const stops = [];
  /** @type {string[]} */
  const reminded = [];

  async function begin() {
    const daemon = createDaemon({ redis: { url: redis }, namespace, roles: ['mover'] });
    stops.push(daemon.stop);
    await daemon.start();
    const client = createClient({ redis, namespace });
    stops.push(client.close);
    // One registry for both, so that one route shows it all.
    const { registry } = daemon;
    const worker = createWorker(reminders, ({ data }) => reminded.push(data.order), { redis, namespace, registry });
    stops.push(() => worker.stop({ shutdown: 5000 }));
    await worker.start();
    const server = serve({ daemon, client, worker });
    stops.push(() => closed(server));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return address !== null && typeof address === 'object' ? address.port : port;
  }

  /** @param {{ daemon: import('duestream/daemon').Daemon, client: import('duestream').Client, worker: import('duestream').Worker }} parts */
  function serve({ daemon, client, worker }) {
    const app = new Hono();
    app.post('/orders/:id', async (c) => {
      const order = c.req.param('id');
      const { status } = await client.schedule(reminders, { order }, { delay: remindAfter, id: `remind:${order}` });
      return c.json({ order, reminder: status }, 202);
    });
    app.post('/orders/:id/payment', async (c) =>
      c.json({ reminder: (await client.cancel(reminders, `remind:${c.req.param('id')}`)).status }),
    );
    app.get('/reminded', (c) => c.json(reminded));
    app.get('/readyz', async (c) => {
      const ready = worker.isReady() && (await daemon.isReady());
      return c.text(ready ? 'ok' : 'not ok', ready ? 200 : 503);
    });
    app.get('/metrics', async (c) => {
      c.header('Content-Type', daemon.registry.contentType);
      return c.body(await daemon.metrics());
    });
    const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
    return createServer((request, response) => void listener(request, response));
  }

  async function stop() {
    // Requests end first, because they schedule; the mover goes last.
    for (let end = stops.pop(); end; end = stops.pop()) await end();
  }

  try {
    return { port: await begin(), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @param {import('node:http').Server} server */
async function closed(server) {
  if (!server.listening) return;
  const gone = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  await gone;
}
