/** `reschedule <queue> [id...]` and `run-now <queue> [id...]`: another due time for jobs that wait, by id or by a filter. */
import { type Command, Option } from 'commander';
import type { NewDue, Rescheduled, RunNow } from '../../../client/client.ts';
import { allOptions } from '../../../job/fields.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import type { Session } from '../../session.ts';
import { type JobFlags, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { type FilterFlags, takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';
import { type ChangeFlags, runChange, unchanged, withChangeFlags } from './change.ts';

type Flags = Pick<JobFlags, 'delay' | 'at' | 'zone'> & Pick<NewDue, 'only'> & FilterFlags & ChangeFlags;

const DUE_OPTIONS = allOptions.filter(({ name }) => ['delay', 'at', 'zone'].includes(name));

export const reschedule: Register = (parent, runner) => {
  const command = parent
    .command('reschedule <queue> [id...]')
    .description('give jobs that wait another due time; options, attempts and history stay');
  withFlags(command, DUE_OPTIONS).addOption(
    new Option('--only <which>', 'only if that is earlier, or later, than it is due now').choices(['earlier', 'later']),
  );
  withChangeFlags(withFilterFlags(command, { states: ['scheduled', 'waiting', 'ready'] })).action(
    (queue: string, ids: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, ids, flags })),
  );
  withExamples(command, [
    'duestream reschedule reminders payment:42 --delay 1d',
    'duestream reschedule reminders payment:42 --at 2026-03-01T09:00 --zone Europe/Berlin --only later',
    'duestream reschedule mail --tag campaign:7 --at 2026-03-01T09:00:00Z --dry-run',
  ]);
};

interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly flags: Flags;
}

function run(session: Session, { queue, ids, flags: given }: Asked): Promise<Exit> {
  const { filter, rest: flags } = takeFilterFlags(given);
  const due: NewDue = { ...readFlags(flags, DUE_OPTIONS), only: flags.only };
  return runChange<Rescheduled>(
    session,
    { queue, ids, filter, flags },
    {
      verb: 'jobs.reschedule',
      done: 'rescheduled',
      byIds: (client, named) => client.reschedule(queue, named, due),
      byFilter: (client, jobs, options) => client.reschedule(queue, jobs, due, options),
      changed: ['rescheduled'],
      isFine: ({ status }) => ['rescheduled', 'already', 'kept'].includes(status),
      sentence,
    },
  );
}

export const runNow: Register = (parent, runner) => {
  const command = parent.command('run-now <queue> [id...]').description('make jobs that wait due now');
  withChangeFlags(withFilterFlags(command, { states: [] })).action(
    (queue: string, ids: readonly string[], flags: FilterFlags & ChangeFlags, command: Command) =>
      runner.run(command, (session) => runAll(session, { queue, ids, flags })),
  );
  withExamples(command, ['duestream run-now reminders payment:42', 'duestream run-now mail --tag campaign:7 --yes']);
};

function runAll(
  session: Session,
  { queue, ids, flags }: Omit<Asked, 'flags'> & { readonly flags: FilterFlags & ChangeFlags },
): Promise<Exit> {
  return runChange<RunNow>(
    session,
    { queue, ids, filter: takeFilterFlags(flags).filter, flags },
    {
      verb: 'jobs.run',
      done: 'due now',
      byIds: (client, named) => client.runNow(queue, named),
      byFilter: (client, jobs, options) => client.runNow(queue, jobs, options),
      changed: ['due'],
      isFine: ({ status }) => status === 'due' || status === 'already-due',
      sentence: dueSentence,
    },
  );
}

function dueSentence({ id, status, over }: RunNow): string {
  if (status === 'due') return line`${id}  due now`;
  if (status === 'already-due') return line`${id}  due already: it waits for a worker`;
  return unchanged({ id, status, over });
}

function sentence({ id, status, dueMs = 0, wasMs, over }: Rescheduled): string {
  const due = moment(dueMs, systemClock.wallMs());
  if (status === 'rescheduled') {
    const before = wasMs === undefined ? 'it waited for a worker' : `was ${moment(wasMs, systemClock.wallMs())}`;
    return line`${id}  due ${due}  ${before}`;
  }
  if (status === 'already') return line`${id}  due ${due} already`;
  if (status === 'kept') return line`${id}  kept  due ${due}`;
  if (status === 'ready') return line`${id}  due already: it waits for a worker`;
  return unchanged({ id, status, over });
}
