/**
 * The taxonomy in the words of a real server, or of ioredis on a real socket: a row for each sign. What only a Redis
 * Cluster says is taken from its documentation, and so is `DENIED`, which a server on loopback never says.
 */
import { once } from 'node:events';
import { mkdir, rmdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { messageOf } from '../../src/kernel/errors.ts';
import { openCommands, type RedisInput } from '../../src/redis/connection/connect.ts';
import { type Outage, outageOf, SIGNS } from '../../src/redis/connection/outage.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let server: TestRedis;
let redis: Redis;
const opened: Redis[] = [];
const seen = new Set<string>();

beforeAll(async () => {
  server = await startRedis({ port: true, args: ['--dbfilename', 'blocked'] });
  redis = await server.client();
});
afterEach(() => {
  for (const one of opened.splice(0)) one.disconnect();
});
afterAll(() => server.stop());

/** Which row an error is judged by, and its outage. Each row must come up once in this file. */
function judged(error: unknown): readonly [sign: string, outage: Outage] {
  const sign = SIGNS.find(({ pattern }) => pattern.test(messageOf(error)))?.sign ?? `none: ${messageOf(error)}`;
  seen.add(sign);
  return [sign, outageOf(error)];
}

const refusal = async (call: Promise<unknown>): Promise<readonly [string, Outage]> =>
  judged(
    await call.then(
      (reply) => expect.fail(`expected an error, got ${String(reply)}`),
      (error: unknown) => error,
    ),
  );

/** A script as ours are, one for what frees memory and one for what needs some. */
const FREES = '#!lua flags=allow-oom\nreturn redis.call("SET", KEYS[1], "x")';
const NEEDS = '#!lua\nreturn redis.call("SET", KEYS[1], "x")';

/** A client that does nothing on its own; closed after the test. */
function bare(options: object): Redis {
  const one = new Redis({ maxRetriesPerRequest: 0, retryStrategy: () => null, enableReadyCheck: false, ...options });
  one.on('error', () => undefined);
  opened.push(one);
  return one;
}

function ours(input: RedisInput, commandTimeoutMs = 4000): Redis {
  const one = openCommands({ redis: input, name: 'test', commandTimeoutMs });
  opened.push(one);
  return one;
}

async function blockedOn(stream: string, then: () => Promise<unknown>): Promise<readonly [string, Outage]> {
  await redis.xgroup('CREATE', stream, 'g', '0', 'MKSTREAM');
  const reader = bare({ path: server.socketPath });
  const read = refusal(
    reader.xreadgroup('GROUP', 'g', 'c', 'COUNT', 1, 'BLOCK', 5000, 'STREAMS', stream, '>').then(String),
  );
  await expect.poll(async () => /blocked_clients:(\d+)/.exec(await redis.info('clients'))?.[1]).toBe('1');
  await then();
  return read;
}

test('a script that was flushed', async () => {
  expect(await refusal(redis.evalsha('f'.repeat(40), 0))).toEqual(['NOSCRIPT', 'busy']);
  expect(await refusal(redis.eval("#!lua\nerror({ err = 'LATE 1000' })", 0))).toEqual(['LATE', 'busy']);
});

test('a stream or its group that is missing, or vanishes under a read', async () => {
  const read = redis.xreadgroup('GROUP', 'g', 'c', 'STREAMS', 'none', '>');
  expect(await refusal(read)).toEqual(['NOGROUP', 'no-group']);
  const create = redis.xgroup('CREATE', 'none', 'g', '0');
  expect(await refusal(create)).toEqual(['XGROUP without its stream', 'no-group']);
  // Redis 7.0 has words of its own for it; later servers and Valkey say the same as for a group that is gone.
  const gone = await blockedOn('s1', () => redis.del('s1'));
  expect([
    ['UNBLOCKED (stream gone)', 'no-group'],
    ['NOGROUP', 'no-group'],
  ]).toContainEqual(gone);
  const oldest = new Error('UNBLOCKED the stream key no longer exists');
  expect(judged(oldest)).toEqual(['UNBLOCKED (stream gone)', 'no-group']);
  expect(await blockedOn('s2', () => redis.xgroup('DESTROY', 's2', 'g'))).toEqual(['NOGROUP', 'no-group']);
});

test('a primary that became a replica, and one that has lost its primary', async () => {
  const became = await blockedOn('s3', () => redis.call('REPLICAOF', '127.0.0.1', '1'));
  expect(became).toEqual(['UNBLOCKED (became a replica)', 'readonly']);
  try {
    expect(await refusal(redis.set('a', 'x'))).toEqual(['READONLY', 'readonly']);
    expect(await refusal(redis.eval(FREES, 1, 'a'))).toEqual(['READONLY', 'readonly']);
    expect(await refusal(redis.eval('return redis.call("DEL", KEYS[1])', 1, 'a'))).toEqual(['READONLY', 'readonly']);
    await redis.config('SET', 'replica-serve-stale-data', 'no');
    expect(await refusal(redis.get('a'))).toEqual(['MASTERDOWN', 'busy']);
  } finally {
    await redis.call('REPLICAOF', 'NO', 'ONE');
  }
});

test('too few replicas', async () => {
  await redis.config('SET', 'min-replicas-to-write', '1');
  try {
    expect(await refusal(redis.eval(FREES, 1, 'a'))).toEqual(['NOREPLICAS', 'busy']);
  } finally {
    await redis.config('SET', 'min-replicas-to-write', '0');
  }
});

test('memory at its limit: what needs some is refused, what frees some is not', async () => {
  await redis.config('SET', 'maxmemory', '1');
  try {
    expect(await refusal(redis.set('a', 'x'))).toEqual(['OOM', 'full']);
    expect(await refusal(redis.eval(NEEDS, 1, 'a'))).toEqual(['OOM', 'full']);
    expect(await refusal(redis.eval('return redis.call("SET", KEYS[1], 1)', 1, 'a'))).toEqual(['OOM', 'full']);
    expect(await redis.eval(FREES, 1, 'a')).toBe('OK');
  } finally {
    await redis.config('SET', 'maxmemory', '0');
  }
});

test('a disk that takes no snapshot', async () => {
  await redis.config('SET', 'save', '3600 1');
  await mkdir(join(server.dir, 'blocked'));
  const saved = (status: string) =>
    expect.poll(async () => /rdb_last_bgsave_status:(\w+)/.exec(await redis.info('persistence'))?.[1]).toBe(status);
  await redis.bgsave();
  await saved('err');
  expect(await refusal(redis.pexpire('a', 5000))).toEqual(['MISCONF', 'busy']);
  expect(await refusal(redis.eval(FREES, 1, 'a'))).toEqual(['MISCONF', 'busy']);
  await rmdir(join(server.dir, 'blocked'));
  await redis.bgsave();
  await saved('ok');
  expect(await redis.eval(FREES, 1, 'a')).toBe('OK');
  await redis.config('SET', 'save', '');
});

test('a key of another type', async () => {
  await redis.set('text', 'x');
  expect(await refusal(redis.zadd('text', 1, 'a'))).toEqual(['WRONGTYPE', 'fatal']);
  const script = '#!lua\nreturn redis.call("ZADD", KEYS[1], 1, "a")';
  expect(await refusal(redis.eval(script, 1, 'text'))).toEqual(['WRONGTYPE', 'fatal']);
});

test('a user without the right to a command, a key or a channel, also inside a script', async () => {
  await redis.call('ACL', 'SETUSER', 'few', 'on', '>p', '~k*', '+get', '+eval', '+ssubscribe', 'resetchannels');
  const few = bare({ path: server.socketPath, username: 'few', password: 'p' });
  expect(await refusal(few.set('k', 1))).toEqual(['NOPERM', 'fatal']);
  expect(await refusal(few.get('other'))).toEqual(['NOPERM', 'fatal']);
  expect(await refusal(few.eval(FREES, 1, 'other'))).toEqual(['NOPERM', 'fatal']);
  expect(await refusal(few.eval(FREES, 1, 'k'))).toEqual(['NOPERM', 'fatal']);
  expect(await refusal(few.ssubscribe('news'))).toEqual(['NOPERM', 'fatal']);
  // What a later server says of the same inside a script.
  const later =
    "ERR ACL failure in script: User few has no permissions to run the 'set' command script: 1, on @user_script:2.";
  expect(judged(new Error(later))).toEqual(['NOPERM', 'fatal']);
});

test('no password, and a wrong one', async () => {
  const raw = bare({ path: server.socketPath });
  expect(await refusal(raw.auth('few', 'wrong'))).toEqual(['WRONGPASS', 'fatal']);
  await redis.config('SET', 'requirepass', 'right');
  try {
    expect(await refusal(bare({ path: server.socketPath }).get('a'))).toEqual(['NOAUTH', 'fatal']);
  } finally {
    await redis.config('SET', 'requirepass', '');
  }
});

test('a script with a bug, and a command that the server does not know', async () => {
  const bug: readonly [string, Outage] = ['ERR (command or script)', 'fatal'];
  expect(await refusal(redis.eval('#!lua\nreturn nil .. 1', 0))).toEqual(bug);
  expect(await refusal(redis.eval('#!lua\nreturn redis.call("FROB")', 0))).toEqual(bug);
  expect(await refusal(redis.call('FROB', 'x'))).toEqual(bug);
  expect(await refusal(redis.call('GET'))).toEqual(bug);
});

test('an error that nobody has seen before', async () => {
  const reply = redis.eval('#!lua\nreturn redis.error_reply("HALFMOON the tide is out")', 0);
  expect((await refusal(reply))[1]).toBe('unknown');
});

test('a script that does not end', async () => {
  await redis.config('SET', 'busy-reply-threshold', '10');
  const endless = refusal(bare({ path: server.socketPath }).eval('while true do end', 0));
  const answer = async () => redis.get('a').then(() => 'free', messageOf);
  await expect.poll(answer).toMatch(/^BUSY/);
  expect(await refusal(redis.eval(FREES, 1, 'a'))).toEqual(['BUSY', 'busy']);
  await redis.script('KILL');
  expect(await endless).toEqual(['BUSY', 'busy']);
});

test('a socket that nobody listens at, a closed one, a silent one, and one too many', async () => {
  expect(await refusal(ours({ path: '/nowhere/r.sock' }).ping())).toEqual(['not connected', 'away']);
  const nobody = bare({ path: '/nowhere/r.sock', lazyConnect: true });
  nobody.removeAllListeners('error');
  const told = new Promise((resolve) => nobody.once('error', resolve));
  nobody.connect().catch(() => undefined);
  expect(judged(await told)).toEqual(['cannot connect', 'away']);

  const cut = bare({ path: server.socketPath });
  const blocked = refusal(cut.blpop('nothing', 0));
  await expect.poll(async () => /blocked_clients:(\d+)/.exec(await redis.info('clients'))?.[1]).toBe('1');
  cut.disconnect();
  expect(await blocked).toEqual(['connection lost', 'lost']);

  const silent = ours({ path: server.socketPath }, 50);
  await expect.poll(() => silent.status).toBe('ready');
  expect(await refusal(silent.blpop('nothing', 1))).toEqual(['no reply in time', 'lost']);

  await redis.config('SET', 'maxclients', '1');
  const socket = connect(server.socketPath);
  const [greeting] = await once(socket, 'data');
  socket.destroy();
  await redis.config('SET', 'maxclients', '10000');
  expect(judged(new Error(String(greeting).slice(1).trim()))).toEqual(['too many clients', 'away']);
});

test('a server that still loads its data', async () => {
  await redis.config('SET', 'key-load-delay', '100');
  await redis.config('SET', 'loading-process-events-interval-bytes', '1024');
  await redis.eval('for i = 1, 3000 do redis.call("SET", "n" .. i, i) end', 0);
  const other = await server.client();
  const loading = redis.call('DEBUG', 'RELOAD').catch((error: unknown) => messageOf(error));
  const answer = async () => other.get('a').then(() => 'free', messageOf);
  await expect.poll(answer, { interval: 5 }).toMatch(/^LOADING/);
  expect(await refusal(other.get('a'))).toEqual(['LOADING', 'busy']);
  await loading;
});

test('what a Redis Cluster and a protected server say, by their documentation', () => {
  const documented: readonly (readonly [message: string, sign: string, outage: Outage])[] = [
    ["CROSSSLOT Keys in request don't hash to the same slot", 'CROSSSLOT', 'fatal'],
    ['MOVED 3999 127.0.0.1:6381', 'MOVED', 'fatal'],
    ['ASK 3999 127.0.0.1:6381', 'ASK', 'busy'],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'TRYAGAIN', 'busy'],
    ['CLUSTERDOWN Hash slot not served', 'CLUSTERDOWN', 'busy'],
    ['DENIED Redis is running in protected mode because protected mode is enabled', 'DENIED', 'fatal'],
  ];
  for (const [message, sign, outage] of documented) expect(judged(new Error(message))).toEqual([sign, outage]);
});

test('no row of the taxonomy was left out', () => {
  expect(SIGNS.map(({ sign }) => sign).filter((sign) => !seen.has(sign))).toEqual([]);
});
