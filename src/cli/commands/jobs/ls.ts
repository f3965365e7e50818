/** `ls <queue> --state`: a page of jobs in one state, all partitions merged. */
import { type Command, Option } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import type { JobState } from '../../../core/state.ts';
import { JOB_STATES, JOBS_OFFSET_MAX, jobsPage } from '../../../operations/jobs-page.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { table } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';

interface Flags {
  readonly state: JobState;
  readonly limit: number;
  readonly offset: number;
}

export const ls: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list the jobs in one state, earliest due time first, or latest end first if they are over')
    .addOption(new Option('--state <state>', 'which jobs').choices(JOB_STATES).default('scheduled'))
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--offset <n>', 'skip this many first', wholeNumber(0, JOBS_OFFSET_MAX), 0)
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, ['duestream ls emails', 'duestream ls emails --state running --limit 10 --json']);
};

async function run(session: Session, queue: string, { state, limit, offset }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const jobs = await withRedis(session, (redis) => jobsPage({ redis, namespace }, queue, { state, limit, offset }));
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
