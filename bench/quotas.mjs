/**
 * What limits of a queue cost, and how far off its bytes can be: `npm run bench:quotas`. Time of Redis per scheduled job without
 * limits, with `maxPending` and with both, in turns; and two minutes of arrivals and ends by the rule of `lua/lib/quota.lua`, with
 * and without a leader that counts anew, worked out without a server. Writes `bench/results/quotas.json`.
 */
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, median, prepare, rounded, withRedis } from './parts.mjs';

const ROUNDS = 15;
const CALLS = 3000;
const BATCH = 100;
const LIMITS = {
  'no limits': {},
  maxPending: { maxPending: 1_000_000 },
  'maxPending and maxBytes': { maxPending: 1_000_000, maxBytes: 1_000_000_000 },
};

/** Jobs that wait or run, how many come and go per second, whether half of them stay, and whether somebody counts anew. */
const MIXES = [
  { jobs: 100_000, perSecond: 1000, halfStay: false, counted: true },
  { jobs: 10_000, perSecond: 100, halfStay: true, counted: true },
  { jobs: 10_000, perSecond: 1000, halfStay: true, counted: true },
  { jobs: 100_000, perSecond: 1000, halfStay: true, counted: true },
  { jobs: 1_000_000, perSecond: 1000, halfStay: true, counted: true },
  { jobs: 10_000, perSecond: 1000, halfStay: true, counted: false },
  { jobs: 10_000, perSecond: 1000, halfStay: false, counted: false },
];
const SECONDS = 120;
const MEAN_BYTES = 500;
const SMALL_BYTES = 200;
const LARGE_BYTES = 4000;
/** As `src/mover/weigher.ts` counts: so many jobs a slice, a slice in so many ms, and a rest. */
const SLICE = { jobs: 500, everyMs: 50, restMs: 1000 };

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
const { createProducer, defineQueue } = await import(`${root}dist/index.js`);

const costs = await withRedis(binary, async ({ redis, url }) => {
  const producer = createProducer({ redis: url });
  try {
    return await measure(producer, redis);
  } finally {
    await producer.stop();
  }
});
keep('quotas', {
  what: 'µs of Redis per scheduled job of 60 bytes; and the worst error of the bytes of a queue in two minutes',
  rows: [...costs, ...MIXES.map((mix) => ({ ...mix, worstErrorPercent: worstError(mix) }))],
});

/** @param {import('duestream').Producer} producer @param {import('ioredis').Redis} redis */
async function measure(producer, redis) {
  /** @type {Map<string, { one: number[], batch: number[] }>} */
  const seen = new Map(Object.keys(LIMITS).map((name) => [name, { one: [], batch: [] }]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [nth, [name, limits]] of Object.entries(LIMITS).entries()) {
      const queue = defineQueue(`q${round}-${nth}`, limits);
      const due = { delay: '1d' };
      await producer.schedule(queue, 'x'.repeat(48), due);
      const one = await microsOf(redis, CALLS, async () => {
        for (let call = 0; call < CALLS; call += 1) await producer.schedule(queue, 'x'.repeat(48), due);
      });
      const many = Array.from({ length: BATCH }, () => ({ data: 'x'.repeat(48), ...due }));
      const batch = await microsOf(redis, CALLS, async () => {
        for (let call = 0; call < CALLS / BATCH; call += 1) await producer.scheduleMany(queue, many);
      });
      seen.get(name)?.one.push(one);
      seen.get(name)?.batch.push(batch);
    }
    await redis.flushall();
    process.stderr.write(`bench: round ${round + 1} of ${ROUNDS}\n`);
  }
  return [...seen].map(([limits, { one, batch }]) => ({
    limits,
    microsOfOne: rounded(median(one)),
    microsInBatchesOf100: rounded(median(batch)),
  }));
}

/** @param {import('ioredis').Redis} redis @param {number} jobs @param {() => Promise<void>} act */
async function microsOf(redis, jobs, act) {
  await redis.config('RESETSTAT');
  await act();
  const [, micros = '0'] = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info('commandstats')) ?? [];
  return Number(micros) / jobs;
}

/** The error that is furthest from 0, in percent of the bytes that are there. @param {(typeof MIXES)[number]} mix */
function worstError({ jobs, perSecond, halfStay, counted }) {
  const next = randomFrom(7);
  const exponential = () => 1 - Math.log(1 - next()) * MEAN_BYTES;
  const staying = halfStay ? jobs / 2 : 0;
  const sizes = Array.from({ length: jobs }, (_, nth) => {
    if (!halfStay) return exponential();
    return nth < staying ? LARGE_BYTES : SMALL_BYTES;
  });
  let bytes = sizes.reduce((sum, size) => sum + size, 0);
  let held = { bytes, count: jobs };
  const walkMs = (jobs / SLICE.jobs) * SLICE.everyMs;
  let countedMs = 0;
  let worst = 0;
  for (let nth = 0; nth < SECONDS * perSecond; nth += 1) {
    const ms = (nth * 1000) / perSecond;
    if (counted && ms - countedMs >= walkMs + SLICE.restMs) {
      held = { bytes, count: jobs };
      countedMs = ms;
    }
    const gone = staying + Math.floor(next() * (jobs - staying));
    const size = halfStay ? SMALL_BYTES : exponential();
    bytes += size - (sizes[gone] ?? 0);
    sizes[gone] = size;
    // One has ended, and one comes: what has gone had the mean size.
    held = { bytes: (held.bytes * (jobs - 1)) / held.count + size, count: jobs };
    const error = held.bytes / bytes - 1;
    if (Math.abs(error) > Math.abs(worst)) worst = error;
  }
  return Math.round(worst * 1000) / 10;
}

/** The same numbers every time. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
