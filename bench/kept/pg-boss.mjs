/** pg-boss: jobs are rows of PostgreSQL, which a worker polls. It is there where this machine has a server and its Node. */
import { readFileSync } from 'node:fs';
import { hasPostgres } from '../../test/support/postgres.mjs';
import { node24 } from '../peers/system.mjs';
import { SLOTS } from './system.mjs';

/** Why it is not among the systems; undefined: it is. */
export const noPgBoss =
  hasPostgres() && node24 !== undefined
    ? undefined
    : 'pg-boss needs a server of PostgreSQL and Node 24, and this machine lacks one of them';

/** It has no entry that this Node could ask for. @type {{ version: string }} */
const { version } = JSON.parse(readFileSync(new URL('../node_modules/pg-boss/package.json', import.meta.url), 'utf8'));

/** @param {string} url */
async function bossOn(url) {
  const { PgBoss } = await import('pg-boss');
  const boss = new PgBoss({
    connectionString: url,
    superviseIntervalSeconds: 1,
    monitorIntervalSeconds: 1,
    schedule: false,
  });
  boss.on('error', () => {});
  await boss.start();
  await boss.createQueue('kept');
  return boss;
}

/** An id of its kind, the same for the same job. @param {string} id */
const uuidOf = (id) => `00000000-0000-4000-8000-${(id.split('-')[1] ?? '').padStart(12, '0')}`;

/** @type {import('./system.mjs').System} */
export const pgBoss = {
  name: 'pg-boss',
  title: 'pg-boss',
  settings: `pg-boss ${version} on Node 24 and PostgreSQL with fsync; an id per job, so that a call can be made again; 5 retries; heartbeat 10 s, the shortest there is, watched each second; polls each 500 ms`,
  store: 'postgres',
  execPath: node24,
  async producer(url) {
    const boss = await bossOn(url);
    return {
      schedule: ({ id, dueMs, data }) =>
        boss.send('kept', data, {
          id: uuidOf(id),
          startAfter: new Date(dueMs),
          retryLimit: 5,
          retryDelay: 1,
          heartbeatSeconds: 10,
          expireInSeconds: 60,
        }),
      close: () => boss.stop({ graceful: false }),
    };
  },
  async worker(url, run) {
    const boss = await bossOn(url);
    const handler = async (/** @type {readonly { readonly data: import('./system.mjs').Data }[]} */ [job]) => {
      if (job) await run(job.data);
    };
    await boss.work('kept', { localConcurrency: SLOTS, pollingIntervalSeconds: 0.5 }, handler);
  },
};
