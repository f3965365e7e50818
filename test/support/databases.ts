/** Private databases for tests of the outbox and the inbox: PostgreSQL (PGlite) and SQLite (sql.js), both in memory. */
import { PGlite } from '@electric-sql/pglite';
import initSqlJs from 'sql.js';
import type { Dialect, Run } from '../../src/sql/index.ts';

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

export const databases: readonly (readonly [Dialect, () => Promise<TestDatabase>])[] = [
  ['postgres', openPostgres],
  ['sqlite', openSqlite],
];

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
