/** duestream with a handler that fails twice and then succeeds: what a storm of retries is made of. */
import { embedded } from '../peers/duestream.mjs';

/** @type {typeof import('../../src/index.ts')} */
const { createWorker, defineQueue, fixed } = await import(new URL('../../dist/index.js', import.meta.url).href);
/** @type {typeof import('../../src/daemon/index.ts')} */
const { createDaemon } = await import(new URL('../../dist/daemon/index.js', import.meta.url).href);

const queue = defineQueue('bench', { attempts: 5, backoff: fixed('1s') });
/** Starts that each job needs. */
export const STARTS = 3;

/** @type {import('../peers/system.mjs').System} */
export const failing = {
  ...embedded,
  name: 'duestream, failing',
  async worker(url, { concurrency, moves, started }) {
    const daemon = createDaemon({ redis: { url }, roles: ['mover'], log: { level: 'fatal' } });
    if (moves) await daemon.start();
    const worker = createWorker(
      queue,
      ({ data, attempt }) => {
        started(/** @type {{ at: number }} */ (data).at);
        if (attempt < STARTS) throw new Error('the mail server said no');
      },
      { redis: url, concurrency },
    );
    await worker.start();
    return {
      async close() {
        await worker.stop();
        await daemon.stop();
      },
    };
  },
};
