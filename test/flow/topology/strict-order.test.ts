/**
 * Strict order with several servers: partitions on the nodes of a cluster, a replica that takes over in a cluster, and one that
 * takes over behind a sentinel. Workers, leaders and callers go on all the time, and jobs fail.
 */
import { describe, expect, test } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { long, patience, useCluster, useCrews, useSentinel } from '../../support/topology-crew.ts';
import { failOver, until } from '../../support/topology-lite.ts';

const PARTITIONS = 4;
const STEPS = 12;
const GROUPS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const crews = useCrews();

/** A client, a leader and two workers; every third step of a group fails once. */
async function crewOf(url: string, name: string) {
  const queue = defineQueue<object>(name, {
    partitions: PARTITIONS,
    perGroup: { concurrency: 1, order: 'strict' },
    backoff: fixed('50ms'),
    attempts: 20,
  });
  const starts: string[] = [];
  const client = await crews.gather({
    ...{ url, queue, workers: 2, slots: 4, client: { durability: 'replicated', durabilityTimeout: '10s' } },
    async handler({ id, attempt }) {
      starts.push(id);
      if (Number(id.split('-')[1]) % 3 === 0 && attempt === 1) throw new Error('not yet');
    },
  });
  /** The next steps of each group, each group by calls of its own. */
  const put = async (from: number, to: number) => {
    for (let step = from; step <= to; step += 1) {
      await client.scheduleMany(
        queue,
        GROUPS.map((group) => ({ id: `step-${step}`, data: {}, group })),
      );
    }
  };
  const stepsOf = (group: string) =>
    starts.filter((id) => id.startsWith(`{${group}}`)).map((id) => Number(id.split('-')[1]));
  const isOver = async () => {
    const { count } = await client.count(queue, {});
    return count === 0 && GROUPS.every((group) => stepsOf(group).includes(STEPS));
  };
  return { starts, put, stepsOf, isOver };
}

const inOrder = (steps: readonly number[]) => steps.toSorted((one, other) => one - other);
const all = Array.from({ length: STEPS }, (_, nth) => nth + 1);

describe('in a cluster', () => {
  const cluster = useCluster();

  test('each group keeps its order over retries, also while a replica takes over', long, async () => {
    expect(new Set(GROUPS.map((group) => partitionOf(`{${group}}x`, PARTITIONS))).size).toBe(PARTITIONS);
    const crew = await crewOf(cluster().url, 'steps');
    await crew.put(1, 4);
    const putting = crew.put(5, STEPS);
    const [replica] = cluster().replicas;
    if (!replica) throw new Error('the cluster has no replicas');
    await failOver(replica);
    await putting;
    await expect.poll(crew.isOver, patience).toBe(true);
    for (const group of GROUPS) {
      const steps = crew.stepsOf(group);
      expect(steps).toEqual(inOrder(steps));
      expect([...new Set(steps)]).toEqual(all);
      expect(steps.length).toBeGreaterThanOrEqual(STEPS + STEPS / 3);
    }
  });
});

describe('behind a sentinel', () => {
  const place = useSentinel();

  /** What the old primary took in the moment of the failover is lost, so jobs may run again, from there on in their order. */
  test('each group goes on in its order although the primary changes', long, async () => {
    const crew = await crewOf(place().url, 'watched');
    await crew.put(1, 4);
    const putting = crew.put(5, STEPS);
    await until(() => crew.starts.length > GROUPS.length);
    await place().failover();
    await putting;
    await expect.poll(crew.isOver, patience).toBe(true);
    for (const group of GROUPS) {
      const steps = crew.stepsOf(group);
      const last = all.map((step) => steps.lastIndexOf(step));
      expect(last).not.toContain(-1);
      expect(last).toEqual(inOrder(last));
    }
  });
});
