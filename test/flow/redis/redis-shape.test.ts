/** One way to say where Redis is, for all that connects: a URL, an object with `url`, or options of ioredis. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createProducer } from '../../../src/client/producer.ts';
import { createSchedules } from '../../../src/client/schedules/schedules.ts';
import { defineConfig } from '../../../src/config/load.ts';
import type { EventSource } from '../../../src/core/events.ts';
import { createDaemon } from '../../../src/daemon/daemon.ts';
import {
  close,
  openBlocking,
  openCommands,
  type RedisInput,
  timeoutOf,
} from '../../../src/redis/connection/connect.ts';
import { defineHandlers } from '../../../src/worker/handlers.ts';
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
  createProducer: async (redis) => {
    const producer = await createProducer({ redis });
    ends.push(producer.stop);
  },
  createSchedules: async (redis) => {
    const schedules = await createSchedules({ redis });
    ends.push(schedules.stop);
  },
  createWorker: async (redis) => {
    const worker = createWorker('emails', () => undefined, { redis });
    ends.push(worker.stop);
    await worker.start();
  },
  createDaemon: async (redis) => {
    const daemon = await createDaemon({ redis, roles: ['mover'] });
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
    await connect({ url: server.url, commandTimeoutMs: 1500, connectTimeoutMs: 1500, maxRetriesPerRequest: null });
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
    [
      { host: '127.0.0.1', commandTimeoutMs: 5 },
      /redis\.commandTimeoutMs is 5; allowed: a whole number from 100 to 60000/,
    ],
  ])('refuses %o', async (redis, said) => {
    if (redis === undefined && name === 'createDaemon') return; // the default of its configuration counts
    const error: unknown = await connect(redis).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: name === 'createDaemon' ? 'bad-config' : 'bad-input' });
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
  const redis = () => ({ url: server.url, commandTimeoutMs: 150 });
  const makers: Readonly<
    Record<string, () => Promise<{ start(): Promise<void>; events: EventSource; end(): unknown }>>
  > = {
    'a worker': async () => {
      const worker = createWorker('emails', () => undefined, { redis: redis(), beatTtl: 500 });
      return { start: worker.start, events: worker.events, end: () => worker.stop({ graceMs: 0 }) };
    },
    'a worker of a daemon': async () => {
      const handlers = defineHandlers({ emails: () => undefined });
      const worker = { beatTtlMs: 500, shutdownMs: 0 };
      const daemon = await createDaemon({ redis: redis(), roles: ['worker'], worker }, { handlers });
      return { start: daemon.start, events: daemon.events, end: daemon.stop };
    },
  };

  test.each(Object.keys(makers))(
    'reaches %s',
    async (name) => {
      const made = await makers[name]?.();
      if (!made) return;
      const told: string[] = [];
      made.events.on('redis.away', ({ why }) => void told.push(why));
      await made.start();
      await server.kill('SIGSTOP');
      try {
        await expect
          .poll(() => told, { timeout: 15_000 })
          .toContain(`no reply from Redis at ${server.url} within 150 ms`);
      } finally {
        await server.kill('SIGCONT');
        await made.end();
      }
    },
    40_000,
  );

  test('is added to what a blocking read waits anyway', () => {
    const timeouts = [100, 4000, 30_000].map((commandTimeoutMs) => {
      const reader = openBlocking({ redis: { url: server.url, commandTimeoutMs }, name: 'test' });
      close(reader);
      return timeoutOf(reader);
    });
    expect(timeouts).toEqual([5000, 5000, 31_000]);
  });
});

describe('a configuration', () => {
  test('that is frozen and lacks most of it is completed', async () => {
    const partial = Object.freeze({ redis: Object.freeze({ url: server.url }), roles: ['mover' as const] });
    const daemon = await createDaemon(partial);
    ends.push(daemon.stop);
    await daemon.start();
    expect(await daemon.ready()).toBe(true);
  });

  test('that is frozen is checked', async () => {
    const wrong = Object.freeze({ mover: { leaseMs: 1 } });
    await expect(createDaemon(wrong)).rejects.toMatchObject({ code: 'bad-config' });
  });

  test('that is complete is taken as it is, frozen or copied', async () => {
    const complete = defineConfig({
      redis: { url: server.url },
      roles: ['mover'],
      queues: { bills: { attempts: 2, backoff: { kind: 'exponential', delayMs: 1000 } } },
    });
    for (const config of [complete, { ...complete }]) {
      const daemon = await createDaemon(config);
      ends.push(daemon.stop);
      await daemon.start();
    }
    expect(defineConfig(complete)).toEqual(complete);
  });

  test.each([[undefined], [null], [5], ['redis://127.0.0.1'], [[]]])('that is %o is refused', async (config) => {
    await expect(createDaemon(config as object)).rejects.toMatchObject({
      code: 'bad-config',
      message: expect.stringMatching(/configuration is .*; allowed: an object/),
    });
  });
});
