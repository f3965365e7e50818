/**
 * graphile-worker: jobs are rows of PostgreSQL, which tells its workers of new ones by NOTIFY. A job with a due time is found by
 * polling. It is there where this machine has a server of PostgreSQL and its Node: it wants a newer one than we do.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { hasPostgres, startPostgres } from '../../test/support/postgres.mjs';
import { dataOf, node24, versionOf } from './system.mjs';

/** Why it is not among the systems; undefined: it is. */
export const noPostgres =
  hasPostgres() && node24 !== undefined
    ? undefined
    : 'graphile-worker needs a server of PostgreSQL and Node 24, and this machine lacks one of them';

const POLL_MS = 100;
const version = await versionOf('graphile-worker', import.meta);

/** @param {import('./system.mjs').Planned} job */
const optionsOf = ({ id, dueMs }) => ({
  ...(id === undefined ? {} : { jobKey: id }),
  ...(dueMs === 0 ? {} : { runAt: new Date(dueMs) }),
});

/** @type {import('./system.mjs').System} */
export const graphileWorker = {
  name: 'graphile-worker',
  title: 'graphile-worker',
  settings: `graphile-worker ${version} on Node 24 and PostgreSQL, which writes nothing through (fsync off); addJobs in lists of 500; polls every ${POLL_MS} ms; localQueue of 200 jobs, completions in batches of a turn; no line of log per job; in at most 3 of the rounds`,
  workloads: ['one', 'bulk', 'burst', 'drain', 'steady50', 'steady500'],
  rounds: 3,
  counts: {
    server: 'PostgreSQL, all its processes',
    worker: 'the processes with `run`: each finds what is due and runs it',
  },
  execPath: node24,
  async server() {
    const server = await startPostgres();
    const pool = server.pool();
    return {
      url: `postgres://postgres@localhost/postgres?host=${server.dir}`,
      async pending() {
        const { rows } = await pool.query('SELECT count(*)::int AS jobs FROM graphile_worker.jobs');
        return rows[0].jobs;
      },
      spent: async () => ({ cpuMs: cpuMsWithChildren(server.pid), bytes: 0 }),
      async stop() {
        await pool.end();
        await server.stop();
      },
    };
  },
  async producer(url) {
    const { makeWorkerUtils } = await import('graphile-worker');
    const utils = await makeWorkerUtils({ preset: presetOf(url, 10) });
    await utils.migrate();
    return {
      one: (job) => utils.addJob('bench', dataOf(job), optionsOf(job)),
      async many(jobs) {
        for (let from = 0; from < jobs.length; from += 500) {
          const some = jobs.slice(from, from + 500);
          await utils.addJobs(some.map((job) => ({ identifier: 'bench', payload: dataOf(job), ...optionsOf(job) })));
        }
      },
      close: async () => utils.release(),
    };
  },
  async worker(url, { concurrency, started }) {
    // Else it writes a line for each job, which costs more than the job.
    process.env.NO_LOG_SUCCESS = '1';
    const { run } = await import('graphile-worker');
    const taskList = { bench: (/** @type {{ at: number }} */ { at }) => started(at) };
    const runner = await run({
      preset: presetOf(url, concurrency),
      taskList,
      parsedCronItems: [],
      noHandleSignals: true,
    });
    return { close: () => runner.stop() };
  },
};

/** @param {string} connectionString @param {number} concurrentJobs */
const presetOf = (connectionString, concurrentJobs) => ({
  worker: {
    connectionString,
    concurrentJobs,
    maxPoolSize: 10,
    pollInterval: POLL_MS,
    localQueue: { size: 200 },
    completeJobBatchDelay: 0,
  },
});

/** Of a process, of its children, and of those that have ended; a tick is 10 ms. @param {number} pid */
function cpuMsWithChildren(pid) {
  let ticks = 0;
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const fields = statOf(name);
    const [own, ended] = [Number(fields[11]) + Number(fields[12]), Number(fields[13]) + Number(fields[14])];
    if (Number(name) === pid) ticks += own + ended;
    else if (Number(fields[1]) === pid) ticks += own;
  }
  return ticks * 10;
}

/** It may have ended meanwhile. @param {string} pid */
function statOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  } catch {
    return [];
  }
}
