/** Where a Redis comes from: each step alone, and what happens when a step has nothing good. */
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findRedis } from '../../scripts/redis-package.mjs';
import { judgeVersion } from '../../src/embedded/binary.mjs';
import { EmbeddedRedisError } from '../../src/embedded/error.mjs';
import { resolveRedis } from '../../src/embedded/resolve.mjs';

let dir = '';
let emptyCache = '';
const OLD = 'Redis server v=6.2.14 sha=00000000:0 malloc=libc bits=64 build=1';
const NEW = 'Redis server v=7.2.5 sha=00000000:0 malloc=libc bits=64 build=1';
const VALKEY = 'Valkey server v=8.0.1 sha=00000000:0 malloc=libc bits=64 build=1';

beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  emptyCache = join(dir, 'no-cache');
});

afterAll(() => rm(dir, { recursive: true, force: true }));

/** A program that does nothing but print its version. */
async function fakeServer(folder: string, { name = 'redis-server', says = NEW } = {}): Promise<string> {
  const path = join(dir, folder, name);
  await mkdir(join(dir, folder), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho '${says}'\n`);
  await chmod(path, 0o755);
  return path;
}

/** As the repository finds one; without apt, because PATH holds only what the test puts there. */
function find(env: Record<string, string>, { cacheDir = emptyCache, log = [] as string[] } = {}) {
  return findRedis({ env: { PATH: '', ...env }, cacheDir, log: (line: string) => log.push(line) });
}

async function errorOf(promise: Promise<unknown>): Promise<EmbeddedRedisError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof EmbeddedRedisError) return error;
  throw new Error(`expected an EmbeddedRedisError, got ${String(error)}`);
}

test('a given URL wins over everything and is not touched', async () => {
  const bin = await fakeServer('given');
  const env = { DUESTREAM_REDIS_URL: 'redis://db.example:7000', DUESTREAM_REDIS_SERVER_BIN: bin };
  expect(await find(env)).toEqual({ kind: 'url', url: 'redis://db.example:7000' });
  expect(await find({ ...env, DUESTREAM_REDIS_SOURCE: 'url' })).toEqual({ kind: 'url', url: env.DUESTREAM_REDIS_URL });
});

test('a given program wins over PATH, and its redis-cli is found beside it', async () => {
  const bin = await fakeServer('given');
  const cli = await fakeServer('given', { name: 'redis-cli' });
  await fakeServer('on-path');
  const found = { kind: 'binary', path: bin, version: '7.2.5', source: 'bin', cli };
  const env = { DUESTREAM_REDIS_SERVER_BIN: bin, PATH: join(dir, 'on-path') };
  expect(await find(env)).toEqual(found);
  expect(await find({ ...env, DUESTREAM_REDIS_SOURCE: 'bin' })).toEqual(found);
});

test('PATH is searched for redis-server first and for valkey-server then', async () => {
  const valkey = await fakeServer('valkey', { name: 'valkey-server', says: VALKEY });
  const redis = await fakeServer('redis');
  const both = `${join(dir, 'valkey')}:${join(dir, 'redis')}`;
  expect(await find({ PATH: both })).toMatchObject({ path: redis, source: 'path', version: '7.2.5' });
  const env = { PATH: join(dir, 'valkey'), DUESTREAM_REDIS_SOURCE: 'path' };
  expect(await find(env)).toMatchObject({ path: valkey, source: 'path', version: '8.0.1' });
});

test('the cached copy is used when PATH has nothing', async () => {
  const cached = await fakeServer('cache/server/bin');
  const cacheDir = join(dir, 'cache');
  expect(await find({}, { cacheDir })).toMatchObject({ path: cached, source: 'cache' });
  expect(await find({ DUESTREAM_REDIS_SOURCE: 'cache' }, { cacheDir })).toMatchObject({ source: 'cache' });
});

test('a program that is too old is passed over with its reason, and the next step is asked', async () => {
  const old = await fakeServer('old', { says: OLD });
  const cached = await fakeServer('cache2/server/bin');
  const log: string[] = [];
  const env = { DUESTREAM_REDIS_SERVER_BIN: old, PATH: join(dir, 'old') };
  expect(await find(env, { cacheDir: join(dir, 'cache2'), log })).toMatchObject({ path: cached, source: 'cache' });
  const reason = `${old} is redis 6.2.14, too old: 7.0 is needed`;
  expect(log).toEqual([`passing over DUESTREAM_REDIS_SERVER_BIN=${reason}`, `passing over ${reason}`]);
});

test('a cached copy that does not run is passed over', async () => {
  const broken = await fakeServer('cache3/server/bin');
  await writeFile(broken, 'not a program');
  const error = await errorOf(find({}, { cacheDir: join(dir, 'cache3') }));
  expect(error.message).toContain(`${broken} does not run`);
});

const REMEDIES = [
  '--redis',
  'DUESTREAM_REDIS_SERVER_BIN=',
  'apt-get install',
  'brew install',
  'docker run',
  'Redis 7.0',
];

test('with nothing anywhere the error tells what was tried and every remedy, and asks for exit status 69', async () => {
  const error = await errorOf(find({}));
  expect(error.exitCode).toBe(69);
  expect(error.code).toBe('unavailable');
  for (const step of ['url ', 'bin ', 'path ', 'cache ', 'apt ']) expect(error.message).toContain(`\n  ${step}`);
  for (const remedy of REMEDIES) expect(error.message).toContain(remedy);
});

test('what is installed asks for an address, a program and PATH, and says in one line how to get one', async () => {
  const error = await errorOf(resolveRedis({ env: { PATH: '' }, log: () => undefined }));
  expect(error.message.split('\n').map((line) => line.slice(0, 6))).toEqual([
    'No Red',
    '  url ',
    '  bin ',
    '  path',
    'Get on',
  ]);
});

test.each(['url', 'bin', 'path', 'cache', 'apt'])('forced to %s alone, nothing else is asked', async (source) => {
  const others = {
    url: { DUESTREAM_REDIS_URL: 'redis://db.example:7000' },
    bin: { DUESTREAM_REDIS_SERVER_BIN: await fakeServer('given') },
  };
  const env = source === 'url' ? others.bin : others.url;
  const error = await errorOf(find({ ...env, DUESTREAM_REDIS_SOURCE: source }));
  expect(error.exitCode).toBe(69);
  expect(error.message).toContain(`DUESTREAM_REDIS_SOURCE=${source} allows this step alone`);
  expect(error.message).toContain('Get one with');
});

test('on Windows nothing is started: a URL counts, and else the error says what to do', async () => {
  const bin = await fakeServer('given');
  const search = { platform: 'win32', log: () => undefined } as const;
  const env = { DUESTREAM_REDIS_SERVER_BIN: bin, PATH: join(dir, 'given') };
  const url = 'redis://db.example:7000';
  expect(await resolveRedis({ ...search, env: { ...env, DUESTREAM_REDIS_URL: url } })).toEqual({ kind: 'url', url });
  const error = await errorOf(resolveRedis({ ...search, env }));
  expect(error.message).toContain('\n  bin    duestream starts no server on Windows');
  expect(error.message).toContain('\n  path   duestream starts no server on Windows');
  for (const remedy of ['--redis redis://', 'WSL', 'docker run']) expect(error.message).toContain(remedy);
});

test('a source that does not exist is refused with the ones that do', async () => {
  const error = await errorOf(find({ DUESTREAM_REDIS_SOURCE: 'brew' }));
  expect(error.exitCode).toBe(78);
  expect(error.message).toBe('DUESTREAM_REDIS_SOURCE is "brew"; allowed are url, bin, path, cache, apt');
});

test.each([
  ['Redis server v=7.0.0 sha=0:0', true],
  ['Redis server v=8.2.1 sha=0:0', true],
  ['Redis server v=255.255.255 sha=0:0', true],
  ['Redis server v=6.2.14 sha=0:0', false],
  ['Valkey server v=7.2.4 sha=0:0', true],
  ['Valkey server v=7.1.0 sha=0:0', false],
  ['postgres (PostgreSQL) 16.3', false],
  ['', false],
])('a program that says "%s" is accepted: %s', (text, ok) => {
  expect(judgeVersion(text).ok).toBe(ok);
});
