/** What a producer offers to find jobs, and to change all that a filter means. Checks come before anything is sent. */

import { type QueueInput, queueOf, wholeNumber } from '../../job/queue.ts';
import type { InputOf } from '../../job/types.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { durationMs } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { checkNames } from '../../kernel/option-names.ts';
import { createLevels } from '../calls/durability.ts';
import { dueOf } from '../calls/plan.ts';
import type { Calls } from '../calls/session.ts';
import type { ClientSettings } from '../calls/settings.ts';
import {
  type CancelledWhere,
  type ChangedWhere,
  changeWhere,
  type WhereAsk,
  type WhereOptions,
} from '../jobs/by-filter.ts';
import { cancelling, foundToCancel } from '../jobs/cancel.ts';
import { type ChangeIn, modeOf, type NewDue, requestOf } from '../jobs/changes.ts';
import { editing, sealed } from '../jobs/edit.ts';
import { type RescheduleTarget, rescheduling } from '../jobs/reschedule.ts';
import type { Parts } from '../parts.ts';
import { countJobs, type JobCount } from './count.ts';
import { parseCursor } from './cursor.ts';
import { checkNotEmpty, type Filter, filterKey, type JobFilter, type ListState, parseFilter } from './filter.ts';
import { type JobListOptions, type JobPage, type ListAsk, listJobs } from './list.ts';
import type { JobView } from './report.ts';

/** Jobs by what they are, not by their ids. */
export interface Finding {
  /**
   * A page of the jobs that are not over and that the filter means. What stays where it is while you go from page to page
   * is in exactly one of them. Scheduled jobs come by due time, jobs of a tag by id, others in the order of their turn,
   * in each partition.
   *
   * @throws DuestreamError `bad-input` · `moved` for a cursor from before the queue was resized
   * @example
   * const { jobs, cursor } = await client.list(mail, { tag: `user:${user}`, limit: 50 });
   */
  list<Data>(queue: QueueInput<Data>, options?: JobListOptions): Promise<JobPage<InputOf<Data>>>;
  /** All of them, page by page. @example for await (const { id } of client.jobs(mail, { tag: 'user:42' })) console.log(id); */
  jobs<Data>(queue: QueueInput<Data>, filter?: JobFilter): AsyncGenerator<JobView<InputOf<Data>>, void, undefined>;
  /**
   * How many there are, each counted once, also while jobs go from state to state: each partition is counted at one moment.
   * A large one of which jobs are counted by tag, name or id, or with more than 500 jobs in ready, is looked through; where
   * jobs move meanwhile there are at least so many, and `tally` says so. How many are scheduled, also within a range of
   * due times, costs nothing.
   *
   * 0 means that no job lives any more which lived when the call began and which the filter means all the while. A job that
   * is scheduled during the call may be missing, and with a `state` or `due` one that only then gets there.
   *
   * @example while ((await client.count(mail)) > 0) await new Promise((resolve) => setTimeout(resolve, 1000));
   */
  count(queue: QueueInput<unknown>, filter?: JobFilter): Promise<number>;
  /** The same, and whether there may be more. @example const { count, atLeast } = await client.tally(mail, { tag: 'user:42' }); */
  tally(queue: QueueInput<unknown>, filter?: JobFilter): Promise<JobCount>;
  /**
   * Cancels every job that the filter means, and asks those that run to stop. A job that changes meanwhile is skipped and
   * counted. Safe to start again; with a `cursor` in the result there are more.
   *
   * @throws DuestreamError `bad-input`, also for a filter that says nothing
   * @example
   * const { changed, skipped } = await client.cancelWhere(reminders, { tag: `invoice:${invoice}` });
   */
  cancelWhere(queue: QueueInput<unknown>, filter: JobFilter, options?: WhereOptions): Promise<CancelledWhere>;
  /**
   * Gives every waiting job that the filter means this due time; those that have it already are left out. A `delay` counts
   * from the call that begins: a call that goes on from its `cursor` gives the same due time.
   *
   * @example await client.rescheduleWhere(mail, { tag: 'campaign:7' }, { at: '2026-03-01T09:00:00Z' });
   */
  rescheduleWhere(
    queue: QueueInput<unknown>,
    filter: JobFilter,
    due: NewDue,
    options?: WhereOptions,
  ): Promise<ChangedWhere>;
  /**
   * Changes every waiting job that the filter means: data, name, options, tags. New data is checked and encoded for each
   * job, as in `edit`: one whose schema does not take it is skipped (`refused`).
   *
   * @throws DuestreamError `bad-input`, also for data that does not fit the `name` of the filter or of the change
   * @example await client.editWhere(mail, { name: 'digest' }, { attempts: 2 }, { dryRun: true });
   */
  editWhere<Data>(
    queue: QueueInput<Data>,
    filter: JobFilter,
    change: Omit<ChangeIn<Data>, 'ifDigest' | 'ifMatch'>,
    options?: WhereOptions,
  ): Promise<ChangedWhere>;
  /** Makes every scheduled job that the filter means due now. @example await client.runNowWhere(mail, { tag: 'user:42' }); */
  runNowWhere(queue: QueueInput<unknown>, filter: JobFilter, options?: WhereOptions): Promise<ChangedWhere>;
}

const LIST_NAMES = ['limit', 'cursor'];
const WHERE_NAMES = ['dryRun', 'limit', 'cursor', 'onProgress', 'signal', 'durability'];
const PAGE_MAX = 1000;
const WAITING: readonly ListState[] = ['scheduled', 'ready'];

type Where = Pick<WhereAsk<never>, 'queue' | 'filter' | 'dryRun' | 'limit' | 'cursor' | 'onProgress' | 'signal'>;

type Run = Pick<Calls, 'runChecked'>;
type Looks = 'list' | 'jobs' | 'count' | 'tally';

export const findingOf = (settings: ClientSettings, calls: Run): Finding => ({
  ...looksOf(calls),
  ...changesOf(settings, calls),
});

function looksOf({ runChecked }: Run): Pick<Finding, Looks> {
  const page = (read: () => ListAsk) => runChecked(read, ({ finding }, ask) => listJobs(finding, ask));
  return {
    list: <Data>(queue: QueueInput<Data>, options: JobListOptions = {}) =>
      // The queue's definition is the only witness of the type of data, as in `get`.
      page(() => listAskOf(queue, options)) as Promise<JobPage<InputOf<Data>>>,
    async *jobs<Data>(queue: QueueInput<Data>, filter: JobFilter = {}) {
      let cursor: string | undefined;
      do {
        const found = await page(() => ({ ...countAskOf(queue, filter, 'jobs'), limit: 100, cursor }));
        yield* found.jobs as JobPage<InputOf<Data>>['jobs'];
        cursor = found.cursor;
      } while (cursor !== undefined);
    },
    count: (queue, filter = {}) =>
      runChecked(
        () => countAskOf(queue, filter, 'count'),
        async ({ finding }, ask) => (await countJobs(finding, ask)).count,
      ),
    tally: (queue, filter = {}) =>
      runChecked(
        () => countAskOf(queue, filter, 'tally'),
        ({ finding }, ask) => countJobs(finding, ask),
      ),
  };
}

function changesOf(settings: ClientSettings, { runChecked }: Run): Omit<Finding, Looks> {
  const levelIn = createLevels(settings);
  const changed = async (call: Promise<CancelledWhere>): Promise<ChangedWhere> => {
    const { requested: _, ...result } = await call;
    return result;
  };
  return {
    cancelWhere: (queue, filter, options = {}) =>
      runChecked(
        () => whereOf({ queue, filter, options, owner: 'cancelWhere' }),
        ({ finding }, ask) =>
          changeWhere(finding, { ...ask, act: cancelling(finding), itemOf: foundToCancel, means: 'cancel' }),
        () => levelIn(options),
      ),
    rescheduleWhere: (queue, filter, due, options = {}) => {
      const calledMs = settings.clock.monotonicMs();
      const read = () => ({
        ask: whereOf({ queue, filter, options, owner: 'rescheduleWhere', states: WAITING }),
        due,
        mode: modeOf(due),
        calledMs,
      });
      return changed(runChecked(read, rescheduleAll, () => levelIn(options)));
    },
    editWhere: (queue, filter, change, options = {}) => {
      const read = () => ({
        ask: whereOf({ queue, filter, options, owner: 'editWhere', states: WAITING }),
        change: changeOf(change, { queue: queueOf(queue), dataBytesMax: settings.dataBytesMax }),
      });
      return changed(runChecked(read, editAll, () => levelIn(options)));
    },
    runNowWhere: (queue, filter, options = {}) =>
      changed(
        runChecked(
          () => whereOf({ queue, filter, options, owner: 'runNowWhere', states: ['scheduled'] }),
          ({ finding }, ask) =>
            changeWhere(finding, {
              ...ask,
              act: rescheduling(finding),
              itemOf: (found): RescheduleTarget => ({ id: found.id, found, dueMs: 0, mode: 'earlier' }),
              means: 'run now',
            }),
          () => levelIn(options),
        ),
      ),
  };
}

async function rescheduleAll(
  { finding, server, limits }: Parts,
  { ask, due, mode, calledMs }: { ask: Where; due: NewDue; mode: ReturnType<typeof modeOf>; calledMs: number },
): Promise<CancelledWhere> {
  await server.settle();
  const askedMs = dueOf(due, limits(calledMs));
  // Of a delay the call that began has made an instant.
  const means = ['reschedule', mode, due.delay === undefined ? askedMs : durationMs(due.delay, 'delay'), due.zone];
  const { cursor, filter } = ask;
  const begun = cursor === undefined ? undefined : parseCursor(cursor, filterKey(filter, means)).dueMs;
  const dueMs = begun ?? askedMs;
  return changeWhere(finding, {
    ...ask,
    act: rescheduling(finding),
    itemOf: (found) => ({ id: found.id, found, dueMs, mode }),
    means,
    dueMs,
    isDone: (job) => job.dueMs === dueMs,
  });
}

async function editAll(
  { finding }: Parts,
  { ask, change }: { ask: Where; change: ReturnType<typeof changeOf> },
): Promise<CancelledWhere> {
  const { queue, filter } = ask;
  // Said before anything is read, where all the jobs will have one name.
  const name = change.name ?? filter.name;
  if (name !== undefined) await sealed(queue, name, change);
  return changeWhere(finding, {
    ...ask,
    act: editing(finding, queue),
    itemOf: (found) => ({ id: found.id, found, change }),
    means: ['edit', change],
  });
}

function listAskOf(queue: QueueInput<unknown>, options: JobListOptions): ListAsk {
  const filter = parseFilter(options, { owner: 'list', others: LIST_NAMES });
  const limit = wholeNumber(options.limit ?? 100, { what: 'limit', min: 1, max: PAGE_MAX });
  return { queue: queueOf(queue), filter, limit, cursor: options.cursor };
}

function countAskOf(queue: QueueInput<unknown>, filter: JobFilter, owner: string) {
  return { queue: queueOf(queue), filter: parseFilter(filter, { owner }) };
}

function whereOf(asked: {
  readonly queue: QueueInput<unknown>;
  readonly filter: JobFilter;
  readonly options: WhereOptions;
  readonly owner: string;
  readonly states?: readonly ListState[];
}): Where {
  const { options, owner, states } = asked;
  const filter: Filter = parseFilter(asked.filter, { owner, ...(states && { states }) });
  checkNotEmpty(asked.filter, owner);
  checkNames(options, WHERE_NAMES, owner, 'bad-input');
  const { dryRun = false, limit, cursor, signal } = options;
  return {
    queue: queueOf(asked.queue),
    filter,
    dryRun,
    cursor,
    onProgress: quietly('onProgress', options.onProgress),
    signal,
    limit:
      limit === undefined
        ? Number.POSITIVE_INFINITY
        : wholeNumber(limit, { what: 'limit', min: 1, max: 1_000_000_000 }),
  };
}

/** `ifDigest` and `ifMatch` are about one job. */
function changeOf(change: object, of: Parameters<typeof requestOf>[1]) {
  const condition = ['ifDigest', 'ifMatch'].find((name) => name in change);
  if (condition !== undefined) {
    throw new DuestreamError('bad-input', `${condition} is given; allowed: an edit of one job, by its id`);
  }
  return requestOf({ ...change, id: '-' }, of).change;
}
