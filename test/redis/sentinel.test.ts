/**
 * Connections behind sentinels: who is asked, who is believed, what a failover does to a connection, and what is said when
 * nobody knows the primary. Real sentinels and servers.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  close,
  describe as describeRedis,
  openCommands,
  type Redis,
  type RedisInput,
  whenReady,
} from '../../src/redis/connection/connect.ts';
import { redial } from '../../src/redis/connection/dialing.ts';
import { outageOf } from '../../src/redis/connection/outage.ts';
import { type SentinelOfTests, startSentinel, until } from '../support/topology-lite.ts';

const SECRET = 'of-the-sentinels';
let place: SentinelOfTests;
const opened: Redis[] = [];

beforeAll(async () => {
  const sentinelArgs = [`requirepass ${SECRET}`];
  place = await startSentinel({ sentinels: 3, sentinelArgs, sentinelPassword: SECRET });
});
afterEach(() => {
  for (const redis of opened.splice(0)) close(redis);
});
afterAll(() => place?.stop());

function open(redis: RedisInput): Redis {
  const connection = openCommands({ redis, name: 'sentinel-test' });
  opened.push(connection);
  return connection;
}
const own = () => ({ url: place.url, sentinelPassword: SECRET });
/** The port of the server that a connection has. */
const portOf = async (redis: Redis) => Number(/tcp_port:(\d+)/.exec(await redis.info('server'))?.[1]);
const reason = (promise: Promise<unknown>) => promise.then(String, (error: Error) => error.message);

test('the primary that the sentinels name is dialled, with the credentials of sentinels for them alone', async () => {
  const redis = open(own());
  await whenReady(redis);
  expect(await portOf(redis)).toBe(await place.current());
  expect(describeRedis(redis)).toBe(place.url);
});

test('sentinels that want a password say so at once, and the password is not shown', async () => {
  const why = await reason(whenReady(open(place.url), 60_000));
  expect(why).toMatch(
    /^Redis at sentinel:\/\/\S+ refused: .*NOAUTH.*; set redis\.sentinelUsername and redis\.sentinelPassword/,
  );
  const wrong = await reason(whenReady(open({ url: place.url, sentinelPassword: 'wrong-one' }), 60_000));
  expect(wrong).toContain('WRONGPASS');
  expect(wrong).not.toContain('wrong-one');
});

test('a name that no sentinel knows is said', async () => {
  const url = place.url.replace('/mine', '/yours');
  const why = await reason(whenReady(open({ url, sentinelPassword: SECRET }), 1500));
  expect(why).toMatch(/cannot reach Redis at sentinel:\/\/\S+\/yours: no sentinel knows a primary of that name/);
});

test('a server with the role of a replica is not taken for the primary', async () => {
  const [taken, other] = await ports();
  const natMap = { [`127.0.0.1:${taken}`]: { host: '127.0.0.1', port: other ?? 0 } };
  const redis = open({ ...own(), natMap });
  expect(await reason(whenReady(redis, 1500))).toContain('cannot reach Redis at sentinel://');
  expect(redis.status).not.toBe('ready');
});

test('a natMap says where the primary is found from here', async () => {
  const [taken] = await ports();
  const natMap = { [`127.0.0.1:${taken}`]: { host: 'localhost', port: taken ?? 0 } };
  const redis = open({ ...own(), natMap });
  await whenReady(redis);
  expect(await portOf(redis)).toBe(taken);
});

test('the first sentinel that answers is enough, and a frozen one is passed over', async () => {
  const [first, second] = place.sentinels;
  await first?.kill('SIGSTOP');
  try {
    const redis = open(own());
    await whenReady(redis, 60_000);
    expect(await portOf(redis)).toBe(
      await second?.client
        .call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'mine')
        .then((said) => Number(String(said).split(',')[1])),
    );
  } finally {
    await first?.kill('SIGCONT');
  }
});

test('a connection that is dropped while it asks its sentinels dials on', async () => {
  const redis = open(own());
  redial(redis);
  await until(() => redis.status === 'end' || redis.status === 'ready');
  await until(() => redis.status === 'ready');
  expect(await redis.ping()).toBe('PONG');
});

test('a command whose reply is lost is an error, and is sent once', async () => {
  const redis = openCommands({ redis: own(), name: 'lost', commandTimeoutMs: 300 });
  opened.push(redis);
  await whenReady(redis);
  const server = [place.primary, place.replica].find(({ port }) => port === redis.stream.remotePort);
  await server?.kill('SIGSTOP');
  const why = redis.incr('lost').then(() => 'answered', outageOf);
  expect(await why).toBe('lost');
  await server?.kill('SIGCONT');
  await until(() =>
    redis.get('lost').then(
      () => true,
      () => false,
    ),
  );
  expect(Number(await redis.get('lost'))).toBeLessThanOrEqual(1);
  expect(await server?.client.info('commandstats')).toMatch(/cmdstat_incr:calls=1,/);
});

describe('after a failover', () => {
  test('every connection dials the new primary, and a write to the old one is an outage of the kind readonly', async () => {
    const all = [open(own()), open(own())];
    await Promise.all(all.map((redis) => whenReady(redis)));
    const before = await place.current();
    await place.failover();
    const after = await place.current();
    expect(after).not.toBe(before);
    const kinds = new Set<string>();
    for (const redis of all) {
      await until(() =>
        redis.set('x', '1').then(
          () => redis.stream.remotePort === after,
          (error: unknown) => {
            kinds.add(outageOf(error));
            return false;
          },
        ),
      );
      expect(await portOf(redis)).toBe(after);
    }
    expect([...kinds].every((kind) => ['readonly', 'lost', 'away'].includes(kind))).toBe(true);
  });

  test('a connection to a server that became a replica dials again after its first refused write', async () => {
    const redis = open(own());
    await whenReady(redis);
    const port = await place.current();
    const server = [place.primary, place.replica].find((one) => one.port === port);
    await server?.client.call('REPLICAOF', '127.0.0.1', '1');
    const closed = new Promise((resolve) => redis.once('close', resolve));
    expect(await redis.set('x', '1').then(() => 'written', outageOf)).toBe('readonly');
    await closed;
    await server?.client.call('REPLICAOF', 'NO', 'ONE');
    await whenReady(redis, 60_000);
  });
});

test('with all sentinels gone, a connection that stands goes on, and a new one says why it cannot', async () => {
  const redis = open(own());
  await whenReady(redis, 60_000);
  await Promise.all(place.sentinels.map((sentinel) => sentinel.kill('SIGKILL')));
  expect(await redis.ping()).toBe('PONG');
  expect(await reason(whenReady(open(own()), 1500))).toMatch(/: no sentinel says where it is/);
});

/** Of the primary, and of the replica. */
async function ports(): Promise<readonly number[]> {
  const current = await place.current();
  return [current, ...[place.primary.port, place.replica.port].filter((port) => port !== current)];
}
