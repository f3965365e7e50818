/** Workers that are killed in the middle of a handler, as processes: what each mode of delivery promises then. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { useProcesses } from '../../support/processes.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { root } from '../../support/repository.ts';

const processes = useProcesses();
let server: TestRedis;
let producer: Client;
let redis: Redis;
let file = '';

const env = () => ({
  DUESTREAM_REDIS_URL: server.url,
  DUESTREAM_MOVER__LEASE: '1000',
  EFFECTS_FILE: file,
  DUESTREAM_WORKER__JOB_LEASE: '500',
  DUESTREAM_WORKER__BEAT_TTL: '500',
  DUESTREAM_WORKER__GRACE: '200',
  DUESTREAM_WORKER__CONCURRENCY: '1',
});
const worker = (name: string) =>
  processes.launch({
    name,
    env: env(),
    args: ['worker', join(root, 'test/fixtures/delivery-handlers.mjs'), '--log-level', 'debug'],
  });
const effects = () => readFileSync(file, 'utf8').split('\n').slice(0, -1);
const key = (queue: string, name: string) => `duestream:v1:{${queue}:0}:${name}`;

beforeEach(async () => {
  file = join(processes.folder, 'effects');
  writeFileSync(file, '');
  server = await startRedis({ port: true });
  producer = createClient({ redis: server.url });
  redis = await server.client();
  await processes.started({ name: 'daemon', args: ['start', '--roles', 'mover'], env: env() });
});
afterEach(async () => {
  await producer.close();
  await server.stop();
});

it('at most once: what ran when its worker was killed never runs again', async () => {
  const first = worker('worker 1');
  await producer.schedule('once', undefined, { id: 'kill' });
  expect(await first.exited).toMatchObject({ signal: 'SIGKILL' });
  expect(await producer.get('once', 'kill')).toMatchObject({ state: 'done', attempts: 1 });
  const second = worker('worker 2');
  // The dead one is retired once all that it held has been looked through.
  await second.line(({ msg, queue }) => msg === 'removed a dead worker from the consumer group' && queue === 'once');
  await producer.schedule('once', undefined, { id: 'after' });
  await second.logged('job completed');
  expect(effects()).toEqual(['once kill 1', 'once after 1']);
});

it('effectively once: wherever its worker is killed, the effect of a job happens once', async () => {
  const moments = ['asked', 'returned', 'sent', 'under way'];
  for (const moment of moments) await producer.schedule('sum', moment, { id: moment.replace(' ', '-') });
  for (const nth of moments.keys()) await worker(`worker ${nth}`).exited;
  const last = worker('worker');
  await last.line(({ msg, queue }) => msg === 'removed a dead worker from the consumer group' && queue === 'sum');
  const done = async () => Number(await redis.hget(key('sum', 'meta'), 'n.done'));
  await expect.poll(done).toBe(moments.length);
  expect(await redis.get('{sum:0}:sum')).toBe(String(5 * moments.length));
});

it('at least once: a job that kills its workers is dead in the end, and what it left half done is taken back', async () => {
  await producer.schedule('half', { order: 7 }, { id: 'order-7' });
  for (const name of ['worker 1', 'worker 2']) await worker(name).exited;
  await worker('worker 3').logged('job completed');
  expect(effects()).toEqual([
    'half order-7 1',
    'half order-7 2',
    'undone order-7 {"order":7} crashes-exhausted crash crash refused',
  ]);
  expect(await producer.get('half', 'order-7')).toMatchObject({ state: 'dead', attempts: 3 });
});
