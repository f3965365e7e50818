/** `reschedule <queue> [id...]` and `run-now <queue> [id...]`: another due time for jobs that wait, by id or by a filter. */
import { type Command, Option } from 'commander';
import { countOf } from '../../../access/audit.ts';
import type { NewDue, Rescheduled, RunNow } from '../../../client/client.ts';
import { allOptions } from '../../../job/fields.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withClient, withRedis } from '../../session.ts';
import { type JobFlags, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { type FilterFlags, takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';
import { isByFilter, runWhere, type WhereFlags, withWhereFlags } from '../find/where.ts';

type Flags = Pick<JobFlags, 'delay' | 'at' | 'zone'> & Pick<NewDue, 'only'> & FilterFlags & WhereFlags;

const DUE_OPTIONS = allOptions.filter(({ name }) => ['delay', 'at', 'zone'].includes(name));

export const reschedule: Register = (parent, runner) => {
  const command = parent
    .command('reschedule <queue> [id...]')
    .description('give jobs that wait another due time; options, attempts and history stay');
  withFlags(command, DUE_OPTIONS).addOption(
    new Option('--only <which>', 'only if that is earlier, or later, than it is due now').choices(['earlier', 'later']),
  );
  withWhereFlags(withFilterFlags(command, { states: ['scheduled', 'ready'] })).action(
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

async function run(session: Session, { queue, ids, flags: given }: Asked): Promise<Exit> {
  const { filter, rest: flags } = takeFilterFlags(given);
  const due: NewDue = { ...readFlags(flags, DUE_OPTIONS), only: flags.only };
  const asked = { queue, ids, filter, flags };
  if (isByFilter(asked)) {
    return runWhere(session, asked, {
      done: 'rescheduled',
      call: (producer, jobs, options) => producer.rescheduleWhere(queue, jobs, due, options),
    });
  }
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const replies = await withClient(session, (producer) =>
    producer.rescheduleMany(
      queue,
      ids.map((id) => ({ ...due, id })),
    ),
  );
  const count = countOf(replies, 'rescheduled');
  session.changes.push({ verb: 'jobs.reschedule', queue, count, target: ids.length === 1 ? ids[0] : undefined });
  session.out.answer({ queue, jobs: replies }, () => replies.map(sentence));
  return replies.every(({ status }) => ['rescheduled', 'already', 'kept'].includes(status)) ? 0 : 1;
}

export const runNow: Register = (parent, runner) => {
  const command = parent.command('run-now <queue> [id...]').description('make jobs that wait due now');
  withWhereFlags(withFilterFlags(command, { states: [] })).action(
    (queue: string, ids: readonly string[], flags: FilterFlags & WhereFlags, command: Command) =>
      runner.run(command, (session) => runAll(session, { queue, ids, flags })),
  );
  withExamples(command, ['duestream run-now reminders payment:42', 'duestream run-now mail --tag campaign:7 --yes']);
};

async function runAll(
  session: Session,
  { queue, ids, flags }: Omit<Asked, 'flags'> & { readonly flags: FilterFlags & WhereFlags },
): Promise<Exit> {
  const asked = { queue, ids, filter: takeFilterFlags(flags).filter, flags };
  if (isByFilter(asked)) {
    return runWhere(session, asked, {
      done: 'due now',
      call: (producer, jobs, options) => producer.runNowWhere(queue, jobs, options),
    });
  }
  await withRedis(session, (redis) => partitionsOfQueue(session, redis, queue));
  const replies = await withClient(session, (producer) => producer.runNowMany(queue, ids));
  session.changes.push({
    verb: 'jobs.run',
    queue,
    count: countOf(replies, 'due'),
    target: ids.length === 1 ? ids[0] : undefined,
  });
  session.out.answer({ queue, jobs: replies }, () => replies.map(dueSentence));
  return replies.every(({ status }) => status === 'due' || status === 'already-due') ? 0 : 1;
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

/** Why a job was not changed. */
export function unchanged({ id, status, over }: Pick<RunNow, 'id' | 'over'> & { readonly status: string }): string {
  switch (status) {
    case 'running':
      return line`${id}  not changed: it runs`;
    case 'over':
      return line`${id}  not changed: it is over, ${over ?? 'its end is not known'}`;
    case 'changed':
      return line`${id}  not changed: somebody else has changed it; look again with "duestream show"`;
    case 'indeterminate':
      return line`${id}  unsure: the reply was lost and the job has been started since; "duestream show" says more`;
    default:
      return line`${id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
  }
}
