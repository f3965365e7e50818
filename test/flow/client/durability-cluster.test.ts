/** Durable calls in a cluster: each node speaks for the writes of its own connection. Real nodes. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Client, type ClientOptions, createClient } from '../../../src/client/client.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import {
  beginMove,
  type ClusterOfTests,
  failOver,
  replicated,
  type Server,
  startCluster,
  until,
} from '../../support/topology-lite.ts';

const queue = defineQueue('invoices', { partitions: 6 });
const at = new Date(Date.UTC(2031, 0, 1));
const ends: (() => Promise<void>)[] = [];
let cluster: ClusterOfTests;

beforeAll(async () => {
  cluster = await startCluster();
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => cluster?.stop());

function open(options: Partial<ClientOptions> = {}): Client {
  const producer = createClient({
    redis: cluster.url,
    durability: 'replicated',
    durabilityTimeout: '10s',
    retryBudget: '60s',
    ...options,
  });
  ends.push(() => producer.close());
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
  await failOver(replica);
  await until(async () => /slave0:.*state=online/.test(await replica.client.info('replication')));
  await producer.scheduleMany(queue, jobs('b'));
  expect(await heldByAll([master, ...cluster.replicas.slice(1)])).toBe(120);
  expect(await producer.cancel(queue, ['a0', 'b0'])).toMatchObject([{ status: 'cancelled' }, { status: 'cancelled' }]);
});

test('while a slot moves key by key, a durable call waits, and counts on its new node and the replica there', async () => {
  const producer = open();
  await producer.schedule(queue, {}, { id: 'here', at });
  const ref = partitionRef('duestream', { queue: 'invoices', partition: partitionOf('here', 6), layoutGeneration: 0 });
  const servers = [...cluster.masters, ...cluster.replicas];
  const move = await beginMove(servers, ref.keys.jobs);
  await move.carryOne();
  // Some keys are there, some are not, and then none is: TRYAGAIN, then ASK.
  const tag = idWithin(ref.partition);
  const waiting = producer.schedule(queue, {}, { id: tag, at });
  await until(async () => (await move.refusals('TRYAGAIN')) > 0);
  await move.carryRest();
  await until(async () => (await move.refusals('ASK')) > 0);
  await move.end();
  expect((await waiting).status).toBe('scheduled');
  const roles = await Promise.all(servers.map(async (one) => ({ one, role: String(await one.client.call('ROLE')) })));
  const replica = roles.find(({ role }) => role.startsWith('slave') && role.includes(`,${move.to.port},`))?.one;
  await replica?.client.call('READONLY');
  expect(await replica?.client.hexists(ref.keys.jobs, `j:${tag}`)).toBe(1);
});

/** An id whose job is in this partition. */
function idWithin(partition: number): string {
  for (let nth = 0; ; nth += 1) if (partitionOf(`m${nth}`, 6) === partition) return `m${nth}`;
}

test('one shard without a replica is enough to refuse it, and is named', async () => {
  const [lone, master] = [cluster.replicas[2], cluster.masters[2]];
  if (!lone || !master) throw new Error('the cluster has no third shard');
  await lone.kill('SIGKILL');
  await until(async () => /connected_slaves:0/.test(await master.client.info('replication')));
  const message = `127.0.0.1:${master.port} cannot give the durability that is asked for: it has 0 replicas`;
  await expect(open().ready()).rejects.toMatchObject({ code: 'refused', message: expect.stringContaining(message) });
});
