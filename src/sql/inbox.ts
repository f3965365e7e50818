/**
 * The inbox: a handler that is started twice has its effect in a database once. The first start that commits leaves a row with
 * the queue, the id and the mark of the job; a later one finds it.
 *
 * The mark is that of the call which made the job: the asked due time and a digest. Retries, edits and replays keep it, and a new
 * life of the id has another one. The token would not do: a second start has a higher one although the effect is there.
 */
import type { Job } from '../job/job.ts';
import { asConfig, checkNames, durationIn, isPromise } from '../kernel/checks.ts';
import type { DurationInput } from '../kernel/duration.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import {
  type After,
  type Dialect,
  NOW_MS,
  parseDialect,
  type Rows,
  type Run,
  rowsOf,
  type Statement,
  send,
  textIn,
} from './database.ts';

/** What `createInbox` takes. */
export interface InboxOptions {
  /** The database: `postgres` or `sqlite`. */
  readonly dialect: Dialect;
}

/** What a job is known by. */
export type InboxJob = Pick<Job, 'queue' | 'id' | 'mark'>;

/** Which rows a sweep removes. */
export interface SweepOptions {
  /**
   * Rows that are older, by the clock of the database: `1m` to `3650d`. Longer than a job may be tried, and longer than a dead
   * letter may wait for its replay: what comes after that has its effect again.
   */
  readonly olderThan: DurationInput;
}

/** Effects that happen once. */
export interface Inbox {
  /**
   * Whether this is the first time, in the transaction of `run`: true once for each life of a job, however often its handler is
   * started. If the transaction is rolled back it was never said. A second start at the same time waits for the first one's
   * transaction. Where `run` returns rows at once, so does this.
   *
   * @throws DuestreamError `bad-input` for what is not the job that a handler was given
   * @example if (await inbox.once(run, job)) await run('UPDATE accounts SET cents = cents - $1', [500]);
   */
  once<Ran extends Rows>(run: Run<Ran>, job: InboxJob): After<Ran, boolean>;
  /**
   * The same of the jobs of a batch, in one statement: those for which this is the first time, in their order.
   *
   * @throws DuestreamError `bad-input` for what is no list of jobs that a handler was given, or more than 1,000 of them
   * @example
   * const first = await inbox.onceEach(run, batch.jobs);
   * if (first.length > 0) await insertAll(run, first.map((job) => job.data));
   */
  onceEach<Ran extends Rows, One extends InboxJob>(run: Run<Ran>, jobs: readonly One[]): After<Ran, readonly One[]>;
  /**
   * Removes old rows, a thousand in a statement.
   *
   * @returns how many are gone
   * @throws DuestreamError `bad-input`
   * @example await inbox.sweep(run, { olderThan: '90d' });
   */
  sweep(run: Run, options: SweepOptions): Promise<number>;
}

const SWEEP_ROWS = 1000;
const OLDER_MS = { min: 60_000, max: 3650 * 86_400_000 };

/**
 * An inbox. It connects to nothing: the table is that of `inboxTable`, and `run` reaches it.
 *
 * @throws DuestreamError `bad-config`
 * @example
 * const inbox = createInbox({ dialect: 'postgres' });
 * const isFirst = await inbox.once(run, job);
 */
export function createInbox(options: InboxOptions): Inbox {
  checkNames(options, ['dialect'], 'createInbox');
  const dialect = asConfig(() => parseDialect(options.dialect));
  const now = NOW_MS[dialect];
  return {
    once: ((run: Run, job: InboxJob) => {
      const { queue, id, mark } = markedJob(job);
      const text = `INSERT INTO duestream_inbox (queue, id, mark, made) VALUES (?, ?, ?, ${now})
ON CONFLICT DO NOTHING RETURNING mark`;
      const ran: Rows = send(run, dialect, { text, params: [queue, id, mark] });
      const isFirst = (rows: unknown) => rowsOf(rows).length === 1;
      return isPromise(ran) ? ran.then(isFirst) : isFirst(ran);
    }) as Inbox['once'],
    onceEach: ((run: Run, jobs: readonly InboxJob[]) => {
      const marked = markedJobs(jobs);
      // Where there is nothing to ask the answer still comes as the others do.
      const ran: Rows = send(run, dialect, marked.length === 0 ? NOTHING : entering(marked, now));
      const first = (rows: unknown) => firstOf(jobs, rowsOf(rows));
      return isPromise(ran) ? ran.then(first) : first(ran);
    }) as Inbox['onceEach'],
    async sweep(run, given) {
      checkNames(given, ['olderThan'], 'sweep', 'bad-input');
      const olderMs = durationIn(given.olderThan, 'olderThan', OLDER_MS);
      const text = `DELETE FROM duestream_inbox WHERE (queue, id, mark) IN
(SELECT queue, id, mark FROM duestream_inbox WHERE made < ${now} - ? LIMIT ${SWEEP_ROWS}) RETURNING mark`;
      let gone = 0;
      for (let last = SWEEP_ROWS; last === SWEEP_ROWS; gone += last) {
        last = rowsOf(await send(run, dialect, { text, params: [olderMs] })).length;
      }
      return gone;
    },
  };
}

/** A statement that gives no rows. */
const NOTHING: Statement = { text: 'SELECT 1 AS mark WHERE 1 = 0', params: [] };
const JOBS_MAX = 1000;

/** In one order for all, so that two transactions with the same jobs wait for each other and not in a circle. */
function entering(jobs: readonly InboxJob[], now: string): Statement {
  const sorted = jobs.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  const rows = sorted.map(() => `(?, ?, ?, ${now})`).join(', ');
  return {
    text: `INSERT INTO duestream_inbox (queue, id, mark, made) VALUES ${rows}
ON CONFLICT DO NOTHING RETURNING queue, id, mark`,
    params: sorted.flatMap(({ queue, id, mark }) => [queue, id, mark]),
  };
}

const keyOf = ({ queue, id, mark }: InboxJob): string => [queue, id, mark].join('\n');

/** A row that came back was not there. Of a job that was given twice the first counts. */
function firstOf(jobs: readonly InboxJob[], rows: readonly unknown[]): readonly InboxJob[] {
  const fresh = new Set(rows.map((row) => ['queue', 'id', 'mark'].map((name) => textIn(row, name)).join('\n')));
  return jobs.filter((job) => fresh.delete(keyOf(job)));
}

function markedJobs(jobs: readonly InboxJob[]): readonly InboxJob[] {
  if (Array.isArray(jobs) && jobs.length <= JOBS_MAX) return jobs.map(markedJob);
  const given = Array.isArray(jobs) ? `${jobs.length} jobs` : show(jobs);
  throw new DuestreamError('bad-input', `jobs of onceEach is ${given}; allowed: a list of at most ${JOBS_MAX} jobs`);
}

function markedJob(job: InboxJob): InboxJob {
  const given: unknown = job;
  const isMarked = typeof given === 'object' && given !== null && 'mark' in given && typeof given.mark === 'string';
  if (isMarked && job.mark !== '') return job;
  throw new DuestreamError(
    'bad-input',
    `job is ${show(given)}, and has no mark; allowed: the job that a handler was given, and no copy of it`,
  );
}
