/**
 * Debounced jobs and sets with several servers: six partitions on the nodes of a cluster, a slot that moves key by key, a replica
 * that takes over in a cluster, and one that takes over behind a sentinel. Workers, leaders and callers go on all the time.
 */
import { describe, expect, test } from 'vitest';
import type { Client } from '../../../src/client/client.ts';
import type { SetEnds } from '../../../src/job/job.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { slotOf } from '../../../src/redis/connection/cluster/nodes.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { long, patience, useCluster, useCrews, useSentinel } from '../../support/topology-crew.ts';
import { beginMove, failOver, until } from '../../support/topology-lite.ts';

const PARTITIONS = 6;
const MEMBERS = 12;
const crews = useCrews();

interface Row {
  readonly nth: number;
}

/** A client, a leader and a worker, which tells what it runs. */
async function crewOf(url: string, name: string) {
  const queue = defineQueue<Row>(name, { partitions: PARTITIONS });
  const started = new Map<string, number[]>();
  const called: SetEnds[] = [];
  let gate: Promise<void> = Promise.resolve();
  const client = await crews.gather({
    ...{ url, queue },
    async handler({ id, data, set }) {
      if (set) called.push(set);
      started.set(id, [...(started.get(id) ?? []), data.nth]);
      await gate;
    },
  });
  /** Handlers that begin from now on end when it is called. */
  const hold = () => {
    let release = () => {};
    gate = new Promise((resolve) => {
      release = resolve;
    });
    return () => release();
  };
  return { queue, client, started, called, hold };
}
type Crew = Awaited<ReturnType<typeof crewOf>>;

/** Ids of jobs in each partition. */
const ids = Array.from({ length: 3 * PARTITIONS }, (_, nth) => `d${nth}`);
const debounce = { wait: '100ms', max: '2s' };
const callAll = ({ client, queue }: Crew, nth: number) =>
  client.scheduleMany(
    queue,
    ids.map((id) => ({ data: { nth }, id, debounce })),
  );
const lastOf = ({ started }: Crew) => ids.map((id) => started.get(id)?.at(-1));

async function putSets({ client, queue }: Crew, names: readonly string[]): Promise<void> {
  for (const set of names) {
    await client.sets.begin(queue, set, { then: { data: { nth: -1 } } });
    const jobs = Array.from({ length: MEMBERS }, (_, nth) => ({ data: { nth }, id: `${nth}`, set, delay: nth * 20 }));
    await client.scheduleMany(queue, jobs);
  }
}
const sealAll = ({ client, queue }: Crew, names: readonly string[]) =>
  Promise.all(names.map((set) => client.sets.seal(queue, set)));
const counts = (called: readonly SetEnds[]) =>
  Object.fromEntries(called.map(({ name, ...said }) => [name, said])) as Record<string, Omit<SetEnds, 'name'>>;
const allDone = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { done: MEMBERS, dead: 0, cancelled: 0, expired: 0 }]));
const inEachPartition = (prefix: string) =>
  Array.from({ length: PARTITIONS }, (_, partition) => {
    for (let nth = 0; ; nth += 1)
      if (partitionOf(`{set:${prefix}${nth}}x`, PARTITIONS) === partition) return `${prefix}${nth}`;
  });

describe('in a cluster', () => {
  const cluster = useCluster();

  test('calls and sets of all partitions are as in one server', long, async () => {
    const crew = await crewOf(cluster().url, 'all');
    const slots = ids.map((id) => slotOf(keysOf('all', partitionOf(id, PARTITIONS)).jobs));
    expect(new Set(slots).size).toBe(PARTITIONS);
    const first = await callAll(crew, 1);
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set(['scheduled']));
    await callAll(crew, 2);
    await expect.poll(() => lastOf(crew), patience).toEqual(ids.map(() => 2));
    const names = inEachPartition('s');
    await putSets(crew, names);
    expect((await crew.client.sets.list(crew.queue)).sets.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    await sealAll(crew, names);
    await expect.poll(() => counts(crew.called), patience).toEqual(allDone(names));
    expect(crew.called).toHaveLength(PARTITIONS);
  });

  test(
    'while a slot moves key by key, newer data of a running job and the end of a set are late, and not lost',
    long,
    async () => {
      const crew = await crewOf(cluster().url, 'moves');
      const { client, queue, started, hold, called } = crew;
      const [set = ''] = inEachPartition('m');
      const partition = partitionOf(`{set:${set}}x`, PARTITIONS);
      const id = ids.find((one) => partitionOf(one, PARTITIONS) === partition) ?? '';
      await putSets(crew, [set]);
      await expect.poll(async () => (await client.count(queue, { set })).count, patience).toBe(0);
      const release = hold();
      await client.schedule(queue, { nth: 0 }, { id: 'last', set });
      await client.schedule(queue, { nth: 1 }, { id, debounce });
      await expect.poll(() => [started.get(id), started.get(`{set:${set}}last`)], patience).toEqual([[1], [0]]);

      const move = await beginMove([...cluster().masters, ...cluster().replicas], keysOf('moves', partition).jobs);
      await move.carryOne();
      const newer = client.schedule(queue, { nth: 2 }, { id, debounce });
      const sealing = client.sets.seal(queue, set);
      await until(async () => (await move.refusals('TRYAGAIN')) > 0);
      release();
      await move.end();
      expect(['behind', 'scheduled']).toContain((await newer).status);
      expect((await sealing).status).toBe('sealed');
      await expect.poll(() => started.get(id)?.at(-1), patience).toBe(2);
      await expect.poll(() => counts(called)[set]?.done, patience).toBe(MEMBERS + 1);
      expect((await client.sets.list(queue)).sets).toEqual([]);
    },
  );

  test('a replica that takes over goes on with them', long, async () => {
    const crew = await crewOf(cluster().url, 'taken');
    const names = inEachPartition('t');
    await putSets(crew, names);
    await callAll(crew, 1);
    const calls = keepCalling(crew);
    await failOver(cluster().replicas[0] ?? cluster().masters[0] ?? never());
    await sealAll(crew, names);
    const last = await calls.stop();
    await expect.poll(() => lastOf(crew), patience).toEqual(ids.map(() => last));
    await expect.poll(() => counts(crew.called), patience).toEqual(allDone(names));
  });
});

describe('behind a sentinel', () => {
  const place = useSentinel();

  /** What the old primary took in the moment of the failover is lost: a call that is durable is not, nor is its end told too soon. */
  test(
    'durable calls are in a later start, and each set has its callback, although the primary changes',
    long,
    async () => {
      const crew = await crewOf(place().url, 'watched');
      const durable = crews.clientOf(place().url, { durability: 'replicated', durabilityTimeout: '10s' });
      const safe = { ...crew, client: durable };
      const names = inEachPartition('w');
      await putSets(safe, names);
      const calls = keepCalling(safe);
      await until(() => calls.count() > 2);
      await place().failover();
      await until(() => calls.count() > 6);
      const last = await calls.stop();
      await sealAll(safe, names);
      await expect.poll(() => lastOf(crew), patience).toEqual(ids.map(() => last));
      const sets = async () => (await crew.client.sets.list(crew.queue)).sets.length;
      await expect.poll(sets, patience).toBe(0);
      await expect.poll(() => Object.keys(counts(crew.called)).toSorted(), patience).toEqual(names.toSorted());
      for (const { done } of crew.called) expect(done).toBe(MEMBERS);
    },
  );
});

const keysOf = (queue: string, partition: number) => partitionKeys({ namespace: 'duestream', queue, partition });
function never(): never {
  throw new Error('the cluster has no nodes');
}

/** Calls for all ids, one round after the other, until it is stopped. @returns of `stop`: the data of the last round */
function keepCalling(crew: Crew & { readonly client: Client }) {
  let isOver = false;
  let nth = 1;
  const rounds = (async () => {
    while (!isOver) {
      nth += 1;
      await callAll(crew, nth);
    }
  })();
  return {
    count: () => nth,
    async stop() {
      isOver = true;
      await rounds;
      return nth;
    },
  };
}
