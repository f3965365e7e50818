/** `ls <queue>`: a page of jobs in one state, all partitions merged; with a filter, a page of the jobs that it means. */
import { type Command, Option } from 'commander';
import { JOB_STATES, jobsPage, type ListedJob } from '../../../inspect/jobs-page.ts';
import type { JobState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
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
  readonly cursor: string | undefined;
}

interface Given extends Omit<FilterFlags, 'state'> {
  readonly state?: JobState;
  readonly limit: number;
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
    .option('--cursor <text>', 'go on where the page before has ended')
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

function run(session: Session, queue: string, { state, ...flags }: Given): Promise<Exit> {
  const { limit, cursor, ...filter } = flags;
  if (!isFilterGiven(filter)) return listState(session, queue, { state: state ?? 'scheduled', limit, cursor });
  const live = LIVE.find((one) => one === state);
  if (state !== undefined && live === undefined) {
    throw new DuestreamError('usage', `--state ${state} does not go with a filter; allowed: ${LIVE.join(', ')}`);
  }
  return listByFilter(session, queue, { ...filter, limit, cursor, ...(live && { state: live }) });
}

async function listState(session: Session, queue: string, { state, ...asked }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const page = await withRedis(session, (redis) => jobsPage({ redis, namespace }, queue, { state, ...asked }));
  const { jobs, cursor } = page;
  session.out.answer({ queue, state, jobs, cursor }, () => {
    const more = cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];
    if (jobs.length === 0) return [`no ${state} jobs${asked.cursor === undefined ? '' : ' on this page'}`, ...more];
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
    const head = ['id', 'name', 'due', 'attempts', ...(state === 'running' ? ['worker'] : over)];
    return [...table(session.out.paint, head, rows), ...more];
  });
  return 0;
}

/** Of a job that is over nobody needs it to the second. */
function dueText({ dueMs, overMs }: ListedJob, nowMs: number): string | undefined {
  if (dueMs === undefined) return undefined;
  return overMs === undefined ? second(dueMs, nowMs) : relative(dueMs, nowMs);
}
