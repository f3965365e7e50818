/** `schedules trigger <name>` and `schedules backfill <name>`: jobs of a schedule out of turn; its own instants go on. */

import type { Command } from 'commander';
import { countOf } from '../../../access/audit.ts';
import type { FiredJob } from '../../../client/schedules/schedules.ts';
import { newJobId } from '../../../job/new-job-id.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { type Session, withSchedules } from '../../session.ts';
import { instantOf } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/text.ts';
import { iso } from '../../terminal/when.ts';

interface BackfillFlags {
  readonly from: string;
  readonly to: string;
  readonly dryRun?: boolean;
  readonly limit?: number;
}

export const schedulesTrigger: Register = (parent, runner) => {
  const command = parent
    .command('trigger <name>')
    .description('run one extra job of a schedule now')
    .option('--id <id>', 'an id for this run; the same id twice makes one job')
    .action((name: string, flags: { readonly id?: string }, command: Command) =>
      runner.run(command, (session) => runTrigger(session, name, flags)),
    );
  withExamples(command, ['duestream schedules trigger nightly', 'duestream schedules trigger nightly --id ticket:42']);
};

export const schedulesBackfill: Register = (parent, runner) => {
  const command = parent
    .command('backfill <name>')
    .description('run the jobs of a range of past instants now, in their order')
    .requiredOption(
      '--from <instant>',
      'the first instant: -2d, 2026-03-01, or ISO 8601; a date means the beginning of that day in the zone',
    )
    .requiredOption(
      '--to <instant>',
      'the last instant, included: now, -2h, 2026-03-08, or ISO 8601; a date means the end of that day in the zone',
    )
    .option('--dry-run', 'only show what would be scheduled')
    .option('--limit <n>', 'refuse a range with more instants (default: 1000)', wholeNumber(1, 100_000))
    .action((name: string, flags: BackfillFlags, command: Command) =>
      runner.run(command, (session) => runBackfill(session, name, flags)),
    );
  withExamples(command, [
    'duestream schedules backfill nightly --from 2026-03-01 --to 2026-03-08 --dry-run',
    'duestream schedules backfill nightly --from -2d --to now',
  ]);
};

async function runTrigger(session: Session, name: string, flags: { readonly id?: string }): Promise<Exit> {
  // Made here, so that a call whose reply is lost is repeated with the same id.
  const id = flags.id ?? newJobId();
  const job = await withSchedules(session, (schedules) => schedules.trigger(name, { id }));
  session.changes.push({ verb: 'schedules.trigger', target: name, count: countOf([job], 'scheduled') });
  session.out.answer(job, () => [line`${job.id}  ${job.status}  ${SAID[job.status]}`]);
  return 0;
}

async function runBackfill(session: Session, name: string, flags: BackfillFlags): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  const { dryRun = false, limit } = flags;
  const range = { from: instantOf(flags.from, '--from', nowMs), to: instantOf(flags.to, '--to', nowMs) };
  const jobs = await withSchedules(session, (schedules) => schedules.backfill(name, { ...range, dryRun, limit }));
  session.changes.push({ verb: 'schedules.backfill', target: name, count: countOf(jobs, 'scheduled') });
  session.out.answer({ name, dryRun, jobs: jobs.map(withInstant) }, () => [
    ...table(
      session.out.paint,
      ['instant', 'status', 'id'],
      jobs.map(({ atMs, status, id }) => [atMs === undefined ? '-' : iso(atMs), status, id]),
    ),
    summary(jobs, dryRun),
  ]);
  return 0;
}

const withInstant = ({ id, atMs, status }: FiredJob) => ({
  id,
  status,
  at: atMs === undefined ? undefined : iso(atMs),
});

function summary(jobs: readonly FiredJob[], dryRun: boolean): string {
  const count = (status: FiredJob['status']) => jobs.filter((job) => job.status === status).length;
  if (jobs.length === 0) return 'the rule has no instant in this range';
  if (dryRun) return line`${counted(jobs.length, 'job')} would be scheduled; nothing was done`;
  const others = count('exists') + count('over');
  const rest = others === 0 ? '' : `; ${others} were not run again`;
  return line`${counted(count('scheduled'), 'job')} scheduled${rest}`;
}

const SAID: Readonly<Record<FiredJob['status'], string>> = {
  would: '',
  scheduled: 'due now',
  exists: 'a job of this id is live',
  over: 'a job of this id ran already',
};
