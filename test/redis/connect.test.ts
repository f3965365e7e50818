/** Connections: a lost reply is an error and never a second call, and every promise settles. */
import { once } from 'node:events';

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { withoutCredentials } from '../../src/kernel/reason.ts';
import {
  close,
  describe as describeConnection,
  openBlocking,
  openCommands,
  openSubscriber,
  type Redis,
  type RedisInput,
  whenReady,
} from '../../src/redis/connection/connect.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { Wire } from '../../src/redis/connection/wire.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
const opened: Redis[] = [];

beforeAll(async () => {
  server = await startRedis({ port: true });
});
afterAll(async () => {
  for (const redis of opened) close(redis);
  await server.stop();
});

/** A connection that is closed after the tests. */
function open(redis: RedisInput = server.url, { commandTimeoutMs = 4000, with: by = openCommands } = {}): Redis {
  const connection = by({ redis, name: 'test', commandTimeoutMs });
  opened.push(connection);
  return connection;
}

describe('an address', () => {
  test('is a URL, a socket or options, and says where it leads without credentials', async () => {
    const { port } = server;
    const cases: readonly (readonly [RedisInput, string])[] = [
      [`redis://127.0.0.1:${port}`, `redis://127.0.0.1:${port}`],
      [`redis://127.0.0.1:${port}/3`, `redis://127.0.0.1:${port}/3`],
      [`unix://${server.socketPath}`, `unix://${server.socketPath}`],
      [{ path: server.socketPath }, `unix://${server.socketPath}`],
    ];
    for (const [input, shown] of cases) {
      const redis = open(input);
      await whenReady(redis);
      expect(describeConnection(redis)).toBe(shown);
      expect(await redis.ping()).toBe('PONG');
    }
  });

  test('carries the database, user and password of its URL', () => {
    const redis = open('redis://us%40er:p%3Ass@127.0.0.1:1/2');
    expect(redis.options).toMatchObject({ host: '127.0.0.1', port: 1, db: 2, username: 'us@er', password: 'p:ss' });
    expect(describeConnection(redis)).toBe('redis://127.0.0.1:1/2');
  });

  test('has the port of Redis by default, may be IPv6, and rediss means TLS', () => {
    expect(open('redis://localhost').options).toMatchObject({ host: 'localhost', port: 6379, db: 0 });
    expect(open('redis://[::1]:1').options).toMatchObject({ host: '::1', port: 1 });
    expect(open('rediss://localhost:1').options.tls).toMatchObject({ servername: 'localhost' });
  });

  test.each(['', 'localhost:6379', 'http://localhost', 'redis://host/database', 'redis://host/-1'])(
    'like %j is refused before anything is sent',
    (input) => {
      expect(() => open(input)).toThrow(expect.objectContaining({ code: 'bad-input' }));
    },
  );

  test('never shows its password in a message', () => {
    expect(withoutCredentials('redis://user:secret@host:1/0')).toBe('redis://***@host:1/0');
    expect(withoutCredentials('redis://host:1')).toBe('redis://host:1');
    expect(withoutCredentials('redis://user:p@ss@h/0')).toBe('redis://***@h/0');
    expect(withoutCredentials('cannot reach redis://:a/b@h now')).toBe('cannot reach redis://***@h now');
    expect(() => open('redis://user:secret@host/database')).toThrow(expect.not.stringContaining('secret'));
  });
});

describe('a connection that does not come up', () => {
  test('is an error with its address, also when nobody listens', async () => {
    const redis = open('redis://127.0.0.1:1');
    await expect(whenReady(redis, 300)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('redis://127.0.0.1:1'),
    });
  });

  test('with a wrong password is an error at once', async () => {
    await server.client().then((admin) => admin.config('SET', 'requirepass', 'right'));
    const redis = open(server.url.replace('//', '//:wrong@'));
    await expect(whenReady(redis, 10_000)).rejects.toThrow(/WRONGPASS|invalid password/i);
    const right = open(server.url.replace('//', '//:right@'));
    await whenReady(right);
    await right.config('SET', 'requirepass', '');
    close(redis);
    close(right);
  });

  test('refuses commands at once instead of queueing them', async () => {
    const error = await open('redis://127.0.0.1:1')
      .ping()
      .catch((thrown: unknown) => thrown);
    expect(outageOf(error)).toBe('away');
  });
});

describe('a lost reply', () => {
  test('is an error, and the command is not sent a second time', async () => {
    const redis = open(server.url);
    const admin = await server.client();
    await whenReady(redis);
    const id = await redis.client('ID');
    const error = redis.blpop('list', 0).catch((thrown: unknown) => thrown);
    await expect.poll(async () => /blocked_clients:(\d+)/.exec(await admin.info('clients'))?.[1]).toBe('1');
    await admin.client('KILL', 'ID', id);
    expect(outageOf(await error)).toBe('lost');
    await whenReady(redis);
    // A client that had sent it again would take this at once.
    expect(await admin.rpush('list', 'kept')).toBe(1);
    expect(await redis.llen('list')).toBe(1);
  });

  test('of a command that was carried out is an error, and it stays carried out once', async () => {
    const redis = open(server.url);
    await whenReady(redis);
    await redis.del('counted');
    const slow = open(server.url, { commandTimeoutMs: 500 });
    await whenReady(slow);
    // The server sleeps for longer than the time-out, then carries INCR out for nobody.
    const settled = await Promise.allSettled([slow.call('DEBUG', 'SLEEP', '1.5'), slow.incr('counted')]);
    expect(settled.map((one) => one.status === 'rejected' && outageOf(one.reason))).toEqual(['lost', 'lost']);
    expect(await redis.get('counted')).toBe('1');
    await once(slow, 'ready');
    expect(await slow.get('counted')).toBe('1');
  });
});

describe('what one turn sends', () => {
  test('is one write, and each command has its own reply', async () => {
    const redis = open(server.url);
    await whenReady(redis);
    const write = vi.spyOn(redis.stream, 'write');
    await redis.eval('return 1', 0);
    write.mockClear();
    expect(await Promise.all([redis.del('turn'), redis.incr('turn'), redis.incr('turn')])).toEqual([0, 1, 2]);
    expect(write).toHaveBeenCalledTimes(1);
  });

  test('keeps its order around bytes, a transaction and a long text', async () => {
    const redis = open(server.url);
    await whenReady(redis);
    const long = 'é'.repeat(100_000);
    const replies = await Promise.all([
      redis.set('turn', 'a'),
      redis.append('turn', Buffer.from([0xff])),
      redis.append('turn', 'b'),
      redis.multi().append('turn', 'c').strlen('turn').exec(),
      redis.pipeline().append('turn', 'd').exec(),
      redis.append('turn', long),
      redis.append('turn', 'e'),
      redis.strlen('turn'),
    ]);
    const after = 5 + Buffer.byteLength(long);
    const counted = [
      [
        [null, 4],
        [null, 4],
      ],
      [[null, 5]],
      after,
      after + 1,
      after + 1,
    ];
    expect(replies).toEqual(['OK', 2, 3, ...counted]);
  });

  test('reaches the server although its connection is closed at once', async () => {
    const redis = open(server.url);
    const admin = await server.client();
    await whenReady(redis);
    await admin.del('turn');
    redis.incr('turn').catch(() => undefined);
    close(redis);
    await expect.poll(() => admin.get('turn')).toBe('1');
  });

  test('runs out of time command by command, by one timer, which goes when nobody waits', () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      let nowMs = 0;
      const pass = (ms: number) => {
        nowMs += ms;
        vi.advanceTimersByTime(ms);
      };
      const wire = new Wire(open('redis://127.0.0.1:1'), 500, () => nowMs);
      const others = vi.getTimerCount();
      const refused: string[] = [];
      const send = (name: string) => {
        const sent = wire.sent(({ message }) => {
          sent.isOver = true;
          refused.push(`${name}: ${message}`);
        });
        return sent;
      };
      send('first');
      pass(300);
      send('second');
      const third = send('third');
      expect(vi.getTimerCount() - others).toBe(1);
      pass(200);
      expect(refused).toEqual(['first: Command timed out']);
      third.isOver = true;
      pass(299);
      expect(refused).toHaveLength(1);
      pass(1);
      expect(refused.slice(1)).toEqual(['second: Command timed out']);
      expect(vi.getTimerCount() - others).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a server that is frozen', () => {
  test('settles every promise', async () => {
    const commands = open(server.url, { commandTimeoutMs: 500 });
    const subscriber = open(server.url, { commandTimeoutMs: 500, with: openSubscriber });
    await Promise.all([commands, subscriber].map((redis) => whenReady(redis)));
    await server.kill('SIGSTOP');
    try {
      const settled = await Promise.allSettled([
        commands.get('a'),
        commands.multi().incr('a').incr('b').exec(),
        subscriber.ssubscribe('channel'),
        commands.eval('return 1', 0),
      ]);
      expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
      const outage = settled.map((one) => (one.status === 'rejected' ? outageOf(one.reason) : 'fulfilled'));
      expect(new Set(outage)).toEqual(new Set(['lost']));
    } finally {
      await server.kill('SIGCONT');
    }
    // A socket that was silent for a whole time-out is not trusted again.
    await once(commands, 'ready');
    expect(await commands.ping()).toBe('PONG');
  });

  test('dials again once, however many commands ran out of time on that socket', async () => {
    const redis = open(server.url, { commandTimeoutMs: 500 });
    await whenReady(redis);
    const drop = vi.spyOn(redis, 'disconnect');
    await server.kill('SIGSTOP');
    try {
      await Promise.allSettled(Array.from({ length: 50 }, () => redis.ping()));
    } finally {
      await server.kill('SIGCONT');
    }
    // Each would leave a listener on the socket, and Node warns of a leak from the eleventh on.
    expect(drop).toHaveBeenCalledTimes(1);
    await once(redis, 'ready');
    expect(await redis.ping()).toBe('PONG');
  });

  test('settles a blocking read too', async () => {
    const blocking = open(server.url, { with: openBlocking });
    await whenReady(blocking);
    await server.kill('SIGSTOP');
    try {
      const error = await blocking.blpop('nothing', 1).catch((thrown: unknown) => thrown);
      expect(outageOf(error)).toBe('lost');
    } finally {
      await server.kill('SIGCONT');
    }
  });
});

test('a server that comes back is used again', async () => {
  const redis = open(server.url);
  await whenReady(redis);
  await server.restart();
  await whenReady(redis);
  expect(await redis.ping()).toBe('PONG');
});

test('closing a connection that has ended does nothing: it would hold the process for two more seconds', async () => {
  const redis = open();
  await whenReady(redis);
  close(redis);
  await expect.poll(() => redis.status).toBe('end');
  const dropped = vi.spyOn(redis, 'disconnect');
  close(redis);
  expect(dropped).not.toHaveBeenCalled();
});
