/** Many claims that wait in one daemon: what they cost Redis, and what becomes of them at a stop. */
import { expect, test } from 'vitest';
import { jobsIn, type RemoteWorker, useRemote } from '../../support/remote.ts';

const POLLS = 200;
const JOBS = 100;
// Nobody beats here.
const remote = useRemote({
  config: { http: { pollsMax: 1000, pollsMaxPerToken: 1000 }, worker: { jobLease: 120_000 } },
});

/** So often Redis ran a script. */
async function scripts(): Promise<number> {
  const stats = await remote.redis.info('commandstats');
  return [...stats.matchAll(/cmdstat_(?:evalsha|eval|fcall):calls=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
}

const polling = (worker: RemoteWorker, at = remote.at(0)) => worker.claim(at, { wait: '60s', max: 1 });
const waiting = (count: number) => expect.poll(remote.polls).toBe(count);

test('a job that becomes ready costs a call or two, however many claims wait', async () => {
  const workers = Array.from({ length: POLLS }, (_, at) => remote.worker(`w${at}`));
  const polls = workers.map((worker) => polling(worker));
  await waiting(POLLS);
  const before = await scripts();
  await remote.schedule(...Array.from({ length: JOBS }, (_, at) => ({ id: `job-${at}` })));
  await waiting(POLLS - JOBS);
  const spent = (await scripts()) - before;
  // Of each job: its making, its way to ready, its claim, and one ask in vain. If all claims asked there would be thousands.
  expect(spent).toBeLessThan(10 * JOBS);
  await remote.schedule(...Array.from({ length: POLLS - JOBS }, (_, at) => ({ id: `more-${at}` })));
  const ids = (await Promise.all(polls)).flatMap((answered) => jobsIn(answered).map(({ id }) => id));
  expect([ids.length, new Set(ids).size]).toEqual([POLLS, POLLS]);
});

test('a stop while jobs come loses none: each is in an answer, or waits for another claim', {
  timeout: 120_000,
}, async () => {
  const at = await remote.serve();
  const workers = Array.from({ length: 50 }, (_, nth) => remote.worker(`w${nth}`));
  const polls = workers.map((worker) => polling(worker, at));
  await waiting(50);
  const ids = Array.from({ length: JOBS }, (_, nth) => `job-${nth}`);
  const scheduling = remote.schedule(...ids.map((id) => ({ id })));
  await expect.poll(() => remote.told('job.started').length).toBeGreaterThan(5);
  await at.daemon.stop();
  await scheduling;
  const answered = await Promise.all(polls);
  const told = answered.flatMap((one) => jobsIn(one).map(({ id }) => id));
  const rest = remote.worker();
  const left: string[] = [];
  while (left.length + told.length < ids.length) {
    left.push(...(await rest.jobs(remote.at(0), { wait: '20s', max: 80 })).map(({ id }) => id));
  }
  expect([...told, ...left].toSorted()).toEqual(ids.toSorted());
  // None of them had to be taken back.
  expect(remote.told('runs.reclaimed')).toEqual([]);
});
