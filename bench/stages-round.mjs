/**
 * One round of `npm run bench -- stages` in a process of its own: every case on a new Redis, one script at a time between two
 * readings of INFO. Prints the rows as JSON. A checkout measures its own build, so two checkouts can take turns.
 */

import { prepare, rounded, withRedis } from './parts.mjs';
import { cases } from './stages-cases.mjs';
import { createPartition } from './stages-partition.mjs';

/**
 * @typedef {object} Row
 * @property {string} script
 * @property {number} batch jobs the caller passed at once
 * @property {number} bytes of data of each job
 * @property {boolean} byDefault the batch is that of the default settings
 * @property {number} jobs
 * @property {number} calls of the script; more than jobs / batch where it was asked again for the rest
 * @property {number} redisMicros per job, inside Redis
 * @property {number} nodeMicros CPU of the caller per job: build the command, read the reply
 * @property {number} medianMs of one call inside Redis
 * @property {number} p99Ms of one call inside Redis
 * @property {number} longestMs the p99.9 of one call inside Redis
 */

/** Data of one job in bytes → how many jobs a case has. */
const JOBS = new Map([
  [200, 2000],
  [4096, 1000],
  [262_144, 256],
]);
/** Of the default batch, so that the p99.9 is one; its jobs are made ready in parts of so many bytes. */
const CALLS = 1000;
const PART_BYTES = 64 * 1024 * 1024;

const only = new Set(process.argv.slice(2));
const binary = await prepare();
const measured = await withRedis(binary, async ({ redis, socketPath }) => {
  const partition = await createPartition(socketPath);
  try {
    await measure(partition, redis, { name: 'start', batch: 100, bytes: 200 });
    const rows = [];
    for (const [name, { batches }] of Object.entries(cases)) {
      if (only.size > 0 && !only.has(name)) continue;
      for (const bytes of JOBS.keys()) {
        for (const batch of batches) rows.push(await measure(partition, redis, { name, batch, bytes }));
      }
    }
    return { rows };
  } finally {
    partition.close();
  }
});
process.stdout.write(`${JSON.stringify(measured)}\n`);

/**
 * @param {import('./stages-partition.mjs').Partition} partition
 * @param {import('ioredis').Redis} redis
 * @param {{ name: string, batch: number, bytes: number }} what
 * @returns {Promise<Row>}
 */
async function measure(partition, redis, { name, batch, bytes }) {
  const stage = cases[name];
  if (!stage) throw new Error(`no stage ${name}; there are ${Object.keys(cases).join(', ')}`);
  const isLong = batch === stage.byDefault && bytes <= 4096;
  const wanted = isLong ? CALLS : Math.ceil(Math.max(batch, JOBS.get(bytes) ?? 0) / batch);
  const part = Math.max(1, Math.min(wanted, Math.floor(PART_BYTES / (batch * (bytes + 400)))));
  await warm(partition, stage, { batch, bytes });
  await redis.config('RESETSTAT');
  let cpuMicros = 0;
  for (let made = 0; made < wanted; ) {
    await partition.fresh();
    const some = Math.min(part, wanted - made);
    const things = await stage.prepare(partition, { jobs: stage.leaves ? batch : some * batch, bytes });
    await partition.measuring(async () => {
      const before = process.cpuUsage();
      for (let call = 0; call < some; call += 1) {
        await stage.call(
          partition,
          things.slice(stage.leaves ? 0 : call * batch, stage.leaves ? batch : (call + 1) * batch),
        );
      }
      const { user, system } = process.cpuUsage(before);
      cpuMicros += user + system;
    });
    made += some;
  }
  const command = stage.isPlain ? name : 'evalsha';
  const done = wanted * batch;
  const { calls, micros } = timesOf(await redis.info('commandstats'), command);
  const [median, p99, longest] = percentilesOf(await redis.info('latencystats'), command);
  return {
    script: name,
    batch,
    bytes,
    byDefault: batch === stage.byDefault,
    jobs: done,
    calls,
    redisMicros: rounded(micros / done),
    nodeMicros: rounded(cpuMicros / done),
    medianMs: rounded(median / 1000),
    p99Ms: rounded(p99 / 1000),
    longestMs: rounded(longest / 1000),
  };
}

/**
 * Of a script that a connection has not sent yet the client library sends the text, which Redis counts as EVAL.
 *
 * @param {import('./stages-partition.mjs').Partition} partition
 * @param {import('./stages-cases.mjs').Case} stage
 * @param {{ batch: number, bytes: number }} what
 */
async function warm(partition, stage, { batch, bytes }) {
  await partition.fresh();
  const things = await stage.prepare(partition, { jobs: batch, bytes });
  await partition.measuring(() => stage.call(partition, things));
}

/** @param {string} info @param {string} command */
function timesOf(info, command) {
  const found = new RegExp(`cmdstat_${command}:calls=(\\d+),usec=(\\d+)`).exec(info);
  if (!found) throw new Error(`Redis counted no call of ${command}`);
  return { calls: Number(found[1]), micros: Number(found[2]) };
}

/** p50, p99 and p99.9 in µs. @param {string} info @param {string} command @returns {readonly [number, number, number]} */
function percentilesOf(info, command) {
  const found = new RegExp(`latency_percentiles_usec_${command}:p50=([\\d.]+),p99=([\\d.]+),p99.9=([\\d.]+)`).exec(
    info,
  );
  if (!found) throw new Error(`Redis keeps no latency of ${command}`);
  return [Number(found[1]), Number(found[2]), Number(found[3])];
}
