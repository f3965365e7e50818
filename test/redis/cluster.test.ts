/**
 * A cluster behind one connection: what is followed (MOVED, ASK), what is told to whoever waits (a lost reply, TRYAGAIN,
 * CLUSTERDOWN), and that nothing is sent twice. Real nodes.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { isCluster, memberOf, membersOf } from '../../src/redis/connection/cluster/members.ts';
import { slotOf } from '../../src/redis/connection/cluster/nodes.ts';
import {
  close,
  describe as describeRedis,
  openCommands,
  openSubscriber,
  type Redis,
  type RedisInput,
  whenReady,
} from '../../src/redis/connection/connect.ts';
import { evictionOf } from '../../src/redis/connection/memory.ts';
import { outageOf, withRetry } from '../../src/redis/connection/outage.ts';
import { createServers } from '../../src/redis/connection/server-clock.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { type ClusterOfTests, replicated, type Server, startCluster, until } from '../support/topology-lite.ts';

let cluster: ClusterOfTests;
const opened: Redis[] = [];

beforeAll(async () => {
  cluster = await startCluster();
});
afterEach(() => {
  for (const redis of opened.splice(0)) close(redis);
});
afterAll(() => cluster?.stop());

async function open(redis: RedisInput = cluster.url, from = openCommands, commandTimeoutMs = 4000): Promise<Redis> {
  const connection = from({ redis, name: 'cluster-test', commandTimeoutMs });
  opened.push(connection);
  await whenReady(connection, 60_000);
  return connection;
}
const servers = () => [...cluster.masters, ...cluster.replicas];
/** The server that is the master of a key's slot, by its own word. */
async function ownerOf(key: string): Promise<Server> {
  const asked = await Promise.all(
    servers().map(({ client }) =>
      client.exists(key).then(
        () => client.call('ROLE').then((role) => String(role).startsWith('master')),
        () => false,
      ),
    ),
  );
  const owner = servers()[asked.indexOf(true)];
  if (!owner) throw new Error(`nobody has ${key}`);
  return owner;
}
const idOf = async ({ client }: Server) => String(await client.call('CLUSTER', 'MYID'));
/** Of those that run. */
async function masters(): Promise<readonly Server[]> {
  const roleOf = async ({ client }: Server) => (client.status === 'ready' ? String(await client.call('ROLE')) : '');
  const roles = await Promise.all(servers().map(roleOf));
  return servers().filter((_, at) => roles[at]?.startsWith('master'));
}
const reason = (promise: Promise<unknown>) => promise.then(String, (error: Error) => error.message);

test('looks like one connection: each key finds its node, and nobody is told of the password', async () => {
  const redis = await open(cluster.url.replace('://', '://default:none@'));
  expect(describeRedis(redis)).toBe(cluster.url);
  expect(isCluster(redis)).toBe(true);
  for (const key of ['{a}', '{b}', '{c}', '{d}', '{e}']) {
    await redis.set(key, 'x');
    expect(memberOf(redis, key).options.port).toBe((await ownerOf(key)).port);
  }
  expect(
    membersOf(redis)
      .map(({ options }) => options.port)
      .sort(),
  ).toEqual((await masters()).map(({ port }) => port).sort());
  expect(await redis.ping()).toBe('PONG');
});

test('one seed that answers is enough', async () => {
  const redis = await open(`cluster://127.0.0.1:1,127.0.0.1:${cluster.masters[2]?.port}`);
  await redis.set('{seed}', 'x');
  expect(await redis.get('{seed}')).toBe('x');
});

test('nobody there is said with all addresses', async () => {
  const connection = openCommands({ redis: 'cluster://127.0.0.1:1,127.0.0.1:2', name: 'nobody' });
  opened.push(connection);
  expect(await reason(whenReady(connection, 1500))).toMatch(
    /^cannot reach Redis at cluster:\/\/127\.0\.0\.1:1,127\.0\.0\.1:2: connect ECONNREFUSED/,
  );
  expect(await connection.get('x').catch(outageOf)).toBe('away');
});

test('a server that is no cluster is said', async () => {
  const port = cluster.masters[0]?.port ?? 0;
  const natMap = () => ({ host: '127.0.0.1', port });
  // All slots lead to one node, which sends commands on to itself.
  const redis = await open({ url: cluster.url, natMap });
  const wrong = ['{a}', '{b}', '{c}', '{d}'].find((key) => slotOf(key) > 6000) ?? '';
  expect(await redis.get(wrong).catch(outageOf)).toBe('away');
});

test('a command without a key is refused, because nobody can know whom it is for', async () => {
  const redis = await open();
  expect(await reason((async () => redis.info('server'))())).toMatch(/asked info, which names no key/);
});

test('a command whose reply is lost is an error, and is sent once', async () => {
  const redis = await open(cluster.url, openCommands, 300);
  const owner = await ownerOf('{lost}');
  await owner.client.call('CONFIG', 'RESETSTAT');
  await owner.kill('SIGSTOP');
  const lost = await redis.incr('{lost}').then(() => 'answered', outageOf);
  await owner.kill('SIGCONT');
  expect(lost).toBe('lost');
  await until(() =>
    redis.get('{lost}').then(
      () => true,
      () => false,
    ),
  );
  expect(await owner.client.info('commandstats')).toMatch(/cmdstat_incr:calls=1,/);
});

test('while one node is away, keys of the others are served, and a command for it was surely not sent', async () => {
  const redis = await open(cluster.url, openCommands, 1000);
  const owner = await ownerOf('{away}');
  const other = ['{a}', '{b}', '{c}'].find((key) => memberOf(redis, key).options.port !== owner.port) ?? '';
  await owner.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  expect(await redis.set(other, 'x')).toBe('OK');
  await until(() =>
    redis.set('{away}', 'x').then(
      () => true,
      () => false,
    ),
  );
});

describe('a slot that moves', () => {
  const key = 'due:{moving}';
  const slot = slotOf(key);
  let from: Server;
  let to: Server;

  beforeAll(async () => {
    from = await ownerOf(key);
    const [other] = (await masters()).filter((one) => one !== from);
    if (!other) throw new Error('one master alone');
    to = other;
  });

  async function begin() {
    await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
    await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
  }
  const carry = (...keys: string[]) => from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
  async function end() {
    for (const one of [to, ...(await masters()).filter((other) => other !== to)])
      await one.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
  }

  test('is followed through ASK, and a call on keys of which some have moved is a pause', async () => {
    const redis = await open();
    await redis.mset(`${key}:a`, '1', `${key}:b`, '2');
    await begin();
    expect(await redis.get(`${key}:a`)).toBe('1');
    await carry(`${key}:a`);
    expect(await redis.get(`${key}:a`)).toBe('1');
    expect(await redis.mget(`${key}:a`, `${key}:b`).catch(outageOf)).toBe('busy');
    const waiting = withRetry('read', () => redis.mget(`${key}:a`, `${key}:b`), {
      clock: systemClock,
      budgetMs: 60_000,
    });
    await carry(`${key}:b`);
    expect(await waiting).toEqual(['1', '2']);
    await end();
    expect(await redis.get(`${key}:b`)).toBe('2');
    await until(() => memberOf(redis, key).options.port === to.port);
  });

  test('MOVED is followed by a connection that knew the old place, which asks the new one from then on', async () => {
    const redis = await open();
    expect(memberOf(redis, key).options.port).toBe(to.port);
    [from, to] = [to, from];
    await begin();
    await carry(`${key}:a`, `${key}:b`);
    await end();
    expect(await redis.mget(`${key}:a`, `${key}:b`)).toEqual(['1', '2']);
    await until(() => memberOf(redis, key).options.port === to.port);
  });

  test('nudges come from its new node once they are subscribed anew', async () => {
    const nudges = await open(cluster.url, openSubscriber);
    const redis = await open();
    const heard: string[] = [];
    nudges.on('smessage', (channel: string, message: string) => heard.push(`${channel} ${message}`));
    let isStale = false;
    nudges.on('ready', () => {
      isStale = true;
    });
    await nudges.ssubscribe(key);
    await redis.spublish(key, 'one');
    await until(() => heard.length === 1);
    [from, to] = [to, from];
    await begin();
    await carry(`${key}:a`, `${key}:b`);
    await end();
    await until(() => isStale);
    await until(() =>
      nudges.ssubscribe(key).then(
        () => true,
        () => false,
      ),
    );
    await redis.spublish(key, 'two');
    await until(() => heard.includes(`${key} two`));
  });
});

describe('a master that froze', () => {
  test('is left as soon as the others name another one, and what it answers when it wakes up is not believed', async () => {
    // Nothing but leaving it can end the call.
    const redis = await open(cluster.url, openCommands, 60_000);
    const owner = await ownerOf('{frozen}');
    await redis.set('{frozen}', 'before');
    await replicated(owner);
    await owner.kill('SIGSTOP');
    expect(await redis.set('{frozen}', 'lost').catch(outageOf)).toBe('lost');
    expect(memberOf(redis, '{frozen}').options.port).not.toBe(owner.port);
    await owner.kill('SIGCONT');
    await until(async () => String(await owner.client.call('ROLE')).startsWith('slave'));
    const found = await withRetry('read', () => redis.get('{frozen}'), { clock: systemClock, budgetMs: 60_000 });
    expect(found).toBe('before');
  });

  test('is left by subscribers too, although none of their connections can be asked for the map', async () => {
    const urls = (await masters()).map(({ port }) => `127.0.0.1:${port}`);
    const nudges = await open(`cluster://${urls.join(',')}`, openSubscriber, 60_000);
    const redis = await open();
    const heard: string[] = [];
    const keys = ['{s1}', '{s2}', '{s3}', '{s4}', '{s5}', '{s6}'];
    const subscribe = () => Promise.allSettled(keys.map((key) => nudges.ssubscribe(key)));
    nudges.on('smessage', (channel: string) => heard.push(channel)).on('ready', () => void subscribe());
    await subscribe();
    const ports = new Set(membersOf(nudges).map(({ options }) => options.port));
    expect(ports.size).toBe(3);
    const owner = await ownerOf('{s1}');
    await replicated(owner);
    await owner.kill('SIGSTOP');
    nudges.ping().catch(() => undefined);
    await until(() => memberOf(nudges, '{s1}').options.port !== owner.port);
    await until(async () => {
      await redis.spublish('{s1}', 'x').catch(() => undefined);
      return heard.includes('{s1}');
    });
    await owner.kill('SIGCONT');
    await until(async () => String(await owner.client.call('ROLE')).startsWith('slave'));
  });
});

test('clocks: an edge is safe on every node, and each partition has that of its master', async () => {
  const redis = await open();
  const serverOf = createServers(redis, systemClock);
  await serverOf().measure();
  const all = await Promise.all((await masters()).map(({ client }) => client.time()));
  const latest = Math.max(...all.map(([s, us]) => Number(s) * 1000 + Number(us) / 1000));
  expect(serverOf().latestMs()).toBeGreaterThanOrEqual(Math.floor(latest));
  const ref = partitionRef('due', { queue: 'clock', partition: 0, layoutGeneration: 0 });
  expect(Math.abs(serverOf(ref).nowMs() - serverOf().nowMs())).toBeLessThan(60_000);
});

test('one master that may evict jobs is enough to say so', async () => {
  const redis = await open();
  expect(await evictionOf(redis)).toBeUndefined();
  const [, second] = await masters();
  await second?.client.call('CONFIG', 'SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
  expect(await evictionOf(redis)).toMatchObject({ policy: 'allkeys-lru', jobs: true });
  await second?.client.call('CONFIG', 'SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '0');
});

test('a replica that takes over is found, also without a word from the old master', async () => {
  const redis = await open(cluster.url, openCommands, 1000);
  const owner = await ownerOf('{taken}');
  await redis.set('{taken}', 'x');
  await replicated(owner);
  await owner.kill('SIGKILL');
  const found = await withRetry('read', () => redis.get('{taken}'), { clock: systemClock, budgetMs: 60_000 });
  expect(found).toBe('x');
  expect(memberOf(redis, '{taken}').options.port).not.toBe(owner.port);
});

test('a cluster without a majority is a pause', async () => {
  const redis = await open(cluster.url, openCommands, 1000);
  const [first, ...others] = await masters();
  for (const other of [...others, ...servers().filter((one) => one !== first && !others.includes(one))])
    await other.kill('SIGKILL');
  const kinds = new Set<string>();
  await until(() =>
    Promise.all(['{a}', '{b}', '{c}', '{d}'].map((key) => redis.set(key, 'x').catch(outageOf))).then((all) => {
      for (const one of all) kinds.add(one ?? '');
      return all.includes('busy');
    }),
  );
  for (const kind of kinds) expect(['OK', 'busy', 'away', 'lost']).toContain(kind);
});
