/** Where a measurement stands: a server of its own, mostly Redis, the processes of one system, and what the server spends. */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { freePort } from '../../src/embedded/port.mjs';
import { startServer } from '../../test/chaos/stage/server.mjs';

const PROCESS = fileURLToPath(new URL('./process.mjs', import.meta.url));
const FIRST_PORT = 27_400;
/** Nothing of ours takes longer; a system that stands still must end the bench. */
const ANSWER_WITHIN_MS = 600_000;

/** @typedef {import('./system.mjs').System} System */
/** @typedef {{ cpuMs: number, commands: number | undefined, scripts: number | undefined, bytes: number }} Spent `undefined`: it is not Redis */

/**
 * @typedef {object} Ground
 * @property {string} url
 * @property {(role: string, system: System, options?: object) => Promise<Child>} start
 * @property {(system: System) => Promise<number>} pending
 * @property {() => Promise<Spent>} spent
 * @property {() => Promise<void>} close
 */

/** @typedef {Awaited<ReturnType<typeof startProcess>>} Child */
/** @typedef {import('./process.mjs').Told} Told */

const aPort = () => freePort(FIRST_PORT + Math.floor(Math.random() * 500));

/** @param {string} url @param {() => Promise<unknown>} stop */
function stageOf(url, stop) {
  /** @type {Child[]} */
  const children = [];
  return {
    url,
    /** @param {string} role @param {System} system @param {object} [options] */
    async start(role, { name, execPath }, options = {}) {
      const child = await startProcess([role, name, url, JSON.stringify(options)], execPath);
      children.push(child);
      return child;
    },
    async close() {
      for (const child of children) child.kill();
      await stop();
    },
  };
}

/** @param {NonNullable<System['server']>} startOwn @returns {Promise<Ground>} */
export async function openOwnGround(startOwn) {
  const folder = mkdtempSync(join(tmpdir(), 'due-bench-'));
  const server = await startOwn({ folder, port: await aPort() });
  const stage = stageOf(server.url, async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    ...stage,
    pending: () => server.pending(),
    spent: async () => ({ ...(await server.spent()), commands: undefined, scripts: undefined }),
  };
}

/** @param {{ binary: string }} settings */
export async function openGround({ binary }) {
  const folder = mkdtempSync(join(tmpdir(), 'due-bench-'));
  const port = await aPort();
  const settings = { port: String(port), bind: '127.0.0.1', 'latency-tracking-info-percentiles': '50 99 99.9' };
  const server = await startServer({ binary, folder, mode: 'none', settings });
  const redis = new Redis({ port, host: '127.0.0.1' });
  const stage = stageOf(`redis://127.0.0.1:${port}`, async () => {
    redis.disconnect();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    ...stage,
    redis,
    /** @param {System} system */
    async pending({ name, pending }) {
      if (!pending) throw new Error(`${name} does not say what is pending in Redis`);
      return pending(redis);
    },
    spent: () => spentBy(redis),
  };
}

/** @param {readonly string[]} args @param {string} [execPath] another engine; Bun knows messages in JSON only */
async function startProcess(args, execPath) {
  const child = fork(PROCESS, args, {
    execArgv: [],
    ...(execPath === undefined ? {} : { execPath }),
    serialization: execPath?.endsWith('/bun') ? 'json' : 'advanced',
  });
  let count = 0;
  let gone = false;
  /** @type {((told: Told) => void) | undefined} */
  let waiting;
  child.once('exit', () => {
    gone = true;
    waiting?.({ failed: `the process ${args.join(' ')} ended` });
  });
  child.on('message', (message) => {
    const told = /** @type {Told} */ (message);
    if (told.count !== undefined) count = told.count;
    const isCount = told.count !== undefined && told.starts === undefined;
    if (!isCount) waiting?.(told);
  });
  await new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', () => reject(new Error(`the process ${args.join(' ')} did not start`)));
  });
  return {
    pid: child.pid ?? 0,
    count: () => count,
    kill: () => void (gone || child.kill('SIGKILL')),
    /** @param {string} what @param {import('./plan.mjs').Plan} [plan] @returns {Promise<Told>} */
    async ask(what, plan) {
      const told = await new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${args[1]} did not answer to ${what}`)), ANSWER_WITHIN_MS);
        waiting = (one) => {
          clearTimeout(timer);
          resolve(one);
        };
        child.send({ ask: what, plan });
      });
      waiting = undefined;
      if (told.failed !== undefined) throw new Error(`${args[1]}: ${told.failed}`);
      return told;
    },
  };
}

/**
 * What Redis did so far. Commands are those that it carried out, also from scripts; what we ask ourselves is left out.
 *
 * @param {Redis} redis
 */
async function spentBy(redis) {
  const [cpu, stats, memory] = await Promise.all([redis.info('cpu'), redis.info('commandstats'), redis.info('memory')]);
  const of = (/** @type {string} */ text, /** @type {string} */ name) =>
    Number(new RegExp(`${name}:([\\d.]+)`).exec(text)?.[1] ?? 0);
  const calls = [...stats.matchAll(/cmdstat_([a-z|_-]+):calls=(\d+)/gi)]
    .map(([, name = '', count]) => ({ name, count: Number(count) }))
    .filter(({ name }) => !/^(info|config|latency|command)/.test(name));
  const sum = (/** @type {(name: string) => boolean} */ wanted) =>
    calls.filter(({ name }) => wanted(name)).reduce((all, { count }) => all + count, 0);
  return {
    cpuMs: (of(cpu, 'used_cpu_sys') + of(cpu, 'used_cpu_user')) * 1000,
    commands: sum(() => true),
    scripts: sum((name) => name === 'evalsha' || name === 'eval' || name === 'fcall'),
    bytes: of(memory, 'used_memory'),
  };
}

/** @param {() => Promise<boolean>} test @param {{ forMs?: number, what: string }} options */
export async function until(test, { forMs = 300_000, what }) {
  const endMs = performance.now() + forMs;
  while (!(await test())) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${forMs / 1000} s`);
    await sleep(20);
  }
}
