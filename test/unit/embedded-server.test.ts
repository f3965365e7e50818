/** The embedded server: its data outlives any kill, it outlives nobody, and there is one per folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answersPing, ask } from '../../src/embedded/ask.mjs';
import { isAlive } from '../../src/embedded/lock.mjs';
import { waitUntil } from '../../src/embedded/running.mjs';
import { EMBEDDED_NOTICE, startEmbedded } from '../../src/embedded/server.mjs';
import { testBinary } from '../support/redis-binary.ts';

let dir = '';
let cleanUp: (() => unknown)[] = [];

beforeEach(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  cleanUp = [];
});

afterEach(async () => {
  for (const act of cleanUp.reverse()) await act();
  await rm(dir, { recursive: true, force: true });
});

async function start(settings: { port?: number; socket?: string } = {}) {
  const place = settings.port === undefined ? { socket: settings.socket ?? join(dir, 'r.sock') } : settings;
  const server = await startEmbedded({ binary: await testBinary(), dataDir: join(dir, 'data'), ...place });
  cleanUp.push(() => server.stop());
  return server;
}

/** A process of its own that starts a server on the same folder, prints it and waits. */
async function startElsewhere(): Promise<{ parent: ChildProcess; pid: number }> {
  const module = new URL('../../src/embedded/server.mjs', import.meta.url).href;
  const settings = { binary: await testBinary(), dataDir: join(dir, 'data'), socket: join(dir, 'r.sock') };
  const code = `import { startEmbedded } from ${JSON.stringify(module)};
    const server = await startEmbedded(${JSON.stringify(settings)});
    console.log(JSON.stringify(server));`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanUp.push(() => parent.kill('SIGKILL'));
  const [line] = await once(parent.stdout, 'data');
  return { parent, pid: JSON.parse(String(line)).pid };
}

const gone = (pid: number) => waitUntil(async () => !isAlive(pid), 10_000);

test('what was written is there again after the server and its starter were killed', async () => {
  const socketPath = join(dir, 'r.sock');
  const { parent, pid } = await startElsewhere();
  await ask({ socketPath }, ['SET', 'kept', 'yes']);
  // The append-only file is written before each reply and synced within a second; a kill of processes loses neither.
  process.kill(pid, 'SIGKILL');
  parent.kill('SIGKILL');
  expect(await gone(pid)).toBe(true);
  const server = await start();
  expect(server.reused).toBe(false);
  expect(await ask({ socketPath }, ['GET', 'kept'])).toBe('yes');
});

test('a server goes when its starter is killed', async () => {
  const { parent, pid } = await startElsewhere();
  parent.kill('SIGKILL');
  expect(await gone(pid)).toBe(true);
});

test('a frozen server goes too when its starter is killed', async () => {
  const { parent, pid } = await startElsewhere();
  process.kill(pid, 'SIGSTOP');
  parent.kill('SIGKILL');
  expect(await gone(pid)).toBe(true);
});

test('a start right after the starter was killed waits for the old server and brings the data back', async () => {
  const { parent, pid } = await startElsewhere();
  await ask({ socketPath: join(dir, 'r.sock') }, ['SET', 'kept', 'yes']);
  parent.kill('SIGKILL');
  const server = await start();
  expect(server).toMatchObject({ reused: false });
  expect(server.pid).not.toBe(pid);
  expect(await ask({ socketPath: join(dir, 'r.sock') }, ['GET', 'kept'])).toBe('yes');
});

test('a second start on the same folder uses the server that runs, and its stop leaves it alone', async () => {
  const { pid } = await startElsewhere();
  const second = await start({ port: 6379 });
  expect(second).toMatchObject({ pid, reused: true, port: undefined, url: `unix://${join(dir, 'r.sock')}` });
  await second.stop();
  expect(await answersPing({ socketPath: join(dir, 'r.sock') })).toBe(true);
});

test('five starts at once give one server', async () => {
  const servers = await Promise.all(Array.from({ length: 5 }, () => start()));
  expect(new Set(servers.map(({ pid }) => pid)).size).toBe(1);
  expect(servers.filter(({ reused }) => !reused)).toHaveLength(1);
});

test('a stranger who got the pid of a dead server does not pass for it', async () => {
  const server = await start();
  await server.stop();
  await writeFile(join(dir, 'data', 'redis.pid'), `${process.pid}\n`);
  await writeFile(join(dir, 'data', 'server.json'), JSON.stringify({ pid: process.pid, socketPath: '/nowhere' }));
  expect(await start()).toMatchObject({ reused: false });
});

test('links that lie in the data folder are replaced and never written through', async () => {
  const data = join(dir, 'data');
  const outside = join(dir, 'outside');
  await mkdir(data);
  await writeFile(outside, 'theirs');
  for (const name of ['redis.pid', 'server.json', 'server.json.new']) await symlink(outside, join(data, name));
  const server = await start();
  await server.stop();
  expect(await readFile(outside, 'utf8')).toBe('theirs');
});

test('the next free port is taken when the one wanted is in use', async () => {
  const taken = createServer();
  const port = await freePort();
  taken.listen(port, '127.0.0.1');
  await once(taken, 'listening');
  cleanUp.push(() => taken.close());
  const server = await start({ port });
  expect(server.port).toBeGreaterThan(port);
  expect(server.url).toBe(`redis://127.0.0.1:${server.port}`);
  expect(await answersPing({ port: server.port ?? 0 })).toBe(true);
});

async function freePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('the probe has no port');
  return address.port;
}

test('servers of several folders that want one port at once get one each, and nobody takes another for its own', async () => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  const folders = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => join(dir, name));
  const binary = await testBinary();
  const starts = folders.map(async (dataDir) => {
    const server = await startEmbedded({ binary, dataDir, port });
    cleanUp.push(() => server.stop());
    return server;
  });
  // Where one fails, the others are waited for, so that they are stopped before their folder is removed.
  await Promise.allSettled(starts);
  const servers = await Promise.all(starts);
  expect(new Set(servers.map((server) => server.port)).size).toBe(folders.length);
  const claimed = servers.map((server) => ask({ port: server.port ?? 0 }, ['CONFIG', 'GET', 'dir']));
  expect(await Promise.all(claimed)).toEqual(folders.map((folder) => ['dir', folder]));
});

test('it keeps every write, drops nothing when memory is short, and listens on this machine alone', async () => {
  const server = await start({ port: await freePort() });
  const address = { port: server.port ?? 0 };
  const setting = async (name: string) => {
    const reply = await ask(address, ['CONFIG', 'GET', name]);
    return Array.isArray(reply) ? reply[1] : reply;
  };
  expect(await setting('appendonly')).toBe('yes');
  expect(await setting('appendfsync')).toBe('everysec');
  expect(await setting('maxmemory-policy')).toBe('noeviction');
  expect(await setting('protected-mode')).toBe('yes');
  expect(await setting('bind')).toBe('127.0.0.1');
});

test('a stopped server is gone, and stopping it again is fine', async () => {
  const server = await start();
  await server.stop();
  await server.stop();
  expect(isAlive(server.pid)).toBe(false);
});

test('a program that is no server ends in an error that shows what it said', async () => {
  const binary = join(dir, 'no-server');
  await writeFile(binary, '#!/bin/sh\necho no such luck >&2\nexit 1\n', { mode: 0o755 });
  await expect(startEmbedded({ binary, dataDir: dir, socket: join(dir, 'r.sock') })).rejects.toMatchObject({
    exitCode: 69,
    message: expect.stringContaining('no such luck'),
  });
});

test('what a program says last is in the error, also where its end is told first', async () => {
  const binary = join(dir, 'no-server');
  await writeFile(binary, '#!/bin/sh\n(sleep 0.3; echo no such luck >&2) &\nexit 1\n', { mode: 0o755 });
  await expect(startEmbedded({ binary, dataDir: dir, socket: join(dir, 'r.sock') })).rejects.toMatchObject({
    message: expect.stringContaining('no such luck'),
  });
});

test('a socket path that the kernel would cut off is refused', async () => {
  const settings = { binary: 'redis-server', dataDir: dir, socket: join(dir, 'x'.repeat(100)) };
  await expect(startEmbedded(settings)).rejects.toMatchObject({ exitCode: 78 });
});

test('the notice says what embedded Redis is for', () => {
  expect(EMBEDDED_NOTICE).toMatch(/development/);
  expect(EMBEDDED_NOTICE).toMatch(/single node/);
});
