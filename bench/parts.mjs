/** What the measurements have in common: a Redis and a daemon of their own, and what those two use. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { capture, Failed } from '../scripts/run.mjs';
import { build, redis as findRedis, root, say } from '../scripts/steps.mjs';
import { startServer } from '../test/chaos/stage/server.mjs';

/** Until a daemon has found its partitions. */
const SETTLE_MS = 2000;

/** Builds the product, and finds a redis-server. */
export async function prepare() {
  const { env } = await findRedis(process.env);
  const { DUESTREAM_REDIS_SERVER_BIN: binary = '' } = env;
  if (binary === '') throw new Error('the bench needs a Redis of its own: leave DUESTREAM_REDIS_URL out');
  await build();
  return { binary };
}

/** What others are measured with; it is no dependency of the product. */
export async function installPeers() {
  const folder = join(root, 'bench');
  const lock = join(folder, 'package-lock.json');
  const kept = join(folder, 'node_modules', '.peers-of');
  if (existsSync(kept) && readFileSync(kept, 'utf8') === readFileSync(lock, 'utf8')) return;
  say('peers', 'npm ci in bench, half a minute or so');
  const { code, output } = await capture('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder });
  if (code !== 0) throw new Failed(code, output);
  writeFileSync(kept, readFileSync(lock, 'utf8'));
}

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
 * A daemon with the defaults that leads; with a module it is a worker as well, in the same process.
 *
 * @param {string} url
 * @param {string} [module]
 */
export async function startDaemon(url, module) {
  const roles = module === undefined ? ['--roles', 'mover'] : ['--roles', 'mover,worker', '--module', module];
  const daemon = spawn(process.execPath, [join(root, 'dist/main.js'), 'start', ...roles], {
    env: { PATH: process.env.PATH, DUESTREAM_REDIS_URL: url, DUESTREAM_HTTP__PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => {
    daemon.stdout.on('data', (chunk) => String(chunk).includes('"msg":"started"') && resolve(undefined));
    daemon.once('exit', () => reject(new Error('the daemon ended')));
  });
  await sleep(SETTLE_MS);
  return daemon;
}

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

/** What figures depend on. */
export function hostAndNode() {
  return { host: `${cpus().length} × ${cpus()[0]?.model}`, node: process.version };
}

/**
 * Keeps figures, with where and when they were taken.
 *
 * @param {string} name of the file
 * @param {{ what: string, rows: readonly object[] }} measured
 */
export function keep(name, { what, rows }) {
  const result = {
    what,
    ...hostAndNode(),
    date: new Date().toISOString().slice(0, 10),
    rows,
  };
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  writeFileSync(join(root, 'bench', 'results', `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
  console.table(rows);
  return result;
}
