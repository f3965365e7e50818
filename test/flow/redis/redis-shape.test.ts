/** One way to say where Redis is, for all that connects: a URL, an object with `url`, or options of ioredis. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import { ladder } from '../../../src/job/backoff.ts';
import type { EventSource } from '../../../src/job/events.ts';
import { timeoutOf } from '../../../src/redis/connection/call-end.ts';
import { close, openBlocking, openCommands, type RedisInput } from '../../../src/redis/connection/connect.ts';
import { defineHandlers } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';

let server: TestRedis;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startRedis({ port: true });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => server.stop());

/** Each way to connect; it resolves when it is connected. */
const doors: Readonly<Record<string, (redis: RedisInput) => Promise<void>>> = {
  createClient: async (redis) => {
    const producer = createClient({ redis });
    ends.push(producer.close);
    await producer.ready();
  },
  createWorker: async (redis) => {
    const worker = createWorker('emails', () => undefined, { redis });
    ends.push(worker.stop);
    await worker.start();
  },
  createDaemon: async (redis) => {
    const daemon = createDaemon({ redis, roles: ['mover'] });
    ends.push(daemon.stop);
    await daemon.start();
    expect(daemon.redisLabel).toBe(server.url);
  },
};
/** Which databases our connections use. */
const clients = async () => [
  ...String(await (await server.client()).client('LIST')).matchAll(/name=duestream:.* db=(\d+)/g),
];

describe.each(Object.keys(doors))('%s', (name) => {
  const connect = async (redis: unknown) => doors[name]?.(redis as RedisInput);

  test('takes a URL, an object with its url, and options of ioredis', async () => {
    for (const redis of [server.url, { url: server.url }, { host: '127.0.0.1', port: server.port }]) {
      await connect(redis);
      expect((await clients()).length).toBeGreaterThan(0);
      for (const end of ends.splice(0)) await end();
      await expect.poll(clients).toEqual([]);
    }
  });

  test('takes options beside the url', async () => {
    await connect({ url: server.url, commandTimeout: 1500, connectTimeout: '1500ms', maxRetriesPerRequest: null });
  });

  test.each([
    [undefined, /redis is not given|redis is undefined/],
    [null, /redis is null/],
    [6379, /redis is 6379; allowed: a URL such as redis:\/\//],
    [['redis://127.0.0.1'], /redis is an array/],
    [new URL('redis://user:secret@127.0.0.1:6379'), /redis is an object of the class URL/],
    [{ url: undefined }, /redis\.url is undefined; allowed: redis:\/\//],
    [{ url: 'http://127.0.0.1' }, /redis\.url is "http:\/\/127\.0\.0\.1"; allowed: redis:\/\//],
    [{ host: undefined, port: 6379 }, /redis\.host is undefined/],
    [{ hots: '127.0.0.1' }, /redis\.hots is not an option; did you mean host\?/],
    [{ URL: 'redis://127.0.0.1' }, /redis\.URL is not an option; did you mean url\?/],
    [{ uri: 'redis://127.0.0.1' }, /redis\.uri is not an option; did you mean url\?/],
    [{ url: 'redis://127.0.0.1', host: 'elsewhere' }, /redis\.url and redis\.host both say where Redis is/],
    [{ host: '127.0.0.1', keyPrefix: 'mine:' }, /redis\.keyPrefix is set; .*namespace/],
    [{ host: '127.0.0.1', commandTimeout: 5 }, /redis\.commandTimeout is 5; allowed: 100 to 60000 ms/],
  ])('refuses %o', async (redis, said) => {
    if (redis === undefined && name === 'createDaemon') return; // the default of its configuration counts
    const error: unknown = await connect(redis).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'bad-config' });
    expect(String(error)).toMatch(said);
    expect(String(error)).not.toContain('secret');
  });

  test('refuses a connection of its caller', async () => {
    const connection = openCommands({ redis: server.url, name: 'test' });
    ends.push(async () => connection.disconnect());
    await expect(connect(connection)).rejects.toThrow(/redis is a connection; allowed: a URL/);
  });
});

describe('the time that a command is given', () => {
  const redis = () => ({ url: server.url, commandTimeout: 150 });
  const makers: Readonly<
    Record<string, () => Promise<{ start(): Promise<void>; events: EventSource; end(): unknown }>>
  > = {
    'a worker': async () => {
      const worker = createWorker('emails', () => undefined, { redis: redis(), beatTtl: 500 });
      return { start: worker.start, events: worker.events, end: () => worker.stop({ shutdown: 0 }) };
    },
    'a worker of a daemon': async () => {
      const handlers = defineHandlers({ emails: () => undefined });
      const worker = { beatTtl: 500, shutdown: 0 };
      const daemon = createDaemon({ redis: redis(), roles: ['worker'], worker }, { handlers });
      return { start: daemon.start, events: daemon.events, end: daemon.stop };
    },
  };

  test.each(Object.keys(makers))('reaches %s', async (name) => {
    const made = await makers[name]?.();
    if (!made) return;
    const told: string[] = [];
    made.events.on('redis.away', ({ why }) => void told.push(why));
    await made.start();
    await server.kill('SIGSTOP');
    try {
      await expect.poll(() => told).toContain(`no reply from Redis at ${server.url} within 150 ms`);
    } finally {
      await server.kill('SIGCONT');
      await made.end();
    }
  });

  test('is added to what a blocking read waits anyway', () => {
    const timeouts = [100, 4000, 30_000].map((commandTimeout) => {
      const reader = openBlocking({ redis: { url: server.url, commandTimeout }, name: 'test' });
      close(reader);
      return timeoutOf(reader);
    });
    expect(timeouts).toEqual([8000, 8000, 34_000]);
  });
});

describe('a configuration', () => {
  test('that is frozen and lacks most of it is completed', async () => {
    const partial = Object.freeze({ redis: Object.freeze({ url: server.url }), roles: ['mover' as const] });
    const daemon = createDaemon(partial);
    ends.push(daemon.stop);
    await daemon.start();
    expect(await daemon.isReady()).toBe(true);
  });

  test('that is frozen is checked', async () => {
    const wrong = Object.freeze({ mover: { lease: 1 } });
    expect(() => createDaemon(wrong)).toThrow(expect.objectContaining({ code: 'bad-config' }));
  });

  test('that is complete and frozen is taken', async () => {
    const complete = Object.freeze({
      redis: { url: server.url, commandTimeout: '2s' },
      roles: ['mover'] as const,
      mover: { lease: '3s' },
      queues: {
        bills: { attempts: 2, backoff: { kind: 'exponential' as const, delay: '1s' } },
        mails: { backoff: ladder(['1m', '10m']) },
      },
    });
    const daemon = createDaemon(complete);
    ends.push(daemon.stop);
    await daemon.start();
  });

  test.each([[undefined], [null], [5], ['redis://127.0.0.1'], [[]]])('that is %o is refused', (config) => {
    const said = { code: 'bad-config', message: expect.stringMatching(/createDaemon are .*; allowed: an object/) };
    expect(() => createDaemon(config as object)).toThrow(expect.objectContaining(said));
  });
});
