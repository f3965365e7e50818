/**
 * Nothing crosses slots. Every call names keys of one partition, of the namespace or of one limit alone, which carry one tag; a
 * real cluster says in which slot each is. That scripts touch no other key is compared with their text in `house-lua.test.ts`,
 * and the flow on a cluster, whose nodes refuse what crosses, counts what they refused.
 */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { slotOf } from '../../src/redis/connection/cluster/nodes.ts';
import { controlKeys, limitKeys, partitionKeys } from '../../src/redis/keys.ts';
import { scriptsByVerb } from '../../src/redis/scripts/script-table.ts';
import { type ClusterOfTests, startCluster } from '../support/topology-lite.ts';

const namespace = 'due';
const ofPartition = partitionKeys({ namespace, queue: 'emails', partition: 5 });
const { beat, session, idempotency, ...shared } = controlKeys(namespace);
const ofLimit = limitKeys(namespace, 'provider');
const ofControl = { ...shared, beat: beat('w-1'), session: session('s'), idempotency: idempotency('k') };
let cluster: ClusterOfTests;

beforeAll(async () => {
  cluster = await startCluster({ replicas: false });
});
afterAll(() => cluster?.stop());

const node = (): Redis => {
  const [first] = cluster.masters;
  if (!first) throw new Error('no cluster');
  return first.client;
};

test.each(Object.entries({ ...ofPartition, 'of another queue': '{a}{b}', ...ofLimit, ...ofControl }))(
  'the slot of %s is the one that Redis says',
  async (_, key) => expect(await node().call('CLUSTER', 'KEYSLOT', key)).toBe(slotOf(key)),
);

describe.each([...scriptsByVerb])('%s', (verb, script) => {
  test('names keys of one slot', () => {
    const names: readonly string[] = script.keys;
    const isLimit = names.some((name) => name in ofLimit);
    const isControl = names.some((name) => !(name in ofPartition)) || verb === 'define';
    const table: Readonly<Record<string, string>> = isLimit ? ofLimit : isControl ? ofControl : ofPartition;
    expect(names.filter((name) => table[name] === undefined)).toEqual([]);
    expect(new Set(names.map((name) => slotOf(table[name] ?? ''))).size).toBe(1);
  });
});

test('keys of two partitions are in different slots, so a mistake would be refused', async () => {
  const other = partitionKeys({ namespace, queue: 'emails', partition: 6 });
  expect(slotOf(other.ready)).not.toBe(slotOf(ofPartition.ready));
  const said = await node()
    .exists(other.ready, ofPartition.ready)
    .catch((error: Error) => error.message);
  expect(said).toMatch(/^CROSSSLOT/);
});
