/** Workers over HTTP in a queue of several partitions: a claim takes from one of them, and is found there when it is made again. */
import { expect, test } from 'vitest';
import { defineQueue } from '../../../src/job/queue.ts';
import { ended, useRemote } from '../../support/remote.ts';

const remote = useRemote({ daemons: 2, partitions: 4 });
const IDS = Array.from({ length: 40 }, (_, at) => `job-${at}`);

async function fill(): Promise<void> {
  const queue = defineQueue(remote.queue, { partitions: 4 });
  await remote.client().scheduleMany(
    queue,
    IDS.map((id) => ({ data: null, id, delay: 0 })),
  );
  const ready = async () => {
    const pictures = await Promise.all([0, 1, 2, 3].map((at) => remote.picture(at)));
    return pictures.reduce((sum, one) => sum + (one.ready?.length ?? 0), 0);
  };
  await expect.poll(ready).toBe(IDS.length);
}

test('a claim that is made again holds no more than it was handed', async () => {
  await fill();
  const worker = remote.worker();
  const first = await worker.jobs(remote.at(0), { max: 15 });
  const again = await worker.jobs(remote.at(1), { seq: 1, again: true, max: 15 });
  expect(again.map(({ token }) => token)).toEqual(first.map(({ token }) => token));
  const pictures = await Promise.all([0, 1, 2, 3].map((at) => remote.picture(at)));
  const held = pictures.flatMap(({ pending }) => pending?.[worker.name] ?? []);
  expect(held.length).toBe(first.length);
});

test('claims in a row find the jobs of all partitions, and complete each where it is', async () => {
  await fill();
  const worker = remote.worker();
  const done: string[] = [];
  let ends: object[] = [];
  while (done.length < IDS.length) {
    const answered = await worker.claim(remote.at(done.length % 2), { max: 7, wait: '5s', ends });
    expect(answered.body.ended).toEqual(ends.map(() => 'ok'));
    const { jobs } = answered.body;
    ends = jobs.map((job: { run: string }) => ended(job));
    done.push(...jobs.map(({ id }: { id: string }) => id));
  }
  const last = await worker.claim(remote.at(0), { ends });
  expect(last.body).toMatchObject({ jobs: [], ended: ends.map(() => 'ok') });
  expect(done.toSorted()).toEqual(IDS.toSorted());
});
