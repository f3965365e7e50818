/**
 * What it costs to remember how jobs ended: `npm run bench -- ends`. Bytes of Redis per job that is over, with and without
 * a history, and the time of Redis for each end, batch by batch in turns; bytes per tombstone, by how many there are; and how
 * long the janitor's call keeps Redis from serving anybody else. Writes `bench/results/history.json` and `bench/results/done.json`.
 *
 *     --only done          or history
 *     --rounds 7           of the history
 *     --ends 1000000       the most tombstones; also measured with a tenth and a hundredth
 */
import { root } from '../scripts/steps.mjs';
import { median, rounded, scriptMicros, usedBytes, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {{ redis: Redis, commands: object }} At */

const { openCommands } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);
const { createJobs } = await import(`${root}dist/redis/scripts/jobs.js`);
const { elect, sweep } = await import(`${root}dist/redis/scripts/lease.js`);
const { parseSettings } = await import(`${root}dist/job/queue-settings.js`);
const { encodeNote } = await import(`${root}dist/job/past.js`);
const { encodeBody, encodeRecord } = await import(`${root}dist/job/codec.js`);
const { markOf } = await import(`${root}dist/job/record-header.js`);

const JOBS = 4000;
const BATCH = 80;
const WINDOW_MS = 600_000;
const LEASE_MS = 600_000;
const SWEEPS = 200;
const SWEPT = 500;
const STEP = 1000;
const TOMBSTONE = '.dmi8or64g f2a81d6e2f0d37bd 1763719000123456 1 -';
/** Older than the floor, younger than the window. */
const AGE_MS = 300_000;

const history = parseSettings({ history: { keep: '7d', result: true } }).history;
const place = { queue: 'q', partition: 0, layoutGeneration: 0 };
const plain = partitionRef('bench', place);
const remembering = partitionRef('bench', { ...place, history });
const KINDS = [
  { kind: 'off', ref: plain, result: undefined },
  { kind: 'on', ref: remembering, result: undefined },
  { kind: 'on, with a result of 200 bytes', ref: remembering, result: 'r'.repeat(198) },
];

/** @param {import('./bench.mjs').Asked} asked */
export function run({ binary, chosen, number }) {
  const only = chosen('only', ['history', 'done']) ?? ['history', 'done'];
  const rounds = number('rounds', { otherwise: 7, from: 1, to: 100 });
  const most = number('ends', { otherwise: 1_000_000, from: 100, to: 10_000_000 });
  return withRedis(binary, async ({ redis, socketPath }) => {
    const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
    const at = { redis, commands };
    const results = [];
    if (only.includes('history')) results.push(await historyOf(at, rounds));
    if (only.includes('done')) results.push(await doneOf(at, most));
    commands.disconnect();
    return results;
  });
}

/** @param {At} at @param {number} rounds */
async function historyOf(at, rounds) {
  const seen = KINDS.map((how) => ({ ...how, all: /** @type {Awaited<ReturnType<typeof ended>>[]} */ ([]) }));
  for (let round = 0; round < rounds; round += 1) {
    for (const how of seen) how.all.push(await ended(at, how));
  }
  const rows = seen.map(({ kind, all }) => ({
    history: kind,
    serveMicrosPerEnd: rounded(median(all.map(({ micros }) => micros))),
    bytesPerEnd: Math.round(median(all.map(({ bytes }) => bytes))),
  }));
  // The database still holds the last round.
  const limits = { batch: SWEPT, windowMs: 1e9, tombstonesMax: 1e6, floorMs: 0, retentionMs: 1e9, deadLettersMax: 1e6 };
  const times = await sweeps(at, { ref: remembering, limits, history: { ...history, max: 1 }, most: 1e6 });
  return {
    name: 'history',
    what: `ids of 22 characters, ${JOBS} ends in calls of serve with ${BATCH} each, medians of ${rounds} rounds in turns`,
    rows: [...rows, { history: 'sweep of 200 records', ...times }],
  };
}

/** @param {At} at @param {{ ref: any, result: string | undefined }} how */
async function ended({ redis, commands }, { ref, result }) {
  const jobs = createJobs(commands);
  await redis.flushall();
  const { term } = await elect(commands, ref, { processId: 'bench', leaseMs: LEASE_MS });
  const dueMs = Date.now() - 1000;
  const record = encodeRecord(dueMs, encodeBody({ name: 'welcome', data: { to: 'someone@example.org' } }));
  const emptyBytes = await usedBytes(redis);
  for (let from = 0; from < JOBS; from += 500) {
    const items = membersFrom(from, 500).map((member) => ({ member, record, dueMs }));
    await jobs.schedule(ref, items, { mode: 'keep', horizonMs: 1e10, bytesMax: 1e6 });
  }
  for (let from = 0; from < JOBS; from += 500)
    await jobs.promote(ref, { term, leaseMs: LEASE_MS, limit: 500, cap: 1e6 });
  const settings = { consumer: 'w1', bytesMax: 640 * 1024, windowMs: WINDOW_MS };
  const note = { name: 'welcome', record, startedMs: dueMs + 5, tookMs: 12 };
  const mark = ref.history ? `${markOf(record)}\n${encodeNote(note, result, ref.history)}` : markOf(record);
  let micros = 0;
  for (let done = 0; done < JOBS; ) {
    const { taken } = await jobs.serve(ref, { ended: [], given: [], take: BATCH }, settings);
    const over = taken.map((/** @type {any} */ { entry, member, token }) => ({ entry, member, token, mark }));
    await redis.config('RESETSTAT');
    await jobs.serve(ref, { ended: over, given: [], take: 0 }, settings);
    micros += await scriptMicros(redis);
    done += over.length;
  }
  return { micros: micros / JOBS, bytes: ((await usedBytes(redis)) - emptyBytes) / JOBS };
}

/** @param {At} at @param {number} most */
async function doneOf(at, most) {
  const limits = {
    batch: SWEPT,
    windowMs: 600_000,
    tombstonesMax: 1,
    floorMs: 60_000,
    retentionMs: 1e9,
    deadLettersMax: 1,
  };
  const rows = [];
  for (const ends of [most / 100, most / 10, most].map(Math.floor)) {
    await at.redis.flushall();
    const emptyBytes = await usedBytes(at.redis);
    await fill(at.redis, ends);
    const bytesPerEnd = rounded(((await usedBytes(at.redis)) - emptyBytes) / ends);
    const { medianMs, maxMs } = await sweeps(at, { ref: plain, limits, most: Math.min(SWEEPS, ends / SWEPT) });
    rows.push({ ends, bytesPerEnd, sweepMedianMs: medianMs, sweepMaxMs: maxMs });
  }
  return { name: 'done', what: `tombstones with ids of 22 characters; sweep of ${SWEPT} by their number`, rows };
}

/** The time of each call of the janitor, until none is left. @param {At} at @param {{ ref: object, limits: object, history?: object, most: number }} how */
async function sweeps({ redis, commands }, { ref, most, ...how }) {
  const { term } = await elect(commands, ref, { processId: 'bench', leaseMs: LEASE_MS });
  const times = [];
  for (let more = true; more && times.length < most; ) {
    await redis.config('RESETSTAT');
    ({ more } = await sweep(commands, ref, { term, ...how }));
    times.push((await scriptMicros(redis)) / 1000);
  }
  return { medianMs: median(times), maxMs: Math.max(...times) };
}

/** @param {Redis} redis @param {number} ends */
async function fill(redis, ends) {
  const { jobs, done } = plain.keys;
  const fromMs = Date.now() - AGE_MS;
  for (let from = 0; from < ends; from += STEP) {
    const members = membersFrom(from, Math.min(STEP, ends - from));
    await redis.hset(jobs, ...members.flatMap((member) => [member, TOMBSTONE]));
    await redis.zadd(done, ...members.flatMap((member, at) => [fromMs + Math.floor((from + at) / 100), member]));
  }
}

/** With ids of 22 characters. @param {number} from @param {number} count */
const membersFrom = (from, count) =>
  Array.from({ length: count }, (_, at) => `j:${(from + at).toString(36).padStart(22, 'A')}`);
