/**
 * What the history of a queue takes in Redis, how exact its percentiles are, and what counting costs per job: `npm run bench -- buckets`.
 * Bytes are those of `MEMORY USAGE`, of 90 days of hours and 13 months of days, with 20 to 1,520 jobs an hour; errors are those of a
 * month of hours that were added, against the sorted times. Writes `bench/results/buckets.json`.
 *
 *     --hours 2160         how many hours are written
 */
import { root } from '../scripts/steps.mjs';
import { rounded, withRedis } from './parts.mjs';

const { openCommands, whenReady } = await import(`${root}dist/redis/connection/connect.js`);
const { partitionRef } = await import(`${root}dist/redis/keys.js`);
const { writeDay } = await import(`${root}dist/redis/read/history.js`);
const { addTime, noTally, quantileOf, timesSum } = await import(`${root}dist/job/minutes.js`);

const HOUR_MS = 3_600_000;
const DAY_HOURS = 24;
const MONTH_HOURS = 720;
const DAYS = 396;
const SHARES = [0.5, 0.99, 0.999];
const COUNTED = 2_000_000;

/** The same numbers in each run. */
let seed = 7;
function random() {
  seed = (seed + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const gauss = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
/** @param {number} medianMs @param {number} wide */
const lognormal = (medianMs, wide) => medianMs * Math.exp(wide * gauss());

/** How times are spread. @type {Readonly<Record<string, () => number>>} */
const SPREAD = {
  'about 2 ms': () => lognormal(2, 0.7),
  'about 80 ms, wide': () => lognormal(80, 1.5),
  'about 3 ms, and 2 % about 40 s': () => (random() < 0.02 ? lognormal(40_000, 0.5) : lognormal(3, 0.5)),
  'Pareto 1.1 from 2 ms': () => 2 / (1 - random()) ** (1 / 1.1),
  'even up to 1 h': () => random() * HOUR_MS,
  '30 % even up to 90 s, the rest about 2 ms': () => (random() < 0.3 ? random() * 90_000 : lognormal(2, 0.4)),
  'about 5 ms, and 1 % up to 9 h': () => (random() < 0.01 ? random() * 9 * HOUR_MS : lognormal(5, 1)),
};

/** Start and promotion, and run, of three queues. */
const QUEUES = {
  healthy: ['about 2 ms', 'about 2 ms', 'about 80 ms, wide'],
  typical: ['about 2 ms', 'about 3 ms, and 2 % about 40 s', 'about 80 ms, wide'],
  worst: ['even up to 1 h', 'even up to 1 h', 'even up to 1 h'],
  'worst, with 100 times the jobs': ['even up to 1 h', 'even up to 1 h', 'even up to 1 h'],
};

/** @param {import('./bench.mjs').Asked} asked */
export function run({ binary, number }) {
  const hours = number('hours', { otherwise: 90 * DAY_HOURS, from: 1, to: 90 * DAY_HOURS });
  return withRedis(binary, async ({ redis, socketPath }) => {
    /** @type {Readonly<Record<string, unknown>>[]} */
    const rows = [...Object.keys(SPREAD).map(errorsOf), costOf()];
    const commands = openCommands({ redis: { path: socketPath }, name: 'bench' });
    await whenReady(commands, 10_000);
    for (const [queue, spreads] of Object.entries(QUEUES)) {
      rows.push(await bytesOf({ redis, commands }, { queue, spreads, hours }));
    }
    commands.disconnect();
    return [{ name: 'buckets', what: '20 to 1,520 jobs an hour', rows }];
  });
}

/** Of a month. @param {string} spread */
function errorsOf(spread) {
  const draw = SPREAD[spread] ?? random;
  /** @type {number[]} */
  const exact = [];
  const month = timesSum(
    Array.from({ length: MONTH_HOURS }, () => {
      const tally = noTally();
      for (let job = jobsOfHour(); job > 0; job -= 1) {
        const ms = Math.floor(draw());
        exact.push(ms);
        addTime(tally, ms);
      }
      return timesOf(tally);
    }),
  );
  const sorted = Float64Array.from(exact).sort();
  const errors = SHARES.map((share) => {
    const ms = sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const offMs = Math.abs((quantileOf(month, share) ?? 0) - ms);
    return offMs <= 1 ? 0 : rounded((100 * offMs) / ms);
  });
  return { spread, p50: errors[0], p99: errors[1], p999: errors[2] };
}

const jobsOfHour = () => 20 + Math.floor(1500 * random());

/** @param {any} tally */
const timesOf = ({ buckets, fine, maxMs }) => ({ buckets: [...buckets], fine: { counts: new Map(fine), maxMs } });

/** Of one time that is counted, and nothing else. */
function costOf() {
  const tally = noTally();
  const times = Float64Array.from({ length: 4096 }, () => lognormal(80, 1.5));
  const startNs = process.hrtime.bigint();
  for (let nth = 0; nth < COUNTED; nth += 1) addTime(tally, times[nth & 4095] ?? 0);
  return { spread: 'counting', nsPerTime: Math.round(Number(process.hrtime.bigint() - startNs) / COUNTED) };
}

/**
 * @param {{ redis: import('ioredis').Redis, commands: object }} at
 * @param {{ queue: string, spreads: readonly string[], hours: number }} how
 */
async function bytesOf({ redis, commands }, { queue, spreads, hours }) {
  const ref = partitionRef('bench', { queue, partition: 0, layoutGeneration: 0 });
  const first = 20_000;
  const hour = () => {
    const jobs = jobsOfHour();
    const [promotion, start, ran] = spreads.map((spread) => {
      const tally = noTally();
      const times = () => (queue.includes('100') ? Math.floor(random() * 200) : 1);
      for (let job = 0; job < jobs; job += 1) addTime(tally, (SPREAD[spread] ?? random)(), times());
      return timesOf(tally);
    });
    const counters = [jobs, jobs, jobs, Math.floor(jobs / 50), 0, 0, 0, 0];
    return { isKnown: true, counters, spreads: { promotion, start, run: ran } };
  };
  // Days first: those that have hours are written again with them.
  for (let day = first - DAYS + Math.ceil(hours / DAY_HOURS); day <= first + hours / DAY_HOURS; day += 1) {
    const all = new Map();
    for (let nth = 0; nth < DAY_HOURS; nth += 1) all.set(day * DAY_HOURS + nth, hour());
    await writeDay(commands, ref, { day, hours: all, at: day * DAY_HOURS });
  }
  const usage = async (/** @type {string} */ key) => Number(await redis.memory('USAGE', key, 'SAMPLES', 0));
  const [hoursKb, daysKb] = [await usage(ref.keys.hours), await usage(ref.keys.days)].map((one) =>
    Math.round(one / 1000),
  );
  return { spread: queue, hoursKb, daysKb };
}
