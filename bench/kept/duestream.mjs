/** duestream as it is built here, with the daemon apart from the workers. */
import { SLOTS } from './system.mjs';

/** @type {typeof import('../../src/index.ts')} */
const { createClient, createWorker, defineQueue } = await import(new URL('../../dist/index.js', import.meta.url).href);
/** @type {typeof import('../../src/daemon/index.ts')} */
const { createDaemon } = await import(new URL('../../dist/daemon/index.js', import.meta.url).href);

/** @type {import('./system.mjs').System} */
export const duestream = {
  name: 'duestream',
  title: 'duestream',
  settings:
    'as built here; job lease 3 s, heartbeat 1.5 s, grace 500 ms, lease of the leader 1.5 s; 2 daemons; all else by default',
  store: 'redis',
  async producer(url) {
    const queue = defineQueue('kept');
    const client = createClient({ redis: url });
    return {
      schedule: ({ id, dueMs, data }) => client.schedule(queue, data, { id, at: new Date(dueMs) }),
      close: () => client.close(),
    };
  },
  async worker(url, run) {
    const handler = (/** @type {{ data: unknown }} */ { data }) =>
      run(/** @type {import('./system.mjs').Data} */ (data));
    const times = /** @type {const} */ ({ jobLease: '3s', beatTtl: '1500ms', grace: '500ms' });
    await createWorker('kept', handler, { redis: url, concurrency: SLOTS, ...times }).start();
  },
  async daemon(url) {
    await createDaemon({
      redis: { url },
      roles: ['mover'],
      mover: { lease: '1500ms' },
      log: { level: 'fatal' },
    }).start();
  },
};
