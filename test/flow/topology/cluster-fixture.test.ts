/** The cluster that tests and `dev --cluster` use: real servers that form a whole, fail over, and leave nothing behind. */
import { Cluster } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster as Fixture } from '../../../src/embedded/cluster.mjs';
import { leftOf, startElsewhere } from '../../support/left-behind.ts';
import { startTestCluster } from '../../support/topology.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUps.splice(0).reverse()) await act();
});

/** What each node says of the slots, each once. */
async function views({ nodes }: Fixture): Promise<readonly string[]> {
  const texts = await Promise.all(nodes.map((node) => node.ask('CLUSTER', 'INFO')));
  const of = (text: unknown) =>
    String(text)
      .match(/^cluster_(state|slots_ok|known_nodes|size):\w+/gm)
      ?.join(' ');
  return [...new Set(texts.map((text) => of(text) ?? ''))];
}

describe('a cluster of three primaries and three replicas', () => {
  let cluster: Fixture;
  beforeAll(async () => {
    cluster = await startTestCluster();
  });
  afterAll(() => cluster.close());

  test('is whole in the eyes of every node when it is handed out', async () => {
    expect(await views(cluster)).toEqual([
      'cluster_state:ok cluster_slots_ok:16384 cluster_known_nodes:6 cluster_size:3',
    ]);
    const roles = await Promise.all(cluster.nodes.map((node) => node.role()));
    expect(roles).toEqual([...Array(3).fill('master'), ...Array(3).fill('replica')]);
  });

  test('has an address that names every node, and each slot one primary', async () => {
    expect(cluster.url).toBe(`cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`);
    const owners = await Promise.all([0, 5461, 16383].map((slot) => cluster.masterOf(slot)));
    expect(owners.map(({ name }) => name)).toEqual(['master-1', 'master-2', 'master-3']);
  });

  test('has its replicas in step: a write reaches the one of its primary', async () => {
    const links = await Promise.all(cluster.nodes.slice(3).map((node) => node.info('master_link_status')));
    expect(links).toEqual(['up', 'up', 'up']);
    // The count of replicas that have all writes of this node.
    const offsets = async () => {
      const [master, replica] = [cluster.nodes[0], cluster.nodes[3]];
      return (await master?.info('master_repl_offset')) === (await replica?.info('slave_repl_offset'));
    };
    await expect.poll(offsets).toBe(true);
  });

  test('elects the replica when a primary is killed, and takes that one back as a replica', async () => {
    const killed = await cluster.masterOf(0);
    await cluster.kill(killed);
    const owner = () => cluster.masterOf(0).then(({ name }) => name);
    await expect.poll(owner).toBe('replica-1');
    await cluster.restart(killed);
    await expect.poll(() => killed.role()).toBe('replica');
    await expect.poll(() => views(cluster)).toEqual([expect.stringContaining('cluster_state:ok')]);
  });

  test('has nodes that can be frozen and waken', async () => {
    const [, node] = cluster.nodes;
    if (node === undefined) return expect.fail('there is no second node');
    cluster.pause(node);
    await expect(node.ask('PING')).rejects.toThrow(/no reply/);
    cluster.resume(node);
    expect(await node.ask('PING')).toBe('PONG');
  });

  test('takes in one more primary, which every node knows', async () => {
    const added = await cluster.add();
    expect(added.name).toBe('added-1');
    expect(await added.role()).toBe('master');
    expect(await views(cluster)).toEqual([expect.stringContaining('cluster_known_nodes:7')]);
  });

  test('leaves nothing when it is closed', async () => {
    const traces = { dir: cluster.dir, pids: cluster.nodes.map(({ pid }) => pid) };
    await cluster.close();
    expect(leftOf(traces)).toEqual([]);
    await cluster.close();
  });
});

test('a cluster leaves nothing when who started it is killed', async () => {
  const { parent, ...traces } = await startElsewhere('cluster', 'startCluster');
  cleanUps.push(() => parent.kill('SIGKILL'));
  expect(leftOf(traces)).toHaveLength(7);
  parent.kill('SIGKILL');
  await expect.poll(() => leftOf(traces)).toEqual([]);
});

test('with TLS and access rules only a user that trusts its authority gets in', async () => {
  const cluster = await startTestCluster({ tls: true, acl: true });
  cleanUps.push(() => cluster.close());
  expect(cluster.url).toMatch(/^clusters:\/\/app:secret-of-app@127\.0\.0\.1:\d+,/);
  const connect = (options: object) => {
    const seeds = cluster.nodes.map(({ host, port }) => ({ host, port }));
    const client = new Cluster(seeds, { clusterRetryStrategy: () => null, redisOptions: options });
    client.on('error', () => undefined);
    cleanUps.push(() => client.disconnect());
    return client;
  };
  const tls = { ca: cluster.ca };
  const app = { username: 'app', password: 'secret-of-app' };
  const client = connect({ tls, ...app });
  for (const key of ['a', 'b', 'c', 'd']) expect(await client.set(key, 'x')).toBe('OK');
  await expect(connect({ tls }).set('a', 'x')).rejects.toThrow();
  await expect(connect({ tls: {}, ...app }).set('a', 'x')).rejects.toThrow();
  await expect(connect(app).set('a', 'x')).rejects.toThrow();
});
