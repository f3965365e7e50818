/**
 * One bad queue never stops the others: here somebody put a value of another type under each of its keys. What looks after all
 * queues, serves several or asks about all goes on with the others, and says which one it could not look at.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { controlKeys, partitionKeys, storedKeys } from '../../../src/redis/keys.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { useCli } from '../../support/cli.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const cli = useCli();
const patience = { timeout: 60_000, interval: 20 };
const runs: string[] = [];
const handlers = defineHandlers({
  bad: async ({ id }) => void runs.push(id),
  good: async ({ id }) => void runs.push(id),
  young: async ({ id }) => void runs.push(id),
});
const stored = storedKeys(partitionKeys({ namespace: 'duestream', queue: 'bad', partition: 0 }));
let server: TestRedis;
let client: ReturnType<typeof createClient>;
let daemon: ReturnType<typeof createDaemon>;

async function daemonAnew(handled: Parameters<typeof createDaemon>[1] = {}): Promise<void> {
  const isWorker = handled.handlers !== undefined;
  const roles = isWorker ? (['mover', 'worker'] as const) : (['mover'] as const);
  daemon = createDaemon({ redis: { url: server.url }, roles: [...roles], mover: { lease: 1000 } }, handled);
  await daemon.start();
}

beforeAll(async () => {
  server = await startRedis({ port: true });
  client = createClient({ redis: server.url });
  await daemonAnew({ handlers });
  for (const queue of ['bad', 'good']) {
    await client.schedule(queue, {}, { id: `first-of-${queue}` });
    await client.schedules.put(`of-${queue}`, { queue, every: '1h' });
  }
  await vi.waitUntil(() => runs.length === 2, patience);
  const redis = await server.client();
  await redis
    .multi(
      stored.flatMap(({ key }) => [
        ['del', key],
        ['set', key, 'a person did this'],
      ]),
    )
    .exec();
});
afterAll(async () => {
  await client.close();
  await daemon.stop();
  await server.stop();
});

test('a daemon that leads it and a worker that serves it go on with the others, and with a queue that is new', async () => {
  for (const queue of ['good', 'young']) await client.schedule(queue, {}, { id: `${queue}-goes-on`, delay: '1s' });
  await expect.poll(() => runs, patience).toEqual(expect.arrayContaining(['good-goes-on', 'young-goes-on']));
});

test('a worker of it and another queue that starts now serves the other one', async () => {
  const started: string[] = [];
  const told: string[] = [];
  const worker = createWorker({
    queues: [
      { queue: 'bad', handler: async () => undefined },
      { queue: 'good', handler: async ({ id }) => void started.push(id) },
    ],
    redis: server.url,
  });
  worker.events.on('redis.away', ({ who, why }) => told.push(`${who}: ${why}`));
  await worker.start();
  try {
    const jobs = Array.from({ length: 60 }, (_, nth) => ({ data: {}, id: `many-${nth}` }));
    await client.scheduleMany('good', jobs);
    await expect.poll(() => started.length, patience).toBeGreaterThan(0);
    expect(told).toEqual([expect.stringMatching(/^queue bad: .*WRONGTYPE/)]);
    expect(worker.isReady()).toBe(false);
  } finally {
    await worker.stop();
  }
});

test('a daemon that starts now leads the others', async () => {
  await daemon.stop();
  await daemonAnew({ handlers });
  await client.schedule('good', {}, { id: 'with-a-new-daemon' });
  await expect.poll(() => runs, patience).toContain('with-a-new-daemon');
});

test('of all queues, one that is damaged is paused and resumed by nobody, and stops no other', async () => {
  for (const [verb, paused] of [
    ['pause', true],
    ['resume', false],
  ] as const) {
    const { code, out } = await cli.run(['queues', verb, '--all', '--json', '--redis', server.url]);
    const { queues, failed } = JSON.parse(out);
    expect(queues).toMatchObject([
      { queue: 'good', paused, changed: true },
      { queue: 'young', paused, changed: true },
    ]);
    expect(failed).toEqual([{ queue: 'bad', why: expect.stringContaining('WRONGTYPE') }]);
    expect(code).toBe(1);
  }
});

const asked = async (...words: string[]) => {
  const { code, out } = await cli.run([...words, '--json', '--redis', server.url]);
  return { code, answer: JSON.parse(out) };
};
const unread = [{ queue: 'bad', why: expect.stringContaining('WRONGTYPE duestream:v1:{bad:0}:') }];

test('who leads, who works and what comes due is answered for the others, and the damaged one is named', async () => {
  const leaders = await asked('queues', 'leaders');
  expect(leaders).toMatchObject({ code: 1, answer: { unread } });
  expect(leaders.answer.partitions.map(({ queue }: { readonly queue: string }) => queue)).toEqual(['good', 'young']);
  expect(await asked('queues', 'workers')).toMatchObject({
    code: 1,
    answer: { unread, workers: [{ state: 'alive' }] },
  });
  const forecast = await asked('schedules', 'forecast');
  expect(forecast).toMatchObject({ code: 1, answer: { unread, schedules: { counted: 2 } } });
  expect(await client.schedules.forecast()).toMatchObject({ unread, busiest: { coming: expect.any(Number) } });
  const { code, out } = await cli.run(['queues', 'leaders', '--redis', server.url]);
  expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/^queue bad could not be read: WRONGTYPE /m) });
});

test('what is asked about the damaged one alone fails with its reason', async () => {
  for (const words of [
    ['queues', 'leaders', 'bad'],
    ['queues', 'workers', '--queue', 'bad'],
    ['schedules', 'forecast', '--queue', 'bad'],
  ]) {
    const { code, err } = await cli.run([...words, '--redis', server.url]);
    expect({ words, code, err }).toEqual({ words, code: 69, err: expect.stringContaining('WRONGTYPE') });
  }
});

test('each check of doctor answers for the others, and fails with the name and the reason of the damaged one', async () => {
  const { answer } = await asked('doctor');
  const checks: { readonly check: string; readonly status: string; readonly saw: string }[] = answer.checks;
  const about = checks.filter(({ saw }) => saw.includes('"bad"'));
  for (const { status, saw } of about) {
    expect(status).toBe('fail');
    expect(saw).toMatch(/^"bad" cannot be read: WRONGTYPE .*; of the others: ./);
  }
  expect(about.map(({ check }) => check)).toEqual(
    expect.arrayContaining([
      'schema',
      'workers',
      'scores',
      'members',
      'schedules',
      'streams',
      'done',
      'closed',
      'sets',
    ]),
  );
});

test('doctor says which keys of the damaged one are of a wrong type, and looks at the others', async () => {
  const { code, answer } = await asked('doctor', '--keys');
  expect(code).toBe(1);
  expect(answer.unread).toEqual([]);
  const flaws = (queue: string) =>
    answer.partitions
      .find((one: { readonly queue: string }) => one.queue === queue)
      .flaws.map(({ what }: { readonly what: string }) => what);
  expect(new Set(flaws('bad'))).toEqual(new Set(['type']));
  expect(flaws('good')).toEqual([]);
});

test('tags are closed in the others before the call fails, and what has a tag goes from the others', async () => {
  await client.schedule('good', {}, { id: 'tagged', delay: '1h', tags: ['user:1'] });
  await client.schedule('young', {}, { id: 'tagged', delay: '1h', tags: ['user:2'] });
  await expect(client.tags.close(['bad', 'good'], 'user:1', { for: '1h' })).rejects.toMatchObject({
    code: 'refused',
    message: expect.stringMatching(
      /^close: queue bad failed: .*WRONGTYPE.*; it was done in 1 queue: repeat the same call$/,
    ),
  });
  expect((await client.tags.list('good')).tags).toMatchObject([{ tag: 'user:1' }]);
  expect(await client.get('good', 'tagged')).toMatchObject({ state: 'cancelled' });
  const failed = [{ queue: 'bad', why: expect.stringContaining('WRONGTYPE') }];
  const erased = await client.erase({ tag: 'user:2' });
  expect(erased).toMatchObject({ failed, left: 0, cursor: undefined });
  expect(erased.queues).toMatchObject([
    { queue: 'good', jobs: 0 },
    { queue: 'young', jobs: 1 },
  ]);
  expect(await asked('tags', 'erase', 'user:2', '--yes')).toMatchObject({ code: 1, answer: { failed } });
  const redis = await server.client();
  const { queues } = controlKeys('duestream');
  await redis.hset(queues, 'odd', 'nonsense');
  const odd = { queue: 'odd', why: expect.stringContaining('cannot be read: "nonsense"') };
  expect(await client.erase({ tag: 'user:2' })).toMatchObject({ failed: [odd, ...failed] });
  expect(await asked('queues', 'ls')).toMatchObject({ code: 1, answer: { unread: [odd, ...unread] } });
  await redis.hdel(queues, 'odd');
});

test('after a restore doctor says what of the others may run twice, and that nobody knows it of the damaged one', async () => {
  const { out } = await cli.run(['doctor', '--restored', '--json', '--redis', server.url]);
  const saw = JSON.parse(out)
    .checks.filter(({ check }: { readonly check: string }) => check === 'restored')
    .map((one: { readonly saw: string }) => one.saw);
  expect(saw).toEqual([
    expect.stringMatching(/^"bad": it cannot be read, .*WRONGTYPE/),
    expect.stringMatching(/^"good": /),
    expect.stringMatching(/^"young": /),
  ]);
});

test('schedules of the others are listed with their next instants, and those of the damaged one with what is wrong', async () => {
  const { schedules } = await client.schedules.list();
  expect(schedules.map(({ name, nextMs, unreadable }) => [name, nextMs, unreadable])).toEqual([
    ['of-bad', undefined, expect.stringMatching(/^queue "bad" cannot be read: .*WRONGTYPE/)],
    ['of-good', expect.any(Number), undefined],
  ]);
});

test('a worker that started without a queue serves it as soon as it is mended', async () => {
  const started: string[] = [];
  const worker = createWorker({
    queues: [
      { queue: 'bad', handler: async ({ id }) => void started.push(id) },
      { queue: 'good', handler: async () => undefined },
    ],
    redis: server.url,
    beatTtl: 1000,
  });
  await worker.start();
  try {
    await daemon.stop();
    await (await server.client()).del(stored.map(({ key }) => key));
    await client.schedule('bad', {}, { id: 'once-more' });
    await daemonAnew();
    await expect.poll(() => started, patience).toEqual(['once-more']);
    expect(worker.isReady()).toBe(true);
  } finally {
    await worker.stop();
  }
});

test('a queue in which tags are closed, and whose jobs cannot be cancelled, leaves no job of the others', async () => {
  for (const queue of ['half', 'whole']) await client.schedule(queue, {}, { id: 'a', delay: '1h', tags: ['user:3'] });
  const redis = await server.client();
  const { tags } = partitionKeys({ namespace: 'duestream', queue: 'half', partition: 0 });
  await redis.set(tags, 'no index');
  await expect(client.tags.close(['half', 'whole'], 'user:3', { for: '1h' })).rejects.toMatchObject({
    message: expect.stringMatching(/^close: queue half failed: .*it was done in 1 queue: repeat the same call$/),
  });
  expect(await client.get('whole', 'a')).toMatchObject({ state: 'cancelled' });
  expect((await client.tags.list('half')).tags).toMatchObject([{ tag: 'user:3' }]);
});
