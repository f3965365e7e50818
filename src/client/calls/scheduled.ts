/**
 * What became of a schedule call: a result per job, or an error that says which jobs Redis has confirmed. What a script
 * refuses is data until here; here it becomes a status where it is an answer, and an error where it is a refusal.
 */

import { groupOf } from '../../job/labels.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError, Indeterminate, knownByMark, messageOf } from '../../kernel/errors.ts';
import type { ScheduleReply } from '../../redis/scripts/replies.ts';
import type { Plan } from './plan.ts';

/** What became of one job that was scheduled. */
export interface Scheduled {
  readonly id: string;
  readonly queue: string;
  /**
   * `scheduled`: the job is new · `updated`: a job that waits has what this call names · `replaced`: it took the place of a job
   * that waited · `exists`: a job of this id lives and was kept; with `update` its record cannot be read, or others changed it each
   * time · `running`: a job of this id runs and was not changed · `already`: the same call (same id, due time and
   * content) was carried out before, for example because its reply was lost. A cancel ends what was scheduled before it: after
   * it the same call makes a new job. With `update`: the job is as this call says, or it is over and stays so · `closed`: a tag of it is closed, and nothing
   * was changed. With `debounce` also `merged`: the job that waits has this data and the later due time · `kept`: the job is
   * due, or waits for another start, and has this data when it starts · `behind`: the job runs, and its next life, with this
   * data, begins when it has ended · `overtaken`: a newer call has come.
   */
  readonly status:
    | ('scheduled' | 'updated' | 'replaced' | 'exists' | 'running' | 'already' | 'closed')
    | ('merged' | 'kept' | 'behind' | 'overtaken');
  /**
   * Epoch ms by the primary's clock from which the job may run; with `exists`, `already`, and each status of `ifExists: 'update'` where a job is there, that of this job. With `behind`
   * the job starts again at the end of its run, or at that time where it is later.
   */
  readonly dueMs: number;
  /** With `already`: how the job ended, if it is over. */
  readonly over?: OverState;
  /** With `closed`: the tag that is closed for the longest, and its end in epoch ms by the clock of Redis. */
  readonly closed?: { readonly tag: string; readonly untilMs: number };
}

/**
 * The `cause` of an error of `schedule` and `scheduleMany` that came from Redis: which jobs Redis has confirmed, and which
 * not. Its own `cause` is the error of Redis. To repeat a job, use its `id` and `at: new Date(dueMs)` instead of its
 * delay: that is the same call, and safe whatever became of the first one. A `debounce` call is made again as it was: that is
 * a newer call with the same data.
 *
 * @example
 * try { await client.scheduleMany(emails, jobs) }
 * catch (error) {
 *   if (!(error instanceof DuestreamError && error.cause instanceof Unconfirmed)) throw error;
 *   const rest = error.cause.unconfirmed.map(({ index, id, dueMs }) =>
 *     ({ ...jobs[index], id, delay: undefined, at: new Date(dueMs) }));
 * }
 */
export class Unconfirmed extends Error {
  static {
    knownByMark(Unconfirmed, 'Unconfirmed');
  }

  override readonly name = 'Unconfirmed';
  /** Results of the jobs that Redis has confirmed, in the order given. Not enumerable, as the others. */
  readonly confirmed: readonly Scheduled[];
  /** The others, in the order given; `error` is missing where nothing was tried. */
  readonly unconfirmed: readonly UnconfirmedJob[];

  constructor(parts: {
    readonly confirmed: readonly Scheduled[];
    readonly unconfirmed: readonly UnconfirmedJob[];
    readonly cause: unknown;
  }) {
    const { confirmed, unconfirmed, cause } = parts;
    const all = confirmed.length + unconfirmed.length;
    const first = messageOf(cause);
    super(all === 1 ? first : `${unconfirmed.length} of ${all} jobs are not confirmed; the first: ${first}`, { cause });
    this.confirmed = confirmed;
    this.unconfirmed = unconfirmed;
    // An error that nobody catches is printed with all that can be enumerated: hundreds of lines for one refusal.
    for (const name of ['confirmed', 'unconfirmed']) Object.defineProperty(this, name, { enumerable: false });
  }
}

/** A job that Redis has not confirmed. */
export interface UnconfirmedJob {
  /** Its place among the jobs given. */
  readonly index: number;
  readonly id: string;
  readonly dueMs: number;
  readonly error?: unknown;
}

/** What of a plan stands in its result. */
type Answered = Pick<Plan, 'id' | 'record' | 'dueMs' | 'strict'> & { readonly bytes?: number };

/** A reply as the caller's result. @throws DuestreamError `exists`, `queue-full`, `group-full`, `no-set` or `bad-input` */
export function scheduledOf(
  queue: string,
  plan: Answered,
  reply: Exclude<ScheduleReply, { kind: 'later' | 'held' }>,
): Scheduled {
  const { id, dueMs } = plan;
  switch (reply.kind) {
    case 'ok':
      return { id, queue, status: 'scheduled', dueMs: reply.dueMs ?? dueMs };
    case 'replaced':
      return { id, queue, status: 'replaced', dueMs: reply.dueMs ?? dueMs };
    case 'running':
      return { id, queue, status: 'running', dueMs };
    case 'already':
      return { id, queue, status: 'already', dueMs: reply.dueMs ?? dueMs, ...(reply.over ? { over: reply.over } : {}) };
    case 'merged':
    case 'kept':
      return { id, queue, status: reply.kind, dueMs: reply.dueMs };
    case 'behind':
    case 'overtaken':
      return { id, queue, status: reply.kind, dueMs };
    case 'closed':
      return { id, queue, status: 'closed', dueMs, closed: { tag: reply.tag, untilMs: reply.untilMs } };
    case 'exists':
      if (!plan.strict) return { id, queue, status: 'exists', dueMs: reply.dueMs };
      throw new DuestreamError(
        'exists',
        `job ${id} of queue ${queue} exists already, due ${instant(reply.dueMs)}; nothing was changed`,
      );
    case 'bad-due':
      throw new DuestreamError(
        'bad-input',
        `job ${id} is due ${instant(dueMs)}, past the horizon; the clock of Redis says ${instant(reply.nowMs)}`,
      );
    case 'full':
      throw queueFull(queue, plan, reply);
    case 'too-large':
      throw new DuestreamError(
        'bad-input',
        `the record of job ${id} has ${plan.bytes} bytes, more than Redis may take: store the data elsewhere and schedule a reference`,
      );
    case 'no-set':
      throw new DuestreamError(
        'no-set',
        `job ${id} is to be a member of a set that is not there in queue ${queue}: nobody began it, or its callback was made; nothing was changed`,
      );
    case 'bad-member':
    case 'bad-record':
    case 'uncounted':
      throw new DuestreamError(
        'bad-input',
        `job ${id} was refused by Redis as ${reply.kind}: it is not of wire version 1`,
      );
  }
}

/** What became of the edit of an update, in the words of `Edited`. */
export interface Updated {
  readonly status: 'edited' | 'already' | 'changed' | 'running' | 'over' | 'unknown' | 'unreadable' | 'indeterminate';
  readonly dueMs?: number | undefined;
  readonly over?: OverState | undefined;
}

/**
 * The end of an update as the caller's result.
 *
 * @param there the id, and when the job was due that was found
 * @throws Indeterminate where nobody knows whether the job was changed · DuestreamError `unavailable`
 */
export function updatedOf(
  queue: string,
  { id, dueMs: foundMs }: Pick<Plan, 'id' | 'dueMs'>,
  { status, dueMs = foundMs, over }: Updated,
): Scheduled {
  switch (status) {
    case 'edited':
      return { id, queue, status: 'updated', dueMs };
    case 'already':
    case 'running':
      return { id, queue, status, dueMs };
    case 'over':
      return { id, queue, status: 'already', dueMs, ...(over ? { over } : {}) };
    case 'changed':
    case 'unreadable':
      return { id, queue, status: 'exists', dueMs };
    case 'unknown':
      throw new DuestreamError(
        'unavailable',
        `job ${id} of queue ${queue} ended and was forgotten each time that it was to be updated; nothing was changed: repeat the same call`,
      );
    case 'indeterminate':
      throw new Indeterminate(
        'a reply of Redis was lost, and others have changed the job since, so nobody knows whether it was updated: repeat the same call',
      );
  }
}

/** Each partition has its share, and a job has one partition it may go to: others may have room. */
export function queueFull(
  queue: string,
  { id, record }: Pick<Plan, 'id' | 'record'>,
  { what, limit, there }: Extract<ScheduleReply, { kind: 'full' }>,
): DuestreamError {
  if (what === 'group') {
    const group = groupOf(id) ?? '';
    return new DuestreamError(
      'group-full',
      `group ${group} of queue ${queue} is full: ${there} of its jobs wait or run; allowed by its maxPending: ${limit}. Nothing was changed. Let jobs end, cancel some, or set the limit with "duestream groups set ${queue} ${group} --max-pending <n>"`,
    );
  }
  const isOf =
    what === 'pending'
      ? `where job ${id} belongs ${there} jobs wait or run; allowed by maxPending: ${limit}`
      : `where job ${id} belongs the records take ${there} bytes, and its own has ${Buffer.byteLength(record)}; allowed by maxBytes: ${limit}`;
  const flag = what === 'pending' ? '--max-pending' : '--max-bytes';
  return new DuestreamError(
    'queue-full',
    `queue ${queue} is full: ${isOf}. Nothing was changed. Let jobs end, cancel some, or set the limit with "duestream queues set ${queue} ${flag} <n>"`,
  );
}

/** A failed call as one of its jobs' error: same kind, and enough said to repeat the same call. */
export function failureOf(queue: string, plan: Pick<Plan, 'id' | 'dueMs'>, error: unknown): unknown {
  if (!(error instanceof DuestreamError)) return error;
  const { id, dueMs } = plan;
  const cause = new Unconfirmed({ confirmed: [], unconfirmed: [{ index: 0, id, dueMs, error }], cause: error });
  return sameKind(error, `job ${id} of queue ${queue}, due ${instant(dueMs)}: ${error.message}`, cause);
}

/** An error with another text that is still recognised by code and class. */
export function sameKind(error: DuestreamError, message: string, cause: unknown): DuestreamError {
  return error instanceof Indeterminate
    ? new Indeterminate(message, { cause })
    : new DuestreamError(error.code, message, { cause });
}

const instant = (epochMs: number) => (Math.abs(epochMs) <= 8.64e15 ? new Date(epochMs).toISOString() : String(epochMs));
