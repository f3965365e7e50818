/** `ls <queue> --state`: a page of jobs in one state, all partitions merged. */
import { type Command, Option } from 'commander';
import { systemClock } from '../core/clock.ts';
import { decodeHeader, decodeRecord, memberOf } from '../core/codec.ts';
import { DEFAULT_NAME } from '../core/job.ts';
import type { JobState } from '../core/state.ts';
import type { Redis } from '../redis/connect.ts';
import { type Letter, letters, page, peek, type Row } from '../redis/inspect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type Exit, type Register, whole, withExamples } from './desk.ts';
import { partitionsOfQueue, type Session, withRedis } from './session.ts';
import { table } from './text.ts';
import { moment } from './when.ts';

const STATES: readonly JobState[] = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'dead'];

interface Flags {
  readonly state: JobState;
  readonly limit: number;
  readonly offset: number;
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

export const ls: Register = (parent, desk) => {
  const command = parent
    .command('ls <queue>')
    .description('list jobs in one state: by due, or the latest end first')
    .addOption(new Option('--state <state>', 'which jobs').choices(STATES).default('scheduled'))
    .option('--limit <n>', 'at most so many', whole(1, 1000), 50)
    .option('--offset <n>', 'leave out so many first', whole(0, 10_000), 0)
    .action((queue: string, flags: Flags, command: Command) =>
      desk.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, ['duestream ls emails', 'duestream ls emails --state running --limit 10 --json']);
};

async function run(session: Session, queue: string, { state, limit, offset }: Flags): Promise<Exit> {
  const jobs = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const pages = await Promise.all(refs.map((ref) => listOf(redis, ref, { state, limit: limit + offset })));
    return pages
      .flat()
      .sort(orderOf(state))
      .slice(offset, offset + limit);
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

/** A page of one partition. What the page does not say is asked per job; a job may have moved on meanwhile. */
async function listOf(
  redis: Redis,
  ref: PartitionRef,
  { state, limit }: { readonly state: JobState; readonly limit: number },
): Promise<readonly Listed[]> {
  if (state === 'dead') return (await letters(redis, ref, { limit })).map((letter) => buried(ref, letter));
  const rows = await page(redis, ref, { state, limit });
  return Promise.all(rows.map((row) => detailed(redis, ref, row)));
}

async function detailed(redis: Redis, ref: PartitionRef, row: Row): Promise<Listed> {
  const seen = row.state === 'scheduled' ? undefined : await peek(redis, ref, memberOf(row.id, row));
  const story = seen === undefined || 'kind' in seen ? undefined : seen;
  return {
    id: row.id,
    bare: row.bare,
    partition: ref.partition,
    state: row.state,
    name: row.name ?? (row.state === 'scheduled' ? DEFAULT_NAME : nameOf(story?.record)),
    dueMs: row.dueMs ?? story?.run?.nextDueMs,
    attempts: story?.run?.attempts ?? story?.stub?.attempts,
    owner: story?.run?.owner,
    overMs: story?.overMs,
  };
}

function buried({ partition }: PartitionRef, { id, bare, record, attempts, atMs }: Letter): Listed {
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

/** Live jobs by due, soonest first; jobs that are over by their end, latest first. */
function orderOf(state: JobState): (a: Listed, b: Listed) => number {
  const live = state === 'scheduled' || state === 'ready' || state === 'running';
  return (a, b) => (live ? (a.dueMs ?? 0) - (b.dueMs ?? 0) : (b.overMs ?? 0) - (a.overMs ?? 0));
}
