/** `ls <queue>`: a page of jobs in one state, all partitions merged; with a filter, a page of the jobs that it means. */
import { type Command, Option } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { DuestreamError } from '../../../core/errors.ts';
import type { JobState } from '../../../core/state.ts';
import { JOB_STATES, JOBS_OFFSET_MAX, jobsPage, type ListedJob } from '../../../operations/jobs-page.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { table } from '../../terminal/text.ts';
import { relative, second } from '../../terminal/when.ts';
import { type FilterFlags, isFilterGiven, withFilterFlags } from '../find/filter-flags.ts';
import { listByFilter } from '../find/list.ts';

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

export const ls: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list the jobs in one state, earliest due time first, or latest end first if they are over')
    .addOption(
      new Option('--state <state>', 'jobs in this state (default: scheduled; with a filter all that live)').choices(
        JOB_STATES,
      ),
    );
  withFilterFlags(command, { states: [] })
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--cursor <text>', 'with a filter: go on where the page before has ended')
    .option('--offset <n>', 'without a filter: skip this many first', wholeNumber(0, JOBS_OFFSET_MAX))
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
  const { namespace } = session.config;
  const jobs = await withRedis(session, (redis) => jobsPage({ redis, namespace }, queue, { state, limit, offset }));
  session.out.answer({ queue, state, jobs }, () => {
    if (jobs.length === 0) return [`no ${state} jobs${offset > 0 ? ` after the first ${offset}` : ''}`];
    const nowMs = systemClock.wallMs();
    const rows = jobs.map((job) => [
      job.id + (job.bare ? ' (bare)' : ''),
      job.name,
      dueText(job, nowMs),
      job.attempts,
      ...(state === 'running' ? [job.owner] : []),
      ...(job.overMs === undefined ? [] : [relative(job.overMs, nowMs)]),
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

/** Of a job that is over nobody needs it to the second. */
function dueText({ dueMs, overMs }: ListedJob, nowMs: number): string | undefined {
  if (dueMs === undefined) return undefined;
  return overMs === undefined ? second(dueMs, nowMs) : relative(dueMs, nowMs);
}
