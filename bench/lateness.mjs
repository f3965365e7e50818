/**
 * Where the milliseconds go between the due time of a job and its handler: `npm run bench -- lateness`. One process, all defaults,
 * on a Redis of its own: a daemon that is mover and worker, which starts jobs with one call, and then a mover beside a worker,
 * which take two. Jobs come alone, 25 ms and a bit apart, so that none waits for another. The calls of each job are timed where
 * they leave the client and where their replies arrive. Writes
 * `bench/results/lateness.json` and its section of `docs/reference/measured.md`.
 *
 *     --jobs 600     of each round
 *     --rounds 3     of each way
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../scripts/steps.mjs';
import { shaOf } from './idle-commands.mjs';
import { rounded, withRedis } from './parts.mjs';

const APART_MS = 25;
/** So many of the jobs go the way that is measured; the rest is left out. */
const USUAL = 0.9;
/** The first jobs find an engine that has compiled nothing. */
const COLD = 50;
const TIMED = ['relay', 'promote', 'serve'];

/** @typedef {Readonly<Record<string, number>>} Sample ms of each step */
/** The steps of each way, in the order in which a job meets them. */
const WAYS = {
  together: [
    ['timer', 'Node’s timer fires after the due time, and the pass is sent'],
    ['relay', '`relay` on its way and in Redis'],
    ['handler', 'the reply is read and the handler is called'],
    ['all', 'due time to handler'],
  ],
  apart: [
    ['timer', 'Node’s timer fires after the due time, and the pass is sent'],
    ['pass', '`promote` on its way and in Redis, until the read that waits has its reply and `serve` is sent'],
    ['start', '`serve` on its way and in Redis'],
    ['handler', 'the reply is read and the handler is called'],
    ['all', 'due time to handler'],
  ],
};
/** As a team has it. @type {typeof import('../src/index.ts')} */
const { createClient, createWorker, defineHandlers, defineQueue } = await import(`${root}dist/index.js`);
/** @type {typeof import('../src/daemon/index.ts')} */
const { createDaemon } = await import(`${root}dist/daemon/index.js`);
/** The product's own: beside the peers of this folder lies another. @type {typeof import('ioredis')} */
const { Redis } = createRequire(join(root, 'package.json'))('ioredis');
const verbs = new Map(TIMED.map((verb) => [shaOf(verb), verb]));
const queue = defineQueue('lateness');

/** When something was sent or came, by the wall clock with fractions. @type {{ what: string, atMs: number }[]} */
let seen = [];
const nowMs = () => performance.timeOrigin + performance.now();
/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number }) {
  const jobs = number('jobs', { otherwise: 600, from: 2 * COLD, to: 100_000 });
  const rounds = number('rounds', { otherwise: 3, from: 1, to: 100 });
  watchCalls();
  const rows = [];
  for (const way of /** @type {(keyof typeof WAYS)[]} */ (Object.keys(WAYS))) {
    /** @type {Sample[]} */
    const samples = [];
    for (let round = 1; round <= rounds; round += 1) {
      const seconds = Math.ceil((jobs * APART_MS) / 1000);
      process.stderr.write(`bench: ${way}, round ${round} of ${rounds}: ${jobs} jobs, ${seconds} s\n`);
      samples.push(...(await withRedis(binary, ({ url }) => measure({ url, way, jobs }))));
    }
    rows.push(...stepsOf(way, samples));
  }
  return [{ name: 'lateness', what: `${jobs} jobs that come alone, ${rounds} rounds`, rows }];
}

/** @param {keyof typeof WAYS} way @param {readonly Sample[]} samples */
function stepsOf(way, samples) {
  // A job may be brought by another call, as the next turn of a busy worker; it has no such steps.
  const usual = samples.filter((sample) => !Object.values(sample).some(Number.isNaN));
  if (usual.length < USUAL * samples.length)
    throw new Error(`${way}: ${usual.length} of ${samples.length} jobs went this way`);
  return WAYS[way].map(([step = '', title]) => {
    const all = usual.map((sample) => sample[step] ?? Number.NaN).toSorted((one, other) => one - other);
    const at = (/** @type {number} */ share) => rounded(all[Math.floor(share * (all.length - 1))] ?? 0);
    return { way, step, title, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99) };
  });
}

/** @param {{ url: string, way: keyof typeof WAYS, jobs: number }} what @returns {Promise<Sample[]>} */
async function measure({ url, way, jobs }) {
  const producer = createClient({ redis: url });
  /** @type {Map<string, Sample>} */
  const samples = new Map();
  const handler = (/** @type {{ id: string, dueMs: number }} */ job) =>
    void samples.set(job.id, sampleOf(way, job.dueMs, nowMs()));
  const quiet = /** @type {const} */ ({ redis: { url }, log: { level: 'fatal' } });
  const parts =
    way === 'together'
      ? [createDaemon({ ...quiet, roles: ['mover', 'worker'] }, { handlers: defineHandlers({ lateness: handler }) })]
      : [createDaemon({ ...quiet, roles: ['mover'] }), createWorker(queue, handler, { redis: url })];
  for (const part of parts) await part.start();
  const fromMs = Date.now() + 2000;
  await producer.scheduleMany(
    queue,
    Array.from({ length: jobs }, (_, nth) => ({ data: nth, at: new Date(fromMs + nth * APART_MS + (nth % 3)) })),
  );
  await sleep(fromMs - Date.now() + jobs * (APART_MS + 1) + 1000);
  for (const part of parts.toReversed()) await part.stop();
  await producer.close();
  if (samples.size !== jobs) throw new Error(`${samples.size} of ${jobs} jobs ran`);
  return [...samples.values()].slice(COLD);
}

/** @param {keyof typeof WAYS} way @param {number} dueMs @param {number} startedMs @returns {Sample} */
function sampleOf(way, dueMs, startedMs) {
  const times = new Map(seen.map(({ what, atMs }) => [what, atMs]));
  seen = [];
  const all = startedMs - dueMs;
  if (way === 'together') {
    const left = times.get('relay sent') ?? Number.NaN;
    const back = times.get('relay came') ?? Number.NaN;
    return { timer: left - dueMs, relay: back - left, handler: startedMs - back, all };
  }
  const sent = times.get('promote sent') ?? Number.NaN;
  const serve = times.get('serve sent') ?? Number.NaN;
  const came = times.get('serve came') ?? Number.NaN;
  return {
    timer: sent - dueMs,
    pass: serve - sent,
    start: came - serve,
    handler: startedMs - came,
    all,
  };
}

/** Every command of every connection of this process tells when it is sent and when its reply is there. */
function watchCalls() {
  const send = Redis.prototype.sendCommand;
  /** @this {import('ioredis').Redis} @param {import('ioredis').Command} command @param {unknown[]} more */
  function timed(command, ...more) {
    const name = command.name === 'evalsha' ? verbs.get(String(command.args[0])) : command.name;
    if (name !== undefined && TIMED.includes(name)) {
      // A pass that found nothing is followed by the one that does: the last before the handler counts.
      seen.push({ what: `${name} sent`, atMs: nowMs() });
      const came = () => seen.push({ what: `${name} came`, atMs: nowMs() });
      command.promise.then(came, () => undefined);
    }
    return Reflect.apply(send, this, [command, ...more]);
  }
  Reflect.set(Redis.prototype, 'sendCommand', timed);
}
