/** Runs that workers over HTTP lose: taken back after their lease, whether the worker lives or not, and handed to the next poll. */
import { expect, test } from 'vitest';
import { defineQueue } from '../../../src/job/queue.ts';
import type { ClaimedJob } from '../../../src/remote/claimed-job.ts';
import { ended, LEASE_MS, type RemoteWorker, type Served, useRemote } from '../../support/remote.ts';

const remote = useRemote();

/** Beats for these runs until it is told to stop. */
function beating(worker: RemoteWorker, at: Served, ...jobs: readonly ClaimedJob[]): () => Promise<void> {
  let isOver = false;
  const loop = (async () => {
    while (!isOver) await worker.beat(at, ...jobs.map(({ run }) => ({ run })));
  })();
  const stop = async () => {
    isOver = true;
    await loop;
  };
  remote.onEnd(stop);
  return stop;
}

const one = (jobs: readonly ClaimedJob[]): ClaimedJob => {
  const [job] = jobs;
  if (!job) throw new Error('there is a job');
  return job;
};

test('a run that nobody extends goes to the next claim, with a crash, and the first start is fenced', async () => {
  await remote.schedule({ id: 'a' });
  const [dead, alive] = [remote.worker('dead'), remote.worker('alive')];
  const lost = one(await dead.jobs(remote.at(0), { wait: '5s' }));
  const found = one(await alive.jobs(remote.at(0), { wait: '30s' }));
  expect(found).toMatchObject({ id: 'a', attempt: 2, crashes: 1 });
  expect(Number(found.token)).toBeGreaterThan(Number(lost.token));
  expect(await dead.settle(remote.at(0), ended(lost))).toEqual(['fenced']);
  expect(await dead.beat(remote.at(0), { run: lost.run })).toEqual(['fenced']);
  expect(await alive.settle(remote.at(0), ended(found))).toEqual(['ok']);
  expect(remote.told('runs.reclaimed')).toMatchObject([{ from: dead.name, to: alive.name, ids: ['a'] }]);
});

test('a lost run of a worker that lives goes too, and the runs that it extends stay', async () => {
  await remote.schedule({ id: 'a' }, { id: 'b' });
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(2);
  const [worker, other] = [remote.worker('one'), remote.worker('two')];
  const [seen, unseen] = await worker.jobs(remote.at(0));
  if (!seen || !unseen) throw new Error('there are two jobs');
  const stop = beating(worker, remote.at(0), seen);
  const found = one(await other.jobs(remote.at(0), { wait: '30s' }));
  expect(found).toMatchObject({ id: unseen.id, crashes: 1 });
  await stop();
  expect(await worker.settle(remote.at(0), ended(seen))).toEqual(['ok']);
  expect(remote.told('runs.reclaimed')).toMatchObject([{ from: worker.name, count: 1, cause: 'lease' }]);
  await other.settle(remote.at(0), ended(found));
});

test('a worker that beats in time keeps its run for as long as it likes', async () => {
  await remote.schedule({ id: 'a' });
  const [worker, other] = [remote.worker(), remote.worker()];
  const job = one(await worker.jobs(remote.at(0), { wait: '5s' }));
  const stop = beating(worker, remote.at(0), job);
  expect(await other.jobs(remote.at(0), { wait: 4 * LEASE_MS })).toEqual([]);
  await stop();
  expect(await worker.settle(remote.at(0), ended(job))).toEqual(['ok']);
});

test('in a queue with one job of a group at a time no job overtakes one that was handed out and lost', async () => {
  const queue = defineQueue(remote.queue, { perGroup: 1 });
  const client = remote.client();
  for (const id of ['{acme}1', '{acme}2']) await client.schedule(queue, 1, { id, delay: 0 });
  const [dead, alive] = [remote.worker(), remote.worker()];
  expect(one(await dead.jobs(remote.at(0), { wait: '5s' })).id).toBe('{acme}1');
  const first = one(await alive.jobs(remote.at(0), { wait: '30s', max: 1 }));
  expect(first.id).toBe('{acme}1');
  const answered = await alive.claim(remote.at(0), { wait: '5s', max: 1, ends: [ended(first)] });
  expect(answered.body.jobs).toMatchObject([{ id: '{acme}2' }]);
});

test('a job under which workers died goes alone to a worker that runs nothing', async () => {
  const at = await remote.serve({ queues: { [remote.queue]: { crashes: 2 } } });
  remote.onEnd(() => at.daemon.stop());
  await remote.schedule({ id: 'a' }, { id: 'b' });
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(2);
  await remote.worker().jobs(at);
  const found = await remote.worker().jobs(at, { wait: '30s', running: 0 });
  expect(found).toMatchObject([{ crashes: 1, suspect: true }]);
});

test('jobs under which one worker died go together to a worker that runs nothing', async () => {
  const ids = ['a', 'b', 'c'];
  await remote.schedule(...ids.map((id) => ({ id })));
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(3);
  await remote.worker().jobs(remote.at(0));
  const found = await remote.worker().jobs(remote.at(0), { wait: '30s', running: 0 });
  expect(found.map(({ id, crashes, suspect }) => [id, crashes, suspect])).toEqual(ids.map((id) => [id, 1, undefined]));
});

test('those that come before a suspect go first, and the suspect alone after them', async () => {
  const at = await remote.serve({ queues: { [remote.queue]: { crashes: 3 } } });
  remote.onEnd(() => at.daemon.stop());
  await remote.schedule({ id: 'crashed' });
  await remote.worker().jobs(at, { wait: '5s' });
  const third = remote.worker();
  const [crashed] = await third.jobs(at, { wait: '30s' });
  expect(crashed).toMatchObject({ id: 'crashed', crashes: 1 });
  await remote.schedule({ id: 'new' });
  const [fresh] = await third.jobs(at, { wait: '5s', running: 1 });
  expect(fresh).toMatchObject({ id: 'new', crashes: 0 });
  const seen: (readonly [string, number, unknown])[] = [];
  const heir = remote.worker();
  while (seen.length < 2) {
    const jobs = await heir.jobs(at, { wait: '30s', running: 0 });
    expect(jobs).toHaveLength(1);
    for (const job of jobs) {
      seen.push([job.id, job.crashes, job.suspect]);
      expect(await heir.settle(at, ended(job))).toEqual(['ok']);
    }
  }
  expect(seen.toSorted()).toEqual([
    ['crashed', 2, true],
    ['new', 1, undefined],
  ]);
});

test('a run that goes on after its time-out is ended as a failure, although its worker beats', async () => {
  await remote.schedule({ id: 'a', timeout: 100, attempts: 1 });
  const worker = remote.worker();
  const job = one(await worker.jobs(remote.at(0), { wait: '5s' }));
  await expect.poll(() => worker.beat(remote.at(0), { run: job.run })).toEqual(['timeout']);
  expect(remote.told('job.dead')).toMatchObject([{ id: 'a', error: { kind: 'timeout' } }]);
  expect(await worker.beat(remote.at(0), { run: job.run })).toEqual(['gone']);
  expect(await worker.settle(remote.at(0), ended(job))).toEqual(['gone']);
});

test('a daemon that is new takes back what workers lost whose daemon has died', async () => {
  const first = await remote.serve();
  await remote.schedule({ id: 'a' });
  await remote.worker().jobs(first, { wait: '5s' });
  await first.daemon.stop();
  const second = await remote.serve();
  remote.onEnd(() => second.daemon.stop());
  expect(one(await remote.worker().jobs(second, { wait: '30s' }))).toMatchObject({ id: 'a', crashes: 1 });
});

test('of runs that all look lost after Redis stood still, none is taken from a worker that beats', async () => {
  await remote.schedule({ id: 'a' }, { id: 'b' }, { id: 'c' });
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(3);
  const [worker, other] = [remote.worker(), remote.worker()];
  const jobs = await worker.jobs(remote.at(0));
  const stop = beating(worker, remote.at(0), ...jobs);
  // Redis answers nobody for so long.
  await remote.redis.client('PAUSE', 2 * LEASE_MS + 1000, 'ALL');
  await remote.redis.ping();
  expect(await other.jobs(remote.at(0), { wait: 2 * LEASE_MS })).toEqual([]);
  await stop();
  expect(await worker.settle(remote.at(0), ...jobs.map((job) => ended(job)))).toEqual(['ok', 'ok', 'ok']);
});
