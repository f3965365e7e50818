/** Waiting for the end of jobs: of one, of a list, of all that a filter means; also when messages are lost. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Client, type ClientOptions, createClient, type JobEnd } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { type Clock, systemClock } from '../../../src/kernel/clock.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { replicated, startSentinel } from '../../support/topology-lite.ts';

const mail = defineQueue<number>('mail');
let server: TestRedis;
let admin: Redis;
const made: Client[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  admin = await server.client();
  await admin.flushall();
});
afterEach(async () => {
  for (const client of made.splice(0)) await client.close();
});

function open(options: Partial<ClientOptions> = {}): Client {
  const client = createClient({ redis: server.url, ...options });
  made.push(client);
  return client;
}

/** An hour of the client passes in a minute or so: what it does again after 5 s it does at once. */
const FAST = 50;
const fast: Clock = {
  wallMs: systemClock.wallMs,
  monotonicMs: () => systemClock.monotonicMs() * FAST,
  sleep: (ms, signal) => systemClock.sleep(ms / FAST, signal),
  timer: (ms, callback) => systemClock.timer(ms / FAST, callback),
};

/** How many connections hear of ends. */
const listeners = async (): Promise<number> =>
  Object.values((await admin.pubsub('SHARDNUMSUB', 'duestream:v1:{mail:0}:over')) as unknown[]).map(Number)[1] ?? 0;
const marked = async (redis: Pick<Redis, 'hmget'>, ids: readonly string[]) => {
  const runs = await redis.hmget('duestream:v1:{mail:0}:runs', ...ids.map((id) => `j:${id}`));
  return runs.every((run) => run?.split('\n')[0]?.endsWith(' 4'));
};
const whenMarked = (...ids: readonly string[]) => expect.poll(() => marked(admin, ids)).toBe(true);

describe('one job', () => {
  test('is waited for until it is over', async () => {
    const client = open();
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const waiting = client.wait(mail, 'a', { timeout: '20s' });
    await whenMarked('a');
    await client.cancel(mail, 'a');
    expect(await waiting).toEqual({ id: 'a', status: 'cancelled', token: undefined, overMs: expect.any(Number) });
  });

  test('that is over is told at once, and one that nobody knows too', async () => {
    const client = open();
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    await client.cancel(mail, 'a');
    expect(await client.wait(mail, 'a')).toMatchObject({ status: 'cancelled' });
    expect(await client.wait(mail, 'never')).toEqual({ id: 'never', status: 'unknown' });
  });

  test('that is not over when the time is up goes on', async () => {
    const client = open();
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    expect(await client.wait(mail, 'a', { timeout: 0 })).toEqual({ id: 'a', status: 'timeout' });
    expect(await client.wait(mail, 'a', { timeout: 30 })).toEqual({ id: 'a', status: 'timeout' });
    expect(await client.get(mail, 'a')).toMatchObject({ state: 'scheduled' });
    await expect.poll(listeners).toBe(0);
  });

  test('is waited for over one connection, made at the first wait and closed with the client', async () => {
    const client = open({ name: 'shop' });
    const names = async () =>
      String(await admin.client('LIST'))
        .match(/name=duestream:shop\S*/g)
        ?.toSorted() ?? [];
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    expect(await names()).toEqual(['name=duestream:shop']);
    const ids = ['a', 'a', 'b'];
    await Promise.all(ids.map((id) => client.wait(mail, id, { timeout: 20 })));
    expect(await names()).toEqual(['name=duestream:shop', 'name=duestream:shop:ends']);
    await client.close();
    await expect.poll(names).toEqual([]);
  });

  test('is left alone by a signal, and by the stop of the client', async () => {
    const client = open();
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const stop = new AbortController();
    const waiting = client.wait(mail, 'a', { signal: stop.signal });
    await whenMarked('a');
    stop.abort(new Error('the user has gone'));
    await expect(waiting).rejects.toThrow('the user has gone');
    const late = client.wait(mail, 'a');
    const told = expect(late).rejects.toMatchObject({ code: 'stopped' });
    await expect.poll(listeners).toBe(1);
    await client.close();
    await told;
    expect(await admin.hget('duestream:v1:{mail:0}:jobs', 'j:a')).toMatch(/^1/);
  });
});

test('a handler returns something, and who waits has it; one that fails is waited for through its retries', async () => {
  const history = { keep: '1h', result: true } as const;
  const reports = defineQueue<number>('reports', { history, attempts: 2, backoff: fixed(0) });
  const client = open();
  const daemon = createDaemon({ redis: { url: server.url }, roles: ['mover'], http: { port: 0 } });
  const handler = (job: { readonly data: number }) => {
    if (job.data === 2) throw new Error('no report');
    return { page: job.data };
  };
  const worker = createWorker(reports, handler, { redis: server.url });
  await daemon.start();
  await worker.start();
  try {
    await client.scheduleMany(reports, [
      { id: 'a', data: 1, delay: 200 },
      { id: 'b', data: 2, delay: 200 },
    ]);
    const [a, b] = await client.wait<{ page: number }>(reports, ['a', 'b'], { timeout: '30s' });
    expect(a).toMatchObject({ id: 'a', status: 'done', result: { kind: 'kept', value: { page: 1 } } });
    expect(b).toMatchObject({ id: 'b', status: 'dead', reason: 'attempts-exhausted', error: { message: 'no report' } });
    expect(b && 'token' in b && b.token).toMatch(/^\d+$/);
  } finally {
    await worker.stop();
    await daemon.stop();
  }
});

describe('many jobs', () => {
  test('of a list end in the order of the list, whenever each ended; an id may come twice', async () => {
    const client = open();
    const ids = Array.from({ length: 250 }, (_, nth) => `j${nth}`);
    await client.scheduleMany(
      mail,
      ids.map((id) => ({ id, data: 1, delay: '1h' })),
    );
    await client.cancel(mail, 'j3');
    const waiting = client.wait(mail, [...ids, 'j0', 'never'], { timeout: '20s' });
    await whenMarked('j0', 'j249');
    await client.cancel(mail, ids);
    const ends = await waiting;
    expect(ends.map(({ id }) => id)).toEqual([...ids, 'j0', 'never']);
    expect(ends.slice(0, 251).every(({ status }) => status === 'cancelled')).toBe(true);
    expect(ends.at(-1)).toEqual({ id: 'never', status: 'unknown' });
  });

  test('that a filter means come as they end; those that do not end come when the time is up', async () => {
    const client = open();
    await client.scheduleMany(mail, [
      { id: 'a', data: 1, delay: '1h', tags: ['x'] },
      { id: 'b', data: 1, delay: '1h', tags: ['x'] },
      { id: 'c', data: 1, delay: '1h', tags: ['x'] },
      { id: 'd', data: 1, delay: '1h' },
    ]);
    const ends: JobEnd[] = [];
    const ending = (async () => {
      for await (const end of client.ends(mail, { tag: 'x' }, { timeout: '1s' })) ends.push(end);
    })();
    await whenMarked('a', 'b', 'c');
    expect(await marked(admin, ['d'])).toBe(false);
    await client.cancel(mail, 'b');
    await expect.poll(() => ends.map(({ id, status }) => `${id} ${status}`)).toEqual(['b cancelled']);
    await client.cancel(mail, 'a');
    await ending;
    expect(ends.map(({ id, status }) => `${id} ${status}`)).toEqual(['b cancelled', 'a cancelled', 'c timeout']);
  });

  test('of a filter are left when nobody asks for more', async () => {
    const client = open();
    await client.scheduleMany(mail, [
      { id: 'a', data: 1, delay: '1h' },
      { id: 'b', data: 1, delay: '1h' },
    ]);
    const waiting = (async () => {
      for await (const end of client.ends(mail, { state: 'scheduled' })) return end.id;
      return undefined;
    })();
    await whenMarked('a', 'b');
    await client.cancel(mail, 'b');
    expect(await waiting).toBe('b');
    await expect.poll(listeners).toBe(0);
  });
});

describe('a message that is lost costs no more than the time until the same call is made again', () => {
  test('where the connection went, and came again', async () => {
    const client = open();
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const waiting = client.wait(mail, 'a', { timeout: '60s' });
    await whenMarked('a');
    await admin.client('PAUSE', '200');
    await Promise.all([admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub'), client.cancel(mail, 'a')]);
    expect(await waiting).toMatchObject({ status: 'cancelled' });
  });

  test('where a user may not subscribe', async () => {
    await admin.call('ACL', 'SETUSER', 'shop', 'on', '>secret', '~*', '&*', '+@all', '-ssubscribe');
    const url = new URL(server.url);
    url.username = 'shop';
    url.password = 'secret';
    const client = open({ redis: url.href, clock: fast });
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const waiting = client.wait(mail, 'a', { timeout: '1h' });
    await whenMarked('a');
    await admin.client('PAUSE', '1');
    await client.cancel(mail, 'a');
    expect(await waiting).toMatchObject({ status: 'cancelled' });
  });

  test('where a replaced job is marked by nobody', async () => {
    const client = open({ clock: fast });
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const waiting = client.wait(mail, 'a', { timeout: '1h' });
    await whenMarked('a');
    await client.schedule(mail, 2, { id: 'a', delay: '2h', ifExists: 'replace' });
    await whenMarked('a');
    await client.cancel(mail, 'a');
    expect(await waiting).toMatchObject({ status: 'cancelled' });
  });

  test('where a message came before its job was asked for again, without a done window', async () => {
    const client = open({ doneWindow: 0 });
    await client.schedule(mail, 1, { id: 'a', delay: '1h' });
    const waiting = client.wait(mail, 'a', { timeout: '20s' });
    await whenMarked('a');
    await client.cancel(mail, 'a');
    expect(await waiting).toEqual({ id: 'a', status: 'cancelled', token: undefined, overMs: undefined });
  });
});

describe('is refused', () => {
  test.each([
    ['an option that there is not', () => open().wait(mail, 'a', { time: 1 } as never), /time/],
    ['a time that is too long', () => open().wait(mail, 'a', { timeout: '2d' }), /timeout is "2d"; allowed: 0 to 1d/],
    ['an id that is none', () => open().wait(mail, 'a b'), /allowed/],
    ['too many', () => open().wait(mail, Array(10_001).fill('a')), /10001 ids are given; allowed: at most 10000/],
    ['a filter that says nothing', () => open().ends(mail, {}).next(), /the filter of ends says nothing/],
  ])('%s', async (_, call, words) => {
    await expect(call()).rejects.toThrow(words);
    await expect(call()).rejects.toMatchObject({ code: 'bad-input' });
  });
});

test('a wait goes on at the server that takes over, and so does a stream of ends', async () => {
  const place = await startSentinel();
  try {
    const client = open({ redis: place.url });
    for (const id of ['a', 'b', 'c']) await client.schedule(mail, 1, { id, delay: '1h', tags: [`of-${id < 'b'}`] });
    const waiting = client.wait(mail, 'a', { timeout: '1m' });
    const ends: string[] = [];
    const streamed = (async () => {
      for await (const { id } of client.ends(mail, { tag: 'of-false' }, { timeout: '1m' })) ends.push(id);
    })();
    await expect.poll(() => marked(place.primary.client, ['a', 'b', 'c'])).toBe(true);
    await replicated(place.primary);
    await place.failover();
    await client.cancel(mail, ['a', 'b', 'c']);
    expect(await waiting).toMatchObject({ id: 'a', status: 'cancelled' });
    await streamed;
    expect(ends.toSorted()).toEqual(['b', 'c']);
  } finally {
    await place.stop();
  }
});
