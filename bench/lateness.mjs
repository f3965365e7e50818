/**
 * Where the milliseconds go between the due time of a job and its handler: `npm run bench:lateness`. One process, all defaults,
 * on a Redis of its own: a daemon that is mover and worker, which starts jobs with one call, and then a mover beside a worker,
 * which take two. Jobs come alone, 25 ms and a bit apart, so that none waits for another. The calls of each job are timed where
 * they leave the client and where their replies arrive. Writes
 * `bench/results/lateness.json` and its section of `docs/reference/measured.md`.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { writeMeasured } from './measured.mjs';
import { keep, prepare, rounded, withRedis } from './parts.mjs';

const JOBS = 600;
const ROUNDS = 3;
const APART_MS = 25;
/** So many of the jobs go the way that is measured; the rest is left out. */
const USUAL = 0.9;
const TIMED = new Set(['relay', 'promote', 'serve']);

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
const TITLES = {
  together: 'Mover and worker in one daemon',
  apart: 'Mover and worker apart',
};

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
/** As a team has it. @type {typeof import('../src/index.ts')} */
const { createClient, createWorker, defineHandlers, defineQueue } = await import(`${root}dist/index.js`);
/** @type {typeof import('../src/daemon/index.ts')} */
const { createDaemon } = await import(`${root}dist/daemon/index.js`);
/** The product's own: beside the peers of this folder lies another. @type {typeof import('ioredis')} */
const { Redis } = createRequire(join(root, 'package.json'))('ioredis');
const verbs = await digests();
const queue = defineQueue('lateness');

/** When something was sent or came, by the wall clock with fractions. @type {{ what: string, atMs: number }[]} */
let seen = [];
const nowMs = () => performance.timeOrigin + performance.now();
watchCalls();

/** @type {{ way: string, step: string, title: string | undefined, p50Ms: number, p90Ms: number, p99Ms: number }[]} */
const rows = [];
for (const way of /** @type {(keyof typeof WAYS)[]} */ (Object.keys(WAYS))) {
  /** @type {Sample[]} */
  const samples = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const seconds = Math.ceil((JOBS * APART_MS) / 1000);
    process.stderr.write(`${TITLES[way]}, round ${round} of ${ROUNDS}: ${JOBS} jobs, ${seconds} s\n`);
    samples.push(...(await withRedis(binary, (server) => measure(server, way))));
  }
  // A job may be brought by another call, as the next turn of a busy worker; it has no such steps.
  const usual = samples.filter((sample) => !Object.values(sample).some(Number.isNaN));
  if (usual.length < USUAL * samples.length)
    throw new Error(`${way}: ${usual.length} of ${samples.length} jobs went this way`);
  for (const [step = '', title] of WAYS[way]) {
    const all = usual.map((sample) => sample[step] ?? Number.NaN).toSorted((one, other) => one - other);
    const at = (/** @type {number} */ share) => rounded(all[Math.floor(share * (all.length - 1))] ?? 0);
    rows.push({ way, step, title, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99) });
  }
}
writeTables(keep('lateness', { what: `${JOBS} jobs that come alone, ${ROUNDS} rounds`, rows }));

/** @param {{ url: string }} server @param {keyof typeof WAYS} way @returns {Promise<Sample[]>} */
async function measure({ url }, way) {
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
    Array.from({ length: JOBS }, (_, nth) => ({ data: nth, at: new Date(fromMs + nth * APART_MS + (nth % 3)) })),
  );
  await sleep(fromMs - Date.now() + JOBS * (APART_MS + 1) + 1000);
  for (const part of parts.toReversed()) await part.stop();
  await producer.close();
  if (samples.size !== JOBS) throw new Error(`${samples.size} of ${JOBS} jobs ran`);
  // The first jobs find an engine that has compiled nothing.
  return [...samples.values()].slice(50);
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
    if (name !== undefined && TIMED.has(name)) {
      // A pass that found nothing is followed by the one that does: the last before the handler counts.
      seen.push({ what: `${name} sent`, atMs: nowMs() });
      const came = () => seen.push({ what: `${name} came`, atMs: nowMs() });
      command.promise.then(came, () => undefined);
    }
    return Reflect.apply(send, this, [command, ...more]);
  }
  Reflect.set(Redis.prototype, 'sendCommand', timed);
}

/** The digest of each script. @returns {Promise<ReadonlyMap<string, string>>} */
async function digests() {
  const { createHash } = await import('node:crypto');
  const digest = (/** @type {string} */ verb) =>
    createHash('sha1')
      .update(readFileSync(join(root, 'lua', `${verb}.lua`), 'utf8'))
      .digest('hex');
  return new Map(['relay', 'promote', 'serve'].map((verb) => [digest(verb), verb]));
}

/** @param {{ what: string, host: string, node: string, date: string }} result */
function writeTables(result) {
  const tables = Object.entries(TITLES).map(([way, title]) => {
    const lines = rows
      .filter((row) => row.way === way)
      .map((row) => `| ${row.title} | ${row.p50Ms} | ${row.p90Ms} | ${row.p99Ms} |`);
    return [`| ${title} | p50 ms | p90 ms | p99 ms |`, '|---|--:|--:|--:|', ...lines].join('\n');
  });
  const said = `Measured on ${result.date} (${result.host}, Node ${result.node}) by \`npm run bench:lateness\`: ${result.what}.`;
  writeMeasured('lateness', ['## From the due time to the handler', said, ...tables].join('\n\n'));
}
