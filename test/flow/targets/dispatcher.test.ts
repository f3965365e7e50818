/** A daemon with the role dispatcher calls the targets of queues; one without it opens nothing. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { createDaemon, type Daemon, type DaemonInput } from '../../../src/daemon/daemon.ts';
import { verifyWebhook } from '../../../src/dispatch/signature.ts';
import type { EventName, Events } from '../../../src/job/events.ts';
import type { Log } from '../../../src/kernel/log.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { ask } from '../../support/api.ts';
import { snapshot } from '../../support/keyspace.ts';
import { type Received, type Receiver, startReceiver } from '../../support/receiver.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

const SECRET = `whsec_${randomBytes(32).toString('base64')}`;
const VALUE = 'Bearer CANARY-VALUE-7391';
let server: TestRedis;
let redis: Redis;
let client: Client;
let receiver: Receiver;
const daemons: Daemon[] = [];

beforeEach(async () => {
  server = await startRedis();
  redis = openCommands({ redis: server.url, name: 'test' });
  await whenReady(redis);
  client = createClient({ redis: server.url });
  receiver = await startReceiver();
});
afterEach(async () => {
  await Promise.all(daemons.splice(0).map((daemon) => daemon.stop()));
  await client.close();
  close(redis);
  await receiver.close();
  await server.stop();
});

const targets = { allow: ['127.0.0.1'], secrets: { main: SECRET }, values: { crm: VALUE } };

interface Ran {
  readonly daemon: Daemon;
  readonly heard: <N extends EventName>(name: N) => readonly Events[N][];
  readonly lines: readonly string[];
  readonly base: string;
}

async function started(input: Omit<DaemonInput, 'redis'>): Promise<Ran> {
  const lines: string[] = [];
  const log = logTo(lines);
  const daemon = createDaemon({ redis: server.url, http: { port: 0 }, ...input }, { log });
  daemons.push(daemon);
  const heard: { readonly name: EventName; readonly payload: unknown }[] = [];
  for (const name of [
    'job.completed',
    'job.retried',
    'job.deferred',
    'job.dead',
    'target.called',
    'target.gone',
    'target.closed',
  ] as const) {
    daemon.events.on(name, (payload) => void heard.push({ name, payload }));
  }
  await daemon.start();
  const { host = '', port = 0 } = daemon.http() ?? {};
  return {
    daemon,
    lines,
    base: `http://${host}:${port}`,
    heard: <N extends EventName>(name: N) =>
      heard.flatMap((one) => (one.name === name ? [one.payload as Events[N]] : [])),
  };
}

function logTo(lines: string[]): Log {
  const write = (fields: object, message?: string) => void lines.push(JSON.stringify([fields, message]));
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}

const ALL = ['mover', 'http', 'dispatcher'] as const;
const all = () => started({ roles: [...ALL], targets });

describe('a daemon without the role', () => {
  test('opens no socket to a target and reads no job of its queue', async () => {
    await client.schedule('hooks', {}, { id: 'a' });
    await client.queues.set('hooks', { target: receiver.url });
    await started({ roles: ['mover', 'http'] });
    await expect.poll(async () => (await client.queues.get('hooks')).ready).toBe(1);
    const names = String(await redis.client('LIST'));
    expect(names).not.toMatch(/hooks/);
    expect(receiver.sockets()).toBe(0);
  });

  test('has the connections that it has where no queue has a target', async () => {
    const connections = async () =>
      [...String(await redis.client('LIST')).matchAll(/ name=(duestream[^ ]*)/g)].map(([, name]) => name).sort();
    await client.schedule('hooks', {}, { id: 'a', delay: '1h' });
    await started({ roles: ['mover', 'http'] });
    const before = await connections();
    await client.queues.set('hooks', { target: receiver.url });
    expect(await connections()).toEqual(before);
  });

  test('is beside producers that send Redis the commands and bytes that they send where no queue has a target', async () => {
    const at = new Date(Date.now() + 3_600_000);
    const counted = async () => {
      const [stats, commands] = [await redis.info('stats'), await redis.info('commandstats')];
      const calls = [...commands.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(([, name, times]) => [
        name,
        Number(times),
      ]);
      const bytes = Number(/total_net_input_bytes:(\d+)/.exec(stats)?.[1]);
      return { bytes, calls: new Map(calls.map(([name, times]) => [String(name), Number(times)])) };
    };
    /** What one call sends of a producer that knows the queue. */
    const sentBy = async (id: string) => {
      const producer = createClient({ redis: server.url });
      await producer.schedule('hooks', {}, { id: `${id}-first`, at });
      const before = await counted();
      await producer.schedule('hooks', {}, { id, at });
      const after = await counted();
      await producer.close();
      const calls = [...after.calls].map(([name, times]) => [name, times - (before.calls.get(name) ?? 0)]);
      return { bytes: after.bytes - before.bytes, calls: calls.filter(([, times]) => times !== 0) };
    };
    const without = await sentBy('a');
    await client.queues.set('hooks', { target: receiver.url });
    expect(await sentBy('b')).toEqual(without);
    expect(without.calls.length).toBeGreaterThan(0);
  });

  test('says to somebody who tries the target that it calls none', async () => {
    await client.schedule('hooks', {}, { id: 'a', delay: '1h' });
    const { base } = await started({ roles: ['mover', 'http'] });
    const { status, body } = await ask(base, 'POST /v1/queues/hooks/target/try', { body: {} });
    expect(status).toBe(404);
    expect(body.detail).toMatch(/role dispatcher/);
  });
});

describe('a daemon with the role', () => {
  test('sends a job that curl has scheduled to its receiver, signed, and the job is done', async () => {
    const { base, heard } = await all();
    await ask(base, 'POST /v1/queues/hooks/jobs', { body: { id: 'first', data: {}, delay: '1h' } });
    const set = await ask(base, 'PATCH /v1/queues/hooks/settings', {
      body: { target: { url: receiver.url, secret: 'main', headers: { Authorization: '$crm' } } },
    });
    expect(set.status).toBe(200);
    await ask(base, 'POST /v1/queues/hooks/jobs', { body: { id: 'order-42', data: { order: 42 } } });
    await expect.poll(() => receiver.received.length).toBe(1);
    const [call] = receiver.received;
    expect(call).toMatchObject({ method: 'POST', path: '/due', body: '{"order":42}' });
    expect(call?.headers.authorization).toBe(VALUE);
    expect(verifyWebhook(call?.headers ?? {}, call?.body ?? '', SECRET).id).toMatch(/^hooks\/order-42\//);
    await expect.poll(() => heard('job.completed').length).toBe(1);
    expect(heard('target.called')).toMatchObject([{ queue: 'hooks', outcome: '2xx' }]);
  });

  test('calls the target of its configuration: one call from curl is enough', async () => {
    const target = { url: receiver.url, secret: 'main' };
    const { base } = await started({ roles: [...ALL], targets, queues: { hooks: { target } } });
    await ask(base, 'POST /v1/queues/hooks/jobs', { body: { data: { order: 42 } } });
    await expect.poll(() => receiver.received.length).toBe(1);
    const [call] = receiver.received;
    expect(verifyWebhook(call?.headers ?? {}, call?.body ?? '', SECRET).id).toMatch(/^hooks\//);
    expect(call?.body).toBe('{"order":42}');
  });

  test('sends the next job as the target says by then, and none when it is taken back', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: receiver.url });
    const { base } = await all();
    await client.schedule('hooks', {}, { id: 'a' });
    await expect.poll(() => receiver.received.length).toBe(1);
    // Now its jobs may go to several hosts, and its worker takes more of them.
    await client.queues.set('hooks', { target: { url: receiver.url, method: 'PUT', hosts: ['127.0.0.1'] } });
    const methods = async () => {
      await client.schedule('hooks', {});
      return receiver.received.map(({ method }) => method);
    };
    await expect.poll(methods, { interval: 500 }).toContain('PUT');
    await client.queues.set('hooks', { target: false });
    await expect.poll(async () => (await ask(base, 'GET /v1/queues/hooks')).body.workers).toBe(0);
  });

  test('gates the queue, so that a slow host cannot take all slots', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: receiver.url });
    await all();
    await expect
      .poll(async () => (await client.queues.get('hooks')).settings)
      .toMatchObject({ fair: true, perGroup: 10 });
  });

  test('serves no queue whose target names what its configuration has not, and says which name', async () => {
    await client.schedule('hooks', {}, { id: 'a' });
    await client.queues.set('hooks', { target: { url: receiver.url, secret: 'mian' } });
    const { lines } = await all();
    await expect
      .poll(() => lines.join('\n'))
      .toMatch(/targets\.secrets of this configuration has none of that name; did you mean main/);
    expect(receiver.sockets()).toBe(0);
    expect((await client.get('hooks', 'a'))?.state).not.toBe('dead');
  });

  test('calls no host beyond targets.hosts, whoever has set the target', async () => {
    await client.schedule('hooks', {}, { id: 'a' });
    await client.queues.set('hooks', { target: { url: receiver.url, headers: { Authorization: '$crm' } } });
    const { lines } = await started({ roles: [...ALL], targets: { ...targets, hosts: ['api.example.com'] } });
    await expect
      .poll(() => lines.join('\n'))
      .toMatch(/leads to 127\.0\.0\.1, which targets\.hosts of this configuration does not have/);
    expect(receiver.sockets()).toBe(0);
  });

  test('does not call the Redis that it is connected to, even where its machine may be called', async () => {
    const other = await startRedis({ port: true });
    try {
      const far = createClient({ redis: other.url });
      await far.schedule('hooks', {}, { id: 'a' });
      await far.queues.set('hooks', { target: `http://127.0.0.1:${other.port}/` });
      const daemon = createDaemon({ redis: other.url, roles: ['mover', 'dispatcher'], targets });
      daemons.push(daemon);
      await daemon.start();
      await expect.poll(async () => (await far.get('hooks', 'a'))?.state).toBe('dead');
      expect(JSON.stringify(await far.get('hooks', 'a'))).toMatch(/Redis is there/);
      await far.close();
      await daemon.stop();
    } finally {
      await other.stop();
    }
  });

  test('says of a target that answers 410 that it is gone, and its job is a dead letter', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: receiver.url });
    const { heard, lines } = await all();
    receiver.next((response) => void response.writeHead(410).end());
    await client.schedule('hooks', {}, { id: 'a' });
    await expect.poll(async () => (await client.get('hooks', 'a'))?.state).toBe('dead');
    expect(heard('target.gone')).toEqual([{ queue: 'hooks', id: 'a', host: '127.0.0.1' }]);
    expect(lines.join('\n')).toContain('a target is gone for good');
  });

  test('has no more requests to one host under way than perHost, over all queues that call it', async () => {
    const names = ['hooks', 'mails'];
    for (const name of names) {
      await client.schedule(name, {}, { id: 'later', delay: '1h' });
      await client.queues.set(name, { target: receiver.url });
    }
    const { heard } = await started({ roles: [...ALL], targets: { ...targets, perHost: 1 } });
    const held: ServerResponse[] = [];
    receiver.next((response) => void held.push(response));
    for (const name of names) await client.schedule(name, {}, { id: 'a' });
    await expect.poll(() => heard('job.deferred').length).toBeGreaterThan(0);
    await expect.poll(() => receiver.received.length).toBe(1);
    held[0]?.end('fine');
    await expect.poll(() => heard('job.completed').length).toBe(2);
    expect(heard('job.deferred')[0]?.reason).toMatch(/^127\.0\.0\.1 has as many requests as targets\.perHost allows/);
  });

  test('asks nobody again while a target says 429, and no attempt is used', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: receiver.url });
    await all();
    receiver.next((response) => void response.writeHead(429, { 'Retry-After': '3600' }).end());
    await client.schedule('hooks', {}, { id: 'a' });
    await expect.poll(() => receiver.received.length).toBe(1);
    const held = async () => (await client.queues.why('hooks')).reasons.map(({ heldBy }) => heldBy);
    await expect.poll(async () => (await client.get('hooks', 'a'))?.state).toBe('scheduled');
    await client.schedule('hooks', {}, { id: 'b' });
    await expect.poll(held).toContain('queue-closed');
    expect(await client.get('hooks', 'a')).toMatchObject({ state: 'scheduled', failures: 0 });
    expect(receiver.received).toHaveLength(1);
  });

  test('closes the queue of a host that five requests in a row could not reach', async () => {
    const gone = await startReceiver();
    await gone.close();
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: gone.url });
    const { heard } = await all();
    for (let at = 0; at < 40; at += 1) await client.schedule('hooks', at);
    await expect.poll(() => heard('target.closed').length).toBeGreaterThan(0);
    expect(heard('target.closed')[0]).toMatchObject({ queue: 'hooks', host: '127.0.0.1', why: 'not-connected' });
    await client.schedule('hooks', {}, { id: 'after' });
    const held = async () => (await client.queues.why('hooks')).reasons.map(({ heldBy }) => heldBy);
    await expect.poll(held).toContain('queue-closed');
  });

  test('is beside a worker of an older version that knows no target: the target is refused', async () => {
    await client.schedule('hooks', {}, { id: 'a' });
    const identity = {
      id: 'w-old',
      role: 'worker' as const,
      host: 'mill',
      pid: 7,
      startedMs: 0,
      queues: ['hooks'],
      version: '0.1.0',
    };
    await beat(redis, { namespace: 'duestream', identity, ttlMs: 60_000 });
    await all();
    await expect(client.queues.set('hooks', { target: receiver.url })).rejects.toThrow(/worker w-old on mill lives/);
    expect(receiver.sockets()).toBe(0);
  });
});

describe('a job that says more of its request', () => {
  test('is sent where and how it says, on the host of its queue, and signed as all others', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    const headers = { Authorization: '$crm', 'X-Kind': 'all' };
    await client.queues.set('hooks', { target: { url: receiver.url, secret: 'main', headers } });
    const { base } = await all();
    const own = { url: '/orders/7?full=1', method: 'PUT', headers: { 'x-kind': 'order' }, contentType: 'text/plain' };
    await ask(base, 'POST /v1/queues/hooks/jobs', { body: { id: 'a', data: 'as it stands', target: own } });
    await client.schedule('hooks', { of: 'queue' }, { id: 'b' });
    await expect.poll(() => receiver.received.length).toBe(2);
    const [first, second] = receiver.received.toSorted((one, other) => (one.path < other.path ? 1 : -1));
    expect(first).toMatchObject({ path: '/orders/7?full=1', method: 'PUT', body: 'as it stands' });
    expect(first?.headers).toMatchObject({
      authorization: VALUE,
      'x-kind': 'order',
      'content-type': 'text/plain',
    });
    expect(verifyWebhook(first?.headers ?? {}, first?.body ?? '', SECRET).id).toMatch(/^hooks\/a\//);
    expect(second).toMatchObject({ path: '/due', method: 'POST', body: '{"of":"queue"}' });
    expect(second?.headers['x-kind']).toBe('all');
  });

  test('comes from a schedule, and is another one after an edit', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: receiver.url });
    await all();
    await client.schedules.put('day', { queue: 'hooks', every: '1s', maxRuns: 1, target: '/day' });
    await client.edit('hooks', 'later', { target: '/later' });
    await client.reschedule('hooks', 'later', { delay: 0 });
    await expect.poll(() => receiver.received.map(({ path }) => path).toSorted()).toEqual(['/day', '/later']);
  });

  test('is refused by every call where its queue calls no such host, and nothing is sent', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.schedule('plain', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: { url: 'https://api.example.com/due' } });
    const target = 'https://other.example.com/';
    const says =
      /url of target is "https:\/\/other\.example\.com\/"; allowed in this queue: paths, https:\/\/api\.example\.com$/;
    await expect(client.schedule('hooks', {}, { id: 'a', target })).rejects.toThrow(says);
    await expect(client.edit('hooks', 'later', { target })).rejects.toThrow(says);
    await expect(client.schedules.put('day', { queue: 'hooks', every: '1d', target })).rejects.toThrow(says);
    await expect(client.sets.begin('hooks', 'rows', { then: { data: {}, target } })).rejects.toThrow(says);
    await expect(client.schedule('plain', {}, { target: '/a' })).rejects.toThrow(
      /queue plain has none; allowed: after/,
    );
    expect(await client.get('hooks', 'a')).toBeUndefined();
  });

  test('is dead where its queue does not call that host any more, and nothing was sent', async () => {
    const other = await startReceiver('127.0.0.2');
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: { url: receiver.url, hosts: ['127.0.0.1', '127.0.0.2'] } });
    await client.schedule('hooks', {}, { id: 'a', delay: '1h', target: other.url });
    await client.queues.set('hooks', { target: receiver.url });
    await started({ roles: [...ALL], targets: { ...targets, allow: ['127.0.0.1', '127.0.0.2'] } });
    await client.reschedule('hooks', 'a', { delay: 0 });
    await expect.poll(async () => (await client.get('hooks', 'a'))?.state).toBe('dead');
    expect(JSON.stringify(await client.get('hooks', 'a'))).toMatch(/target-refused: url of target is/);
    expect(other.sockets() + receiver.sockets()).toBe(0);
    await other.close();
  });

  test('is dead where its host is beyond targets.hosts of the dispatcher, and a try says so', async () => {
    const other = await startReceiver('127.0.0.2');
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: { url: receiver.url, hosts: ['*'] } });
    const allow = ['127.0.0.1', '127.0.0.2'];
    const { base } = await started({ roles: [...ALL], targets: { ...targets, allow, hosts: ['127.0.0.1'] } });
    await client.schedule('hooks', {}, { id: 'a', target: other.url });
    await expect.poll(async () => (await client.get('hooks', 'a'))?.state).toBe('dead');
    const says = /leads to 127\.0\.0\.2, which targets\.hosts of this configuration does not have/;
    expect(JSON.stringify(await client.get('hooks', 'a'))).toMatch(says);
    const tried = await ask(base, 'POST /v1/queues/hooks/target/try', { body: { target: other.url } });
    expect(tried).toMatchObject({ status: 200, body: { means: 'dead', why: expect.stringMatching(says) } });
    const path = await ask(base, 'POST /v1/queues/hooks/target/try', { body: { target: '/orders/7' } });
    expect(path.body).toMatchObject({ means: 'done', url: `http://127.0.0.1:${receiver.port}/orders/7` });
    expect(other.sockets()).toBe(0);
    await other.close();
  });

  test('closes nothing for jobs of other hosts when its host says 429, and takes a place at that host', async () => {
    const other = await startReceiver('127.0.0.2');
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: { url: receiver.url, hosts: ['127.0.0.1', '127.0.0.2'] } });
    await started({ roles: [...ALL], targets: { ...targets, allow: ['127.0.0.1', '127.0.0.2'], perHost: 1 } });
    const held: ServerResponse[] = [];
    other.next(
      (response) => void response.writeHead(429, { 'Retry-After': '3600' }).end(),
      (response) => void held.push(response),
    );
    await client.schedule('hooks', {}, { id: 'put-aside', target: other.url });
    await expect.poll(() => other.received.length).toBe(1);
    await client.schedule('hooks', {}, { id: 'held', target: other.url });
    await expect.poll(() => held.length).toBe(1);
    await client.schedule('hooks', {}, { id: 'of-queue' });
    await expect.poll(() => receiver.received.length).toBe(1);
    held[0]?.end('fine');
    await expect.poll(async () => (await client.get('hooks', 'held'))?.state).toBe('done');
    expect(await client.get('hooks', 'put-aside')).toMatchObject({ state: 'scheduled', failures: 0 });
    await other.close();
  });
});

describe('a secret of the configuration', () => {
  test('stands in no key, line, page, metric, error or dead letter, even where a target sends back what it was sent', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', {
      history: { result: true },
      target: { url: receiver.url, secret: 'main', headers: { Authorization: '$crm', 'X-Key': '$crm' } },
    });
    const { base, lines, heard, daemon } = await all();
    const echo =
      (status: number) =>
      (response: ServerResponse, { headers }: Pick<Received, 'headers'>) =>
        void response.writeHead(status).end(JSON.stringify(headers));
    receiver.next(echo(200), echo(404), (response) => void response.destroy());
    for (const id of ['done', 'dead', 'cut']) {
      await client.schedule('hooks', {}, { id });
      await expect
        .poll(() => receiver.received.some(({ headers }) => String(headers['webhook-id']).includes(`/${id}/`)))
        .toBe(true);
    }
    await expect.poll(() => heard('target.called').length).toBeGreaterThanOrEqual(3);
    await expect.poll(async () => (await client.get('hooks', 'dead'))?.state).toBe('dead');
    const tried = await ask(base, 'POST /v1/queues/hooks/target/try', { body: { data: {} } });
    const pages = await Promise.all(
      [
        'GET /v1/queues/hooks',
        'GET /v1/queues/hooks/jobs/done',
        'GET /v1/queues/hooks/jobs/dead',
        'GET /v1/queues/hooks/dead',
      ].map(async (what) => (await ask(base, what)).text),
    );
    const everything = [
      JSON.stringify(await snapshot(redis)),
      ...lines,
      ...pages,
      await daemon.metrics(),
      tried.text,
    ].join('\n');
    expect(everything).toContain('hooks');
    for (const canary of [VALUE, 'CANARY-VALUE-7391', SECRET, SECRET.slice('whsec_'.length)])
      expect(everything).not.toContain(canary);
    expect(receiver.received[0]?.headers.authorization).toBe(VALUE);
  });
});

describe('target/try', () => {
  test('sends one request, and says step by step what came of it', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    await client.queues.set('hooks', { target: { url: receiver.url, secret: 'main' } });
    const { base } = await all();
    receiver.next((response) => void response.writeHead(429, { 'Retry-After': '7' }).end());
    const { status, body } = await ask(base, 'POST /v1/queues/hooks/target/try', { body: { data: { order: 1 } } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ queue: 'hooks', method: 'POST', url: receiver.url, means: 'put aside', status: 429 });
    expect(body.steps.map(({ step, isWell }: { step: string; isWell: boolean }) => [step, isWell])).toEqual([
      ['names', true],
      ['address', true],
      ['answer', false],
    ]);
    const [call] = receiver.received;
    expect(verifyWebhook(call?.headers ?? {}, call?.body ?? '', SECRET).id).toMatch(/^hooks\/try-/);
    expect((await client.queues.get('hooks')).scheduled).toBe(1);
  });

  test('is refused beyond ten in a minute, and for a queue without a target', async () => {
    await client.schedule('hooks', {}, { id: 'later', delay: '1h' });
    const { base } = await all();
    const tried = () => ask(base, 'POST /v1/queues/hooks/target/try', { body: {} });
    const statuses: number[] = [];
    for (let at = 0; at < 11; at += 1) statuses.push((await tried()).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 400), 429]);
    expect(receiver.sockets()).toBe(0);
  });
});
