/** What a client offers to look at jobs: one by its id, or those that a filter means. Checks come before anything is sent. */

import { type QueueInput, queueOf } from '../../job/queue.ts';
import type { InputOf } from '../../job/types.ts';
import { checkNames, wholeNumber } from '../../kernel/checks.ts';
import type { Calls } from '../calls/session.ts';
import { parseAnyId } from '../calls/settings.ts';
import { countJobs, type JobCount } from './count.ts';
import { type JobFilter, type JobListFilter, parseFilter, parseListFilter } from './filter.ts';
import { type JobListOptions, type JobPage, type ListAsk, listJobs } from './list.ts';
import type { JobResult } from './past.ts';
import type { JobReport, JobView } from './report.ts';

/** Looks at jobs: one by its id, or those that a filter means. */
export interface Queries {
  /**
   * The report of one job as it is stored: facts and timeline. Undefined when nothing is known about the job. A record that
   * cannot be read is said to be so (`readable: false`) and never thrown.
   *
   * @example const due = (await client.get(emails, id))?.dueMs;
   */
  get<Data>(
    queue: QueueInput<Data>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobReport<InputOf<Data>> | undefined>;
  /**
   * What is stored about the end of one job, at this moment; it never waits. With `history` and its `result` in the
   * queue's options `result` has what the handler returned; without, an end is known for the done window.
   *
   * @example
   * const end = await client.result<{ url: string }>(reports, id);
   * if (end.status === 'done' && end.result.kind === 'kept') console.log(end.result.value.url);
   */
  result<Result = unknown>(
    queue: QueueInput<unknown>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobResult<Result>>;
  /**
   * A page of the jobs that the filter means: of those that are not over, unless `state` says more. What stays where it is
   * while you go from page to page is in exactly one of them. Scheduled jobs come by due time, jobs of a tag by id, others in
   * the order of their turn, in each partition. Jobs that are over come behind them, the latest end first.
   *
   * Jobs that are over come from the history of their queue. Without one they are known within the done window, and dead jobs as
   * long as their dead letters are there; then the only filter is `state`.
   *
   * @throws DuestreamError `bad-input`, also for a filter that takes a history in a queue without one · `moved` for a cursor
   * from before the queue was resized
   * @example
   * const { jobs, cursor } = await client.list(mail, { tag: `user:${user}`, limit: 50 });
   * const failed = await client.list(mail, { state: ['dead', 'expired'], ended: { from: '2026-03-01T00:00:00Z' } });
   */
  list<Data>(queue: QueueInput<Data>, options?: JobListOptions): Promise<JobPage<InputOf<Data>>>;
  /** All of them, page by page. @example for await (const { id } of client.jobs(mail, { tag: 'user:42' })) console.log(id); */
  jobs<Data>(queue: QueueInput<Data>, filter?: JobListFilter): AsyncGenerator<JobView<InputOf<Data>>, void, undefined>;
  /**
   * How many there are, each counted once, also while jobs go from state to state: each partition is counted at one moment.
   * A large one of which jobs are counted by tag, set, name or id, or with more than 500 jobs in ready, is looked through; where
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
}

const LIST_NAMES = ['limit', 'cursor'];
const PAGE_MAX = 1000;

export function queriesOf({ runChecked }: Pick<Calls, 'runChecked'>): Queries {
  const page = (read: () => ListAsk) => runChecked(read, ({ finding }, ask) => listJobs(finding, ask));
  return {
    get: (queue, id, options = {}) =>
      runChecked(
        () => one(queue, id, bareIn(options, 'get')),
        ({ get }, given) => get(given.to, given.id, given),
      ),
    result: <Result>(queue: QueueInput<unknown>, id: string, options: { readonly bare?: boolean } = {}) =>
      runChecked(
        () => one(queue, id, bareIn(options, 'result')),
        // The queue's handlers are the only witness of the type.
        ({ past }, given) => past.result(given.to, given.id, given) as Promise<JobResult<Result>>,
      ),
    list: <Data>(queue: QueueInput<Data>, options: JobListOptions = {}) =>
      // The queue's definition is the only witness of the type of data, as in `get`.
      page(() => listAskOf(queue, options)) as Promise<JobPage<InputOf<Data>>>,
    async *jobs<Data>(queue: QueueInput<Data>, filter: JobListFilter = {}) {
      let cursor: string | undefined;
      do {
        const of = () => ({
          queue: queueOf(queue),
          filter: parseListFilter(filter, { owner: 'jobs' }),
          limit: 100,
          cursor,
        });
        const found = await page(of);
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

function listAskOf(queue: QueueInput<unknown>, options: JobListOptions): ListAsk {
  const filter = parseListFilter(options, { owner: 'list', others: LIST_NAMES });
  const limit = wholeNumber(options.limit ?? 100, { what: 'limit', min: 1, max: PAGE_MAX });
  return { queue: queueOf(queue), filter, limit, cursor: options.cursor };
}

function countAskOf(queue: QueueInput<unknown>, filter: JobFilter, owner: string) {
  return { queue: queueOf(queue), filter: parseFilter(filter, { owner }) };
}

/** One job of a queue, checked. */
function one<Data>(queue: QueueInput<Data>, id: string, bare = false) {
  return { to: queueOf(queue), id: parseAnyId(id, bare), bare };
}

function bareIn(options: { readonly bare?: boolean }, method: string): boolean | undefined {
  checkNames(options, ['bare'], method, 'bad-input');
  return options.bare;
}
