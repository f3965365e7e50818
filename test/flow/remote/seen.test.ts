/** Workers over HTTP, as people see them: among the workers, in the answer why nothing moves, and in the metrics. */
import { expect, test } from 'vitest';
import { ask } from '../../support/api.ts';
import { ended, useRemote } from '../../support/remote.ts';

const remote = useRemote();

test('a worker over HTTP is among the workers, with its address and what it runs', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker('mailer');
  await worker.jobs(remote.at(0), { wait: '5s' });
  const { body } = await ask(remote.at(0).url, `GET /v1/workers?queue=${remote.queue}`);
  expect(body.workers).toMatchObject([
    {
      id: worker.name,
      state: 'alive',
      via: 'http',
      address: expect.stringMatching(/127\.0\.0\.1$/),
      host: 'mailer',
      queues: [remote.queue],
      pending: 1,
      jobs: [{ id: 'a' }],
    },
  ]);
});

test('where nobody claims what is ready, that is why nothing moves', async () => {
  const worker = remote.worker();
  await worker.jobs(remote.at(0));
  await remote.schedule({ id: 'a' });
  const why = async () => (await ask(remote.at(0).url, `GET /v1/queues/${remote.queue}/why`)).body.reasons;
  await expect.poll(why).toMatchObject([{ code: 'no-worker', text: expect.stringMatching(/nobody polls/) }]);
  await worker.jobs(remote.at(0), { wait: '5s' });
  expect(await why()).toEqual([]);
});

test('the metrics tell claims by their outcome, and runs by what became of them', async () => {
  await remote.schedule({ id: 'a' });
  const worker = remote.worker();
  const [job] = await worker.jobs(remote.at(0), { wait: '5s' });
  await worker.jobs(remote.at(0), { seq: 1, again: true });
  if (job) await worker.settle(remote.at(0), ended(job));
  await worker.jobs(remote.at(0));
  const { text } = await ask(remote.at(0).url, 'GET /metrics');
  const numberOf = (series: string) =>
    new RegExp(`^${series.replaceAll(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(text)?.[1];
  const queue = `queue="${remote.queue}"`;
  expect(numberOf(`duestream_remote_claims_total{${queue},outcome="handed"}`)).toBe('1');
  expect(numberOf(`duestream_remote_claims_total{${queue},outcome="again"}`)).toBe('1');
  expect(numberOf(`duestream_remote_claims_total{${queue},outcome="empty"}`)).toBe('1');
  expect(numberOf(`duestream_remote_handed_total{${queue}}`)).toBe('1');
  expect(numberOf(`duestream_remote_settled_total{${queue},end="complete",word="ok"}`)).toBe('1');
});
