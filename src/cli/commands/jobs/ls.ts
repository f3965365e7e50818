/** `ls <queue>`: a page of jobs in one state, all partitions merged; with a filter, a page of the jobs that it means. */
import { type Command, Option } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { decodeRecord, memberOf } from '../../../core/codec.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { DEFAULT_NAME } from '../../../core/job.ts';
import { decodeHeader } from '../../../core/record-header.ts';
import type { JobState } from '../../../core/state.ts';
import type { Redis } from '../../../redis/connection/connect.ts';
import { type DeadLetter, peek } from '../../../redis/inspect.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { everyDeadLetter, page, type Row } from '../../../redis/pages.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { table } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { type FilterFlags, isFilterGiven, withFilterFlags } from '../find/filter-flags.ts';
import { listByFilter } from '../find/list.ts';

const STATES: readonly JobState[] = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'];

const LIVE = ['scheduled', 'ready', 'running'] as const;

interface Flags {
  readonly state: JobState;
  readonly limit: number;
  readonly offset: number;
}

interface Given extends Omit<FilterFlags, 'state'> {
  readonly state?: JobState;
  readonly limit: number;
  readonly offset?: number;
  readonly cursor?: string;
}

interface Listed {
  readonly id: string;
  readonly bare: boolean;
  readonly partition: number;
  readonly state: JobState;
  readonly name: string | undefined;
  readonly dueMs: number | undefined;
  readonly attempts: number | undefined;
  readonly owner: string | undefined;
  readonly overMs: number | undefined;
}

interface Found {
  readonly ref: PartitionRef;
  readonly job: Listed;
}

/** A reply may hold a whole record. */
const PEEKS_AT_ONCE = 16;

export const ls: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list the jobs in one state, earliest due time first, or latest end first if they are over')
    .addOption(
      new Option('--state <state>', 'jobs in this state (default: scheduled; with a filter all that live)').choices(
        STATES,
      ),
    );
  withFilterFlags(command, { states: [] })
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--cursor <text>', 'with a filter: go on where the page before has ended')
    .option('--offset <n>', 'without a filter: skip this many first', wholeNumber(0, 10_000))
    .action((queue: string, flags: Given, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream ls emails',
    'duestream ls emails --state running --limit 10 --json',
    'duestream ls emails --tag user:42',
    'duestream ls emails --due-from now --due-to +1h --name welcome',
  ]);
};

function run(session: Session, queue: string, { state, offset, ...flags }: Given): Promise<Exit> {
  const { limit, cursor, ...filter } = flags;
  if (!isFilterGiven(filter) && cursor === undefined) {
    return listState(session, queue, { state: state ?? 'scheduled', limit, offset: offset ?? 0 });
  }
  if (offset !== undefined) throw new DuestreamError('usage', '--offset does not go with a filter; use --cursor');
  const live = LIVE.find((one) => one === state);
  if (state !== undefined && live === undefined) {
    throw new DuestreamError('usage', `--state ${state} does not go with a filter; allowed: ${LIVE.join(', ')}`);
  }
  return listByFilter(session, queue, { ...filter, limit, cursor, ...(live && { state: live }) });
}

async function listState(session: Session, queue: string, { state, limit, offset }: Flags): Promise<Exit> {
  const jobs = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    return detailed(redis, await pageOf(redis, refs, { state, limit, offset }));
  });
  session.out.answer({ queue, state, jobs }, () => {
    if (jobs.length === 0) return [`no ${state} jobs${offset > 0 ? ` after the first ${offset}` : ''}`];
    const nowMs = systemClock.wallMs();
    const rows = jobs.map((job) => [
      job.id + (job.bare ? ' (bare)' : ''),
      job.name,
      job.dueMs === undefined ? undefined : moment(job.dueMs, nowMs),
      job.attempts,
      ...(state === 'running' ? [job.owner] : []),
      ...(job.overMs === undefined ? [] : [moment(job.overMs, nowMs)]),
    ]);
    const over = jobs.some(({ overMs }) => overMs !== undefined) ? ['over'] : [];
    return table(
      session.out.paint,
      ['id', 'name', 'due', 'attempts', ...(state === 'running' ? ['worker'] : over)],
      rows,
    );
  });
  return 0;
}

/** One partition is entered at the offset; of several each may hold the whole page, and all that comes before it. */
async function pageOf(redis: Redis, refs: readonly PartitionRef[], flags: Flags): Promise<readonly Found[]> {
  const { state, limit, offset } = flags;
  const [only, ...others] = refs;
  if (only !== undefined && others.length === 0) return listOf(redis, only, flags);
  let merged: readonly Found[] = [];
  for (const ref of refs) {
    const own = await listOf(redis, ref, { state, limit: offset + limit, offset: 0 });
    merged = [...merged, ...own].sort(orderOf(state)).slice(0, offset + limit);
  }
  return merged.slice(offset);
}

async function listOf(redis: Redis, ref: PartitionRef, { state, limit, offset }: Flags): Promise<readonly Found[]> {
  if (state !== 'dead') return (await page(redis, ref, { state, limit, offset })).map((row) => listed(ref, row));
  const found: Found[] = [];
  let skip = offset;
  for await (const deadLetter of everyDeadLetter(redis, ref, offset + limit)) {
    if (skip > 0) skip -= 1;
    else found.push({ ref, job: buried(ref, deadLetter) });
  }
  return found;
}

/** What the page does not say is asked per job, a few at a time; a job may have moved on meanwhile. */
async function detailed(redis: Redis, found: readonly Found[]): Promise<readonly Listed[]> {
  const jobs: Listed[] = [];
  for (let from = 0; from < found.length; from += PEEKS_AT_ONCE) {
    const some = found.slice(from, from + PEEKS_AT_ONCE);
    jobs.push(...(await Promise.all(some.map((one) => withStory(redis, one)))));
  }
  return jobs;
}

async function withStory(redis: Redis, { ref, job }: Found): Promise<Listed> {
  if (job.state === 'scheduled' || job.state === 'dead') return job;
  const seen = await peek(redis, ref, memberOf(job.id, job));
  const story = seen === undefined || 'kind' in seen ? undefined : seen;
  return {
    ...job,
    name: job.name ?? nameOf(story?.record),
    attempts: story?.run?.attempts ?? story?.tombstone?.attempts,
    owner: story?.run?.owner,
  };
}

function listed(ref: PartitionRef, { id, bare, state, name, dueMs, overMs }: Row): Found {
  const known = state === 'scheduled' ? (name ?? DEFAULT_NAME) : name;
  const { partition } = ref;
  return {
    ref,
    job: { id, bare, partition, state, name: known, dueMs, attempts: undefined, owner: undefined, overMs },
  };
}

function buried({ partition }: PartitionRef, { id, bare, record, attempts, atMs }: DeadLetter): Listed {
  return {
    id,
    bare,
    partition,
    state: 'dead',
    name: nameOf(record),
    dueMs: decodeHeader(record)?.askedDueMs,
    attempts,
    owner: undefined,
    overMs: atMs,
  };
}

function nameOf(record: string | undefined): string | undefined {
  if (record === undefined) return undefined;
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}

/** Live jobs by due time, earliest first; jobs that are over by their end, latest first. */
function orderOf(state: JobState): (a: Found, b: Found) => number {
  const live = state === 'scheduled' || state === 'ready' || state === 'running';
  return ({ job: a }, { job: b }) => (live ? (a.dueMs ?? 0) - (b.dueMs ?? 0) : (b.overMs ?? 0) - (a.overMs ?? 0));
}
