/**
 * Where redis-tools is installed and redis-server is not, the cache leads to the system's own program. Nobody who
 * writes to what we hand out may reach that program, and no clearing up may follow a link out of the cache.
 */
import { lstat, mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findRedis } from '../../scripts/redis-package.mjs';
import { judge } from '../../src/embedded/binary.mjs';
import { digestsOf, installRedisTools } from '../support/redis-tools.ts';

let dir = '';
let system = '';
let cacheDir = '';
let bin = '';

beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  system = join(dir, 'system');
  cacheDir = join(dir, 'cache');
  bin = await installRedisTools(system);
  // They are only looked for: what is installed needs no package.
  for (const tool of ['apt-get', 'dpkg-deb']) await writeFile(join(bin, tool), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
});

afterEach(() => rm(dir, { recursive: true, force: true }));

const resolve = () => findRedis({ env: { PATH: bin }, cacheDir, log: () => {} });
const handedOut = () => join(cacheDir, 'server', 'bin');

test('redis-tools alone gives a server and its redis-cli, and nothing that is handed out is a link', async () => {
  const path = join(handedOut(), 'redis-server');
  const found = { kind: 'binary', source: 'apt', path, version: '7.0.15', cli: join(handedOut(), 'redis-cli') };
  expect(await resolve()).toEqual(found);
  expect(await resolve()).toEqual({ ...found, source: 'cache' });
  const kinds = (await readdir(handedOut())).map(async (name) => (await lstat(join(handedOut(), name))).isFile());
  expect(await Promise.all(kinds)).toEqual([true, true]);
});

test('a write to what is handed out reaches no program of the system, and the copy is made anew', async () => {
  await resolve();
  const before = await digestsOf(system);
  for (const name of await readdir(handedOut())) await writeFile(join(handedOut(), name), 'not a program');
  expect(await digestsOf(system)).toEqual(before);
  expect(await resolve()).toMatchObject({ source: 'apt', version: '7.0.15' });
  await rm(cacheDir, { recursive: true });
  expect(await digestsOf(system)).toEqual(before);
});

test('a copy of an earlier version that is itself a link is replaced without touching where it leads', async () => {
  await writeFile(join(system, 'lib', 'broken'), 'theirs', { mode: 0o755 });
  await mkdir(handedOut(), { recursive: true });
  await symlink(join(system, 'lib', 'broken'), join(handedOut(), 'redis-server'));
  const before = await digestsOf(system);
  expect(await resolve()).toMatchObject({ source: 'apt' });
  expect(await judge(join(handedOut(), 'redis-server'))).toMatchObject({ ok: true });
  expect(await digestsOf(system)).toEqual(before);
});

test('a folder of the cache that leads elsewhere is replaced without emptying where it leads', async () => {
  await mkdir(join(system, 'elsewhere', 'bin'), { recursive: true });
  await writeFile(join(system, 'elsewhere', 'bin', 'redis-server'), 'theirs', { mode: 0o755 });
  await mkdir(cacheDir);
  await symlink(join(system, 'elsewhere'), join(cacheDir, 'server'));
  const before = await digestsOf(system);
  expect(await resolve()).toMatchObject({ source: 'apt' });
  expect(await digestsOf(system)).toEqual(before);
  expect(await readdir(cacheDir)).not.toContainEqual(expect.stringMatching(/^draft/));
});
