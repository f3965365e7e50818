/** Workers over HTTP where the queue is paused, jobs are late or large, the layout changes, and Redis forgets. */
import { expect, test } from 'vitest';
import { controlKeys } from '../../../src/redis/keys.ts';
import { ended, jobsIn, useRemote } from '../../support/remote.ts';

const remote = useRemote();
const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id);

test('a paused queue hands out nothing, what runs goes on, and a claim that waits is answered when it resumes', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [running] = await worker.jobs(remote.at(0), { wait: '5s' });
  if (!running) throw new Error('there is a job');
  const { queues } = remote.client();
  await queues.pause(remote.queue, { reason: 'test' });
  await remote.schedule({ id: 'b' });
  expect(await worker.jobs(remote.at(0), { wait: '300ms' })).toEqual([]);
  expect(await worker.settle(remote.at(0), ended(running))).toEqual(['ok']);
  const claiming = worker.claim(remote.at(0), { wait: '30s' });
  await queues.resume(remote.queue);
  expect(idsOf(jobsIn(await claiming))).toEqual(['b']);
});

test('a job that came too late is not handed out', async () => {
  const { queues } = remote.client();
  await remote.schedule({ id: 'warm' });
  const worker = remote.worker();
  await worker.jobs(remote.at(0), { wait: '5s' });
  await queues.pause(remote.queue, { reason: 'test' });
  await remote.schedule({ id: 'late', maxLateness: 50 }, { id: 'b' });
  const sinceMs = performance.now();
  await expect.poll(() => performance.now() - sinceMs).toBeGreaterThan(200);
  await queues.resume(remote.queue);
  expect(idsOf(await worker.jobs(remote.at(0), { wait: '10s' }))).toEqual(['b']);
});

test('large jobs come in several claims, and none is lost', async () => {
  const ids = Array.from({ length: 60 }, (_, at) => `large-${at}`);
  const data = 'x'.repeat(20_000);
  await remote.schedule(...ids.map((id) => ({ id, data })));
  await expect.poll(async () => (await remote.picture()).ready?.length).toBe(ids.length);
  const worker = remote.worker();
  const first = await worker.jobs(remote.at(0), { max: 60 });
  expect(first.length).toBeLessThan(60);
  const got = [...first];
  while (got.length < ids.length) got.push(...(await worker.jobs(remote.at(0), { max: 60, wait: '20s' })));
  expect(idsOf(got).toSorted()).toEqual(ids.toSorted());
  expect(new Set(got.map(({ token }) => token)).size).toBe(ids.length);
});

test('a claim that no ledger knows any more is a new one, and what it held comes back after its lease', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [lost] = await worker.jobs(remote.at(0), { wait: '5s' });
  // What a failover to a replica that was behind would leave.
  for (const { keys } of remote.refs) await remote.redis.del(keys.claims);
  const found = await worker.jobs(remote.at(0), { seq: 1, again: true, wait: '30s' });
  expect(found).toMatchObject([{ id: 'a', crashes: 1 }]);
  expect(found[0]?.token).not.toBe(lost?.token);
});

test('a run of a layout that is gone is gone, and the worker claims in the new one', async () => {
  await remote.schedule({ id: 'a' });
  const at = await remote.serve();
  remote.onEnd(() => at.daemon.stop());
  const worker = remote.worker();
  const [job] = await worker.jobs(at, { wait: '5s' });
  if (!job) throw new Error('there is a job');
  expect(await worker.settle(at, ended(job))).toEqual(['ok']);
  await remote.redis.hset(controlKeys('duestream').queues, remote.queue, '{"partitions":1,"generation":1}');
  const later = await remote.serve();
  remote.onEnd(() => later.daemon.stop());
  expect(await worker.settle(later, ended(job))).toEqual(['gone']);
  expect(await worker.jobs(later, { wait: '50ms' })).toEqual([]);
});
