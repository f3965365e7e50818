/** Durable calls in a cluster: each node speaks for the writes of its own connection. Real nodes. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createProducer, type Producer, type ProducerOptions } from '../../../src/client/producer.ts';
import { defineQueue } from '../../../src/core/queue.ts';
import { type ClusterOfTests, replicated, type Server, startCluster, until } from '../../support/topology-lite.ts';

const queue = defineQueue('invoices', { partitions: 6 });
const at = new Date(Date.UTC(2031, 0, 1));
const ends: (() => Promise<void>)[] = [];
let cluster: ClusterOfTests;

beforeAll(async () => {
  cluster = await startCluster();
}, 120_000);
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => cluster?.stop());

function open(options: Partial<ProducerOptions> = {}): Producer {
  const producer = createProducer({
    ...{ redis: cluster.url, durability: 'replicated', durabilityTimeout: '10s', retryBudget: '60s' },
    ...options,
  });
  ends.push(() => producer.stop());
  return producer;
}

const jobs = (prefix: string) => Array.from({ length: 60 }, (_, index) => ({ id: `${prefix}${index}`, data: {}, at }));

/** Jobs that a server holds itself, as a master or a replica. */
async function heldBy({ client }: Server): Promise<number> {
  const keys = await client.keys('duestream:v1:{invoices:*:jobs');
  // Without READONLY a replica sends readers to its master.
  await client.call('READONLY');
  const counts = await Promise.all(keys.map((key) => client.hlen(key)));
  return counts.reduce((sum, count) => sum + count, 0);
}

const heldByAll = async (servers: readonly Server[]) =>
  (await Promise.all(servers.map(heldBy))).reduce((sum, count) => sum + count, 0);

test('a list over all partitions is on every replica when it resolves, also after a failover', async () => {
  const producer = open();
  await producer.scheduleMany(queue, jobs('a'));
  expect(await heldByAll(cluster.replicas)).toBe(60);
  const [master, replica] = [cluster.masters[0], cluster.replicas[0]];
  if (!master || !replica) throw new Error('the cluster has no first shard');
  await replicated(master);
  await replica.client.call('CLUSTER', 'FAILOVER');
  await until(async () => String(await master.client.call('ROLE')).startsWith('slave'));
  await until(async () => /slave0:.*state=online/.test(await replica.client.info('replication')));
  await producer.scheduleMany(queue, jobs('b'));
  expect(await heldByAll([master, ...cluster.replicas.slice(1)])).toBe(120);
  expect(await producer.cancelMany(queue, ['a0', 'b0'])).toMatchObject([
    { status: 'cancelled' },
    { status: 'cancelled' },
  ]);
}, 120_000);

test('one shard without a replica is enough to refuse it, and is named', async () => {
  const [lone, master] = [cluster.replicas[2], cluster.masters[2]];
  if (!lone || !master) throw new Error('the cluster has no third shard');
  await lone.kill('SIGKILL');
  await until(async () => /connected_slaves:0/.test(await master.client.info('replication')));
  const message = `127.0.0.1:${master.port} cannot give the durability that is asked for: it has 0 replicas`;
  await expect(open().ready()).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining(message) });
}, 120_000);
