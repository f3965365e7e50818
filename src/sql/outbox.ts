/**
 * The outbox: calls of a client that become rows in a table of the caller's database, in the caller's transaction. They are
 * checked here, as the client checks them; a relay carries them out after the COMMIT.
 */
import { Orders } from '../client/calls/orders.ts';
import { type Plan, type PlanLimits, planJob, planListed } from '../client/calls/plan.ts';
import { parseAnyId, parseLimits } from '../client/calls/settings.ts';
import { checkList } from '../client/calls/target.ts';
import { atPlace, checkJob } from '../client/jobs/bulk.ts';
import type { BulkJob, NamedJob } from '../client/jobs/scheduling.ts';
import { type CloseTagsOptions, closeAskOf, meantBy } from '../client/jobs/tags.ts';
import { hasContent, seal } from '../job/content.ts';
import { reserveJobIds } from '../job/job-id.ts';
import type { ScheduleOptions } from '../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../job/queue.ts';
import type { InputIn, NamedData, NameIn } from '../job/types.ts';
import { asConfig, checkNames, isPromise } from '../kernel/checks.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import type { DurationInput } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { snapshot } from '../kernel/snapshot.ts';
import { beginSend, type SendSpan } from '../telemetry/spans.ts';
import { type OutboxState, stateOf } from './claims.ts';
import { type After, type Dialect, NOW_MS, parseDialect, type Rows, type Run, rowsOf, send } from './database.ts';
import { type ListRowsOptions, listRows, type OutboxRow, removeRows, retryRows } from './people.ts';
import { cancelRow, closeRow, type NewRow, scheduleRow } from './row.ts';

/** What `createOutbox` takes. */
export interface OutboxOptions {
  /** The database: `postgres` or `sqlite`. */
  readonly dialect: Dialect;
  /** How far ahead a job may be due, as of a client: `1s` to `3650d`, the default. */
  readonly horizon?: DurationInput | undefined;
  /** Largest data of a job in bytes of JSON, as of a client. Default 262144. */
  readonly dataBytesMax?: number | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** A job that the outbox has: it is in Redis when a relay has carried the row out. */
export interface OutboxJob {
  readonly id: string;
  readonly queue: string;
  /** Epoch ms by the clock of this machine. A relay that comes later changes nothing about it. */
  readonly dueMs: number;
}

/** A tag that will be closed. */
export interface OutboxClosed {
  readonly tags: readonly string[];
  /** Epoch ms by the clock of this machine. */
  readonly untilMs: number;
}

/** Tags are closed for so long, whoever carries it out; the durability is that of the relay. */
type CloseInOutbox = Omit<CloseTagsOptions, 'durability'>;

/**
 * Calls that are rows until a relay carries them out: either the transaction commits and the call is made, or neither. `run`
 * carries out a statement in the transaction of the caller. Where it returns rows at once, as drivers of SQLite do, so does the
 * method; else it returns a promise. What is wrong with a call is thrown before anything is written, as by a client.
 */
export interface Outbox {
  /** Of a queue with `jobs`, one of their names, whose schema checks the data. */
  schedule<Jobs, Name extends keyof Jobs, Ran extends Rows>(
    run: Run<Ran>,
    queue: Queue<NamedData<Jobs>>,
    data: InputIn<NoInfer<Jobs>, Name>,
    options: Omit<ScheduleOptions, 'name'> & { readonly name: Name },
  ): After<Ran, OutboxJob>;
  /** Of a queue with `jobs`, one of the name `default`, which need not be said. */
  schedule<Jobs extends { readonly default: unknown }, Ran extends Rows>(
    run: Run<Ran>,
    queue: Queue<NamedData<Jobs>>,
    data: InputIn<NoInfer<Jobs>, 'default'>,
    options?: Omit<ScheduleOptions, 'name'> & NameIn<'name', 'default'>,
  ): After<Ran, OutboxJob>;
  /**
   * Schedules a job with the transaction. Id, due time and data are fixed now, by the clock of this machine. It takes all
   * options of `client.schedule` but `durability`, which is the relay's. With `ifExists: 'error'` a row whose job exists is
   * refused, and later rows of the id wait for a person.
   *
   * @throws DuestreamError `bad-input`, as `client.schedule`
   * @example
   * await outbox.schedule(run, reminders, { invoice: 7 }, { id: 'invoice:7', delay: '14d', tags: ['invoice:7'] });
   */
  schedule<Data, Ran extends Rows>(
    run: Run<Ran>,
    queue: QueueInput<Data>,
    data: Data,
    options?: ScheduleOptions,
  ): After<Ran, OutboxJob>;
  /**
   * Schedules up to a million jobs with the transaction, in statements of 200 rows; results in their order. All are checked first:
   * if one is wrong, the error names its place and no row is written.
   *
   * @throws DuestreamError `bad-input`, as `client.scheduleMany`
   * @example
   * await outbox.scheduleMany(run, reminders, [7, 8].map((invoice) => ({ data: { invoice }, id: `invoice:${invoice}`, delay: '14d' })));
   */
  scheduleMany<Jobs, Ran extends Rows>(
    run: Run<Ran>,
    queue: Queue<NamedData<Jobs>>,
    jobs: readonly NamedJob<NoInfer<Jobs>>[],
  ): After<Ran, readonly OutboxJob[]>;
  /** Of a queue without `jobs`: any names, and data of the type of the queue. */
  scheduleMany<Data, Ran extends Rows>(
    run: Run<Ran>,
    queue: QueueInput<Data>,
    jobs: readonly BulkJob<Data>[],
  ): After<Ran, readonly OutboxJob[]>;
  /**
   * Cancels a job with the transaction. It comes behind what the outbox has of this id from earlier transactions.
   *
   * @throws DuestreamError `bad-input`
   * @example await outbox.cancel(run, reminders, 'invoice:7');
   */
  cancel<Ran extends Rows>(
    run: Run<Ran>,
    queue: QueueInput<unknown>,
    id: string,
  ): After<Ran, Pick<OutboxJob, 'id' | 'queue'>>;
  /**
   * Closes tags with the transaction, as `client.close` does: a process that dies after the COMMIT closes them all the same.
   * The end counts from now. The tags are closed from the moment a relay has carried it out.
   *
   * @throws DuestreamError `bad-input`
   * @example await outbox.close(run, reminders, 'invoice:7', { for: '90d', reason: 'paid' });
   */
  close<Ran extends Rows>(
    run: Run<Ran>,
    queue: QueueInput<unknown> | readonly QueueInput<unknown>[],
    tag: string | readonly string[],
    options: CloseInOutbox,
  ): After<Ran, OutboxClosed>;
  /** How many rows there are, and how far the relay is behind. @example const { lagMs, refused } = await outbox.state(run); */
  state(run: Run): Promise<OutboxState>;
  /** Rows in their order. @example for (const { seq, error } of await outbox.list(run, { refused: true })) console.log(seq, error); */
  list(run: Run, options?: ListRowsOptions): Promise<readonly OutboxRow[]>;
  /**
   * Lets rows that were refused be tried again, and rows that were put off be tried at once.
   *
   * @param seqs their numbers, or `all`
   * @returns the numbers of those that will be tried
   * @throws DuestreamError `bad-input`
   * @example await outbox.retry(run, 'all');
   */
  retry(run: Run, seqs: readonly number[] | 'all'): Promise<readonly number[]>;
  /**
   * Removes rows, so that their calls are never made. A row that a relay has just claimed stays.
   *
   * @returns the numbers of those that are gone
   * @throws DuestreamError `bad-input`
   * @example await outbox.remove(run, [42]);
   */
  remove(run: Run, seqs: readonly number[]): Promise<readonly number[]>;
}

const OUTBOX_OPTIONS: readonly string[] = Object.keys({
  dialect: 0,
  horizon: 0,
  dataBytesMax: 0,
  clock: 0,
} satisfies Record<keyof OutboxOptions, number>);

/**
 * An outbox. It connects to nothing: the table is that of `outboxTable`, and `run` reaches it.
 *
 * @throws DuestreamError `bad-config`
 * @example
 * const outbox = createOutbox({ dialect: 'postgres' });
 * await outbox.schedule(run, emails, { to: 'a@example.org' }, { delay: '2m' });
 */
export function createOutbox(options: OutboxOptions): Outbox {
  const parts = asConfig(() => partsOf(options));
  const { dialect } = parts;
  return {
    // The rows that `run` has at once, or a promise of them, are the only witness of the type of the result.
    schedule: ((run: Run, queue: QueueInput<unknown>, data: unknown, given: ScheduleOptions = {}) =>
      traced(beginSend(queue), parts, (own) =>
        schedule(run, { queue, data, options: given }, own),
      )) as Outbox['schedule'],
    scheduleMany: ((run: Run, queue: QueueInput<unknown>, jobs: readonly BulkJob<unknown>[]) =>
      traced(beginSend(queue, jobs), parts, (own) =>
        scheduleMany(run, { queue, jobs }, own),
      )) as Outbox['scheduleMany'],
    cancel: ((run: Run, queue: QueueInput<unknown>, given: string) => {
      const { name } = queueOf(queue);
      const id = parseAnyId(given, false);
      return after(insert(run, [cancelRow(name, id)], parts), () => ({ id, queue: name }));
    }) as Outbox['cancel'],
    close: ((
      run: Run,
      queue: Parameters<Outbox['close']>[1],
      tag: string | readonly string[],
      given: CloseInOutbox,
    ) => {
      refuseDurability(given, 'close');
      const { queues, tags } = meantBy(queue, tag);
      const { forMs, reason, by } = closeAskOf(given);
      const untilMs = Math.round(parts.clock.wallMs()) + forMs;
      const rows = queues.map(({ name }) => closeRow(name, { tags, untilMs, reason, by }));
      return after(insert(run, rows, parts), () => ({ tags, untilMs }));
    }) as Outbox['close'],
    state: (run) => stateOf(run, dialect),
    list: (run, given = {}) => listRows({ run, dialect }, given),
    retry: (run, seqs) => retryRows({ run, dialect }, seqs),
    remove: (run, seqs) => removeRows({ run, dialect }, seqs),
  };
}

function partsOf(options: OutboxOptions): Parts {
  checkNames(options, OUTBOX_OPTIONS, 'createOutbox');
  const dialect = parseDialect(options.dialect);
  const orderOf = new Orders().next;
  return { dialect, clock: options.clock ?? systemClock, orderOf, ...parseLimits(options) };
}

interface Parts {
  readonly dialect: Dialect;
  readonly clock: Clock;
  /** Of debounce calls. */
  readonly orderOf: Orders['next'];
  readonly horizonMs: number;
  readonly dataBytesMax: number;
  /** The trace that a call belongs to, which its row carries over to Redis. */
  readonly carry?: SendSpan['carry'];
}

/** The call in its span, where the application traces its calls. */
const traced = (span: SendSpan | undefined, parts: Parts, call: (parts: Parts) => unknown): unknown =>
  span ? span.around(() => call({ ...parts, carry: span.carry })) : call(parts);

interface Given {
  readonly queue: QueueInput<unknown>;
  readonly data: unknown;
  readonly options: ScheduleOptions;
}

/** Checked, sealed and planned by the code that a client uses, and in this order. */
function schedule(run: Run, { queue, data, options }: Given, parts: Parts): unknown {
  refuseDurability(options, 'schedule');
  const to = queueOf(queue);
  const limits = limitsOf(to, parts);
  const write = (known: unknown, said = options) => {
    const plan = planJob(known, said, limits);
    return after(insert(run, [scheduleRow(to.name, plan)], parts), () => jobOf(to, plan));
  };
  const sealed = hasContent(to) ? seal(to, { name: options.name, data }) : data;
  if (!isPromise(sealed)) return write(sealed);
  refuseAtOnce(run, to.name, parts);
  const said = snapshot(options);
  return sealed.then((known) => write(known, said));
}

interface GivenMany {
  readonly queue: QueueInput<unknown>;
  readonly jobs: readonly BulkJob<unknown>[];
}

/** The same for each: nothing is written before all are right. */
function scheduleMany(run: Run, { queue, jobs }: GivenMany, parts: Parts): unknown {
  checkList(jobs, 'jobs');
  const to = queueOf(queue);
  const limits = { ...limitsOf(to, parts), newId: reserveJobIds(jobs.length) };
  const write = (known: readonly unknown[], said = jobs) => {
    const plans = said.map((job, at) => inPlace(at, () => planListed({ ...job, data: known[at] }, limits)));
    const rows = plans.map((plan) => scheduleRow(to.name, plan));
    return after(insertAll(run, rows, parts), () => plans.map((plan) => jobOf(to, plan)));
  };
  const sealed = jobs.map((job, at) =>
    inPlace(at, () => {
      checkJob(job);
      return hasContent(to) ? seal(to, job) : job.data;
    }),
  );
  if (!sealed.some(isPromise)) return write(sealed);
  refuseAtOnce(run, to.name, parts);
  const named = sealed.map((one, at) =>
    Promise.resolve(one).catch((error: unknown) => Promise.reject(atPlace(error, at))),
  );
  const said = jobs.map(({ data: _, ...options }) => ({ ...snapshot(options), data: undefined }));
  return Promise.all(named).then((known) => write(known, said));
}

function inPlace<Result>(at: number, act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw atPlace(error, at);
  }
}

const limitsOf = ({ delivery, jobs }: Queue<unknown>, { clock, ...limits }: Parts): PlanLimits => ({
  ...limits,
  nowMs: clock.wallMs(),
  delivery,
  jobs,
});

const jobOf = ({ name }: Queue<unknown>, { id, dueMs }: Plan): OutboxJob => ({ id, queue: name, dueMs });

/** SQLite takes 999 parameters in its older versions; a row has four. */
const ROWS_AT_ONCE = 200;

/** One statement after the other, as a connection takes them. Without a row one is sent all the same: it says whether `run` waits. */
function insertAll(run: Run, rows: readonly NewRow[], parts: Parts): Rows {
  const places = Array.from({ length: Math.ceil(rows.length / ROWS_AT_ONCE) }, (_, nth) => nth * ROWS_AT_ONCE);
  const insertFrom = (at: number) => insert(run, rows.slice(at, at + ROWS_AT_ONCE), parts);
  const [first, ...rest] = places;
  const ran = first === undefined ? nothing(run, parts) : insertFrom(first);
  if (isPromise(ran)) return insertRest(ran, rest, insertFrom);
  return rest.reduce<Rows>((before, at) => {
    rowsOf(before);
    return insertFrom(at);
  }, ran);
}

async function insertRest(first: PromiseLike<unknown>, rest: readonly number[], insertFrom: (at: number) => Rows) {
  let rows = rowsOf(await first);
  for (const at of rest) rows = rowsOf(await insertFrom(at));
  return rows;
}

function insert(run: Run, rows: readonly NewRow[], { dialect }: Parts): Rows {
  const values = rows.map(() => `(?, ?, ?, ?, ${NOW_MS[dialect]})`).join(', ');
  const text = `INSERT INTO duestream_outbox (verb, queue, key, body, made) VALUES ${values} RETURNING seq`;
  return send(run, dialect, { text, params: rows.flatMap(({ verb, queue, key, body }) => [verb, queue, key, body]) });
}

/** Whether the rows are there at once or later, the result comes when they are. */
function after<Result>(ran: Rows, result: () => Result): unknown {
  const told = (rows: unknown) => {
    rowsOf(rows);
    return result();
  };
  return isPromise(ran) ? ran.then(told) : told(ran);
}

/** A row that a codec delays would be written when a transaction that waits for nothing is over already. */
function refuseAtOnce(run: Run, queue: string, parts: Parts): void {
  const ran: unknown = nothing(run, parts);
  if (isPromise(ran)) {
    ran.then(undefined, () => undefined);
    return;
  }
  throw new DuestreamError(
    'bad-input',
    `the codec or the schema of queue ${queue} is async, and run returned its rows at once, so its transaction may be over before the row is written; allowed: a run that returns a promise, or a codec and a schema that do not`,
  );
}

const nothing = (run: Run, { dialect }: Parts): Rows => send(run, dialect, { text: 'SELECT 1 AS one', params: [] });

function refuseDurability(options: unknown, what: string): void {
  if (typeof options !== 'object' || options === null || Reflect.get(options, 'durability') === undefined) return;
  throw new DuestreamError(
    'bad-input',
    `durability is given to ${what} of an outbox; allowed: durability of the relay, which makes the call`,
  );
}
