/** What the rows of the fault matrix do to several servers does what it says: a network in two parts, and slots that move. */
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import type { Node } from '../../../src/embedded/topology.mjs';
import { close, openSubscriber, whenReady } from '../../../src/redis/connection/connect.ts';
import { grow, shrink } from '../../chaos/faults/reshard.mjs';
import { startParted } from '../../chaos/stage/parted.mjs';
import { testBinary } from '../../support/redis-binary.ts';
import { startTestCluster } from '../../support/topology.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

test('a network that is cut leaves clients with the old primary, and repaired there is the new one alone', async () => {
  const group = await startParted({ binary: await testBinary() });
  ends.push(group.close);
  const old = await group.master();
  const [, port = ''] = String(await old.ask('CONFIG', 'GET', 'replica-announce-port')).split(',');
  const client = new Redis(Number(port), '127.0.0.1', { maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  ends.push(() => client.disconnect());
  await client.set('before', '1');
  const replica = group.nodes[1];
  await expect.poll(() => replica?.ask('GET', 'before')).toBe('1');

  group.cut();
  await client.set('meanwhile', '1');
  const named = () =>
    group.master().then(
      ({ name }) => name,
      () => old.name,
    );
  await expect.poll(named).not.toBe(old.name);
  const taken = await group.master();
  await expect.poll(() => taken.role()).toBe('master');
  expect(await client.get('meanwhile')).toBe('1');
  expect([await old.role(), await taken.ask('GET', 'before'), await taken.ask('GET', 'meanwhile')]).toEqual([
    ...['master', '1'],
    null,
  ]);

  group.repair();
  await expect.poll(() => old.role()).toBe('replica');
  await expect.poll(() => old.info('master_link_status')).toBe('up');
  expect(await old.ask('GET', 'meanwhile')).toBeNull();
});

test('slots with their keys move to a primary that comes, and away from one that goes', async () => {
  const cluster = await startTestCluster({ replicas: 0 });
  ends.push(cluster.close);
  const names = Array.from({ length: 60 }, (_, at) => `key-${at}`);
  const slots = await Promise.all(names.map(async (name) => cluster.nodes[0]?.ask('CLUSTER', 'KEYSLOT', name)));
  const owners = () => Promise.all(slots.map((slot) => cluster.masterOf(Number(slot))));
  for (const [at, node] of (await owners()).entries()) await node.ask('SET', names[at] ?? '', `value-${at}`);

  const { node, ...came } = await grow(cluster);
  expect(came.slots).toBeGreaterThan(4000);
  expect(came.keys).toBeGreaterThanOrEqual(3);
  const holds = async () => Number(await node.ask('DBSIZE'));
  expect(await holds()).toBe(came.keys);

  const [first] = cluster.nodes;
  if (!first) throw new Error('the cluster has no nodes');
  const { slots: left } = await shrink(cluster, first);
  expect(left).toBeGreaterThan(4000);
  expect(first.isGone).toBe(true);
  const now = await owners();
  expect(now.includes(first)).toBe(false);
  const values = await Promise.all(now.map((owner, at) => owner.ask('GET', names[at] ?? '')));
  expect(values).toEqual(names.map((_, at) => `value-${at}`));
});

test('subscriptions follow their slots, and are not made anew for each of them that moved', async () => {
  const cluster = await startTestCluster({ replicas: 0 });
  ends.push(cluster.close);
  const subscriber = openSubscriber({ redis: cluster.url, name: 'follows' });
  ends.push(() => close(subscriber));
  const channels = Array.from({ length: 200 }, (_, at) => `channel-${at}`);
  // As workers and daemons do.
  subscriber.on('ready', () => {
    for (const channel of channels) subscriber.ssubscribe(channel).catch(() => undefined);
  });
  await whenReady(subscriber, 60_000);
  const subscribed = async () => {
    const alive = cluster.nodes.filter(({ isGone }) => !isGone);
    const lists = await Promise.all(alive.map((node) => node.ask('PUBSUB', 'SHARDCHANNELS')));
    return [...new Set(lists.flatMap((list) => (Array.isArray(list) ? list.map(String) : [])))].length;
  };
  await expect.poll(subscribed).toBe(channels.length);
  await grow(cluster);
  await expect.poll(subscribed).toBe(channels.length);
  const calls = async (node: Node) =>
    Number(/calls=(\d+)/.exec(await node.info('cmdstat_ssubscribe', 'commandstats'))?.[1] ?? 0);
  const counts = await Promise.all(cluster.nodes.map(calls));
  // Each batch of slots that moves is news once or twice; a storm has tens of thousands of them within a second.
  expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThan(channels.length * 400);
});
