/**
 * The tables, as text: whoever looks after the schema of a database puts them into a migration.
 */
import { type Dialect, parseDialect } from './database.ts';

const OUTBOX: Readonly<Record<Dialect, { readonly seq: string }>> = {
  postgres: { seq: 'BIGSERIAL PRIMARY KEY' },
  sqlite: { seq: 'INTEGER PRIMARY KEY AUTOINCREMENT' },
};

/**
 * The table of the outbox, with its index.
 *
 * @throws DuestreamError `bad-input`
 * @example await pool.query(outboxTable('postgres'));
 */
export function outboxTable(dialect: Dialect): string {
  const { seq } = OUTBOX[parseDialect(dialect)];
  return `CREATE TABLE IF NOT EXISTS duestream_outbox (
  seq ${seq},
  verb TEXT NOT NULL,
  queue TEXT NOT NULL,
  key TEXT NOT NULL,
  body TEXT NOT NULL,
  made BIGINT NOT NULL,
  claimed_until BIGINT NOT NULL DEFAULT 0,
  claimed_by TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  error TEXT
);
CREATE INDEX IF NOT EXISTS duestream_outbox_key ON duestream_outbox (queue, key, seq);
`;
}

/**
 * The table of the inbox, with its index.
 *
 * @throws DuestreamError `bad-input`
 * @example await pool.query(inboxTable('postgres'));
 */
export function inboxTable(dialect: Dialect): string {
  parseDialect(dialect);
  return `CREATE TABLE IF NOT EXISTS duestream_inbox (
  queue TEXT NOT NULL,
  id TEXT NOT NULL,
  mark TEXT NOT NULL,
  made BIGINT NOT NULL,
  PRIMARY KEY (queue, id, mark)
);
CREATE INDEX IF NOT EXISTS duestream_inbox_made ON duestream_inbox (made);
`;
}
