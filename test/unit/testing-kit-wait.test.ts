/** Waiting for jobs in virtual time. */
import { expect, test } from 'vitest';
import { Unrecoverable } from '../../src/job/outcome.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { createTestKit } from '../../src/testing/index.ts';

const reports = defineQueue<number>('reports', { partitions: 3, history: { result: true } });
/** Until what was called has looked. */
const looked = () => new Promise((done) => setImmediate(done));
const kitOf = () =>
  createTestKit({
    queues: [reports],
    handlers: {
      reports(job) {
        if (job.data === 2) throw new Unrecoverable('no report');
        return { page: job.data };
      },
    },
  });

test('a job is waited for until time has brought its end, and its result is told', async () => {
  const kit = kitOf();
  await kit.schedule(reports, 1, { id: 'a', delay: '1h' });
  const waiting = kit.client.wait(reports, 'a', { timeout: '2h' });
  await kit.advance('1h');
  expect(await waiting).toMatchObject({ status: 'done', result: { kind: 'kept', value: { page: 1 } } });
  expect(await kit.client.wait(reports, 'a')).toMatchObject({ status: 'done' });
  expect(await kit.client.wait(reports, 'never')).toEqual({ id: 'never', status: 'unknown' });
});

test('the time is up when virtual time says so, and not before', async () => {
  const kit = kitOf();
  await kit.schedule(reports, 1, { id: 'a', delay: '1h' });
  let end: unknown;
  const waiting = kit.client.wait(reports, 'a', { timeout: '10m' }).then((one) => {
    end = one;
  });
  await kit.advance('9m');
  expect(end).toBeUndefined();
  await kit.advance('1m');
  await waiting;
  expect(end).toEqual({ id: 'a', status: 'timeout' });
  expect(kit.jobs({ state: 'scheduled' })).toHaveLength(1);
});

test('a list, and all that a filter means, end as their jobs do: done, dead, cancelled', async () => {
  const kit = kitOf();
  await kit.schedule(reports, 1, { id: 'a', delay: '1h', tags: ['x'] });
  await kit.schedule(reports, 2, { id: 'b', delay: '2h', tags: ['x'] });
  await kit.schedule(reports, 3, { id: 'c', delay: '3h', tags: ['x'] });
  const list = kit.client.wait(reports, ['c', 'b', 'a'], { timeout: '1d' });
  const ends: string[] = [];
  const ending = (async () => {
    for await (const { id, status } of kit.client.ends(reports, { tag: 'x' }, { timeout: '1d' })) {
      ends.push(`${id} ${status}`);
    }
  })();
  await looked();
  await kit.advance('2h');
  await kit.client.cancel(reports, 'c');
  await ending;
  expect(ends).toEqual(['a done', 'b dead', 'c cancelled']);
  expect((await list).map(({ id, status }) => `${id} ${status}`)).toEqual(['c cancelled', 'b dead', 'a done']);
});

test('a client that stops waits no longer', async () => {
  const kit = kitOf();
  await kit.schedule(reports, 1, { id: 'a', delay: '1h' });
  const waiting = kit.client.wait(reports, 'a');
  const told = expect(waiting).rejects.toMatchObject({ code: 'stopped' });
  await looked();
  await kit.client.close();
  await told;
});
