/**
 * Producers that are not ours, written from docs/wire-protocol.md: one in Python with Debian's python3-redis, one in
 * plain redis-cli. Both put bare and full jobs, and a real daemon and worker run them. The safety tick is a minute here,
 * so what is on time was found by a nudge.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createDaemon, type Daemon } from '../../../src/daemon/daemon.ts';
import { decodeTombstone } from '../../../src/job/codec.ts';
import type { Job } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { controlKeys, partitionKeys } from '../../../src/redis/keys.ts';
import { createWorker, type Worker } from '../../../src/worker/worker.ts';
import { type ForeignProducers, openForeignProducers } from '../../support/foreign-producers.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read } from '../../support/repository.ts';
import { gate } from '../../support/worker-line.ts';

const LANGUAGES = ['Python', 'redis-cli'] as const;
const FAR_MS = 3_600_000;

let server: TestRedis;
let redis: Redis;
let daemon: Daemon;
let foreign: ForeignProducers;
let worker: Worker | undefined;
let jobs: Job[] = [];
let queue = '';
let nth = 0;

beforeAll(async () => {
  server = await startRedis();
  foreign = await openForeignProducers(server, () => queue);
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
  daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], profile: 'quiet' });
  await daemon.start();
}, 300_000);
beforeEach(async () => {
  await worker?.stop();
  nth += 1;
  queue = `q${nth}`;
  jobs = [];
});
afterAll(async () => {
  await worker?.stop();
  await daemon?.stop();
  close(redis);
  await server.stop();
});

/** A worker of this test's queue, once a leader knows that nothing is due. */
async function work(): Promise<void> {
  const handler = (job: Job) => void jobs.push(job);
  worker = createWorker(queue, { default: handler, welcome: handler }, { redis: server.url });
  await worker.start();
  await expect.poll(() => redis.hget(keys().meta, 'wake')).toBe('9007199254740991');
}

const keys = () => partitionKeys({ namespace: 'duestream', queue, partition: 0 });
const ran = () => expect.poll(() => jobs.length, { interval: 10 });

test('the encoder in Python agrees with every golden vector', async () => {
  const said = await foreign.checkVectors();
  expect(Number(/^(\d+) checks passed$/.exec(said)?.[1])).toBeGreaterThan(200);
});

describe.each(LANGUAGES)('a producer in %s', (language) => {
  test('puts a bare job, which runs without waiting for the safety tick', async () => {
    await work();
    expect(await foreign.of[language].put('order-1042', 100)).toMatch(/^put \d{13}$/);
    await ran().toBe(1);
    expect(jobs).toMatchObject([{ id: 'order-1042', bare: true, name: 'default', data: undefined, attempt: 1 }]);
  });

  test('schedules a full job, which runs with its name and data and is never early', async () => {
    await work();
    const data = { to: 'ada@example.org', text: 'grüße | "漢字" 🙂; \\n', n: [1, 2.5, null] };
    expect(await foreign.of[language].schedule('order-1042', 150, JSON.stringify(data), 'welcome')).toBe('ok');
    await ran().toBe(1);
    const [seconds, micros] = await redis.time();
    expect(jobs).toMatchObject([{ id: 'order-1042', bare: false, name: 'welcome', data, attempt: 1 }]);
    expect(Number(seconds) * 1000 + Number(micros) / 1000).toBeGreaterThanOrEqual(jobs[0]?.dueMs ?? Number.NaN);
    expect(jobs[0]?.askedDueMs).toBe(jobs[0]?.dueMs);
  });

  test('gives a job headers, by which the same call is no other one', async () => {
    await work();
    const [seconds] = await redis.time();
    const dueMs = Number(seconds) * 1000;
    const headers = { traceparent: '00-0af7-b7ad-01', text: 'a=b;c|d&ü' };
    const by = foreign.of[language];
    expect(await by.withHeaders('a', dueMs, headers)).toBe('ok');
    await ran().toBe(1);
    expect(jobs).toMatchObject([{ id: 'a', data: 1, headers }]);
    await expect.poll(() => redis.hget(keys().jobs, 'j:a')).toMatch(/^\.d/);
    expect(await by.withHeaders('a', dueMs, { traceparent: '00-2-2-01' })).toBe('already d');
    expect(await by.repeat('a', dueMs, '1')).toBe('already d');
  });

  test('gives a job a group and a priority, by which it waits in a queue with limits', async () => {
    const held = gate();
    worker = createWorker(
      defineQueue(queue, { concurrency: 1, perGroup: 1 }),
      async (job) => {
        jobs.push(job);
        if (job.id === 'first') await held.opened;
      },
      { redis: server.url },
    );
    await worker.start();
    const by = foreign.of[language];
    expect(await by.schedule('first', 0, '1', 'default')).toBe('ok');
    await ran().toBe(1);
    for (const [id, priority] of [
      ['a', 'low'],
      ['{acme}b', 'low'],
      ['{acme}c', 'high'],
    ] as const) {
      expect(await by.withPriority(id, priority)).toBe('ok');
    }
    await expect.poll(() => redis.zcard(keys().line)).toBe(3);
    expect(await redis.zrange(keys().tags, '0', '-1')).toEqual(['=high\0j:{acme}c', '=low\0j:a', '=low\0j:{acme}b']);
    held.open();
    await ran().toBe(4);
    expect(jobs.map(({ id }) => id)).toEqual(['first', '{acme}c', 'a', '{acme}b']);
  });

  test('is told that it has said so already, while the job waits and after it has run', async () => {
    await work();
    const [seconds] = await redis.time();
    const dueMs = Number(seconds) * 1000 + FAR_MS;
    expect(await foreign.of[language].repeat('a', dueMs, '1')).toBe('ok');
    expect(await foreign.of[language].repeat('a', dueMs, '1')).toBe('already live');
    expect(await foreign.of[language].repeat('a', dueMs, '2')).toBe(`exists ${dueMs}`);
    expect(await foreign.of[language].repeat('a', dueMs - FAR_MS, '3', true)).toBe('replaced');
    await ran().toBe(1);
    await expect.poll(async () => decodeTombstone((await redis.hget(keys().jobs, 'j:a')) ?? '')?.outcome).toBe('done');
    expect(await foreign.of[language].repeat('a', dueMs - FAR_MS, '3')).toBe('already d');
    expect(jobs).toMatchObject([{ id: 'a', data: 3 }]);
  });

  test('declares a queue that nobody has used, and a daemon finds it at once', async () => {
    expect(await foreign.of[language].schedule('a', 0, '1', 'default')).toBe('ok');
    expect(await redis.hget(controlKeys('duestream').queues, queue).then((value) => JSON.parse(value ?? ''))).toEqual({
      partitions: 1,
      generation: 0,
    });
    await expect.poll(() => redis.xlen(keys().ready)).toBe(1);
  });

  test('cancels what it scheduled, full and bare', async () => {
    expect(await foreign.of[language].schedule('a', FAR_MS, '1', 'default')).toBe('ok');
    await foreign.of[language].put('b', FAR_MS);
    expect(await foreign.of[language].cancel('a', false)).toBe('cancelled');
    expect(await foreign.of[language].cancel('b', true)).toBe('cancelled');
    expect(await foreign.of[language].cancel('a', false)).toBe('over c');
    expect(await foreign.of[language].cancel('b', true)).toBe('unknown');
    expect(await redis.zcard(keys().scheduled)).toBe(0);
  });

  test('finds the partition of an id in a queue of eight', async () => {
    await redis.hset(controlKeys('duestream').queues, queue, '{"partitions":8,"generation":0}');
    for (const [id, partition] of [
      ['order-1042', 0],
      ['order-1043', 1],
      ['123456789', 3],
      ['a', 7],
    ] as const) {
      expect(await foreign.of[language].schedule(id, FAR_MS, '1', 'default')).toBe('ok');
      const { scheduled } = partitionKeys({ namespace: 'duestream', queue, partition });
      expect(await redis.zrange(scheduled, '0', '-1')).toEqual([`j:${id}`]);
    }
  });
});

test('a bare job without a nudge waits for the safety tick', async () => {
  await work();
  await foreign.inPython('put', 'silent', '--in', '0', '--no-nudge');
  // A full job that is nudged makes the leader look, and it finds both: before that nobody had.
  expect(jobs).toEqual([]);
  expect(await redis.zrange(keys().scheduled, '0', '-1')).toEqual(['silent']);
  await foreign.inPython('schedule', 'heard', '--in', '0');
  await ran().toBe(2);
});

test('a job that is too late by its header becomes a dead letter', async () => {
  await work();
  const [seconds] = await redis.time();
  const late = ['--at', String((Number(seconds) - 60) * 1000), '--max-lateness', '1000'];
  expect(await foreign.inPython('schedule', 'a', ...late, '--too-late', 'dead')).toBe('ok');
  expect(await foreign.inPython('schedule', 'b', ...late)).toBe('ok');
  expect(await foreign.inPython('schedule', 'c', ...late, '--too-late', 'run')).toBe('ok');
  const outcomes = async () => {
    const values = await redis.hmget(keys().jobs, 'j:a', 'j:b', 'j:c');
    return values.map((value) => decodeTombstone(value ?? '')?.outcome);
  };
  await expect.poll(outcomes).toEqual(['dead', 'expired', 'done']);
  expect(jobs).toMatchObject([{ id: 'c' }]);
});

test('a queue that moved is looked up again, and each job goes to its new home', async () => {
  expect(await foreign.inPython('schedule', 'before', '--in', String(FAR_MS))).toBe('ok');
  const layout = { partitions: 8, generation: 4 };
  await redis.hset(controlKeys('duestream').queues, queue, JSON.stringify(layout));
  for (let partition = 0; partition < 8; partition += 1) {
    await redis.hset(partitionKeys({ namespace: 'duestream', queue, partition }).meta, 'generation', '4');
  }
  const said = await foreign.inPythonCode([
    'p.layouts[queue] = producer.time.monotonic(), (1, 0)',
    'jobs = [{"id": i, "due_ms": p.now_ms() + 3600000} for i in ("order-1042", "order-1043", "a")]',
    'print(json.dumps(p.schedule(queue, jobs)))',
  ]);
  expect(JSON.parse(said)).toEqual(['ok', 'ok', 'ok']);
  const homes = [0, 1, 7].map((partition) => partitionKeys({ namespace: 'duestream', queue, partition }).scheduled);
  expect(await Promise.all(homes.map((home) => redis.zcard(home)))).toEqual([2, 1, 1]);
});

test('what is answered `later` is sent again, until all is answered', async () => {
  const said = await foreign.inPythonCode([
    'jobs = [{"id": f"job-{n}", "due_ms": p.now_ms() + 3600000, "data": "x" * 200000} for n in range(8)]',
    'first = p.schedule(queue, jobs)',
    'send, asked = p.redis.evalsha, []',
    'def count(*args):',
    '    asked.append(send(*args))',
    '    return asked[-1]',
    'p.redis.evalsha = count',
    'replies = p.cancel(queue, [job["id"] for job in jobs])',
    'print(json.dumps([sorted(set(first)), replies, any(b"later" in reply for reply in asked)]))',
  ]);
  expect(JSON.parse(said)).toEqual([['ok'], Array.from({ length: 8 }, () => 'cancelled'), true]);
  expect(await redis.zcard(keys().scheduled)).toBe(0);
});

test('a call whose reply was lost is repeated, and recognised', async () => {
  const said = await foreign.inPythonCode([
    'send, lost = p.redis.evalsha, []',
    'def lose(*args):',
    '    reply = send(*args)',
    '    if lost: return reply',
    '    lost.append(reply)',
    '    raise redis.TimeoutError("the reply was lost")',
    'p.redis.script_load(p.text("schedule"))',
    'p.redis.evalsha = lose',
    'replies = p.schedule(queue, [{"id": "a", "due_ms": p.now_ms() + 3600000, "data": 1}])',
    'print(json.dumps([[one.decode() for one in lost[0]], replies]))',
  ]);
  expect(JSON.parse(said)).toEqual([['ok'], ['already live']]);
  expect(await redis.zcard(keys().scheduled)).toBe(1);
});

test('a producer whose rights are those of the page can do all of it, and nothing else', async () => {
  const page = readRights();
  await redis.call('ACL', 'SETUSER', ...page.map((part) => part.replaceAll('{emails:', `{${queue}:`)));
  const url = server.url.replace('unix://', 'unix://producer:secret@');
  const asProducer = (verb: string, ...options: string[]) => foreign.inPythonAs(url, verb, 'a', ...options);
  expect(await asProducer('schedule', '--in', '1000')).toBe('ok');
  expect(await asProducer('schedule', '--in', '2000', '--mode', 'replace')).toBe('replaced');
  expect(await asProducer('cancel')).toBe('cancelled');
  expect(await asProducer('put', '--in', '1000')).toMatch(/^put/);
  expect(await asProducer('cancel', '--bare')).toBe('cancelled');
  queue = `${queue}-other`;
  await expect(asProducer('put', '--in', '1000')).rejects.toThrow(/NoPermission|permission/i);
});

/** The words of the ACL SETUSER line of the page, from the name of the user on. */
function readRights(): readonly string[] {
  const text = /^ACL SETUSER ([^`]+?)```/ms.exec(read('docs/wire-protocol.md'))?.[1] ?? '';
  return text.trim().split(/\s+/);
}
