/**
 * What it costs to keep what became of jobs: `npm run bench:history`. Bytes of Redis per job that is over, with and without
 * a history, and the time of Redis for each end, batch by batch in turns. Writes `bench/results/history.json`.
 */
import { root } from '../scripts/steps.mjs';
import { keep, median, prepare, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */

const ROUNDS = 7;
const JOBS = 4000;
const BATCH = 80;
const WINDOW_MS = 600_000;

const { binary } = await prepare();
const { openCommands } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);
const { createJobs } = await import(`${root}dist/redis/scripts/jobs.js`);
const { elect, sweep } = await import(`${root}dist/redis/scripts/lease.js`);
const { parseHistory } = await import(`${root}dist/job/history.js`);
const { encodeNote } = await import(`${root}dist/job/past.js`);
const { encodeBody, encodeRecord } = await import(`${root}dist/job/codec.js`);
const { markOf } = await import(`${root}dist/job/record-header.js`);

const history = parseHistory({ keep: '7d', result: true });
const place = { queue: 'q', partition: 0, layoutGeneration: 0 };
const KINDS = {
  off: { ref: partitionRef('bench', place), result: undefined },
  on: { ref: partitionRef('bench', { ...place, history }), result: undefined },
  'on, with a result of 200 bytes': { ref: partitionRef('bench', { ...place, history }), result: 'r'.repeat(198) },
};

await withRedis(binary, async ({ redis, socketPath }) => {
  const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
  const jobs = createJobs(commands);
  try {
    /** @type {Record<string, { micros: number[], bytes: number[] }>} */
    const seen = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, { micros: [], bytes: [] }]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [kind, how] of Object.entries(KINDS)) {
        const { micros, bytes } = await measure({ redis, commands, jobs }, how);
        seen[kind]?.micros.push(micros);
        seen[kind]?.bytes.push(bytes);
      }
    }
    const rows = Object.entries(seen).map(([kind, { micros, bytes }]) => ({
      history: kind,
      serveMicrosPerEnd: median(micros),
      bytesPerEnd: Math.round(median(bytes)),
    }));
    keep('history', {
      what: `ids of 22 characters, ${JOBS} ends in calls of serve with ${BATCH} each, medians of ${ROUNDS} rounds in turns`,
      rows: [...rows, { history: 'sweep of 200 records', ...(await sweepTimes({ redis, commands })) }],
    });
  } finally {
    commands.disconnect();
  }
});

/**
 * @param {{ redis: Redis, commands: object, jobs: any }} at
 * @param {{ ref: any, result: string | undefined }} how
 */
async function measure({ redis, commands, jobs }, { ref, result }) {
  await redis.flushall();
  const { term } = await elect(commands, ref, { processId: 'bench', leaseMs: 600_000 });
  const dueMs = Date.now() - 1000;
  const record = encodeRecord(dueMs, encodeBody({ name: 'welcome', data: { to: 'someone@example.org' } }));
  const ids = Array.from({ length: JOBS }, (_, at) => `j:${at.toString(36).padStart(22, 'A')}`);
  const emptyBytes = await usedBytes(redis);
  for (let from = 0; from < JOBS; from += 500) {
    const items = ids.slice(from, from + 500).map((member) => ({ member, record, dueMs }));
    await jobs.schedule(ref, items, { mode: 'keep', horizonMs: 1e10, bytesMax: 1e6 });
  }
  for (let from = 0; from < JOBS; from += 500)
    await jobs.promote(ref, { term, leaseMs: 600_000, limit: 500, cap: 1e6 });
  const settings = { consumer: 'w1', bytesMax: 640 * 1024, windowMs: WINDOW_MS };
  const note = { name: 'welcome', record, startedMs: dueMs + 5, tookMs: 12 };
  const mark = ref.history ? `${markOf(record)}\n${encodeNote(note, result, ref.history)}` : markOf(record);
  let over = [];
  let micros = 0;
  for (let done = 0; done < JOBS; ) {
    const { taken } = await jobs.serve(ref, { ended: [], given: [], take: BATCH }, settings);
    over = taken.map((/** @type {any} */ one) => ({ entry: one.entry, member: one.member, token: one.token, mark }));
    await redis.config('RESETSTAT');
    await jobs.serve(ref, { ended: over, given: [], take: 0 }, settings);
    micros += await evalMicros(redis);
    done += over.length;
  }
  return { micros: Number((micros / JOBS).toFixed(2)), bytes: ((await usedBytes(redis)) - emptyBytes) / JOBS };
}

/** @param {{ redis: Redis, commands: object }} at the database still holds the last round */
async function sweepTimes({ redis, commands }) {
  const { ref } = KINDS.on;
  const { term } = await elect(commands, ref, { processId: 'bench', leaseMs: 600_000 });
  const limits = { batch: 500, windowMs: 1e9, tombstonesMax: 1e6, floorMs: 0, retentionMs: 1e9, deadLettersMax: 1e6 };
  const times = [];
  for (let more = true; more; ) {
    await redis.config('RESETSTAT');
    ({ more } = await sweep(commands, ref, { term, limits, history: { ...history, max: 1 } }));
    times.push((await evalMicros(redis)) / 1000);
  }
  return { medianMs: median(times), maxMs: Math.max(...times) };
}

/** @param {Redis} redis */
async function evalMicros(redis) {
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/g)].reduce(
    (sum, [, usec]) => sum + Number(usec),
    0,
  );
}

/** @param {Redis} redis */
async function usedBytes(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
}
