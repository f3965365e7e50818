/**
 * Two rates with several servers: partitions on the nodes of a cluster, one of which moves key by key, a master that is killed, and
 * a replica that takes over behind a sentinel. Turns of the slower rate come back after hours, so whatever starts is its burst.
 */
import { describe, expect, test } from 'vitest';
import { partitionOf } from '../../../src/job/job-id.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { long, patience, useCluster, useCrews, useSentinel } from '../../support/topology-crew.ts';
import { beginMove, replicated, until } from '../../support/topology-lite.ts';

const PARTITIONS = 4;
const JOBS = 40;
const crews = useCrews();
const ids = Array.from({ length: JOBS }, (_, nth) => `n${nth}`);
const ratesOf = (burst: number) => [
  { limit: 200, per: '1s', burst: 20 },
  { limit: 1, per: '1h', burst },
];

/** A client, a leader and two workers, where so many of all jobs have started as the slower rate has a burst. */
async function crewOf(url: string, name: string) {
  const queue = defineQueue<object>(name, { partitions: PARTITIONS, rate: ratesOf(8) });
  const starts: string[] = [];
  const client = await crews.gather({
    ...{ url, queue, workers: 2, slots: 10, handler: ({ id }: { readonly id: string }) => void starts.push(id) },
    client: { durability: 'replicated', durabilityTimeout: '10s' },
  });
  await client.scheduleMany(
    queue,
    ids.map((id) => ({ id, data: {} })),
  );
  /** So many have started, and all others wait. */
  const haveStarted = async (count: number) => {
    await expect
      .poll(() => client.queues.get(name), patience)
      .toMatchObject({ waiting: JOBS - count, ready: 0, running: 0 });
    expect(starts).toHaveLength(count);
  };
  await haveStarted(8);
  return { queue, client, starts, haveStarted };
}

/** Each partition remembers what was used of both: of a burst that is larger by four each lets one more start. */
async function goOn({ queue, client, starts, haveStarted }: Awaited<ReturnType<typeof crewOf>>): Promise<void> {
  await client.queues.set(queue.name, { rate: ratesOf(12) });
  await haveStarted(12);
  await client.queues.set(queue.name, { rate: '1000/s' });
  await haveStarted(JOBS);
  expect(starts.toSorted()).toEqual(ids.toSorted());
}

describe('in a cluster', () => {
  const cluster = useCluster();

  test('both hold while a slot moves key by key, and after a master was killed', long, async () => {
    expect(new Set(ids.map((id) => partitionOf(id, PARTITIONS))).size).toBe(PARTITIONS);
    const { url, masters, replicas } = cluster();
    const crew = await crewOf(url, 'mails');
    const { meta } = partitionKeys({ namespace: 'duestream', queue: 'mails', partition: 0 });
    const move = await beginMove([...masters, ...replicas], meta);
    await move.carryOne();
    await until(async () => (await move.refusals('TRYAGAIN')) > 0);
    await move.end();
    await crew.haveStarted(8);
    // What it let start is on its replica, as nothing starts any more.
    await replicated(move.to);
    const heir = replicas[masters.indexOf(move.to)];
    if (!heir) throw new Error('the cluster has no replicas');
    await move.to.kill('SIGKILL');
    await until(async () => String(await heir.client.call('ROLE')).startsWith('master'));
    await crew.haveStarted(8);
    await goOn(crew);
  });
});

describe('behind a sentinel', () => {
  const place = useSentinel();

  test('both hold although the primary changes', long, async () => {
    const crew = await crewOf(place().url, 'watched');
    const { primary, failover } = place();
    await replicated(primary);
    await failover();
    // What it takes before it is told is lost.
    await until(async () => String(await primary.client.call('ROLE')).startsWith('slave'));
    await crew.haveStarted(8);
    await goOn(crew);
  });
});
