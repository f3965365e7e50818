/**
 * Effects beside a database, for PostgreSQL and SQLite: an outbox, whose calls are made if and only if a transaction commits; a
 * relay, which makes them; and an inbox, by which a handler has its effect once. There is no driver in it: you give a function
 * that carries out a statement.
 *
 * @module duestream-sql
 */

export type { OutboxQueueState, OutboxState } from './claims.ts';
export type { After, Dialect, Rows, Run, SqlValue } from './database.ts';
export { createInbox, type Inbox, type InboxJob, type InboxOptions, type SweepOptions } from './inbox.ts';
export type { Relayed, StalledQueue } from './lanes.ts';
export { createOutbox, type Outbox, type OutboxClosed, type OutboxJob, type OutboxOptions } from './outbox.ts';
export { defineOutbox, type OutboxDatabase } from './outbox-database.ts';
export type { ListRowsOptions, OutboxRow } from './people.ts';
export { createRelay, type Relay, type RelayOptions } from './relay.ts';
export { inboxTable, outboxTable } from './tables.ts';
