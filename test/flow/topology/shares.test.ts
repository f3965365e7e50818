/**
 * 64 partitions on three primaries, with four daemons, and twenty workers in four processes: who leads, who is called, and
 * over how many connections.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { close, openCommands, whenReady } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { createAssignment } from '../../../src/worker/fetch/assignment.ts';
import { useCli } from '../../support/cli.ts';
import { root } from '../../support/repository.ts';
import { type ClusterOfTests, startCluster, until } from '../../support/topology-lite.ts';

const PARTITIONS = 64;
const DAEMONS = 4;
const PROCESSES = 4;
const WORKERS = 20;
const EVEN = 1.5;
const queue = defineQueue('shares', { partitions: PARTITIONS });
const refs = Array.from({ length: PARTITIONS }, (_, partition) =>
  partitionRef('duestream', { queue: 'shares', partition, layoutGeneration: 0 }),
);
const cli = useCli();
const ends: (() => unknown)[] = [];
let cluster: ClusterOfTests;

beforeAll(async () => {
  await build();
  cluster = await startCluster({ replicas: false });
}, 180_000);
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => cluster?.stop());

/** How often each of these is there. */
function tally(names: readonly string[]): readonly number[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.values()];
}

const unevenness = (counts: readonly number[], of: number) =>
  (Math.max(...counts) * of) / counts.reduce((sum, count) => sum + count, 0);

test('leadership and reading are even, and a worker has two connections to each primary', async () => {
  const commands = openCommands({ redis: cluster.url, name: 'looks' });
  ends.push(() => close(commands));
  await whenReady(commands, 60_000);
  const producer = createClient({ redis: cluster.url });
  ends.push(producer.close);
  await producer.schedule(queue, {}, { delay: '1d' });
  const daemons = Array.from({ length: DAEMONS }, () => createDaemon({ redis: cluster.url, roles: ['mover'] }));
  const ran: string[] = [];
  ends.push(...daemons.map(({ stop }) => stop));
  await Promise.all(daemons.map((daemon) => daemon.start()));
  const processes = Array.from({ length: PROCESSES }, () => startWorkers((id) => ran.push(id)));
  ends.unshift(...processes.map(({ end }) => end));
  const workers = (await Promise.all(processes.map(({ consumers }) => consumers))).flat();
  expect(new Set(workers).size).toBe(WORKERS);

  await until(async () => {
    const terms = await Promise.all(refs.map(({ keys }) => commands.get(keys.leader)));
    const leaders = terms.flatMap((term) => term?.split(':')[0] ?? []);
    return leaders.length === PARTITIONS && unevenness(tally(leaders), DAEMONS) <= EVEN;
  });

  // Everybody comes to the same from the same heartbeats, so it can be asked from outside.
  const shares = await Promise.all(
    workers.map(async (consumer) => {
      const of = { commands, namespace: 'duestream', queue: 'shares', consumer, refs, everyMs: 0, clock: systemClock };
      const assignment = createAssignment(of);
      await assignment.refresh();
      return refs.filter(assignment.isMine);
    }),
  );
  expect(
    unevenness(
      shares.map((share) => share.length),
      WORKERS,
    ),
  ).toBeLessThanOrEqual(EVEN);
  const expected = refs.map((ref) => shares.filter((share) => share.includes(ref)).length);
  expect(Math.min(...expected)).toBeGreaterThanOrEqual(2);
  await until(async () => {
    const heard = await Promise.all(refs.map(({ keys }) => subscribersOf(keys.work)));
    return heard.join() === expected.join();
  });

  const lists = await Promise.all(cluster.masters.map(({ client }) => client.call('CLIENT', 'LIST')));
  const count = (name: string) => lists.map((list) => String(list).split(` name=duestream:${name}:`).length - 1);
  const each = cluster.masters.map(() => WORKERS);
  expect({ worker: count('worker'), calls: count('calls') }).toEqual({ worker: each, calls: each });
  const { out } = await cli.run(['queues', 'workers', '--redis', cluster.url, '--json']);
  const shown: { connections: number; pid: number }[] = JSON.parse(out).workers;
  expect(shown.map(({ connections }) => connections)).toEqual(workers.map(() => 2 * cluster.masters.length));
  expect(tally(shown.map(({ pid }) => String(pid)))).toEqual(processes.map(() => WORKERS / PROCESSES));

  const ids = Array.from({ length: 400 }, (_, at) => `s-${at}`);
  await producer.scheduleMany(
    queue,
    ids.map((id) => ({ id, data: {}, delay: 50 })),
  );
  await until(() => ids.every((id) => ran.includes(id)));
  expect(ran.toSorted()).toEqual(ids.toSorted());
}, 240_000);

/** A process with its share of the workers. Rejects when it ends before all have started. */
function startWorkers(onRun: (id: string) => void) {
  const script = join(root, 'test', 'fixtures', 'workers-of-one-process.mjs');
  const child: ChildProcess = fork(script, [cluster.url, 'shares', `${PARTITIONS}`, `${WORKERS / PROCESSES}`]);
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const consumers = new Promise<readonly string[]>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the process of the workers ended')));
    child.on('message', (told: { readonly consumers?: readonly string[]; readonly ran?: string }) => {
      if (told.consumers) resolve(told.consumers);
      if (told.ran !== undefined) onRun(told.ran);
    });
  });
  return {
    consumers,
    end() {
      child.kill('SIGKILL');
      return gone;
    },
  };
}

async function subscribersOf(channel: string): Promise<number> {
  const counts = await Promise.all(
    cluster.masters.map(({ client }) => client.call('PUBSUB', 'SHARDNUMSUB', channel).catch(() => [channel, 0])),
  );
  return counts.reduce<number>((sum, reply) => sum + Number(String(reply).split(',').at(-1)), 0);
}
