/** Workers over HTTP where Redis is a cluster, and behind Sentinels: a failover costs a lease at most, and loses no job. */
import { afterEach, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { ended, jobsIn, RemoteWorker, type Served } from '../../support/remote.ts';
import { replicated, startCluster, startSentinel, until } from '../../support/topology-lite.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const ids = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}${at}`);

async function play(url: string, partitions: number) {
  const queue = defineQueue('mail', { partitions });
  const producer = createClient({ redis: url, retryBudget: '30s', doneWindow: '2m' });
  const http = { port: 0, work: 'on' as const };
  const daemon = createDaemon({ redis: url, roles: ['mover', 'http'], http, worker: { jobLease: 2000 } });
  ends.push(producer.close, daemon.stop);
  await daemon.start();
  const { host, port } = daemon.http() ?? { host: '', port: 0 };
  const at: Served = { url: `http://${host}:${port}`, daemon };
  const worker = new RemoteWorker(() => 'mail');
  const done = new Set<string>();
  /** Calls as a client does, again until it is answered. */
  const answered = async (verb: string, body: object) => {
    let answer = await worker.call(at, verb, body);
    while (answer.status >= 500)
      answer = await worker.call(at, verb, { ...body, ...(verb === 'claim' && { again: true }) });
    return answer;
  };
  const work = async (count: number) => {
    while (done.size < count) {
      worker.seq += 1;
      const jobs = jobsIn(await answered('claim', { seq: worker.seq, max: 10, wait: '1s' }));
      const settled = await answered('settle', { runs: jobs.map((job) => ended(job)) });
      for (const [nth, word] of settled.body.results.entries()) if (word !== 'fenced') done.add(jobs[nth]?.id ?? '');
    }
  };
  const send = (some: readonly string[]) =>
    producer.scheduleMany(
      queue,
      some.map((id) => ({ id, data: null, delay: 0 })),
    );
  return { send, work, done, at, worker };
}

test('in a cluster the jobs of all partitions are claimed, and completed where they are', {
  timeout: 240_000,
}, async () => {
  const cluster = await startCluster({ replicas: false });
  ends.push(cluster.stop);
  const { send, work, done } = await play(cluster.url, 9);
  await send(ids(100, 'a'));
  await work(100);
  expect([...done].toSorted()).toEqual(ids(100, 'a').toSorted());
});

test('behind sentinels a worker goes on with the new primary, and what it held is done or comes again', {
  timeout: 240_000,
}, async () => {
  const place = await startSentinel({ sentinels: 3 });
  ends.push(place.stop);
  const { send, work, done, at, worker } = await play(place.url, 2);
  await send(ids(20, 'a'));
  await work(15);
  await worker.claim(at, { max: 3, wait: '1s' });
  await replicated(place.primary);
  await place.failover();
  await until(async () => String(await place.primary.client.call('ROLE')).startsWith('slave'));
  await send(ids(20, 'b'));
  await work(40);
  expect([...done].toSorted()).toEqual([...ids(20, 'a'), ...ids(20, 'b')].toSorted());
});
