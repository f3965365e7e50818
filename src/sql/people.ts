/** What people do with rows of the outbox: look at them, have them tried again, remove them. */
import { checkNames, wholeNumber } from '../kernel/checks.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { type Dialect, NOW_MS, numberIn, places, type Run, rowsOf, type SqlValue, send, textIn } from './database.ts';

/** A row of the outbox, without what its job carries. */
export interface OutboxRow {
  /** Its number. */
  readonly seq: number;
  /** `schedule`, `cancel` or `close`. */
  readonly verb: string;
  readonly queue: string;
  /** The id of the job, or `#` and the first of the tags that are to be closed. Rows of a key are carried out in their order. */
  readonly key: string;
  /** When it was written: epoch ms by the clock of the database. */
  readonly madeMs: number;
  /** How long ago that was, by the same clock. */
  readonly ageMs: number;
  /** How often a relay has claimed it. */
  readonly attempts: number;
  /**
   * `waits`: for a relay, or behind another row of its key · `put-off`: a relay has tried, and it or another one tries again later ·
   * `claimed`: a relay carries it out · `refused`: for a person.
   */
  readonly state: 'waits' | 'put-off' | 'claimed' | 'refused';
  /** Why it was refused. */
  readonly error: string | undefined;
}

/** Which rows. */
export interface ListRowsOptions {
  /** Only those that were refused. */
  readonly refused?: boolean | undefined;
  /** Only those behind this number. */
  readonly after?: number | undefined;
  /** 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
}

interface Place {
  readonly run: Run;
  readonly dialect: Dialect;
}

const LIST_NAMES = ['refused', 'after', 'limit'];
const ROWS_MAX = 1000;
const SEQ_MAX = Number.MAX_SAFE_INTEGER;

/** @throws DuestreamError `bad-input` */
export async function listRows(place: Place, options: ListRowsOptions): Promise<readonly OutboxRow[]> {
  checkNames(options, LIST_NAMES, 'list', 'bad-input');
  const limit = wholeNumber(options.limit ?? 100, { what: 'limit', min: 1, max: ROWS_MAX });
  const behind = wholeNumber(options.after ?? 0, { what: 'after', min: 0, max: SEQ_MAX });
  const refused = options.refused === true ? ' AND error IS NOT NULL' : '';
  const now = NOW_MS[place.dialect];
  const text = `SELECT seq, verb, queue, key, made, attempts, claimed_by, claimed_until, error, ${now} AS now
FROM duestream_outbox WHERE seq > ?${refused} ORDER BY seq LIMIT ${limit}`;
  return (await ask(place, text, [behind])).map(rowOf);
}

/** @throws DuestreamError `bad-input` */
export async function retryRows(place: Place, seqs: readonly number[] | 'all'): Promise<readonly number[]> {
  const which = seqs === 'all' ? { text: '', params: [] } : among(seqs);
  // What a relay has claimed is being tried.
  const text = `UPDATE duestream_outbox SET error = NULL, claimed_until = 0
WHERE (error IS NOT NULL OR (claimed_by IS NULL AND claimed_until > 0))${which.text} RETURNING seq`;
  return seqsIn(await ask(place, text, which.params));
}

/** @throws DuestreamError `bad-input` */
export async function removeRows(place: Place, seqs: readonly number[]): Promise<readonly number[]> {
  const { text, params } = among(seqs);
  const free = `(claimed_by IS NULL OR claimed_until <= ${NOW_MS[place.dialect]})`;
  return seqsIn(await ask(place, `DELETE FROM duestream_outbox WHERE ${free}${text} RETURNING seq`, params));
}

async function ask({ run, dialect }: Place, text: string, params: readonly SqlValue[]): Promise<readonly unknown[]> {
  return rowsOf(await send(run, dialect, { text, params }));
}

function among(seqs: readonly number[]): { readonly text: string; readonly params: readonly number[] } {
  if (!Array.isArray(seqs) || seqs.length === 0 || seqs.length > ROWS_MAX) {
    throw new DuestreamError('bad-input', `seqs is ${show(seqs)}; allowed: a list of 1 to ${ROWS_MAX} numbers of rows`);
  }
  const params = seqs.map((seq: unknown) => wholeNumber(seq, { what: 'the number of a row', min: 1, max: SEQ_MAX }));
  return { text: ` AND seq IN (${places(params.length)})`, params };
}

const seqsIn = (rows: readonly unknown[]): readonly number[] =>
  rows.map((row) => numberIn(row, 'seq')).sort((one, other) => one - other);

function rowOf(row: unknown): OutboxRow {
  const error = textIn(row, 'error');
  const nowMs = numberIn(row, 'now');
  const madeMs = numberIn(row, 'made');
  return {
    seq: numberIn(row, 'seq'),
    verb: textIn(row, 'verb') ?? '',
    queue: textIn(row, 'queue') ?? '',
    key: textIn(row, 'key') ?? '',
    madeMs,
    ageMs: Math.max(0, nowMs - madeMs),
    attempts: numberIn(row, 'attempts'),
    state: stateIn(row, nowMs),
    error,
  };
}

function stateIn(row: unknown, nowMs: number): OutboxRow['state'] {
  if (textIn(row, 'error') !== undefined) return 'refused';
  if (numberIn(row, 'claimed_until') <= nowMs) return 'waits';
  return textIn(row, 'claimed_by') === undefined ? 'put-off' : 'claimed';
}
