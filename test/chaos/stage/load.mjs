/**
 * What rows about load have in their hands: a queue of their own beside the workload's, jobs planted by the thousand as
 * the wire format has them, a probe that times commands, and what a process weighs and uses.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {import('./cast.mjs').Cast} Cast */

export const LOAD_MODULE = fileURLToPath(new URL('./handlers-load.mjs', import.meta.url));
const CONTROL = 'duestream:v1:{control}';
const CHUNK = 1000;
/** Ticks of the kernel's clock per second, as /proc counts them. */
const TICKS = 100;

/** A key of the queue `load`. @param {string} name */
export const loadKey = (name) => `duestream:v1:{load:0}:${name}`;

/**
 * Waits for longer than the scene does.
 *
 * @param {() => Promise<boolean> | boolean} holds
 * @param {string} what
 * @param {number} forMs
 * @returns {Promise<number>} how long it took
 */
export async function waitFor(holds, what, forMs) {
  const fromMs = performance.now();
  while (!(await holds())) {
    if (performance.now() - fromMs > forMs) throw new Error(`waited ${forMs} ms in vain: ${what}`);
    await sleep(20);
  }
  return Math.round(performance.now() - fromMs);
}

/** Declares the queue `load`, and waits until somebody leads it. @param {Redis} redis */
export async function declareLoad(redis) {
  await redis.hsetnx(`${CONTROL}:queues`, 'load', JSON.stringify({ partitions: 1, generation: 0 }));
  await redis.spublish(`${CONTROL}:wake`, 'queue load');
  await waitFor(async () => (await redis.exists(loadKey('leader'))) === 1, 'a leader of load', 10_000);
}

/**
 * Full jobs, written as `schedule` would: members, records, and the counter.
 *
 * @param {Redis} redis
 * @param {{ count: number, dueMs: number, prefix: string, name?: string }} jobs
 */
export async function plant(redis, { count, dueMs, prefix, name }) {
  const record = `1${dueMs.toString(36)}|${name === undefined ? '{}' : `{"n":${JSON.stringify(name)}}`}`;
  for (let from = 0; from < count; from += CHUNK) {
    const members = Array.from({ length: Math.min(CHUNK, count - from) }, (_, at) => `j:${prefix}${from + at}`);
    const pipeline = redis.pipeline();
    pipeline.zadd(loadKey('scheduled'), ...members.flatMap((member) => [dueMs, member]));
    pipeline.hset(loadKey('jobs'), ...members.flatMap((member) => [member, record]));
    pipeline.hincrby(loadKey('meta'), 'n.scheduled', members.length);
    await pipeline.exec();
  }
}

/** A worker for the queue `load`. @param {Cast} cast @param {Readonly<Record<string, string>>} [env] */
export function loadWorker(cast, env = {}) {
  return cast.otherWorker(LOAD_MODULE, 'load', { CHAOS_LOAD: join(cast.folder, 'load.jsonl'), ...env });
}

/**
 * What the handlers of `load` wrote down.
 *
 * @param {Cast} cast
 * @returns {readonly { id: string, due?: number, ms?: number, bytes?: number, digest?: string, polluted?: boolean }[]}
 */
export function loadRuns({ folder }) {
  const file = join(folder, 'load.jsonl');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/**
 * Times one command after the other over a connection of its own, until it is stopped.
 *
 * @param {Redis} redis
 */
export function startProbe(redis) {
  const own = redis.duplicate();
  own.on('error', () => {});
  /** @type {number[]} */
  const tookMs = [];
  let stopped = false;
  const commands = [
    () => own.ping(),
    () => own.set('probe', 'x', 'EX', 60),
    () => own.get('probe'),
    () => own.hget(loadKey('meta'), 'token'),
    () => own.xlen(loadKey('ready')),
  ];
  const ended = (async () => {
    for (let at = 0; !stopped; at += 1) {
      const fromMs = performance.now();
      await commands[at % commands.length]?.();
      tookMs.push(performance.now() - fromMs);
      await sleep(1);
    }
  })();
  return async () => {
    stopped = true;
    await ended;
    await own.del('probe');
    own.disconnect();
    return { commands: tookMs.length, p99Ms: tenth(percentile(tookMs, 0.99)), maxMs: tenth(Math.max(0, ...tookMs)) };
  };
}

/** @param {readonly number[]} values @param {number} part */
export function percentile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** @param {string} text */
export const digestOf = (text, algorithm = 'sha256') => createHash(algorithm).update(text).digest('hex');

/** @param {number} value */
export const tenth = (value) => Math.round(value * 10) / 10;

/** Resident memory of the heaviest of these, in MB. @param {readonly { pid: number }[]} actors */
export function residentMb(actors) {
  const of = actors.map(({ pid }) => Number(/VmRSS:\s+(\d+)/.exec(procFile(pid, 'status'))?.[1] ?? 0));
  return tenth(Math.max(0, ...of) / 1024);
}

/** Seconds of processor time that these have used so far. @param {readonly { pid: number }[]} actors */
export function processorSeconds(actors) {
  return actors.map(({ pid }) => {
    // What follows the name, which may hold anything, even a bracket.
    const fields = procFile(pid, 'stat')
      .replace(/^.*\) /s, '')
      .split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS;
  });
}

/** @param {number} pid @param {string} name */
function procFile(pid, name) {
  return existsSync(`/proc/${pid}/${name}`) ? readFileSync(`/proc/${pid}/${name}`, 'utf8') : '';
}

/**
 * How often a command was called since the server started, those of scripts included.
 *
 * @param {Redis} redis
 * @returns {Promise<ReadonlyMap<string, number>>}
 */
export async function commandCalls(redis) {
  const info = await redis.info('commandstats');
  return new Map(
    [...info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)].map(([, name = '', calls]) => [name, Number(calls)]),
  );
}

/**
 * Seconds of processor time that Redis has used for commands so far, and how many scripts it ran for them.
 *
 * @param {Redis} redis
 */
export async function workOf(redis) {
  const info = await redis.info('cpu');
  const of = (/** @type {string} */ kind) =>
    Number(new RegExp(`used_cpu_${kind}_main_thread:([\\d.]+)`).exec(info)?.[1]);
  return { seconds: of('user') + of('sys'), scripts: (await commandCalls(redis)).get('evalsha') ?? 0 };
}

const run = promisify(execFile);

/**
 * A verb of the command line, as a person would call it. Its answer counts, whatever it ended with.
 *
 * @param {Cast} cast
 * @param {readonly string[]} args
 * @returns {Promise<{ out: string, err: string }>}
 */
export async function commandLine({ main, url }, args) {
  const env = { PATH: process.env.PATH ?? '', NO_COLOR: '1', DUESTREAM_REDIS_URL: url };
  const options = { env, maxBuffer: 64 * 1024 * 1024, timeout: 120_000 };
  /** @type {{ stdout: string, stderr: string }} */
  const { stdout, stderr } = await run(process.execPath, [main, ...args], options).catch((error) => error);
  return { out: String(stdout), err: String(stderr) };
}
