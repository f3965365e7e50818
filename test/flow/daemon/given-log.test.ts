/** The log that an application gives tells what the log of the command tells: each event at its level. */
import { afterEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { startRedis } from '../../support/redis.ts';

type Ends = { readonly stop: () => Promise<void> } | { readonly close: () => Promise<void> };
const open: Ends[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await ('stop' in one ? one.stop() : one.close());
});
const until = <T extends Ends>(one: T): T => {
  open.push(one);
  return one;
};

/** A log as pino is one, and the levels and texts of its lines. */
function listening() {
  const lines: string[] = [];
  const write = (level: string) => (_: object, message: string) => void lines.push(`${level} ${message}`);
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return { lines, log };
}

const fail = () => Promise.reject(new Error('boom'));
const doomed = defineQueue('doomed', { attempts: 1 });

test('of a daemon and of a worker beside it', async () => {
  const { url: redis } = until(await startRedis());
  const client = until(createClient({ redis }));
  const [ofDaemon, ofWorker] = [listening(), listening()];
  const daemon = until(
    createDaemon(
      { redis, roles: ['mover', 'worker'] },
      {
        log: ofDaemon.log,
        handlers: defineHandlers({ within: fail }, { queues: [defineQueue('within', { attempts: 1 })] }),
      },
    ),
  );
  const worker = until(createWorker(doomed, fail, { redis, log: ofWorker.log }));
  await daemon.start();
  await worker.start();
  await client.schedule('within', {}, { id: 'a' });
  await client.schedule(doomed, {}, { id: 'b' });
  await expect.poll(() => ofDaemon.lines).toEqual(expect.arrayContaining(['info leader elected', 'warn job is dead']));
  await expect.poll(() => ofWorker.lines).toEqual(['debug job started', 'warn job is dead']);
  await worker.stop();
  await daemon.stop();
  expect(ofDaemon.lines.filter((line) => line === 'warn job is dead')).toHaveLength(1);
});

test('of a subscriber, and of a worker of several queues', async () => {
  const { url: redis } = until(await startRedis());
  const client = until(createClient({ redis }));
  const daemon = until(createDaemon({ redis, roles: ['mover'] }));
  await daemon.start();
  const prices = defineQueue('prices', { broadcast: true });
  const [ofSubscriber, ofWorker] = [listening(), listening()];
  const subscriber = until(createSubscriber(prices, fail, { redis, log: ofSubscriber.log }));
  const worker = until(createWorker({ redis, log: ofWorker.log, queues: [{ queue: doomed, handler: fail }] }));
  await subscriber.start();
  await worker.start();
  await client.schedule(prices, {}, { id: 'a' });
  await client.schedule(doomed, {}, { id: 'b' });
  const lost = 'warn job failed and is not tried again: it was over before its handler began';
  await expect.poll(() => ofSubscriber.lines).toContain(lost);
  await expect.poll(() => ofWorker.lines).toContain('warn job is dead');
});
