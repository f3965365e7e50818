/** A daemon that is mover and worker: its passes are turns of its worker as well, unless other workers live. */

import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createDaemon, type DaemonInput } from '../../../src/daemon/index.ts';
import { createClient, createWorker, defineHandlers, defineQueue } from '../../../src/index.ts';
import { scriptOptions } from '../../../src/redis/scripts/scripts.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { eventually } from '../../support/worker-line.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  const redis = await server.client();
  await redis.flushall();
  await redis.script('FLUSH');
});

const queue = defineQueue<{ n: number }>('relayed');
const sha = createHash('sha1')
  .update(scriptOptions().duestream_relay?.lua ?? '')
  .digest('hex');
/** Redis knows a script from its first call on. */
const isRelayed = async () => String(await (await server.client()).script('EXISTS', sha)) === '1';

async function setUp(own: Partial<DaemonInput> = {}) {
  const redis = { path: server.socketPath };
  const runs = new Map<number, number>();
  const ran = ({ data: { n } }: { data: { n: number } }) => void runs.set(n, (runs.get(n) ?? 0) + 1);
  const producer = createClient({ redis });
  ends.push(() => producer.close());
  const handlers = defineHandlers({ relayed: ran });
  const daemon = createDaemon({ redis, roles: ['mover', 'worker'], log: { level: 'fatal' }, ...own }, { handlers });
  ends.push(() => daemon.stop());
  let n = 0;
  return {
    runs,
    daemon,
    other: () => createWorker(queue, ran, { redis }),
    /** One job, due soon; resolves when it has run. */
    async runsOne() {
      n += 1;
      const at = n;
      await producer.schedule(queue, { n: at }, { delay: 5 });
      await eventually(() => runs.get(at)).toBe(1);
    },
  };
}

test('jobs that come one by one are started by the pass that promotes them, each once', async () => {
  const { runs, daemon, runsOne } = await setUp();
  await daemon.start();
  await eventually(async () => {
    await runsOne();
    return isRelayed();
  }).toBe(true);
  for (let count = 0; count < 20; count += 1) await runsOne();
  expect([...runs.values()].every((times) => times === 1)).toBe(true);
});

test('with one slot nothing is relayed, and jobs run all the same', async () => {
  const { daemon, runsOne } = await setUp({ worker: { concurrency: 1 } });
  await daemon.start();
  // A pass that comes between two reads finds the slot free, so one round of them may meet one.
  await eventually(async () => {
    await (await server.client()).script('FLUSH');
    for (let count = 0; count < 20; count += 1) await runsOne();
    return isRelayed();
  }).toBe(false);
});

test('beside another worker nothing is relayed, so that each has its share', async () => {
  const { daemon, other, runsOne } = await setUp();
  const second = other();
  ends.push(() => second.stop());
  await second.start();
  await daemon.start();
  for (let count = 0; count < 20; count += 1) await runsOne();
  expect(await isRelayed()).toBe(false);
});

test('a daemon that stops between passes leaves no job running', async () => {
  const { runs, daemon, runsOne } = await setUp();
  await daemon.start();
  await eventually(async () => {
    await runsOne();
    return isRelayed();
  }).toBe(true);
  await daemon.stop();
  const redis = await server.client();
  const keys = await redis.keys('*{relayed:0}:runs');
  expect([keys, [...runs.values()].every((times) => times === 1)]).toEqual([[], true]);
});
