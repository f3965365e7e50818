/**
 * What a job of a queue without tags and history costs Redis, beside a package that `npm run fixture` froze:
 * `npm run bench -- frozen --package <tarball>`.
 * Both builds make the same calls on the same Redis, a new one each round, in turns: jobs are scheduled, promoted, started and
 * completed in batches of the default sizes. Commands per job are counted and have to be equal; the time of Redis per job
 * is the median of the rounds, and its ratio the median of those within a round.
 *
 *     --package file   the tarball of the frozen version
 *     --jobs 20000     of each round
 *     --rounds 21      how many
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../scripts/steps.mjs';
import { median, rounded, withRedis } from './parts.mjs';

/** @typedef {import('ioredis').Redis} Redis */
/** @typedef {{ commands: number, micros: number }} Cost */

/** @type {readonly ('frozen' | 'now')[]} */
const BUILDS = ['frozen', 'now'];
/** Loads the scripts, and counts for nothing. */
const WARM_UP = 2000;
const BATCH = { schedule: 250, promote: 300, serve: 80 };
const LEASE_MS = 600_000;
const WINDOW_MS = 600_000;
/** What the bench asks itself. */
const OWN = ['info', 'config|resetstat', 'flushall', 'client|setname', 'client|setinfo', 'select', 'ping'];

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, number, refuse, values }) {
  const tarball = String(values.package ?? '');
  if (!existsSync(tarball)) refuse(`--package ${tarball}; allowed: the tarball of a frozen version`);
  const jobs = number('jobs', { otherwise: 20_000, from: 100, to: 1_000_000 });
  const rounds = number('rounds', { otherwise: 21, from: 1, to: 99 });
  const folder = mkdtempSync(join(tmpdir(), 'due-frozen-'));
  try {
    execFileSync('tar', ['xzf', tarball, '-C', folder]);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    return await compare(join(folder, 'package/dist'), { binary, jobs, rounds });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each round on a Redis of its own: where its memory lies makes one build or the other faster for as long as it runs. @param {string} frozen @param {{ binary: string, jobs: number, rounds: number }} how */
async function compare(frozen, { binary, jobs, rounds }) {
  /** @type {Record<'frozen' | 'now', Cost[]>} */
  const seen = { frozen: [], now: [] };
  for (let round = 1; round <= rounds; round += 1) {
    await withRedis(binary, async ({ redis, socketPath }) => {
      const builds = { frozen: await opened(frozen, socketPath), now: await opened(join(root, 'dist'), socketPath) };
      for (const build of BUILDS) await measured(redis, builds[build], WARM_UP);
      for (const build of round % 2 === 0 ? BUILDS : BUILDS.toReversed()) {
        seen[build].push(await measured(redis, builds[build], jobs));
      }
      for (const { close } of Object.values(builds)) close();
    });
  }
  const rows = BUILDS.map((build) => ({
    build,
    commandsPerJob: median(seen[build].map(({ commands }) => commands)),
    microsPerJob: rounded(median(seen[build].map(({ micros }) => micros))),
  }));
  const [before, after] = rows;
  if (!before || !after) throw new Error('two builds were measured');
  const ratio = rounded(
    median(seen.now.map(({ micros }, round) => micros / (seen.frozen[round]?.micros ?? Number.NaN))),
  );
  const what = `${jobs} jobs of 200 bytes scheduled, promoted, started and completed, medians of ${rounds} rounds in turns; now / frozen within a round: ${ratio}`;
  process.stdout.write(`${what}\n`);
  if (after.commandsPerJob !== before.commandsPerJob) {
    process.stderr.write('the commands per job are not equal\n');
    process.exitCode = 1;
  }
  return [{ name: 'frozen', what, rows }];
}

/** @param {Redis} redis @param {Awaited<ReturnType<typeof opened>>} build @param {number} count of jobs @returns {Promise<Cost>} */
async function measured(redis, build, count) {
  await redis.flushall();
  await build.begin();
  await redis.config('RESETSTAT');
  await build.play(count);
  const stats = await redis.info('commandstats');
  const rows = [...stats.matchAll(/cmdstat_([^:]+):calls=(\d+),usec=(\d+)/g)];
  const counted = rows.filter(([, name = '']) => !OWN.includes(name));
  const scripts = counted.filter(([, name = '']) => name.startsWith('eval'));
  return {
    commands: counted.reduce((sum, [, , calls]) => sum + Number(calls), 0) / count,
    // The commands within a script are part of its time.
    micros: scripts.reduce((sum, [, , , micros]) => sum + Number(micros), 0) / count,
  };
}

/** A build, with its own connection. @param {string} dist @param {string} socketPath */
async function opened(dist, socketPath) {
  const { openCommands, whenReady } = await import(join(dist, 'redis/connection/connect.js'));
  const { createJobs } = await import(join(dist, 'redis/scripts/jobs.js'));
  const { partitionRef } = await import(join(dist, 'redis/keys.js'));
  const { elect } = await import(join(dist, 'redis/scripts/lease.js'));
  const { join: enrol } = await import(join(dist, 'redis/scripts/ready.js'));
  const { encodeBody, encodeRecord } = await import(join(dist, 'job/codec.js'));
  const commands = openCommands({ redis: { path: socketPath }, name: 'bench', commandTimeoutMs: 60_000 });
  await whenReady(commands);
  const jobs = createJobs(commands);
  const ref = partitionRef('bench', { queue: 'q', partition: 0, layoutGeneration: 0 });
  const settings = { consumer: 'w1', bytesMax: 640 * 1024, windowMs: WINDOW_MS };
  const body = encodeBody({ name: 'default', data: 'x'.repeat(198) });
  let term = '';

  async function begin() {
    ({ term } = await elect(commands, ref, { processId: 'bench', leaseMs: LEASE_MS }));
    await enrol(commands, ref.keys, 'w1');
  }

  /** @param {number} count */
  async function play(count) {
    const dueMs = Date.now() - 1000;
    const all = Array.from({ length: count }, (_, at) => ({
      member: `j:job-${String(at).padStart(12, '0')}`,
      record: encodeRecord(dueMs, body),
      dueMs,
    }));
    for (let from = 0; from < all.length; from += BATCH.schedule) {
      const some = all.slice(from, from + BATCH.schedule);
      // `layout` is the name of `layoutAge` in older builds.
      await jobs.schedule(ref, some, {
        mode: 'keep',
        horizonMs: 1e10,
        bytesMax: 1e6,
        layout: 'fresh',
        layoutAge: 'fresh',
      });
    }
    for (let from = 0; from < all.length; from += BATCH.promote) {
      await jobs.promote(ref, { term, leaseMs: LEASE_MS, limit: BATCH.promote, cap: 1e7 });
    }
    /** @type {{ entry: string, member: string, token: string, mark: string }[]} */
    let ended = [];
    for (let over = 0; over < all.length; over += ended.length) {
      const { taken } = await jobs.serve(ref, { ended, given: [], take: BATCH.serve }, settings);
      ended = taken.map((/** @type {any} */ one) => ({
        entry: one.entry,
        member: one.member,
        token: one.token,
        mark: `${dueMs.toString(36)} 0123456789abcdef`,
      }));
      if (ended.length === 0) throw new Error('nothing was started');
    }
    await jobs.serve(ref, { ended, given: [], take: 0 }, settings);
  }

  return { begin, play, close: () => commands.disconnect() };
}
