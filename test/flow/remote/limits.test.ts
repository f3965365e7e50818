/**
 * Queues with limits whose jobs workers over HTTP claim: strict order over retries, lost runs and workers that leave, and two rates.
 * The worker makes each call by hand, so that all of them are seen.
 */
import { expect, test } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import type { ClaimedJob } from '../../../src/remote/claimed-job.ts';
import { ended, type RemoteWorker, useRemote } from '../../support/remote.ts';

const remote = useRemote({ daemons: 2 });
const STRICT = { perGroup: { concurrency: 1, order: 'strict' } } as const;
/** Ten in 100 ms, and six at once with one in a minute after that. */
const TWO_RATES = [
  { limit: 100, per: '1s', burst: 2 },
  { limit: 1, per: '1m', burst: 6 },
] as const;

/** By their ids step-10 would start before step-2. */
const stepsOf = (group: string, ...steps: readonly number[]) =>
  steps.map((step) => ({ id: `step-${step}`, data: {}, group }));

/** The jobs of the next claim that has any. */
async function claimed(worker: RemoteWorker, at: number, wait = '30s'): Promise<ClaimedJob> {
  const [job, ...more] = await worker.jobs(remote.at(at), { wait, max: 5 });
  if (!job) throw new Error('there is a job');
  expect(more).toEqual([]);
  return job;
}

test('in strict order a job that failed, was lost or was given back starts again before the next of its group', async () => {
  const queue = defineQueue(remote.queue, STRICT);
  const client = remote.client();
  await client.scheduleMany(
    queue,
    stepsOf('a', 1, 2, 3, 10).map((step) => ({ ...step, backoff: fixed('200ms') })),
  );
  const [one, two, three] = [remote.worker('one'), remote.worker('two'), remote.worker('three')];
  const seen: string[] = [];
  const next = async (worker: RemoteWorker, at: number) => {
    const job = await claimed(worker, at);
    seen.push(`${job.id}#${job.attempt}`);
    return job;
  };

  const failed = await next(one, 0);
  const end = { end: 'fail', error: 'not yet' };
  expect(await one.settle(remote.at(1), ended(failed, end))).toEqual(['ok']);
  const again = await next(two, 1);
  expect(await two.settle(remote.at(0), ended(again))).toEqual(['ok']);

  // Nobody beats for this one.
  const lost = await next(one, 0);
  const found = await next(two, 1);
  expect(found).toMatchObject({ id: lost.id, crashes: 1 });
  expect(await one.settle(remote.at(0), ended(lost))).toEqual(['fenced']);
  expect(await two.settle(remote.at(1), ended(found))).toEqual(['ok']);

  const given = await next(two, 0);
  expect(await two.call(remote.at(1), 'leave')).toMatchObject({ status: 200, body: { given: 1 } });
  const taken = await next(three, 1);
  expect(taken).toMatchObject({ id: given.id, failures: 0, crashes: 0 });
  // With its end it claims the last one.
  const [last] = await three.jobs(remote.at(0), { wait: '30s', ends: [ended(taken)] });
  expect(last?.id).toBe('{a}step-10');
  expect(await three.settle(remote.at(0), ended(last ?? taken))).toEqual(['ok']);
  expect(seen).toEqual(['{a}step-1#1', '{a}step-1#2', '{a}step-2#1', '{a}step-2#2', '{a}step-3#1', '{a}step-3#2']);
});

test('in strict order groups do not wait for each other, and one claim has no two jobs of a group', async () => {
  const client = remote.client();
  await client.scheduleMany(defineQueue(remote.queue, STRICT), [...stepsOf('a', 1, 2), ...stepsOf('b', 1, 2)]);
  const worker = remote.worker();
  const jobs: ClaimedJob[] = [];
  while (jobs.length < 2) jobs.push(...(await worker.jobs(remote.at(0), { wait: '30s', max: 5 })));
  expect(jobs.map(({ id }) => id).toSorted()).toEqual(['{a}step-1', '{b}step-1']);
  expect(await worker.jobs(remote.at(1), { wait: 0, ends: [] })).toEqual([]);
  expect(await worker.settle(remote.at(0), ...jobs.map((job) => ended(job)))).toEqual(['ok', 'ok']);
  const rest: ClaimedJob[] = [];
  while (rest.length < 2) rest.push(...(await worker.jobs(remote.at(0), { wait: '30s', max: 5 })));
  expect(rest.map(({ id }) => id).toSorted()).toEqual(['{a}step-2', '{b}step-2']);
  await worker.settle(remote.at(0), ...rest.map((job) => ended(job)));
});

test('two rates hold for all claims at all daemons, and each job that they let through is in one answer', async () => {
  const client = remote.client();
  const ids = Array.from({ length: 9 }, (_, nth) => `n${nth}`);
  await client.scheduleMany(
    defineQueue(remote.queue, { rate: TWO_RATES }),
    ids.map((id) => ({ id, data: {} })),
  );
  const workers = [remote.worker('one'), remote.worker('two')];
  const got: string[] = [];
  const claim = async (most: number) => {
    while (got.length < most) {
      const answers = await Promise.all(
        workers.map((worker, at) => worker.jobs(remote.at(at), { wait: '200ms', max: 5 })),
      );
      for (const [at, jobs] of answers.entries()) {
        got.push(...jobs.map(({ id }) => id));
        if (jobs.length > 0) await workers[at]?.settle(remote.at(at), ...jobs.map((job) => ended(job)));
      }
    }
  };
  await claim(6);
  expect(await workers[0]?.jobs(remote.at(0), { wait: '500ms', max: 5 })).toEqual([]);
  await expect.poll(async () => (await client.queues.get(remote.queue)).waiting).toBe(3);
  expect(await client.queues.why(remote.queue)).toMatchObject({ reasons: [{ heldBy: 'rate' }] });
  expect(got).toHaveLength(6);
  await client.queues.set(remote.queue, { rate: '100/s' });
  await claim(9);
  expect(got.toSorted()).toEqual(ids);
});
