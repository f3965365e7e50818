/** Waiting for the end of jobs: of one, of a list, or of all that a filter means. `end-watch.ts` hears of the ends. */
import { memberOf } from '../../job/codec.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { checkNames } from '../../kernel/checks.ts';
import { type DurationInput, durationMs, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Calls } from '../calls/calls.ts';
import { type ClientSettings, parseAnyId } from '../calls/settings.ts';
import { checkList } from '../calls/target.ts';
import { checkNotEmpty, type Filter, filterKey, type JobFilter, parseFilter } from '../query/filter.ts';
import type { JobResult, Past } from '../query/past.ts';
import { pageOf } from '../query/walk.ts';
import type { ActParts } from './act.ts';
import { type Awaited, type EndNews, type EndSource, endsOf } from './end-watch.ts';

/** How a job ended; or that nobody knows; or that the time is up and the job is not over. */
export type JobEnd<Result = unknown> = { readonly id: string } & (
  | (Exclude<JobResult<Result>, { readonly status: 'pending' | 'unknown' }> & {
      /** The number of its last start; undefined for a job that was never started. */
      readonly token: string | undefined;
    })
  | { readonly status: 'unknown' | 'timeout' }
);

/** How long a call waits. */
export interface WaitOptions {
  /** 0 (one look) to `1d`. Default `30s`. */
  readonly timeout?: DurationInput | undefined;
  /** Ends the call, which rejects with the reason of the signal. The job goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** Waits for jobs to end. */
export interface Waits {
  /**
   * Waits until a job is over, at most for `timeout`: `done` with what its handler returned, where its queue has a `history`
   * with `result`; `dead`, `cancelled`, `expired`; `unknown` where nothing is known of the job; `timeout` where it is not over.
   * It resolves as the job ends, within 5 s where a message was lost. A job that is tried again is not over. One that is
   * delivered at most once is over before its handler begins.
   *
   * Where ends are not remembered (`done.window` 0), an end of which the message was lost is `unknown`.
   *
   * @throws DuestreamError `bad-input` · `stopped` when the client is closed meanwhile; or the reason of the signal
   * @example
   * const { id } = await client.schedule(reports, { month: '2026-03' });
   * const end = await client.wait<{ url: string }>(reports, id, { timeout: '30s' });
   * if (end.status === 'done' && end.result.kind === 'kept') console.log(end.result.value.url);
   */
  wait<Result = unknown>(queue: QueueInput<unknown>, id: string, options?: WaitOptions): Promise<JobEnd<Result>>;
  /** The same for up to 10,000 jobs, ends in the order of the list. @example const ends = await client.wait(mail, ids); */
  wait<Result = unknown>(
    queue: QueueInput<unknown>,
    ids: readonly string[],
    options?: WaitOptions,
  ): Promise<readonly JobEnd<Result>[]>;
  /**
   * The end of every job that the filter means when the call begins, at most 10,000, each as it comes. When the time is up,
   * those that are not over come as `timeout`.
   *
   * It is no third form of `wait`: that answers with a promise, and `await` of a generator would wait for nothing.
   *
   * @throws DuestreamError `bad-input`, also for a filter that says nothing or means more jobs
   * @example
   * for await (const { id, status } of client.ends(mail, { tag: 'campaign:7' }, { timeout: '10m' })) console.log(id, status);
   */
  ends<Result = unknown>(
    queue: QueueInput<unknown>,
    filter: JobFilter,
    options?: WaitOptions,
  ): AsyncGenerator<JobEnd<Result>, void, undefined>;
}

const OPTION_NAMES = ['timeout', 'signal'];
const TIMEOUT_MS_MAX = 86_400_000;
/** Jobs that one call waits for. */
export const WAIT_JOBS_MAX = 10_000;
const PAGE_JOBS = 100;

interface Waiting {
  readonly queue: Queue;
  readonly endMs: number;
  readonly signal: AbortSignal | undefined;
}

interface WaitingParts {
  /** What finds jobs. */
  readonly finding: ActParts;
  readonly past: Pick<Past, 'result'>;
  /** What a call that waits for ends hears and asks. */
  readonly ends: EndSource;
}

export function waitsOf(
  { clock }: Pick<ClientSettings, 'clock'>,
  { runChecked, run }: Pick<Calls<WaitingParts>, 'runChecked' | 'run'>,
): Waits {
  const waitingOf = (queue: QueueInput<unknown>, options: WaitOptions, owner: string): Waiting => ({
    queue: queueOf(queue),
    endMs: clock.monotonicMs() + timeoutIn(options, owner),
    signal: options.signal,
  });

  async function* ends(queue: QueueInput<unknown>, given: JobFilter, options: WaitOptions = {}) {
    const read = () => ({ ...waitingOf(queue, options, 'ends'), filter: filterOf(given) });
    // What is wrong is said, and the jobs are found, before anybody waits.
    const { parts, ask } = await runChecked(read, async (made, { filter, ...waiting }) => ({
      parts: made,
      ask: { ...waiting, jobs: await jobsOf(made, waiting.queue, filter) },
    }));
    for await (const news of endsOf(parts.ends, ask)) yield await run((made) => told(made, ask.queue, news));
  }

  return {
    wait: ((queue, target: string | readonly string[], options = {}) =>
      runChecked(
        () => ({ ...waitingOf(queue, options, 'wait'), ids: idsOf(target) }),
        async (parts, { ids, ...waiting }) => {
          const all = await waitFor(parts, waiting, ids);
          return typeof target === 'string' ? all[0] : all;
        },
      )) as Waits['wait'],
    // The queue's handlers are the only witness of the type, as in `result`.
    ends: ends as Waits['ends'],
  };
}

/** @throws DuestreamError `bad-input` */
function timeoutIn(options: WaitOptions, owner: string): number {
  checkNames(options, OPTION_NAMES, owner, 'bad-input');
  const timeoutMs = durationMs(options.timeout ?? '30s', 'timeout');
  if (timeoutMs <= TIMEOUT_MS_MAX) return timeoutMs;
  throw new DuestreamError('bad-input', `timeout is ${show(options.timeout)}; allowed: 0 to 1d`);
}

function idsOf(target: string | readonly string[]): readonly string[] {
  if (typeof target === 'string') return [parseAnyId(target, false)];
  checkList(target, 'ids');
  if (target.length > WAIT_JOBS_MAX) throw tooMany(`${target.length} ids are given`);
  return target.map((id) => parseAnyId(id, false));
}

function filterOf(given: JobFilter): Filter {
  const filter = parseFilter(given, { owner: 'ends' });
  checkNotEmpty(given, 'ends');
  return filter;
}

const tooMany = (given: string) =>
  new DuestreamError('bad-input', `${given}; allowed: at most ${WAIT_JOBS_MAX} jobs, for which one call waits`);

async function waitFor(
  parts: WaitingParts,
  waiting: Waiting,
  ids: readonly string[],
): Promise<readonly (JobEnd | undefined)[]> {
  const jobs = [...new Set(ids)].map((id): Awaited => ({ id, bare: false, member: memberOf(id) }));
  const ends = new Map<string, JobEnd>();
  for await (const news of endsOf(parts.ends, { ...waiting, jobs })) {
    ends.set(news.job.id, await told(parts, waiting.queue, news));
  }
  return ids.map((id) => ends.get(id));
}

/** The jobs that a filter means now. */
async function jobsOf({ finding }: WaitingParts, queue: Queue, filter: Filter): Promise<readonly Awaited[]> {
  const jobs = new Map<string, Awaited>();
  const key = filterKey(filter);
  let from: Parameters<typeof pageOf>[1]['from'];
  do {
    const page = await pageOf(finding, { queue, filter, key, limit: PAGE_JOBS, from });
    for (const { id, bare, member, ref } of page.rows) {
      jobs.set(`${ref.partition} ${member}`, { id, bare, member, partition: ref.partition });
    }
    if (jobs.size > WAIT_JOBS_MAX) throw tooMany('the filter means more jobs');
    from = page.next;
  } while (from !== undefined);
  return [...jobs.values()];
}

/** What is stored of an end is read as it was told, and may be of a newer life or gone: then only the outcome is known. */
async function told({ past }: WaitingParts, queue: Queue, news: EndNews): Promise<JobEnd> {
  const { id, bare } = news.job;
  if (news.kind !== 'over') return { id, status: news.kind };
  const token = news.token === '0' ? undefined : news.token;
  const stored = await past.result(queue, id, { bare });
  if (stored.status === news.over) return { id, token, ...stored } as JobEnd;
  return { id, token, ...nothingOf(news.over) };
}

function nothingOf(status: 'done' | 'dead' | 'cancelled' | 'expired') {
  if (status === 'done') return { status, overMs: undefined, result: { kind: 'none' as const } };
  if (status !== 'dead') return { status, overMs: undefined };
  return { status, overMs: undefined, reason: undefined, error: undefined, deadLetter: undefined };
}
