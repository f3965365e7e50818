/** What a client offers to look at jobs: one by its id, or those that a filter means. Checks come before anything is sent. */

import { type QueueInput, queueOf } from '../../job/queue.ts';
import type { InputOf } from '../../job/types.ts';
import { checkNames, wholeNumber } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Calls } from '../calls/calls.ts';
import { type ClientSettings, parseAnyId } from '../calls/settings.ts';
import { countJobs, type JobCount } from './count.ts';
import { type JobFilter, type JobSearchFilter, parseFilter, parseListFilter, parseSearch } from './filter.ts';
import { type FoundJobs, findIn, findJobs, type SearchAsk, type SearchParts } from './find.ts';
import { type JobListOptions, type JobPage, type ListAsk, listJobs, type PageOptions } from './list.ts';
import type { Get, JobReport, JobView } from './report.ts';
import type { WalkParts } from './walk.ts';

/** Looks at jobs: one by its id, or those that a filter means. */
export interface Queries {
  /**
   * The report of one job as it is stored: facts and timeline. Undefined when nothing is known about the job. A record that
   * cannot be read is said to be so (`readable: false`) and never thrown. It never waits for a job to end: `wait` does. What the
   * handler returned is in `result`, where the queue keeps a history with `result`. Without a history an end is known for the
   * done window.
   *
   * @example
   * const due = (await client.get(emails, id))?.dueMs;
   * const report = await client.get(reports, id);
   * if (report?.state === 'done' && report.result?.kind === 'kept') console.log(report.result.value);
   */
  get<Data>(
    queue: QueueInput<Data>,
    id: string,
    options?: { readonly bare?: boolean },
  ): Promise<JobReport<InputOf<Data>> | undefined>;
  /**
   * A page of the jobs that the filter means: of those that are not over, unless `state` says more. What stays where it is
   * while you go from page to page is in exactly one of them. Scheduled jobs come by due time, jobs of a tag by id, others in
   * the order of their turn, in each partition; with `sort: 'due'` all of them by due time, whatever their partition. Jobs that are over come behind them, the latest end first.
   *
   * Jobs that are over come from the history of their queue. Without one they are known within the done window, and dead jobs as
   * long as their dead letters are there; then the only filter is `state`.
   *
   * Await the call for one page, or iterate it for all jobs: then it reads `limit` jobs at a time.
   *
   * @throws DuestreamError `bad-input`, also for a filter that takes a history in a queue without one · `moved` for a cursor
   * from before the queue was resized
   * @example
   * const { jobs, cursor } = await client.list(mail, { tag: `user:${user}`, limit: 50 });
   * const failed = await client.list(mail, { state: ['dead', 'expired'], ended: { from: '2026-03-01T00:00:00Z' } });
   * for await (const { id } of client.list(mail, { tag: 'user:42' })) console.log(id);
   */
  list<Data>(queue: QueueInput<Data>, options?: JobListOptions): JobListing<InputOf<Data>>;
  /**
   * A page of the jobs that the filter means in all queues, or in those that it names: jobs that are not over by their due time,
   * and behind them those that are over, the latest end first. What stays where it is while you go from page to page is in
   * exactly one of them. A queue that cannot be looked through is named in `unread`, and the others go on.
   *
   * Await the call for one page, or iterate it for all jobs, as with `list`.
   *
   * @throws DuestreamError `bad-input` · `unavailable` where no queue answers
   * @example
   * const { jobs, unread } = await client.find({ tag: `user:${user}`, limit: 50 });
   * const [job] = (await client.find({ id: 'payment:42' })).jobs;
   * const night = { from: '2026-03-01T02:30:00Z', to: '2026-03-01T02:31:00Z' };
   * for await (const { queue, id } of client.find({ ran: night })) console.log(queue, id);
   */
  find(options?: JobFindOptions): JobFinding;
  /**
   * How many there are, each counted once, also while jobs go from state to state: each partition is counted at one moment.
   * A large one of which jobs are counted by tag, set, name or id, or with more than 500 jobs in ready, is looked through; where
   * jobs move meanwhile there are at least so many, and `atLeast` says so. How many are scheduled, also within a range of
   * due times, costs nothing.
   *
   * 0 means that no job lives any more which lived when the call began and which the filter means all the while. A job that
   * is scheduled during the call may be missing, and with a `state` or `due` one that only then gets there.
   *
   * @example
   * const { count, atLeast } = await client.count(mail, { tag: 'user:42' });
   * while ((await client.count(mail)).count > 0) await new Promise((resolve) => setTimeout(resolve, 1000));
   */
  count(queue: QueueInput<unknown>, filter?: JobFilter): Promise<JobCount>;
}

/** A page of jobs, to await; or all of them, to iterate. */
export type JobListing<Data = unknown> = Promise<JobPage<Data>> & AsyncIterable<JobView<Data>>;
/** A page of jobs of several queues, to await; or all of them, to iterate. */
export type JobFinding = Promise<FoundJobs> & AsyncIterable<JobView>;

/** Which jobs `find` means, and how the call goes on. */
export interface JobFindOptions extends JobSearchFilter, PageOptions {}

const LIST_NAMES = ['limit', 'cursor', 'sort'];
const PAGE_NAMES = ['limit', 'cursor'];
const PAGE_MAX = 1000;

interface QueryParts {
  readonly finding: WalkParts;
  readonly get: Get;
  /** Where the queues are listed. @throws DuestreamError `wrong-schema` */
  readonly place: () => Promise<Pick<SearchParts, 'redis' | 'namespace'>>;
}

export function queriesOf(
  { clock, budgetMs }: Pick<ClientSettings, 'clock' | 'budgetMs'>,
  { runChecked }: Pick<Calls<QueryParts>, 'runChecked'>,
): Queries {
  return {
    get: (queue, id, options = {}) =>
      runChecked(
        () => one(queue, id, bareIn(options, 'get')),
        ({ get }, given) => get(given.to, given.id, given),
      ),
    list: <Data>(queue: QueueInput<Data>, options: JobListOptions = {}) =>
      // The queue's definition is the only witness of the type of data, as in `get`.
      listingOf(
        (read) => runChecked(read, ({ finding }, ask) => (ask.sort ? listByDue : listJobs)(finding, ask)),
        () => listAskOf(queue, options),
      ) as JobListing<InputOf<Data>>,
    find: (options = {}) =>
      listingOf(
        (read) =>
          runChecked(read, async ({ finding: { reader }, place }, ask) =>
            findJobs({ reader, clock, budgetMs, ...(await place()) }, ask),
          ),
        () => findAskOf(options),
      ),
    count: (queue, filter = {}) =>
      runChecked(
        () => countAskOf(queue, filter),
        ({ finding }, ask) => countJobs(finding, ask),
      ),
  };
}

/** The input is read once, at the call: what becomes of the caller's objects between two pages does not matter. */
function listingOf<Ask extends Pick<ListAsk, 'cursor'>, Found extends JobPage>(
  page: (read: () => Ask) => Promise<Found>,
  read: () => Ask,
): Promise<Found> & AsyncIterable<JobView> {
  let ask: Ask | undefined;
  const first = page(() => {
    ask = read();
    return ask;
  });
  // Who iterates late, or never, hears of it then.
  first.catch(() => undefined);
  async function* all() {
    let found = await first;
    yield* found.jobs;
    while (ask && found.cursor !== undefined) {
      const next = { ...ask, cursor: found.cursor };
      found = await page(() => next);
      yield* found.jobs;
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: all });
}

function listAskOf(queue: QueueInput<unknown>, options: JobListOptions): ListAsk & Pick<JobListOptions, 'sort'> {
  const { sort } = options;
  const filter = parseListFilter(options, { owner: 'list', others: LIST_NAMES });
  if (sort !== undefined && sort !== 'due')
    throw new DuestreamError('bad-input', `sort is ${show(sort)}; allowed: due`);
  return { queue: queueOf(queue), filter, limit: limitIn(options), cursor: options.cursor, sort };
}

function findAskOf(options: JobFindOptions): SearchAsk {
  const parsed = parseSearch(options, { owner: 'find', others: PAGE_NAMES });
  return { ...parsed, limit: limitIn(options), cursor: options.cursor };
}

const limitIn = ({ limit = 100 }: PageOptions): number => wholeNumber(limit, { what: 'limit', min: 1, max: PAGE_MAX });

/** The same page in the order of due times. */
const listByDue = (
  { reader, callPartitions }: WalkParts,
  { queue, filter: given, ...rest }: ListAsk,
): Promise<JobPage> => {
  const { ended = { fromMs: undefined, toMs: undefined } } = given;
  const ask = { ...rest, filter: { ...given, ended, id: undefined, ran: undefined }, wanted: [queue.name] };
  return callPartitions(queue, (layout, policy) => findIn(reader, { layout, policy, ask }));
};

function countAskOf(queue: QueueInput<unknown>, filter: JobFilter) {
  return { queue: queueOf(queue), filter: parseFilter(filter, { owner: 'count' }) };
}

/** One job of a queue, checked. */
function one<Data>(queue: QueueInput<Data>, id: string, bare = false) {
  return { to: queueOf(queue), id: parseAnyId(id, bare), bare };
}

function bareIn(options: { readonly bare?: boolean }, method: string): boolean | undefined {
  checkNames(options, ['bare'], method, 'bad-input');
  return options.bare;
}
