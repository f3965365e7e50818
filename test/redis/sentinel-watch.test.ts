/** Whoever is connected to a primary behind sentinels leaves it when they name another one. Real servers. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { close, openCommands, type Redis, type RedisInput, whenReady } from '../../src/redis/connection/connect.ts';
import { type SentinelOfTests, startSentinel, until } from '../support/topology-lite.ts';

const USER = 'watcher';
let group: SentinelOfTests;
const opened: Redis[] = [];

beforeAll(async () => {
  group = await startSentinel({ sentinels: 3 });
  // As before there was anything to subscribe: they may ask, and nothing else.
  const rights = ['+sentinel|get-master-addr-by-name', '+sentinel|sentinels'];
  for (const { client } of group.sentinels) await client.call('ACL', 'SETUSER', USER, 'on', '>secret', ...rights);
});
afterEach(() => {
  for (const redis of opened.splice(0)) close(redis);
});
afterAll(() => group?.stop());

async function open(redis: RedisInput): Promise<Redis> {
  // Nothing but the word of the sentinels can end a connection.
  const connection = openCommands({ redis, name: 'watch-test', commandTimeoutMs: 60_000 });
  opened.push(connection);
  await whenReady(connection, 60_000);
  return connection;
}

const portOf = ({ stream }: Redis) => ('remotePort' in stream ? stream.remotePort : undefined);
/** How many have subscribed at each sentinel; sentinels do not at each other. */
const followers = async () => {
  const lists = await Promise.all(group.sentinels.map(({ client }) => client.call('CLIENT', 'LIST')));
  return lists.map((list) => String(list).match(/ sub=1 /g)?.length ?? 0);
};

test('a primary that froze is left by idle connections too, with or without the right to subscribe', async () => {
  const redis = await open(group.url);
  const limited = await open({ url: group.url, sentinelUsername: USER, sentinelPassword: 'secret' });
  await until(async () => (await followers()).every((count) => count === 1));
  const old = await group.current();
  const frozen = [group.primary, group.replica].find(({ port }) => port === old);
  await frozen?.kill('SIGSTOP');
  const waits = redis.set('{due}', 'lost').then(
    () => 'acknowledged',
    (error: Error) => error.message,
  );
  await until(async () => [redis, limited].every((one) => one.status === 'ready' && portOf(one) !== old));
  // What was sent to it is never answered, whatever it says when it wakes up.
  expect(await waits).toMatch(/^the connection to Redis at \S+ was lost/);
  await frozen?.kill('SIGCONT');
  expect(await redis.set('{due}', 'kept')).toBe('OK');
  await until(async () => String(await frozen?.client.call('ROLE')).startsWith('slave'));
  expect(await limited.get('{due}')).toBe('kept');
});

test('all connections of a process share one listener per sentinel, which goes with the last of them', async () => {
  const all = await Promise.all([open(group.url), open(group.url), open(group.url)]);
  await until(async () => (await followers()).every((count) => count === 1));
  // One that waits for its turn to dial again tells nobody of its end.
  all[0]?.disconnect(true);
  await until(() => all[0]?.status === 'reconnecting');
  for (const redis of all) close(redis);
  await until(async () => (await followers()).every((count) => count === 0));
});
