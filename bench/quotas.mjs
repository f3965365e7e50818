/**
 * What limits of a queue cost, and how close `maxBytes` holds: `npm run bench:quotas`. Time of Redis per job that is scheduled,
 * and per job that is completed, without limits, with `maxPending` and with both, in turns; and mixes of small and large jobs,
 * after which large ones come until one is refused. Writes `bench/results/quotas.json`.
 */
import { argumentsFor } from '../scripts/arguments.mjs';
import { root } from '../scripts/steps.mjs';
import { keep, median, prepare, rounded, withRedis } from './parts.mjs';
import { createPartition } from './stages-partition.mjs';

const ROUNDS = 15;
const CALLS = 3000;
const BATCH = 100;
const WINDOW_MS = 600_000;
const LIMITS = {
  'no limits': {},
  maxPending: { maxPending: 1_000_000 },
  'maxPending and maxBytes': { maxPending: 1_000_000, maxBytes: 1_000_000_000 },
};

/** What a partition holds and may hold, in the mixes. */
const MIX_BYTES = 8_000_000;
const SMALL_BYTES = 200;
const LARGE_BYTES = 4000;
/** What each mix does before large jobs come until one is refused. @type {Readonly<Record<string, (act: Acting) => Promise<void>>>} */
const MIXES = {
  async 'many small jobs and some large ones; the small ones end'(act) {
    await act.come(20_000, SMALL_BYTES);
    await act.come(500, LARGE_BYTES, 'stays');
    await act.end(20_000);
  },
  async 'large jobs fill it and end, small ones come'(act) {
    await act.come(2000, LARGE_BYTES);
    await act.end(2000);
    await act.come(20_000, SMALL_BYTES, 'stays');
  },
  async 'large jobs stay, small ones pass through, 100,000 in all'(act) {
    await act.come(1000, LARGE_BYTES, 'stays');
    for (let round = 0; round < 20; round += 1) {
      await act.come(5000, SMALL_BYTES);
      await act.end(5000);
    }
  },
};

argumentsFor(import.meta.filename, {});
const { binary } = await prepare();
const { createClient, defineQueue } = await import(`${root}dist/index.js`);
const { allot } = await import(`${root}dist/redis/scripts/quotas.js`);

const costs = await withRedis(binary, async ({ redis, url }) => {
  const producer = createClient({ redis: url });
  try {
    return await measure(producer, redis);
  } finally {
    await producer.close();
  }
});
const ends = await withRedis(binary, ({ redis, socketPath }) => measureEnds(socketPath, redis));
const mixes = await withRedis(binary, ({ socketPath }) => mixed(socketPath));
keep('quotas', {
  what: 'µs of Redis per scheduled and per completed job of 60 bytes; and how full a partition is when a job is refused',
  rows: [...costs.map((row) => ({ ...row, ...ends.get(row.limits) })), ...mixes],
});

/** @param {import('duestream').Client} producer @param {import('ioredis').Redis} redis */
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

/**
 * The time of the same calls of `complete` by the limits that there are.
 *
 * @param {string} socketPath
 * @param {import('ioredis').Redis} redis
 */
async function measureEnds(socketPath, redis) {
  const partition = await createPartition(socketPath);
  /** @type {Map<string, { one: number[], batch: number[] }>} */
  const seen = new Map(Object.keys(LIMITS).map((name) => [name, { one: [], batch: [] }]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, limits] of Object.entries(LIMITS)) {
      await partition.fresh();
      await allot(partition.redis, partition.ref, { quota: quotaOf(limits) });
      const claims = await partition.started({ jobs: 2 * CALLS, bytes: 48 });
      const complete = (/** @type {readonly import('./stages-partition.mjs').Claim[]} */ some) =>
        partition.jobs.complete(partition.ref, some, { windowMs: WINDOW_MS });
      const one = await microsOf(redis, CALLS, () =>
        partition.measuring(async () => {
          for (const claim of claims.slice(0, CALLS)) await complete([claim]);
        }),
      );
      const batch = await microsOf(redis, CALLS, () =>
        partition.measuring(async () => {
          for (let from = CALLS; from < 2 * CALLS; from += BATCH) await complete(claims.slice(from, from + BATCH));
        }),
      );
      seen.get(name)?.one.push(one);
      seen.get(name)?.batch.push(batch);
    }
    process.stderr.write(`bench: ends, round ${round + 1} of ${ROUNDS}\n`);
  }
  partition.close();
  return new Map(
    [...seen].map(([name, { one, batch }]) => [
      name,
      { microsOfOneEnd: rounded(median(one)), microsOfEndInBatchesOf100: rounded(median(batch)) },
    ]),
  );
}

/** @param {{ maxPending?: number, maxBytes?: number }} limits */
function quotaOf({ maxPending = 0, maxBytes = 0 }) {
  return { pending: maxPending, bytes: maxBytes };
}

/** @typedef {Awaited<ReturnType<typeof actingOn>>} Acting */

/** How full it is after each mix when a large job is refused, in percent of the limit. @param {string} socketPath */
async function mixed(socketPath) {
  const partition = await createPartition(socketPath);
  const rows = [];
  for (const [mix, act] of Object.entries(MIXES)) {
    await partition.fresh();
    await allot(partition.redis, partition.ref, { quota: { pending: 0, bytes: MIX_BYTES } });
    const acting = actingOn(partition);
    await act(acting);
    await acting.come(5000, LARGE_BYTES, 'stays');
    rows.push({ mix, fullPercent: rounded((100 * (await acting.bytes())) / MIX_BYTES) });
  }
  partition.close();
  return rows;
}

/** @param {import('./stages-partition.mjs').Partition} partition */
function actingOn({ redis, jobs, ref, promote, read, start, items }) {
  let born = 0;
  return {
    /** @param {number} count @param {number} bytes @param {'stays' | 'ends'} [fate] */
    async come(count, bytes, fate = 'ends') {
      const dueMs = Date.now() + (fate === 'stays' ? WINDOW_MS : -1000);
      const all = items({ jobs: count, bytes }).map(({ record }) => {
        born += 1;
        return { member: `j:${born}`, record, dueMs };
      });
      const options = { mode: 'keep', horizonMs: 2 * WINDOW_MS, bytesMax: 1_048_576, layoutAge: 'fresh' };
      for (let from = 0; from < count; from += BATCH) {
        await jobs.schedule(ref, all.slice(from, from + BATCH), options);
      }
    },
    /** @param {number} most */
    async end(most) {
      for (let ended = 0; ended < most && (await redis.zcount(ref.keys.scheduled, 0, Date.now())) > 0; ended += BATCH) {
        await promote(BATCH);
        await jobs.complete(ref, await start(await read(BATCH)), { windowMs: 0 });
      }
    },
    /** Of all that is there, one by one: without a done window no tombstone is among them. */
    async bytes() {
      /** @type {readonly string[]} */
      const records = await redis.hvals(ref.keys.jobs);
      return records.reduce((sum, record) => sum + Buffer.byteLength(record), 0);
    },
  };
}
