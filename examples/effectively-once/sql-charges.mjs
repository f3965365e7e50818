/**
 * Effects in an SQL store: one row per job, written by the newest start. Here the store is SQLite in memory, so that the
 * example needs nothing else; the statements are the same in PostgreSQL.
 *
 *     npx duestream worker examples/effectively-once/sql-charges.mjs
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { defineHandlers, defineQueue } from 'duestream';
import initSqlJs from 'sql.js';

/** A token has 16 digits: BIGINT, never a 32-bit integer. */
const SCHEMA = `CREATE TABLE effects (
  job_id TEXT PRIMARY KEY, token BIGINT NOT NULL, account TEXT NOT NULL, cents INTEGER NOT NULL)`;

/** One statement, so no transaction is needed. With more of them: this one first, and ROLLBACK unless it wrote a row. */
const WRITE = `INSERT INTO effects (job_id, token, account, cents) VALUES (?, ?, ?, ?)
  ON CONFLICT (job_id) DO UPDATE SET token = excluded.token, account = excluded.account, cents = excluded.cents
  WHERE effects.token < excluded.token`;

/** @typedef {{ account: string, cents: number }} Charge */

/** @type {import('duestream').Queue<Charge>} */
export const charges = defineQueue('charges', { delivery: 'effectively-once' });

export async function openStore() {
  const { Database } = await initSqlJs();
  const db = new Database();
  db.run(SCHEMA);
  return {
    /** Whether the row was written. No row: a newer start of this job has written its own. */
    write: (/** @type {string} */ id, /** @type {string} */ token, /** @type {Charge} */ { account, cents }) => {
      db.run(WRITE, [id, token, account, cents]);
      return db.getRowsModified() === 1;
    },
    /** What was charged, from rows and not from a counter: a row that is written again changes nothing. */
    balance: (/** @type {string} */ account) =>
      Number(db.exec('SELECT coalesce(sum(cents), 0) FROM effects WHERE account = ?', [account])[0]?.values[0]?.[0]),
    rows: () => Number(db.exec('SELECT count(*) FROM effects')[0]?.values[0]?.[0]),
  };
}

/**
 * @param {Pick<Awaited<ReturnType<typeof openStore>>, 'write'>} store
 * @param {(charge: Charge, signal: AbortSignal) => Promise<unknown>} work
 * @returns {import('duestream').Handler<Charge>}
 */
export const chargeWith =
  (store, work) =>
  async (job, { token, signal, log }) => {
    await work(job.data, signal);
    if (store.write(job.id, token, job.data)) log.info(job.data, 'charged');
    else throw new Error('a newer start of this job has charged; this one is stale');
  };

const store = await openStore();
const charge = chargeWith(store, (_charge, signal) => sleep(100, undefined, { signal }));

export default defineHandlers({ charges: charge }, { queues: [charges] });
