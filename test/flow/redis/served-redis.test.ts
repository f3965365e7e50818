/**
 * All of a job's life on a Redis as a serverless service offers it (`test/support/served-redis.ts`): without reads that block,
 * channels, `WAIT`, `CONFIG`, transactions and commands of many arguments. Workers poll (`worker.read: poll`), and everybody finds
 * by looking what nobody can tell them. `doctor` says what is missing.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemonOf, type Daemon } from '../../../src/daemon/daemon.ts';
import { readDaemonInput } from '../../../src/daemon/input.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { ARGUMENTS_MAX } from '../../../src/redis/scripts/bytes.ts';
import { createSubscriber } from '../../../src/worker/broadcast/subscriber.ts';
import { createWorker, type Worker } from '../../../src/worker/worker.ts';
import { ask } from '../../support/api.ts';
import { useCli } from '../../support/cli.ts';
import { type ServedRedis, startServed } from '../../support/served-redis.ts';
import { eventually, listen } from '../../support/worker-line.ts';

const cli = useCli();
const mail = defineQueue<{ fails?: number; next?: boolean }>('mail', { attempts: 2, backoff: fixed('10ms') });
const steps = defineQueue<{ step: number }>('steps', { delivery: 'effectively-once' });
const gated = defineQueue('gated', { perGroup: 1, concurrency: 4 });
const prices = defineQueue('prices', { broadcast: true });

let served: ServedRedis;
let daemon: Daemon;
let worker: Worker;
let url: string;
let client: ReturnType<typeof createClient>;
const ran: string[] = [];

beforeAll(async () => {
  served = await startServed();
  daemon = createDaemonOf(readDaemonInput({ http: { port: 0, rateMax: 100_000 }, redis: { url: served.url } }));
  await daemon.start();
  const { host, port } = daemon.http() ?? { host: '', port: 0 };
  url = `http://${host}:${port}`;
  client = createClient({ redis: served.url });
  worker = createWorker({
    redis: served.url,
    read: 'poll',
    pollEvery: 50,
    queues: [
      { queue: mail, handler: (job) => void runMail(job.id, job.data.fails ?? 0, job.attempt) },
      {
        queue: steps,
        handler: async ({ data }, { commit, commitJob, tag }) => {
          commit('HINCRBY', `${tag}:sum`, 'steps', 1);
          if (data.step < 3) await commitJob({ step: data.step + 1 });
        },
      },
      { queue: gated, handler: ({ id }) => void ran.push(id) },
    ],
  });
  await worker.start();
});
afterAll(async () => {
  await worker?.stop();
  await client?.close();
  await daemon?.stop();
  await served?.stop();
});

function runMail(id: string, fails: number, attempt: number): void {
  if (attempt <= fails) throw new Error('not yet');
  ran.push(id);
}

describe('a job', () => {
  test('is scheduled, promoted, started and done, and waited for', async () => {
    await client.schedule(mail, {}, { id: 'now' });
    await client.schedule(mail, {}, { id: 'soon', delay: 200, tags: ['user:42'] });
    expect(await client.wait(mail, 'now')).toMatchObject({ status: 'done' });
    expect(await client.wait(mail, 'soon')).toMatchObject({ status: 'done' });
    expect(ran).toEqual(expect.arrayContaining(['now', 'soon']));
  });

  test('is tried again, and dies when its attempts are used', async () => {
    await client.schedule(mail, { fails: 1 }, { id: 'again' });
    await client.schedule(mail, { fails: 9 }, { id: 'never' });
    expect(await client.wait(mail, 'again')).toMatchObject({ status: 'done' });
    expect(await client.wait(mail, 'never')).toMatchObject({ status: 'dead' });
    const { out } = await cli.run(['dead', 'ls', 'mail', '--redis', served.url, '--json']);
    expect(out).toContain('"never"');
  });

  test('commits its effects and the next job with its end, although the leader cannot be told of it', async () => {
    await client.schedule(steps, { step: 1 }, { id: 'first' });
    const redis = await served.server.client();
    await expect.poll(() => redis.hget('{steps:0}:sum', 'steps')).toBe('3');
    const { out } = await cli.run(['dead', 'ls', 'steps', '--redis', served.url, '--json']);
    expect(out).not.toContain('half-committed');
  });

  test('of a group waits for the one before it', async () => {
    const ids = ['{acme}1', '{acme}2', '{acme}3'];
    for (const id of ids) await client.schedule(gated, {}, { id });
    for (const id of ids) expect(await client.wait(gated, id)).toMatchObject({ status: 'done' });
    expect(ran.filter((id) => ids.includes(id))).toEqual(ids);
  });

  test('of a closed tag does not start', async () => {
    await client.tags.close(mail, 'invoice:7', { for: '1h', reason: 'paid' });
    expect(await client.schedule(mail, {}, { id: 'late', tags: ['invoice:7'] })).toMatchObject({ status: 'closed' });
    await client.tags.open(mail, 'invoice:7');
  });

  test('of a set leads to its callback', async () => {
    await client.sets.begin(mail, 'import-7', { then: { data: {} } });
    for (const id of ['m1', 'm2']) await client.schedule(mail, {}, { id, set: 'import-7' });
    await client.sets.seal(mail, 'import-7');
    // Its two members, and the callback.
    await eventually(() => ran.filter((id) => id.includes('import-7')).length).toBe(3);
  });

  test('is found in lists, changed and cancelled', async () => {
    const tagged = { tags: ['user:7'], delay: '1h' } as const;
    for (const id of ['l1', 'l2', 'l3']) await client.schedule(mail, {}, { id, ...tagged });
    const { jobs } = await client.list(mail, { tag: 'user:7' });
    expect(jobs.map(({ id }) => id).toSorted()).toEqual(['l1', 'l2', 'l3']);
    expect(await client.reschedule(mail, 'l1', { delay: 10 })).toMatchObject({ status: 'rescheduled' });
    expect(await client.wait(mail, 'l1')).toMatchObject({ status: 'done' });
    expect((await client.cancel(mail, 'l2')).status).toBe('cancelled');
    expect((await client.count(mail, { tag: 'user:7', state: 'scheduled' })).count).toBe(1);
  });
});

test('a schedule makes jobs', async () => {
  await cli.run(['schedules', 'put', 'each-second', '--queue', 'gated', '--every', '1s', '--redis', served.url]);
  await eventually(() => ran.filter((id) => id.startsWith('{schedule:each-second}')).length).toBeGreaterThan(1);
  await cli.run(['schedules', 'rm', 'each-second', '--redis', served.url]);
});

test('a broadcast job reaches a subscriber', async () => {
  const got: string[] = [];
  const subscriber = createSubscriber(prices, ({ id }) => void got.push(id), { redis: served.url, pollEvery: 50 });
  await subscriber.start();
  await client.schedule(prices, {}, { id: 'p1' });
  await eventually(() => got).toEqual(['p1']);
  await subscriber.stop();
});

test('the pages have what they ask for', async () => {
  for (const path of [
    'queues',
    'lateness',
    'schedules',
    'workers',
    'leaders',
    'queues/mail',
    'queues/mail/jobs?state=done',
    'doctor',
  ]) {
    expect({ path, status: (await ask(url, `GET /v1/${path}`)).status }).toEqual({ path, status: 200 });
  }
});

test('doctor says what is missing, and that it can be used', async () => {
  const { code, out } = await cli.run(['doctor', '--redis', served.url, '--json']);
  const { checks } = JSON.parse(out);
  const of = (name: string) => checks.find(({ check }: { readonly check: string }) => check === name);
  expect(of('offers')).toMatchObject({
    status: 'warn',
    saw: 'not offered: reads that block, sharded channels, WAIT, CLIENT ID, CONFIG GET',
    advice: expect.stringContaining('reads that block: set worker.read to poll; sharded channels: nobody is told'),
  });
  expect(of('scripts')).toMatchObject({ status: 'ok' });
  expect(checks.filter(({ status }: { readonly status: string }) => status === 'fail')).toEqual([]);
  expect(code).toBe(0);
});

test('a server without Lua is named as such', async () => {
  const bare = await startServed({ gone: ['EVAL', 'EVALSHA', 'SCRIPT'] });
  const { code, out } = await cli.run(['doctor', '--redis', bare.url, '--json']);
  await bare.stop();
  const { checks } = JSON.parse(out);
  expect(checks).toContainEqual({
    check: 'scripts',
    status: 'fail',
    saw: expect.stringMatching(/^EVAL is not offered: ERR unknown command/),
    advice: expect.stringContaining('built without the Lua engine'),
  });
  expect(code).toBe(1);
});

test('nothing that is refused was needed, and no command was too long', () => {
  expect(served.longest()).toBeLessThanOrEqual(ARGUMENTS_MAX);
  const byDoctor = ['acl whoami', 'client id', 'config get', 'wait', 'xreadgroup', 'acl'];
  const optional = ['ssubscribe', 'sunsubscribe', 'spublish'];
  expect(served.refused().filter((name) => ![...byDoctor, ...optional].includes(name))).toEqual([]);
  expect([...served.came.keys()].filter((name) => /^(multi|exec|watch|keys|monitor|debug)$/.test(name))).toEqual([]);
});

test('a worker that is to block says why it cannot, and starts nothing', async () => {
  const blocking = createWorker('other', () => undefined, { redis: served.url });
  const heard = listen(blocking.events);
  await blocking.start();
  await eventually(() =>
    heard
      .of('redis.away')
      .map(({ why }) => why)
      .join(),
  ).toContain('BLOCK is not allowed');
  await blocking.stop({ shutdown: 100 });
});
