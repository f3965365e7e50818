/** `outbox`: the rows of a database that are calls to be made: the tables for them, the relay, and what people do with rows. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted, span } from '../../kernel/humanize.ts';
import {
  createOutbox,
  inboxTable,
  type Outbox,
  type OutboxDatabase,
  type OutboxRow,
  type OutboxState,
  outboxTable,
} from '../../sql/index.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples } from '../session.ts';
import { line, type Paint, table } from '../terminal/output.ts';

interface TableFlags {
  readonly inbox?: boolean;
}

export const outboxTables: Register = (parent, runner) => {
  const command = parent
    .command('table <dialect>')
    .description('print the SQL of the table, for a migration: postgres or sqlite')
    .option('--inbox', 'that of the inbox instead')
    .action((dialect: string, flags: TableFlags, command: Command) =>
      runner.run(command, (session) => runTable(session, dialect, flags)),
    );
  withExamples(command, ['duestream outbox table postgres > outbox.sql', 'duestream outbox table sqlite --inbox']);
};

async function runTable({ out }: Session, dialect: string, { inbox = false }: TableFlags): Promise<Exit> {
  const sql = (inbox ? inboxTable : outboxTable)(dialectOf(dialect));
  out.answer({ dialect, sql }, () => [sql.trimEnd()]);
  return 0;
}

function dialectOf(given: string): OutboxDatabase['dialect'] {
  if (given === 'postgres' || given === 'sqlite') return given;
  throw new DuestreamError('usage', `dialect is ${given}; allowed: postgres, sqlite`);
}

export const outboxRelay: Register = (parent, runner) => {
  const command = parent
    .command('relay <module>')
    .description('make the calls of an outbox, until a signal; the default export of the module is defineOutbox({ … })')
    .option(
      '--http-port <port>',
      'serve health and metrics on this port; 0 takes any free port and prints it; without this flag they are off',
    )
    .option('--log-level <level>', 'write log lines of this level and above it')
    .action((module: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => relay(session, module)),
    );
  withExamples(command, ['duestream outbox relay outbox.mjs', 'duestream outbox relay outbox.mjs --http-port 9465']);
};

async function relay({ config, loaded, invocation }: Session, module: string): Promise<Exit> {
  const withHttp = loaded.origins['http.port']?.from === 'flag';
  const { runRelay } = await import('../../daemon/run-relay.ts');
  await runRelay(config, { module: resolve(invocation.cwd, module), withHttp });
  return 0;
}

interface LsFlags {
  readonly refused?: boolean;
  readonly after?: number;
  readonly limit: number;
}

export const outboxLs: Register = (parent, runner) => {
  const command = parent
    .command('ls <module>')
    .description('list the rows of an outbox in their order, and say how far the relay is behind')
    .option('--refused', 'only rows that were refused')
    .option('--after <n>', 'only rows behind this number', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .action((module: string, flags: LsFlags, command: Command) =>
      runner.run(command, (session) => runLs(session, module, flags)),
    );
  withExamples(command, ['duestream outbox ls outbox.mjs', 'duestream outbox ls outbox.mjs --refused --json']);
};

async function runLs(session: Session, module: string, flags: LsFlags): Promise<Exit> {
  const { state, rows } = await withOutbox(session, module, async (outbox, { run }) => ({
    state: await outbox.state(run),
    rows: await outbox.list(run, flags),
  }));
  const { paint } = session.out;
  session.out.answer({ ...state, shown: rows }, () => [
    line`${counted(state.rows, 'row')}, ${state.refused} refused; the oldest that waits is ${span(state.lagMs)} old`,
    ...(state.queues.some(({ putOff }) => putOff > 0) ? queuesTable(paint, state.queues) : []),
    ...(rows.length === 0
      ? []
      : table(paint, ['row', 'call', 'queue', 'key', 'age', 'tries', 'state'], rows.map(cells))),
    ...rows.flatMap(({ seq, error }) => (error === undefined ? [] : [line`${seq}  ${error}`])),
    ...(rows.length === flags.limit ? ['there may be more; go on with', `--after ${rows.at(-1)?.seq}`] : []),
  ]);
  return 0;
}

/** Which queue waits, once relays have tried in vain. */
const queuesTable = (paint: Paint, queues: OutboxState['queues']) =>
  table(
    paint,
    ['queue', 'rows', 'put off', 'refused', 'oldest'],
    queues.map(({ queue, rows, putOff, refused, lagMs }) => [queue, rows, putOff, refused, span(lagMs)]),
  );

const cells = ({ seq, verb, queue, key, ageMs, attempts, state }: OutboxRow) => [
  seq,
  verb,
  queue,
  key,
  span(ageMs),
  attempts,
  state,
];

interface RetryFlags {
  readonly all?: boolean;
}

export const outboxRetry: Register = (parent, runner) => {
  const command = parent
    .command('retry <module> [rows...]')
    .description('let rows that were refused be tried again, and rows that were put off at once')
    .option('--all', 'all of them')
    .action((module: string, rows: readonly string[], flags: RetryFlags, command: Command) =>
      runner.run(command, (session) => runRetry(session, { module, rows, flags })),
    );
  withExamples(command, ['duestream outbox retry outbox.mjs 42', 'duestream outbox retry outbox.mjs --all']);
};

async function runRetry(
  session: Session,
  given: { readonly module: string; readonly rows: readonly string[]; readonly flags: RetryFlags },
): Promise<Exit> {
  const { module, rows, flags } = given;
  if ((flags.all === true) === rows.length > 0) {
    throw new DuestreamError('usage', 'outbox retry: name rows by their numbers, or all of them with --all');
  }
  const seqs = flags.all === true ? ('all' as const) : rows.map(numberOf);
  const tried = await withOutbox(session, module, (outbox, { run }) => outbox.retry(run, seqs));
  session.out.answer({ retried: tried }, () => [line`${counted(tried.length, 'row')} will be tried again`]);
  return seqs === 'all' || tried.length === seqs.length ? 0 : 1;
}

export const outboxRm: Register = (parent, runner) => {
  const command = parent
    .command('rm <module> <rows...>')
    .description('remove rows, so that their calls are never made; a row that a relay has just claimed stays')
    .action((module: string, rows: readonly string[], _flags: unknown, command: Command) =>
      runner.run(command, (session) => runRm(session, module, rows)),
    );
  withExamples(command, ['duestream outbox rm outbox.mjs 42 43']);
};

async function runRm(session: Session, module: string, rows: readonly string[]): Promise<Exit> {
  const seqs = rows.map(numberOf);
  const removed = await withOutbox(session, module, (outbox, { run }) => outbox.remove(run, seqs));
  const kept = seqs.filter((seq) => !removed.includes(seq));
  session.out.answer({ removed, kept }, () => [
    line`${counted(removed.length, 'row')} removed`,
    ...(kept.length === 0 ? [] : [line`not removed, as there is none or a relay has it: ${kept.join(', ')}`]),
  ]);
  return kept.length === 0 ? 0 : 1;
}

function numberOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new DuestreamError('usage', `row is ${text}; allowed: the number of a row, as "duestream outbox ls" shows it`);
}

/** Lends the outbox of a module, and closes its connections behind it. */
async function withOutbox<T>(
  { invocation }: Session,
  module: string,
  act: (outbox: Outbox, database: OutboxDatabase) => Promise<T>,
): Promise<T> {
  const { loadOutbox } = await import('../../daemon/handler-module.ts');
  const database = await loadOutbox(resolve(invocation.cwd, module));
  try {
    return await act(createOutbox({ dialect: database.dialect }), database);
  } finally {
    await database.close?.();
  }
}
