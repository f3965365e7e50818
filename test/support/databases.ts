/** Private databases for tests of the outbox and the inbox: PGlite and sql.js in memory, and a server of PostgreSQL where there is one. */
import { PGlite } from '@electric-sql/pglite';
import initSqlJs from 'sql.js';
import type { Dialect, Run } from '../../src/sql/index.ts';
import { tier } from '../tiers.mjs';
import { hasPostgres, startPostgres, transactionIn } from './postgres.mjs';

export interface TestDatabase {
  readonly dialect: Dialect;
  /** Each statement is committed by itself. */
  readonly run: Run;
  /** Statements without parameters, such as those of a migration. */
  readonly script: (text: string) => Promise<unknown>;
  /** Commits when `work` resolves, and rolls back when it rejects. */
  readonly transaction: (work: (run: Run) => unknown) => Promise<void>;
  readonly close: () => Promise<void>;
}

interface Database {
  readonly name: string;
  readonly dialect: Dialect;
  readonly open: () => Promise<TestDatabase>;
}

/** PostgreSQL is there twice where this machine has its server: only that one has transactions beside each other. */
const all: readonly Database[] = [
  { name: 'SQLite', dialect: 'sqlite', open: openSqlite },
  { name: 'PGlite', dialect: 'postgres', open: openPostgres },
  ...(hasPostgres() ? [{ name: 'PostgreSQL', dialect: 'postgres' as const, open: openPostgresServer }] : []),
];
/** `npm test` has the cheapest alone. */
export const databases = all.slice(0, tier === 'quick' ? 1 : undefined);

async function openPostgresServer(): Promise<TestDatabase> {
  const server = await startPostgres();
  const pool = server.pool();
  return {
    dialect: 'postgres',
    run: async (text, params) => (await pool.query(text, params)).rows,
    script: (text) => pool.query(text),
    transaction: (work) => transactionIn(pool, work),
    async close() {
      await pool.end();
      await server.stop();
    },
  };
}

async function openPostgres(): Promise<TestDatabase> {
  const db = await PGlite.create();
  return {
    dialect: 'postgres',
    run: async (text, params) => (await db.query(text, params)).rows,
    script: (text) => db.exec(text),
    async transaction(work) {
      await db.transaction(async (tx) => work(async (text, params) => (await tx.query(text, params)).rows));
    },
    close: () => db.close(),
  };
}

async function openSqlite(): Promise<TestDatabase> {
  const { Database } = await initSqlJs();
  const db = new Database();
  const run: Run<readonly unknown[]> = (text, params) => {
    const statement = db.prepare(text, params);
    try {
      const rows: unknown[] = [];
      while (statement.step()) rows.push(statement.getAsObject());
      return rows;
    } finally {
      statement.free();
    }
  };
  return {
    dialect: 'sqlite',
    run,
    script: async (text) => db.run(text),
    async transaction(work) {
      db.run('BEGIN');
      try {
        await work(run);
        db.run('COMMIT');
      } catch (error) {
        db.run('ROLLBACK');
        throw error;
      }
    },
    close: async () => db.close(),
  };
}
