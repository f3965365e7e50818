/**
 * Where the milliseconds go between the due time of a job and its handler: `npm run bench:lateness`. One process with mover
 * and worker, all defaults, on a Redis of its own; jobs come alone, 25 ms and a bit apart, so that none waits for another.
 * The calls of each job are timed where they leave the client and where their replies arrive. Writes
 * `bench/results/lateness.json` and the table in `docs/explanation/lateness.md`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, prepare, rounded, withRedis } from './parts.mjs';

const JOBS = 600;
const ROUNDS = 3;
const APART_MS = 25;
const PAGE = join(root, 'docs/explanation/lateness.md');

/** @typedef {'timer' | 'pass' | 'read' | 'start' | 'handler' | 'all'} Step */
/** In the order in which a job meets them. @type {readonly (readonly [Step, string])[]} */
const STEPS = [
  ['timer', 'Node’s timer fires after the due time, and the pass is sent'],
  ['pass', '`promote` on its way and in Redis, until the read that waits has its reply'],
  ['read', 'the reply is read, and `serve` is sent'],
  ['start', '`serve` on its way and in Redis'],
  ['handler', 'the reply is read and the handler is called'],
  ['all', 'due time to handler'],
];

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
/** As a team has it. @type {typeof import('../src/index.ts')} */
const { createDaemon, createProducer, createWorker, defineQueue } = await import(`${root}dist/index.js`);
const verbs = await digests();
const queue = defineQueue('lateness');

/** When something was sent or came, by the wall clock with fractions. @type {{ what: string, atMs: number }[]} */
let seen = [];
const nowMs = () => performance.timeOrigin + performance.now();
watchCalls();

/** @type {Record<Step, number>[][]} */
const rounds = [];
for (let round = 1; round <= ROUNDS; round += 1) {
  process.stderr.write(`round ${round} of ${ROUNDS}: ${JOBS} jobs, ${Math.ceil((JOBS * APART_MS) / 1000)} s\n`);
  rounds.push(await withRedis(binary, measure));
}
const rows = STEPS.map(([step, title]) => {
  const all = rounds.flatMap((samples) => samples.map((sample) => sample[step])).toSorted((one, other) => one - other);
  const at = (/** @type {number} */ share) => rounded(all[Math.floor(share * (all.length - 1))] ?? 0);
  return { step, title, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99) };
});
writeTable(keep('lateness', { what: `${JOBS} jobs that come alone, ${ROUNDS} rounds`, rows }));

/** @param {{ url: string }} server @returns {Promise<Record<Step, number>[]>} */
async function measure({ url }) {
  const producer = createProducer({ redis: url });
  const daemon = createDaemon({ redis: { url }, roles: ['mover'], log: { level: 'fatal' } });
  /** @type {Map<string, Record<Step, number>>} */
  const samples = new Map();
  const worker = createWorker(queue, (job) => void samples.set(job.id, sampleOf(job.dueMs, nowMs())), { redis: url });
  await daemon.start();
  await worker.start();
  const fromMs = Date.now() + 2000;
  await producer.scheduleMany(
    queue,
    Array.from({ length: JOBS }, (_, nth) => ({ data: nth, at: new Date(fromMs + nth * (APART_MS + (nth % 3))) })),
  );
  await sleep(fromMs - Date.now() + JOBS * (APART_MS + 1) + 1000);
  await worker.stop();
  await daemon.stop();
  await producer.stop();
  if (samples.size !== JOBS) throw new Error(`${samples.size} of ${JOBS} jobs ran`);
  // The first jobs find an engine that has compiled nothing.
  return [...samples.values()].slice(50);
}

/** @param {number} dueMs @param {number} startedMs @returns {Record<Step, number>} */
function sampleOf(dueMs, startedMs) {
  const times = new Map(seen.filter(({ atMs }) => atMs >= dueMs - 1).map(({ what, atMs }) => [what, atMs]));
  seen = [];
  const sent = times.get('promote sent') ?? Number.NaN;
  const read = times.get('xreadgroup came') ?? Number.NaN;
  const serve = times.get('serve sent') ?? Number.NaN;
  const came = times.get('serve came') ?? Number.NaN;
  return {
    ...{ timer: sent - dueMs, pass: read - sent, read: serve - read, start: came - serve },
    ...{ handler: startedMs - came, all: startedMs - dueMs },
  };
}

/** Every command of every connection of this process tells when it is sent and when its reply is there. */
function watchCalls() {
  const send = Redis.prototype.sendCommand;
  /** @this {Redis} @param {import('ioredis').Command} command @param {unknown[]} more */
  function timed(command, ...more) {
    const name = command.name === 'evalsha' ? verbs.get(String(command.args[0])) : command.name;
    if (name === 'promote' || name === 'serve' || name === 'xreadgroup') {
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
  return new Map(['promote', 'serve'].map((verb) => [digest(verb), verb]));
}

/** @param {{ what: string, host: string, node: string, date: string }} result */
function writeTable(result) {
  const lines = rows.map(({ title, p50Ms, p90Ms, p99Ms }) => `| ${title} | ${p50Ms} | ${p90Ms} | ${p99Ms} |`);
  const table = ['| step | p50 ms | p90 ms | p99 ms |', '|---|---|---|---|', ...lines].join('\n');
  const said = `Measured on ${result.date} (${result.host}, Node ${result.node}) by \`npm run bench:lateness\`: ${result.what}.`;
  const page = readFileSync(PAGE, 'utf8');
  const [before = '', rest = ''] = page.split('<!-- measured -->\n');
  const [, after = ''] = rest.split('<!-- /measured -->');
  writeFileSync(PAGE, `${before}<!-- measured -->\n\n${said}\n\n${table}\n\n<!-- /measured -->${after}`);
}
