/**
 * Limits that queues share on the nodes of a cluster: the ledgers and the partitions are in different slots, and a replica takes over
 * the node that has the ledgers, while jobs run.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { slotOf } from '../../../src/redis/connection/cluster/nodes.ts';
import { limitKeys } from '../../../src/redis/keys.ts';
import { type ClusterOfTests, failOver, startCluster } from '../../support/topology-lite.ts';

const PARTITIONS = 3;
const PLACES = 3;
const JOBS = 60;
const patience = { timeout: 100_000, interval: 50 };
const long = { timeout: 180_000 };
const ends: (() => unknown)[] = [];
let cluster: ClusterOfTests;
beforeAll(async () => {
  cluster = await startCluster();
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => cluster?.stop());

/** A name whose ledger is on the node that is going to be replaced. */
async function nameOn(node: ClusterOfTests['masters'][number], stem: string): Promise<string> {
  const names = Array.from({ length: 100 }, (_, nth) => `${stem}-${nth}`);
  for (const name of names) {
    const { ledger } = limitKeys('duestream', name);
    const found = await node.client.exists(ledger).catch(() => undefined);
    if (found !== undefined) return name;
  }
  throw new Error(`no name of ${names.length} is in a slot of this node`);
}

test('hold over queues, partitions and nodes, also while a replica takes over the ledgers', long, async () => {
  const [master] = cluster.masters;
  const [replica] = cluster.replicas;
  if (!master || !replica) throw new Error('the cluster has no replicas');
  const [places, pace] = [await nameOn(master, 'places'), await nameOn(master, 'pace')];
  expect(slotOf(limitKeys('duestream', places).ledger)).not.toBe(slotOf(limitKeys('duestream', pace).ledger));
  const client = createClient({
    redis: cluster.url,
    retryBudget: '60s',
    durability: 'replicated',
    durabilityTimeout: '10s',
  });
  ends.push(client.close);
  await client.limits.set(places, { concurrency: PLACES });
  await client.limits.set(pace, { rate: '20/s' });
  const queues = ['mails', 'reminders'].map((name) =>
    defineQueue(name, { partitions: PARTITIONS, limits: [places, pace], attempts: 20 }),
  );
  const seen = { starts: [] as string[], times: [] as number[], running: 0, most: 0 };
  for (const queue of queues) {
    const worker = createWorker(
      queue,
      async ({ id }) => {
        seen.starts.push(`${queue.name} ${id}`);
        seen.times.push(performance.now());
        seen.running += 1;
        seen.most = Math.max(seen.most, seen.running);
        await client.count(queue, {});
        seen.running -= 1;
      },
      { redis: cluster.url, concurrency: 10 },
    );
    ends.push(worker.stop);
    await worker.start();
  }
  for (const _ of [1, 2]) {
    const daemon = createDaemon({ redis: cluster.url, roles: ['mover'] });
    ends.push(daemon.stop);
    await daemon.start();
  }
  const many = Array.from({ length: JOBS / 2 }, (_, nth) => ({ id: `j${nth}`, data: {} }));
  const beganMs = performance.now();
  await Promise.all(queues.map((queue) => client.scheduleMany(queue, many)));
  await expect.poll(() => seen.starts.length, patience).toBeGreaterThan(JOBS / 4);
  await failOver(replica);
  await expect.poll(() => new Set(seen.starts).size, patience).toBe(JOBS);
  expect(seen.most).toBeLessThanOrEqual(PLACES);
  // 1 of the burst, 7 that 350 ms allow, and 50 ms for each of the others.
  expect(Math.max(...seen.times) - beganMs).toBeGreaterThan((JOBS - 8) * 50);
  await expect
    .poll(async () => (await client.limits.list()).map(({ name, lent }) => [name, lent]), patience)
    .toEqual([
      [pace, 0],
      [places, 0],
    ]);
});
