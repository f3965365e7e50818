/**
 * What a person reads of a connection: where Redis is and the error of the system, in our words, and nothing of what the
 * client library calls its options. With real ports, passwords and servers that go away.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { createDaemon } from '../../src/daemon/daemon.ts';
import { messageOf } from '../../src/kernel/errors.ts';
import {
  close,
  openBlocking,
  openCommands,
  type Redis,
  type RedisInput,
  whenReady,
} from '../../src/redis/connection/connect.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { createWorker } from '../../src/worker/worker.ts';
import { useCli } from '../support/cli.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

/** What only the client library says. */
const LIBRARY =
  /enableOfflineQueue|writeable|max ?retries|maxRetriesPerRequest|Command timed out|Connection is closed|Please report|aborted due to/i;

const cli = useCli();
let server: TestRedis;
let admin: Redis;
const opened: Redis[] = [];

beforeAll(async () => {
  server = await startRedis({ port: true });
  admin = await server.client();
});
afterEach(() => {
  for (const one of opened.splice(0)) close(one);
});
afterAll(() => server.stop());

const open = (redis: RedisInput = server.url, by = openCommands): Redis => {
  const one = by({ redis, name: 'test' });
  opened.push(one);
  return one;
};
const failure = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    (reply) => expect.fail(`expected an error, got ${String(reply)}`),
    (error: unknown) => error,
  );
/** All that a person could see of an error, its causes too. */
function plain(error: unknown): string {
  const all = inspect(error, { depth: 10, showHidden: true });
  expect(all).not.toMatch(LIBRARY);
  return messageOf(error);
}

describe('a command', () => {
  test('without a connection names the place and the error of the system', async () => {
    const redis = open('redis://127.0.0.1:1');
    await expect.poll(() => redis.status).toBe('reconnecting');
    const error = await failure(redis.ping());
    expect(plain(error)).toMatch(
      /^not connected to Redis at redis:\/\/127\.0\.0\.1:1 \(connect ECONNREFUSED 127\.0\.0\.1:1\)$/,
    );
    expect(error).toMatchObject({ code: 'ECONNREFUSED' });
    expect(outageOf(error)).toBe('away');
  });

  test('before the first try names the place', async () => {
    expect(plain(await failure(open().ping()))).toBe(`not connected to Redis at ${server.url}`);
  });

  test('whose connection is cut while it is under way says so', async () => {
    const redis = open(server.url, openBlocking);
    await whenReady(redis);
    const id = await redis.client('ID');
    const read = failure(redis.blpop('nothing', 0));
    await expect.poll(async () => /blocked_clients:(\d+)/.exec(await admin.info('clients'))?.[1]).toBe('1');
    await admin.client('KILL', 'ID', id);
    const error = await read;
    expect(plain(error)).toMatch(/^the connection to Redis at redis:\/\/127\.0\.0\.1:\d+ was lost before the reply/);
    expect(outageOf(error)).toBe('lost');
  });

  test('without a reply says how long it waited', async () => {
    const redis = open({ url: server.url, commandTimeout: 100 });
    await whenReady(redis);
    const error = await failure(redis.blpop('nothing', 0));
    expect(plain(error)).toBe(`no reply from Redis at ${server.url} within 100 ms`);
    expect(outageOf(error)).toBe('lost');
  });

  test('on a connection that we closed says so', async () => {
    const redis = open();
    await whenReady(redis);
    close(redis);
    await once(redis, 'end');
    expect(plain(await failure(redis.ping()))).toBe(`the connection to Redis at ${server.url} is closed`);
  });

  test('of a transaction and of a script is no exception', async () => {
    const redis = open('redis://127.0.0.1:1');
    await expect.poll(() => redis.status).toBe('reconnecting');
    for (const call of [() => redis.multi().incr('a').exec(), () => redis.eval('return 1', 0)]) {
      expect(plain(await failure(call()))).toContain('not connected to Redis at redis://127.0.0.1:1');
    }
  });

  test('through sentinels that are away names them', async () => {
    const sentinels = [{ host: '127.0.0.1', port: 1 }];
    const error = await failure(whenReady(open({ sentinels, name: 'primary' }), 1000));
    expect(plain(error)).toBe('cannot reach Redis at sentinel://127.0.0.1:1/primary: no sentinel says where it is');
  });

  test('to somebody who does not speak the protocol of Redis says so', async () => {
    const other = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const redis = open(`redis://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
    const error = await failure(whenReady(redis, 1000));
    expect(plain(error)).toMatch(/: the server there does not speak the protocol of Redis$/);
    other.close();
  });
});

describe('a password', () => {
  const withPassword = async (act: () => Promise<void>) => {
    await admin.config('SET', 'requirepass', 'right');
    try {
      await act();
    } finally {
      await admin.config('SET', 'requirepass', '');
    }
  };
  const wrong = () => server.url.replace('//', '//:wrong-secret@');
  const refused = {
    code: 'refused',
    message: expect.stringMatching(/refused: (WRONGPASS|NOAUTH) .*; .*redis:\/\/user:password@/),
  };

  test('that is wrong or missing is refused to everybody who connects, at once', async () => {
    await withPassword(async () => {
      for (const redis of [wrong(), server.url]) {
        const worker = createWorker('emails', () => undefined, { redis });
        const daemon = createDaemon({ redis, roles: ['mover'] });
        for (const connect of [createClient({ redis }).ready, worker.start, daemon.start]) {
          const error = await failure(connect());
          expect(error).toMatchObject(refused);
          expect(plain(error)).toContain(server.url);
          expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-secret');
        }
      }
    });
  });

  test('that is wrong ends the command line with 69 and the right next step', async () => {
    await withPassword(async () => {
      for (const verb of [
        ['queues', 'ls'],
        ['schedule', 'emails', '--delay', '1m'],
      ]) {
        const { code, err } = await cli.run([...verb, '--redis', wrong()]);
        expect(code).toBe(69);
        expect(err).toMatch(/refused: WRONGPASS/);
        expect(err).toMatch(/next: correct the user and the password/);
        expect(err).not.toContain('duestream dev');
      }
      const { code, out } = await cli.run(['doctor', '--redis', wrong()]);
      expect(code).toBe(69);
      expect(out).toMatch(/fail {2}reachable .*WRONGPASS/);
      expect(out).toContain('correct the user and the password');
    });
  });

  test('that is changed while a producer lives makes its calls refused, until it is right again', async () => {
    const producer = createClient({ redis: server.url, retryBudget: '10s' });
    await producer.schedule('emails', 1, { delay: '1h' });
    await withPassword(async () => {
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      const error = await failure(producer.schedule('emails', 1, { delay: '1h' }));
      expect(error).toMatchObject({ code: 'refused', message: expect.stringContaining('NOAUTH') });
      plain(error);
    });
    const again = () => producer.schedule('emails', 1, { delay: '1h' }).then(({ status }) => status, messageOf);
    await expect.poll(again).toBe('scheduled');
    await producer.close();
  });

  test('that is not percent-encoded is refused before anything is sent', () => {
    expect(() => open('redis://user:50%off@127.0.0.1')).toThrow(/not percent-encoded; write % as %25/);
  });

  test('of the one who asks stays out of what Redis answers', async () => {
    await withPassword(async () => {
      const redis = open(wrong());
      const [error] = await once(redis, 'error');
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('wrong-secret');
    });
  });
});

test('a database that Redis does not have is refused, because the library would go on in another one', async () => {
  const error = await failure(createClient({ redis: `${server.url}/99` }).ready());
  expect(error).toMatchObject({ code: 'refused' });
  expect(plain(error)).toMatch(/refused: ERR DB index is out of range; name a database/);
});

test('a user without the right to INFO is let in, and the library writes nothing about it', async () => {
  await admin.call('ACL', 'SETUSER', 'few', 'on', '>p', '~*', '+ping', '+client|setname');
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const redis = open(server.url.replace('//', '//few:p@'));
  await whenReady(redis);
  expect(await redis.ping()).toBe('PONG');
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});

test('a server that goes away while jobs run is told in our words, and so is every call', async () => {
  const own = await startRedis({ port: true });
  const daemon = createDaemon({ redis: own.url, roles: ['mover'], queues: { emails: {} } });
  const worker = createWorker('emails', () => undefined, { redis: own.url });
  const producer = createClient({ redis: own.url, retryBudget: 300 });
  try {
    await daemon.start();
    await worker.start();
    await producer.schedule('emails', 1);
    const said: string[] = [];
    for (const { events } of [daemon, worker]) events.on('redis.away', ({ why }) => void said.push(why));
    await own.kill('SIGKILL');
    const calls = [
      () => producer.schedule('emails', 2),
      () => producer.get('emails', 'x'),
      () => producer.cancel('emails', 'x'),
    ];
    for (const call of calls) expect(plain(await failure(call()))).toContain(own.url);
    await expect.poll(() => said.length).toBeGreaterThan(3);
    for (const why of said) expect(why).not.toMatch(LIBRARY);
    for (const why of said) expect(why).toContain(own.url);
  } finally {
    await Promise.all([producer.close(), worker.stop({ shutdown: 0 }), daemon.stop()]);
    await own.stop();
  }
});
