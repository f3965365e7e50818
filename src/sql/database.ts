/**
 * What the outbox and the inbox need of a database: one function that carries out a statement. There is no driver here. All
 * statements are of one kind: every one returns rows (`RETURNING`, or `SELECT`), and each parameter stands in it once, in order.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** Whose SQL is spoken. It decides how parameters are written (`$1` or `?`), and how the time is asked for. */
export type Dialect = 'postgres' | 'sqlite';

/** A parameter of a statement. */
export type SqlValue = string | number | null;

/** Rows as objects by their columns, at once or as a promise. */
export type Rows = readonly unknown[] | PromiseLike<readonly unknown[]>;

/**
 * Carries out one statement and returns its rows, as objects by their columns. It decides about the transaction: what it runs in
 * is what the row belongs to.
 *
 * @example const run: Run = async (text, params) => (await pool.query(text, params)).rows;
 */
export type Run<Ran extends Rows = Rows> = (text: string, params: SqlValue[]) => Ran;

/** A result at once where `run` has its rows at once, else a promise. */
export type After<Ran extends Rows, Result> = Ran extends PromiseLike<unknown> ? Promise<Result> : Result;

/** What is asked of the database. */
export interface Statement {
  /** With `?` for each parameter, whatever the dialect. */
  readonly text: string;
  readonly params: readonly SqlValue[];
}

/** @throws DuestreamError `bad-input` */
export function parseDialect(given: unknown): Dialect {
  if (given === 'postgres' || given === 'sqlite') return given;
  throw new DuestreamError('bad-input', `dialect is ${show(given)}; allowed: postgres, sqlite`);
}

/** Epoch ms by the clock of the database: several relays with clocks of their own must agree when a claim has run out. */
export const NOW_MS: Readonly<Record<Dialect, string>> = {
  postgres: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  sqlite: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
};

/** Sends a statement as the dialect writes it. */
export function send<Ran extends Rows>(run: Run<Ran>, dialect: Dialect, { text, params }: Statement): Ran {
  const [first = '', ...rest] = text.split('?');
  const numbered = rest.reduce((before, part, at) => `${before}$${at + 1}${part}`, first);
  return run(dialect === 'sqlite' ? text : numbered, [...params]);
}

/** So many places for parameters: `?, ?, ?`. */
export const places = (count: number): string => Array.from({ length: count }, () => '?').join(', ');

/** A column of a row. PostgreSQL drivers give a 64-bit number as a text or a `bigint`. */
export function columnOf(row: unknown, name: string): unknown {
  if (typeof row === 'object' && row !== null && name in row) return Reflect.get(row, name);
  throw new DuestreamError(
    'bad-input',
    `run gave a row without the column ${name}: ${show(row)}; allowed: rows as objects by their columns`,
  );
}

export const numberIn = (row: unknown, name: string): number => Number(columnOf(row, name));

export function textIn(row: unknown, name: string): string | undefined {
  const value = columnOf(row, name);
  return value === null || value === undefined ? undefined : String(value);
}

/** @throws DuestreamError `bad-input` where `run` gave something else than rows */
export function rowsOf(given: unknown): readonly unknown[] {
  if (Array.isArray(given)) return given;
  throw new DuestreamError('bad-input', `run gave ${show(given)}; allowed: a list of rows`);
}
