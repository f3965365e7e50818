/** Queues with schemas and codecs on a real Redis: what is refused writes nothing, and what is no good becomes a dead letter. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createClient } from '../../../src/client/client.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import type { Codec } from '../../../src/job/content.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { eventually, NAMESPACE, useLine } from '../../support/worker-line.ts';

const line = useLine();

const base64: Codec = {
  name: 'base64',
  encode: (text, { queue }) => Buffer.from(`${queue} ${text}`).toString('base64'),
  async decode(text, { queue }) {
    const [of, json = ''] = Buffer.from(text, 'base64').toString().split(' ');
    if (of !== queue) throw new Error('encoded for another queue');
    return json;
  },
};
const later = z.object({ n: z.number().refine(async (n) => n > 0, 'must be above 0') });

function make(delivery: 'at-least-once' | 'at-most-once' = 'at-least-once') {
  const queue = defineQueue(line.queue, { delivery, codec: base64, jobs: { default: later, other: z.string() } });
  const place = { redis: { path: line.server.socketPath }, namespace: NAMESPACE };
  const producer = createClient(place);
  const seen: unknown[] = [];
  const worker = createWorker(queue, ({ data }) => void seen.push(data), place);
  const ended: string[] = [];
  worker.events.on('job.completed', ({ id }) => ended.push(`${id} done`));
  worker.events.on('job.dead', ({ id, reason, error }) => ended.push(`${id} ${reason}: ${error.message}`));
  line.onEnd(() => producer.close());
  line.onEnd(() => worker.stop());
  return { queue, producer, worker, seen, ended, place };
}

test.each(['at-least-once', 'at-most-once'] as const)(
  '%s: data is checked twice and decoded once',
  async (delivery) => {
    const { queue, producer, worker, seen, ended } = make(delivery);
    const refused = { code: 'bad-input', message: expect.stringContaining('n: must be above 0') };
    await expect(producer.schedule(queue, { n: 0 })).rejects.toMatchObject(refused);
    const list = [{ data: { n: 1 } }, { data: { n: 0 } }];
    await expect(producer.scheduleMany(queue, list)).rejects.toMatchObject({
      message: expect.stringMatching(/^jobs\[1\]/),
    });
    expect(await line.redis.exists(line.ref.keys.jobs)).toBe(0);

    await producer.schedule(queue, { n: 5 }, { id: 'good' });
    await producer.schedule(queue, 'text', { id: 'sync', name: 'other' });
    await producer.schedule(defineQueue(line.queue, { codec: base64 }), { n: -1 }, { id: 'bad' });
    await producer.schedule(defineQueue('else', { codec: base64 }), { n: 1 });
    await worker.start();
    await eventually(() => [...ended].sort()).toEqual([
      'bad bad-data: data of default does not fit: n',
      'good done',
      'sync done',
    ]);
    expect(seen).toHaveLength(2);
    expect(seen).toEqual(expect.arrayContaining([{ n: 5 }, 'text']));
  },
);

test('dead letters and looks show what is stored', async () => {
  const { queue, producer, worker, ended } = make();
  const stored = Buffer.from(`${line.queue} {"n":5}`).toString('base64');
  await producer.schedule(queue, { n: 5 }, { id: 'a', delay: '1h' });
  expect(await producer.get(queue, 'a')).toMatchObject({ data: stored, codec: 'base64' });
  expect(await line.stored('a')).toContain(`{"d":"${stored}","c":"base64"}`);
  const broken = { ...base64, encode: () => Buffer.from('q? {"n":6}').toString('base64') };
  await producer.edit(defineQueue(line.queue, { codec: broken }), 'a', { data: { n: 6 } });
  await producer.runNow(queue, 'a');
  await worker.start();
  await eventually(() => ended).toEqual([
    'a bad-data: the codec base64 cannot decode the data: encoded for another queue',
  ]);
  const [letter] = await line.deadLetters();
  expect(letter?.record).toContain('"c":"base64"');
});

test('a schedule of a queue has its data checked and encoded when it is put', async () => {
  const { queue, worker, seen, place } = make();
  const client = createClient(place);
  const schedules = client.schedules;
  line.onEnd(() => client.close());
  const put = () => schedules.put('often', { queue, data: { n: 3 }, every: '1s', maxRuns: 1 });
  expect(await put()).toMatchObject({ status: 'created' });
  expect(await put()).toMatchObject({ status: 'unchanged' });
  await expect(schedules.put('wrong', { queue, data: { n: 0 }, every: '1s' })).rejects.toMatchObject({
    code: 'bad-input',
  });
  expect(await schedules.get('wrong')).toBeUndefined();
  expect((await schedules.get('often'))?.input.data).toBe(Buffer.from(`${line.queue} {"n":3}`).toString('base64'));
  await schedules.trigger('often');
  await worker.start();
  await eventually(() => seen).toContainEqual({ n: 3 });
});

test('an edit by filter is checked and encoded for each job', async () => {
  const { queue, producer, worker, seen, ended } = make();
  const waits = { delay: '1h', tags: ['t'] };
  await producer.schedule(queue, { n: 1 }, { ...waits, id: 'a' });
  await producer.schedule(queue, { n: 2 }, { ...waits, id: 'b' });
  await producer.schedule(queue, 'text', { ...waits, id: 'c', name: 'other' });
  const stored = () => line.redis.hgetall(line.ref.keys.jobs);
  const before = await stored();
  const refused = { code: 'bad-input', message: expect.stringContaining('n: must be above 0') };
  const zero = { data: { n: 0 } };
  await expect(producer.edit(queue, { tag: 't', name: 'default' }, zero)).rejects.toMatchObject(refused);
  await expect(producer.edit(queue, { tag: 't' }, { ...zero, name: 'default' })).rejects.toMatchObject(refused);
  await expect(producer.edit(queue, { tag: 't' }, { name: 'other' })).rejects.toThrow(/allowed: both/);
  expect(await producer.edit(queue, { tag: 't' }, zero)).toMatchObject({ changed: 0, skipped: { refused: 3 } });
  const encode = () => Promise.reject(new Error('no key'));
  const keyless = defineQueue(line.queue, { codec: { ...base64, encode } });
  await expect(producer.edit(keyless, { tag: 't' }, { data: { n: 7 } })).rejects.toThrow('no key');
  expect(await stored()).toEqual(before);

  const seven = { data: { n: 7 } };
  expect(await producer.edit(queue, { tag: 't' }, seven)).toMatchObject({
    matched: 3,
    changed: 2,
    skipped: { refused: 1 },
    ids: ['a', 'b'],
  });
  const after = await stored();
  expect(after['j:c']).toBe(before['j:c']);
  expect(JSON.stringify(after)).not.toContain('7}');
  const data = Buffer.from(`${line.queue} {"n":7}`).toString('base64');
  expect(await producer.get(queue, 'a')).toMatchObject({ data, codec: 'base64' });
  expect(await producer.edit(queue, { tag: 't', name: 'default' }, seven)).toMatchObject({
    matched: 2,
    changed: 0,
    skipped: { already: 2 },
  });
  const named = { name: 'other', data: 'new' } as const;
  expect(await producer.edit(queue, { idPrefix: 'b' }, named)).toMatchObject({ changed: 1 });
  await producer.runNow(queue, { tag: 't' });
  await worker.start();
  await eventually(() => [...ended].sort()).toEqual(['a done', 'b done', 'c done']);
  expect(seen).toHaveLength(3);
  expect(seen).toEqual(expect.arrayContaining([{ n: 7 }, 'new', 'text']));
});
