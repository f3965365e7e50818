/** A worker whose due jobs linger: its completions wait for company, and never for longer than they may. */
import { expect, it } from 'vitest';
import { fixed } from '../../../src/job/backoff.ts';
import { claimNamespace } from '../../../src/redis/scripts/queues.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const over = async () => Object.keys((await line.picture()).done ?? {}).length;

it('completions that wait for company are sent at once when it stops, and nothing is handed back', async () => {
  let ran = 0;
  const handler = () => {
    ran += 1;
  };
  await line.plan(...line.many(5));
  const worker = await line.worker(handler, { linger: '1s' });
  await eventually(() => ran).toBe(5);
  await worker.stop();
  expect([ran, await over(), (await line.picture()).scheduled ?? {}]).toEqual([5, 5, {}]);
});

it('without company a completion goes by itself, by what daemons say as well', async () => {
  await claimNamespace(line.redis, NAMESPACE, 50);
  await line.plan(...line.many(3));
  await line.worker(() => undefined);
  await eventually(over).toBe(3);
});

it('a retry does not wait for company', async () => {
  await line.plan(...line.many(1));
  const worker = await line.worker(
    () => {
      throw new Error('again');
    },
    { linger: '1s', backoff: fixed('1h') },
  );
  await eventually(async () => Object.keys((await line.picture()).scheduled ?? {}).length).toBe(1);
  expect(worker.running()).toBe(0);
});
