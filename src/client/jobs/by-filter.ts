/**
 * A change of every job that a filter means: page by page, and each job only if it is still what was read.
 *
 *   page of jobs ──▶ by partition ──▶ calls of bounded size, each job with what was seen of it ──▶ counts
 *
 * A job that was changed, started or ended in between is skipped and counted by its reason. The call can be cut short at
 * any moment and started again, from its cursor or from the beginning: what is done is not done twice. Only a
 * shift is: it counts from the due time that it has given.
 */
import type { Queue } from '../../job/queue.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { wholeNumber } from '../../kernel/checks.ts';
import { DuestreamError, messageOf } from '../../kernel/errors.ts';
import type { Found } from '../../redis/read/look.ts';
import type { Confirming, DurabilityOption } from '../calls/durability.ts';
import { asOne, isMoved } from '../calls/partition-calls.ts';
import { sameKind } from '../calls/scheduled.ts';
import { HELD_PLACES_MAX, type Turn } from '../calls/turns.ts';
import { parseCursor } from '../query/cursor.ts';
import { checkNotEmpty, type Filter, type FilterUse, filterKey, type JobFilter, parseFilter } from '../query/filter.ts';
import type { ListAsk } from '../query/list.ts';
import { type Page, pageOf, type WalkParts } from '../query/walk.ts';
import type { Act, Decision, Outcome, SkipReason, Target } from './act.ts';

/** How far a change of all that a filter means has come: of jobs, or of dead letters. */
export interface Progress<Reason extends string = SkipReason> {
  /** How many the filter meant. */
  readonly matched: number;
  /** Of those, how many were changed; 0 in a dry run. */
  readonly changed: number;
  /** Of those, the others, by reason. */
  readonly skipped: Readonly<Partial<Record<Reason, number>>>;
  /** How many places were looked at. */
  readonly scanned: number;
  /** Where to go on if this is not the end: an option of the same call. */
  readonly cursor: string | undefined;
}

/** What became of a change of all that a filter means. With a `cursor` it is not done: there are more jobs. */
export interface ChangedJobs extends Progress {
  readonly dryRun: boolean;
  /** The first 1000 of the jobs that were changed; of a dry run, that would be looked at. */
  readonly ids: readonly string[];
}

/** A job that a filter means, and its due times: before and after. */
export interface JobMove {
  readonly id: string;
  /** Epoch ms; undefined: it was due, and waited for a worker. */
  readonly wasMs: number | undefined;
  readonly dueMs: number;
  /** Of the job as it is now: before the move in a dry run, else after it. For `ifMatch` of the same move by id, or back. */
  readonly etag: string;
}

/** What became of another due time for all that a filter means. */
export interface MovedJobs extends ChangedJobs {
  /** The first 1000 of the jobs that were moved; of a dry run, that would be moved. */
  readonly moves: readonly JobMove[];
}

/** What became of a cancel of all that a filter means. */
export interface CancelledJobs extends ChangedJobs {
  /** Of the matched jobs, how many run and were asked to stop: they are not cancelled yet. */
  readonly requested: number;
}

/** Options of a change of all that a filter means. */
export interface FilterOptions extends DurabilityOption {
  /** Changes nothing, and says how many jobs are meant and which. */
  readonly dryRun?: boolean | undefined;
  /** Ends after so many jobs that were meant. Default: none, all of them. */
  readonly limit?: number | undefined;
  /** Goes on where an earlier call with the same filter and change has ended. A `delay` then gives the due time of that call. */
  readonly cursor?: string | undefined;
  /** Called after each page of at most 100 jobs. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Ends the call after the page under way; the result has a cursor then. */
  readonly signal?: AbortSignal | undefined;
}

export interface FilterAsk<Item extends Target, Result = unknown> extends Omit<ListAsk, 'limit' | 'filter'> {
  readonly filter: Filter;
  readonly dryRun: boolean;
  readonly limit: number;
  readonly act: Act<Item, Result>;
  /** What the verb needs to know of a job that the walk has read. */
  readonly itemOf: (found: Found) => Item;
  /** What the call does, and with what: a cursor holds for that alone. */
  readonly means: unknown;
  /** The due time that it gives, fixed when it began. */
  readonly dueMs?: number | undefined;
  /** Jobs that are so already are not met, because a walk by due time meets those that it has moved. */
  readonly isDone?: ((job: Found) => boolean) | undefined;
  /** Of a change of due times: where the job goes. Without a result, in a dry run; undefined: it stays. */
  readonly moveOf?: ((job: Found, result: Result | undefined) => JobMove | undefined) | undefined;
  readonly onProgress: FilterOptions['onProgress'];
  readonly signal: AbortSignal | undefined;
  /** Later calls of the client on the queue wait for it. */
  readonly turn?: Turn | undefined;
}

/** The names of those options. */
export const FILTER_OPTIONS = ['dryRun', 'limit', 'cursor', 'onProgress', 'signal', 'durability'];
const LIMIT_MAX = 1_000_000_000;

const PAGE_JOBS = 100;
const IDS_MAX = 1000;
/** The ids that a script takes as a text. Other ids are put by foreign producers, and become dead letters when they are due. */
const READABLE = /^[!-~]{1,200}$/;

/** A call by filter as it was asked for, checked: all but what the verb does. */
export type Asked = Omit<FilterAsk<never>, 'act' | 'itemOf' | 'means' | 'dueMs' | 'isDone' | 'moveOf' | 'turn'>;

/** @throws DuestreamError `bad-input`, also for a filter that says nothing */
export function filterAskOf(
  {
    queue,
    filter: given,
    options,
  }: {
    readonly queue: Queue;
    readonly filter: JobFilter;
    readonly options: FilterOptions;
  },
  { owner, states }: Pick<FilterUse, 'owner' | 'states'>,
): Asked {
  const filter = parseFilter(given, { owner, ...(states && { states }) });
  checkNotEmpty(given, owner);
  const { dryRun = false, limit, cursor, signal } = options;
  return {
    queue,
    filter,
    dryRun,
    cursor,
    onProgress: quietly('onProgress', options.onProgress),
    signal,
    limit:
      limit === undefined ? Number.POSITIVE_INFINITY : wholeNumber(limit, { what: 'limit', min: 1, max: LIMIT_MAX }),
  };
}

interface Tally {
  matched: number;
  changed: number;
  requested: number;
  scanned: number;
  cursor: string | undefined;
  readonly skipped: Partial<Record<SkipReason, number>>;
  readonly ids: string[];
  readonly moves: JobMove[];
}

/** @throws DuestreamError as its parts do; the message then has the cursor to go on with */
export async function onFilter<Item extends Target, Result>(
  given: WalkParts & Confirming,
  ask: FilterAsk<Item, Result>,
): Promise<CancelledJobs & MovedJobs> {
  const parts = { ...given, callPartitions: asOne(given.callPartitions) };
  const { cursor, filter, dryRun, means, dueMs } = ask;
  const key = filterKey(filter, means);
  const tally: Tally = { matched: 0, changed: 0, requested: 0, scanned: 0, cursor, skipped: {}, ids: [], moves: [] };
  let from = cursor === undefined ? undefined : parseCursor(cursor, key);
  for (let isEnd = false; !isEnd && tally.matched < ask.limit && ask.signal?.aborted !== true; ) {
    try {
      const limit = Math.min(PAGE_JOBS, ask.limit - tally.matched);
      const page = await pageOf(parts, { queue: ask.queue, filter, key, dueMs, meansHeld: true, limit, from });
      await changePage(parts, { ask, page, tally });
      from = page.next;
      isEnd = page.next === undefined;
      tally.cursor = page.cursor;
      if (tally.scanned >= HELD_PLACES_MAX) ask.turn?.end();
    } catch (error) {
      throw unfinished(error, tally);
    }
    ask.onProgress?.(progressOf(tally));
  }
  // What an earlier call has changed is not met any more.
  if (!dryRun) await confirmed(parts.confirm?.(ask.queue), tally);
  const { requested, ids, moves } = tally;
  return { ...progressOf(tally), requested, dryRun, ids, moves };
}

async function confirmed(confirming: Promise<void> | undefined, tally: Tally): Promise<void> {
  try {
    await confirming;
  } catch (error) {
    throw unfinished(error, tally);
  }
}

async function changePage<Item extends Target, Result>(
  parts: WalkParts,
  { ask, page, tally }: { readonly ask: FilterAsk<Item, Result>; readonly page: Page; readonly tally: Tally },
): Promise<void> {
  const { dryRun, isDone, queue, act, itemOf, moveOf } = ask;
  const jobs = isDone ? page.rows.filter((job) => !isDone(job)) : page.rows;
  tally.scanned += page.scanned;
  if (dryRun) {
    tally.matched += jobs.length;
    note(tally, jobs);
    for (const job of jobs) noteMove(tally, moveOf?.(job, undefined));
    return;
  }
  for (const ref of new Set(jobs.map((job) => job.ref))) {
    const here = jobs.filter((job) => job.ref === ref);
    const some = here.filter(({ member }) => READABLE.test(member));
    for (const job of here) if (!some.includes(job)) count(tally, job, 'unreadable');
    const decisions = await parts.callPartitions(queue, async (layout, policy) => {
      // Another layout: these jobs live elsewhere now, and the walk has to begin again.
      if (layout[ref.partition]?.layoutGeneration !== ref.layoutGeneration) throw resized(queue.name);
      const answer = await act({ ref, items: some.map(itemOf) }, policy);
      if (isMoved(answer)) throw resized(queue.name);
      return answer;
    });
    for (const [at, job] of some.entries()) decided(tally, { job, decision: decisions[at], moveOf });
  }
}

function decided<Result>(
  tally: Tally,
  {
    job,
    decision,
    moveOf,
  }: Pick<FilterAsk<never, Result>, 'moveOf'> & {
    readonly job: Found;
    readonly decision: Decision<Result> | undefined;
  },
): void {
  count(tally, job, decision?.outcome ?? 'unknown');
  if (decision?.outcome === 'done') noteMove(tally, moveOf?.(job, decision.result));
}

function count(tally: Tally, job: Found, outcome: Outcome): void {
  tally.matched += 1;
  if (outcome === 'requested') tally.requested += 1;
  if (outcome === 'done') tally.changed += 1;
  if (outcome === 'done' || outcome === 'requested') note(tally, [job]);
  else tally.skipped[outcome] = (tally.skipped[outcome] ?? 0) + 1;
}

function note({ ids }: Tally, jobs: readonly Found[]): void {
  for (const { id } of jobs) if (ids.length < IDS_MAX) ids.push(id);
}

function noteMove({ moves }: Tally, move: JobMove | undefined): void {
  if (move && moves.length < IDS_MAX) moves.push(move);
}

const progressOf = ({ matched, changed, scanned, cursor, skipped }: Tally): Progress => ({
  matched,
  changed,
  scanned,
  cursor,
  skipped: { ...skipped },
});

const resized = (queue: string) => new DuestreamError('moved', `queue ${queue} was resized during the call`);

/** What is done stays done; what the page under way has done is not counted. */
function unfinished(error: unknown, { matched, changed, cursor }: Tally): unknown {
  if (!(error instanceof DuestreamError)) return error;
  const how = cursor === undefined ? 'start it again without a cursor' : `go on with the cursor ${cursor}`;
  const message = `${messageOf(error)}; ${matched} jobs were looked at and ${changed} changed before: ${how}`;
  return sameKind(error, message, error);
}
