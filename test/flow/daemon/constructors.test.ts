/** What the constructors have in common: synchronous, connected when first used, started, stopped and disposed alike. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { createWorker } from '../../../src/daemon/embedded-worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
const away = 'unix:///nowhere/redis.sock';

beforeAll(async () => {
  server = await startRedis({ port: true });
});
afterAll(() => server.stop());

/** So many connections of ours are open. */
const connections = async () =>
  String(await (await server.client()).client('LIST')).split('name=duestream:').length - 1;

const makers = {
  createClient: (options: object) => createClient({ redis: server.url, retryBudget: 0, ...options }),
  createWorker: (options: object) => createWorker('mail', () => undefined, { redis: server.url, ...options }),
  createDaemon: (options: object) => createDaemon({ redis: server.url, roles: ['mover'], ...options }),
} as const;
const end = (made: AsyncDisposable) => made[Symbol.asyncDispose]();
const services = { createWorker: makers.createWorker, createDaemon: makers.createDaemon } as const;
/** A short time for a dial, so that nobody waits long for a Redis that is away. */
const gone = () => ({ redis: { url: away, connectTimeout: '200ms' } });

describe.each(Object.entries(makers))('%s', (name, make) => {
  test('dials nobody before it is used, and can be stopped then, twice', async () => {
    const made = make({});
    expect(await connections()).toBe(0);
    await Promise.all([end(made), end(made)]);
    await end(made);
    await expect(made.ready()).rejects.toMatchObject({ code: 'stopped' });
    expect(await connections()).toBe(0);
  });

  test('is ready when it is connected, and leaves no connection', async () => {
    const made = make({});
    await Promise.all([made.ready(), made.ready()]);
    const open = await connections();
    expect(open).toBeGreaterThan(0);
    await made.ready();
    expect(await connections()).toBe(open);
    await end(made);
    await expect.poll(connections).toBe(0);
  });

  test('that is stopped while it waits for Redis says so', async () => {
    const made = make(gone());
    const ready = made.ready();
    await end(made);
    await expect(ready).rejects.toMatchObject({ code: 'stopped' });
  });

  test('stops at the end of its block', async () => {
    {
      await using made = make({});
      await made.ready();
      expect(await connections()).toBeGreaterThan(0);
    }
    await expect.poll(connections).toBe(0);
  });

  test.each([
    ['an option that is not there', { namspace: 'x' }, /namspace .*did you mean namespace\?/],
    ['a wrong value', { namespace: 'A b' }, /namespace .*is "A b"/],
    ['a wrong address', { redis: { hots: 'h' } }, /did you mean host\?/],
    [
      'a time with its unit in its name',
      { redis: { url: 'redis://h', commandTimeoutMs: 5 } },
      /did you mean commandTimeout\?/,
    ],
  ])('refuses %s at once', (_, options, message) => {
    const said = { code: 'bad-config', message: expect.stringMatching(message) };
    expect(() => make(options)).toThrow(expect.objectContaining(said));
  });

  test('refuses options that are none', () => {
    const makeIt: Readonly<Record<string, (options: never) => unknown>> = {
      createClient,
      createDaemon,
      createWorker: (options) => createWorker('mail', () => undefined, options),
    };
    for (const options of [undefined, null, 5, []]) {
      expect(() => makeIt[name]?.(options as never)).toThrow(expect.objectContaining({ code: 'bad-config' }));
    }
  });
});

test.each([
  ['jobLease', () => createWorker('mail', () => undefined, { redis: server.url, ...{ jobLeaseMs: 5000 } })],
  ['shutdown', () => createWorker('mail', () => undefined, { redis: server.url, ...{ shutdownMs: 5000 } })],
  ['retryBudget', () => createClient({ redis: server.url, ...{ retryBudgetMs: 5000 } })],
  ['horizon', () => createClient({ redis: server.url, ...{ horizonMs: 5000 } })],
  ['mover.lease', () => createDaemon({ mover: { lease: '5s', ...{ leaseMs: 5000 } } })],
])('a time whose name had its unit is refused with the name %s', (now, make) => {
  expect(make).toThrow(
    expect.objectContaining({ code: 'bad-config', message: expect.stringMatching(`did you mean ${now}\\?$`) }),
  );
});

describe.each(Object.entries(services))('%s', (_, make) => {
  test('starts once, however often it is asked', async () => {
    const made = make({});
    await Promise.all([made.start(), made.start()]);
    const open = await connections();
    await made.start();
    expect(await connections()).toBe(open);
    await made.stop();
    await expect(made.start()).rejects.toMatchObject({
      code: 'stopped',
      message: expect.stringMatching('was stopped; create another one'),
    });
    await expect.poll(connections).toBe(0);
  });

  test('goes on with the connections of ready', async () => {
    const made = make({});
    await made.ready();
    const open = await connections();
    await made.start();
    expect(await connections()).toBe(open);
    await made.stop();
  });

  test('that was stopped while it started says so, and leaves nothing', async () => {
    const made = make({});
    const started = made.start();
    const stopped = made.stop();
    await expect(started).rejects.toMatchObject({ code: 'stopped' });
    await stopped;
    await expect.poll(connections).toBe(0);
  });
});

/** At the same time: each waits for its Redis as long as it does in earnest. */
describe.concurrent('while Redis is away', () => {
  test.each(Object.entries(makers))(
    '%s says so, leaves nothing behind, and tries again when it is asked again',
    async (_, make) => {
      const made = make(gone());
      await expect(made.ready()).rejects.toMatchObject({ name: 'DuestreamError', code: 'unavailable' });
      await expect(made.ready()).rejects.toMatchObject({ code: 'unavailable' });
      await end(made);
    },
  );

  test.each(Object.entries(services))('%s cannot start, and says why, once and again', async (_, make) => {
    const made = make(gone());
    await expect(made.start()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(made.start()).rejects.toMatchObject({
      code: 'stopped',
      message: expect.stringMatching('could not start'),
    });
    await made.stop();
  });
});

test('a daemon looks for its handler module when it starts, and leaves nothing when there is none', async () => {
  const worker = { module: 'nowhere.mjs' };
  const daemon = createDaemon({ redis: server.url, roles: ['mover', 'worker'], worker });
  await expect(daemon.start()).rejects.toMatchObject({
    code: 'bad-input',
    message: expect.stringMatching('no such file'),
  });
  expect(await connections()).toBe(0);
  const without = () => createDaemon({ redis: server.url, roles: ['worker'] });
  expect(without).toThrow(expect.objectContaining({ code: 'bad-config' }));
});

describe('the first call of a producer', () => {
  test('connects, and calls at the same time share the connection', async () => {
    await using producer = createClient({ redis: server.url });
    const calls = Array.from({ length: 50 }, (_, at) => producer.schedule('mail', at, { id: `n${at}`, delay: '1h' }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(
      Array.from({ length: 50 }, () => 'scheduled'),
    );
    expect(await connections()).toBe(1);
  });

  test('is still carried out when stop comes after it', async () => {
    const producer = createClient({ redis: server.url });
    const call = producer.schedule('mail', 1, { id: 'last', delay: '1h' });
    await producer.close();
    expect(await call).toMatchObject({ id: 'last', status: 'scheduled' });
  });

  test('while Redis is away is rejected as in any outage, and the next one finds Redis again', async () => {
    const own = await startRedis({ port: true });
    const redis = { url: own.url, connectTimeout: '300ms' };
    const producer = createClient({ redis, retryBudget: '300ms' });
    await own.kill('SIGKILL');
    await expect(producer.schedule('mail', 1)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(producer.get('mail', 'x')).rejects.toMatchObject({ code: 'unavailable' });
    await expect(producer.schedules.list()).rejects.toMatchObject({ code: 'unavailable' });
    await own.restart();
    expect(await producer.schedule('mail', 1, { id: 'x' })).toMatchObject({ status: 'scheduled' });
    expect((await producer.schedules.list()).schedules).toEqual([]);
    await producer.close();
    await own.stop();
  });

  test('with bad input is refused without a connection', async () => {
    const producer = createClient({ redis: away });
    const refused = { code: 'bad-input' };
    await expect(producer.schedule('A b', 1)).rejects.toMatchObject(refused);
    await expect(producer.schedule('mail', 1, { delay: 'soon' })).rejects.toMatchObject(refused);
    await expect(producer.cancel('mail', '')).rejects.toMatchObject(refused);
    await expect(producer.deadLetters.replay('mail', 'x')).rejects.toMatchObject(refused);
    await producer.close();
  });
});
