/** Records that are made to hurt whoever reads them: the start is counted first, and the worker lives on. */
import { expect, it } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { memberOf } from '../../../src/job/codec.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();
const MEGABYTES_10 = 10 * 1024 * 1024;
const deep = (levels: number, end = ']'.repeat(levels)) => '['.repeat(levels) + end;

/** A job of ours whose record nobody has looked at. */
async function plant(id: string, body: string, dueMs = Date.now() - 1000): Promise<string> {
  const record = `1${dueMs.toString(36)}|${body}`;
  const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 2 * MEGABYTES_10 } as const;
  await line.jobs.schedule(line.ref, [{ member: memberOf(id), record, dueMs }], settings);
  return record;
}

it.each([
  ['1,200 arrays deep and never closed', deep(1200, '')],
  ['10 MB that end in the middle of a text', `{"d":"${'x'.repeat(MEGABYTES_10)}`],
  ['no object', '"text"'],
  ['data of no job but a prototype', '{"__proto__":'],
  ['empty', ''],
  ['1,200 arrays deep', `{"d":${deep(1200)}}`],
  ['100,000 objects deep', `{"d":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
])('a record that cannot be read, %s, is a dead letter after one counted start', async (_what, body) => {
  const record = await plant('bad', body);
  const ran: string[] = [];
  const worker = await line.worker((job) => ran.push(job.id));
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'bad', reason: 'unreadable-record' }]);
  expect(await line.deadLetters()).toMatchObject([{ reason: 'unreadable-record', attempts: '1', record }]);
  await line.plan({ id: 'next' });
  await eventually(() => ran).toEqual(['next']);
});

it.each([
  ['1,000 arrays deep', `{"d":${deep(1000)}}`],
  ['10 MB', `{"d":"${'x'.repeat(MEGABYTES_10)}"}`],
])('a record of %s runs like any other', async (_what, body) => {
  await plant('big', body);
  const worker = await line.worker(() => undefined);
  await eventually(() => worker.heard.of('job.completed')).toMatchObject([{ id: 'big' }]);
});

it('a prototype in a record is data like any other: it reaches nothing else', async () => {
  await plant('sly', '{"__proto__":{"n":"other","a":1},"d":{"__proto__":{"admin":true}}}');
  const seen: unknown[] = [];
  await line.worker(({ name, data }) => {
    const own = Object.entries(data as object);
    seen.push([name, own, (data as { admin?: unknown }).admin, ({} as { admin?: unknown }).admin]);
  });
  await eventually(() => seen).toEqual([['default', [['__proto__', { admin: true }]], undefined, undefined]]);
});

it('data that are too deep stop nobody: the job is shown, listed, cancelled, replayed, and its neighbours run', async () => {
  const queue = defineQueue(line.queue, { redact: ['a.b'], history: { result: true } });
  const producer = createClient({ redis: { path: line.server.socketPath }, namespace: NAMESPACE });
  line.onEnd(() => producer.close());
  await producer.schedule(queue, 1, { id: 'declares', delay: '1h' });
  const body = `{"d":{"a":{"b":${deep(50_000)}}}}`;
  await plant('later', body, Date.now() + 3_600_000);
  await plant('bad', body);
  for (let nth = 0; nth < 5; nth += 1) await producer.schedule(queue, nth, { id: `n${nth}` });
  expect(await producer.get(queue, 'later')).toMatchObject({ state: 'scheduled', readable: false, data: undefined });
  expect((await producer.list(queue, { state: ['scheduled'] })).jobs.map(({ id }) => id)).toContain('later');
  expect(await producer.edit(queue, 'later', { attempts: 2 })).toMatchObject({ status: 'unreadable' });
  expect(await producer.cancel(queue, 'later')).toMatchObject({ status: 'cancelled' });
  const ran: string[] = [];
  const worker = await line.worker((job) => ran.push(job.id));
  await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'bad', reason: 'unreadable-record' }]);
  await eventually(() => ran.toSorted()).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
  expect(await producer.deadLetters.replay(queue, { job: 'bad' })).toMatchObject({ status: 'scheduled' });
  await eventually(() => worker.heard.of('job.dead')).toHaveLength(2);
});
