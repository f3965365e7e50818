/** What the measurements have in common: a Redis and a daemon of their own, and what those two use. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { build, redis as findRedis, packagesOf, root } from '../scripts/steps.mjs';
import { startServer } from '../test/chaos/stage/server.mjs';

/** Until a daemon has found its partitions. */
const SETTLE_MS = 2000;

/** Builds the product, and finds a redis-server: its path. */
export async function prepare() {
  const { env } = await findRedis(process.env);
  const { DUESTREAM_REDIS_SERVER_BIN: binary = '' } = env;
  if (binary === '') throw new Error('the bench needs a Redis of its own: leave DUESTREAM_REDIS_URL out');
  await build();
  return binary;
}

/** What others are measured with; it is no dependency of the product. */
export const installPeers = () => packagesOf('bench');

/**
 * Acts with a new Redis, of which nothing stays.
 *
 * @template T
 * @param {string} binary
 * @param {(server: { redis: Redis, url: string, socketPath: string }) => Promise<T>} act
 */
export async function withRedis(binary, act) {
  const folder = mkdtempSync(join(tmpdir(), 'due-bench-'));
  const server = await startServer({ binary, folder, mode: 'none' });
  const redis = new Redis({ path: server.socketPath });
  try {
    return await act({ redis, url: server.url, socketPath: server.socketPath });
  } finally {
    redis.disconnect();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * `duestream start` with the defaults, from the line in which it says that it has started.
 *
 * @param {string} url
 * @param {{ roles?: string, handlers?: boolean, env?: Readonly<Record<string, string>> }} [how] `handlers`: of the queue `bench`, which do nothing
 */
export async function startDaemon(url, { roles = 'mover', handlers = false, env = {} } = {}) {
  const module = handlers ? ['--module', join(root, 'bench/idle-handlers.mjs')] : [];
  const daemon = spawn(process.execPath, [join(root, 'dist/main.js'), 'start', '--roles', roles, ...module], {
    env: { PATH: process.env.PATH, DUESTREAM_REDIS_URL: url, DUESTREAM_HTTP__PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    daemon.stdout.on('data', (chunk) => String(chunk).includes('"msg":"started"') && resolve(undefined));
    daemon.once('exit', () => reject(new Error('the process ended')));
  });
  return { pid: daemon.pid ?? 0, kill: () => daemon.kill('SIGKILL') };
}

/** Until a daemon has found its partitions. */
export const settled = () => sleep(SETTLE_MS);

/** User and system time of a process; a tick is 10 ms. @param {number} pid */
export function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** @param {Redis} redis */
export async function redisCpuMs(redis) {
  return cpuMsIn(await redis.info('cpu'));
}

/** @param {string} info of the section cpu */
export function cpuMsIn(info) {
  const of = (/** @type {string} */ name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(info)?.[1]) * 1000;
  return of('used_cpu_sys') + of('used_cpu_user');
}

/** @param {readonly number[]} values */
export function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;
}

/** @param {number} value */
export function rounded(value) {
  return Math.round(value * 100) / 100;
}

/** @param {Redis} redis */
export async function usedBytes(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}

/** The time of all scripts since `CONFIG RESETSTAT`, with that of their commands. @param {Redis} redis */
export async function scriptMicros(redis) {
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/g)].reduce(
    (sum, [, micros]) => sum + Number(micros),
    0,
  );
}
