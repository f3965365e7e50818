/**
 * `ls <queue>`: a page of jobs, by state and by a filter. Jobs that are not over come partition by partition in the order of
 * their index; jobs that are over come by their end, the latest first. `ls` without a queue, or with several, lists the jobs of
 * all of them by due time.
 */

import { type Command, Option } from 'commander';
import { heldText, isLiveState, JOB_STATES, type JobState, LIVE_STATES, type LiveState } from '../../../job/state.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import {
  checkQueue,
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withClient,
  withExamples,
} from '../../session.ts';
import { second } from '../../terminal/instants.ts';
import { line, table } from '../../terminal/output.ts';
import {
  type FilterFlags,
  INSTANT,
  isFilterGiven,
  readFilter,
  readWalk,
  takeFilterFlags,
  withFilterFlags,
} from '../find/filter-flags.ts';
import { listAll, type Row, rowOf } from './list-all.ts';
import { listOver } from './list-over.ts';

interface Flags extends Omit<FilterFlags, 'state'> {
  readonly state?: JobState | 'over';
  readonly limit: number;
  readonly cursor?: string;
  readonly count?: boolean;
  readonly newerThan?: string;
  readonly sort?: 'due';
  readonly id?: string;
  readonly ranFrom?: string;
  readonly ranTo?: string;
}

export const ls: Register = (parent, runner) => {
  const command = parent
    .command('ls [queue...]')
    .description(
      'list jobs by state and filter: by due time in each partition, or latest end first if they are over; without a queue, or of several, by due time over all',
    )
    .addOption(
      new Option(
        '--state <state>',
        'jobs in this state (default: scheduled; with a filter all that live); over: done, dead, cancelled or expired',
      ).choices([...JOB_STATES, 'over']),
    );
  withFilterFlags(command, { states: [] })
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .option('--cursor <text>', 'go on where the page before has ended')
    .option('--newer-than <duration>', 'of jobs that are over: only those that ended at most this long ago')
    .option('--count', 'only say how many there are, of jobs that are not over')
    .addOption(new Option('--sort <order>', 'of one queue: by due time over all partitions').choices(['due']))
    .option('--id <id>', 'the job of this id in each queue, also one that is over')
    .option('--ran-from <instant>', `jobs whose last run was not over at this time: ${INSTANT}`)
    .option('--ran-to <instant>', 'jobs whose last run had begun at this time')
    .action((queues: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => {
        const [queue, ...others] = queues;
        const isOne = others.length === 0 && (flags.id ?? flags.ranFrom ?? flags.ranTo) === undefined;
        if (queue !== undefined && isOne) return run(session, queue, flags);
        const other = flags.count ? '--count' : flags.newerThan && '--newer-than';
        if (other) throw new DuestreamError('usage', `${other} goes with one queue; allowed: duestream ls <queue>`);
        return listAll(session, queues, flags);
      }),
    );
  withExamples(command, [
    'duestream ls --tag user:42',
    'duestream ls --id payment:42',
    'duestream ls --ran-from 2026-03-01T02:30:00Z --ran-to 2026-03-01T02:31:00Z',
    'duestream ls emails',
    'duestream ls emails --state running --limit 10 --json',
    'duestream ls emails --tag user:42',
    'duestream ls emails --due-from now --due-to +1h --name welcome',
    'duestream ls --failed --state scheduled',
    'duestream ls emails --tag user:42 --count',
    'duestream ls emails --state over --newer-than 1d',
  ]);
};

interface Page {
  readonly states: readonly LiveState[];
  readonly jobs: readonly Row[];
  readonly scanned: number;
  readonly cursor: string | undefined;
}

/** @throws DuestreamError `usage` for flags that do not go with the state */
async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const { state, count, newerThan, limit, cursor, sort } = flags;
  const isLive = state === undefined || (state !== 'over' && isLiveState(state));
  if (isLive && newerThan !== undefined) {
    throw new DuestreamError('usage', '--newer-than goes with jobs that are over; allowed: with --state over');
  }
  if (!isLive && count)
    throw new DuestreamError(
      'usage',
      `--count does not go with --state ${state}; allowed: a state of jobs that are not over`,
    );
  if (count) return runCount(session, queue, flags);
  if (!isLive) {
    checkTimes(flags, state);
    return listOver(session, queue, { ...flags, state });
  }
  const { state: _, ...filter } = takeFilterFlags(flags).filter;
  return list(session, queue, { ...filter, ...(state !== undefined && { state }), limit, cursor, sort });
}

/** How many jobs there are that are not over, or that a filter means. */
async function runCount(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const filter = readFilter(takeFilterFlags(flags).filter);
  await checkQueue(session, queue);
  const { count: jobs, atLeast } = await withClient(session, (client) => client.count(queue, filter));
  session.out.answer({ queue, count: jobs, ...(atLeast && { atLeast }) }, () => [
    atLeast ? line`at least ${jobs}: jobs moved while they were counted` : line`${jobs}`,
  ]);
  return 0;
}

interface ListFlags extends Omit<FilterFlags, 'state'> {
  readonly state?: LiveState;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly sort?: 'due' | undefined;
}

async function list(session: Session, queue: string, { state: given, ...flags }: ListFlags): Promise<Exit> {
  const { limit, cursor: from, sort, ...filterFlags } = flags;
  const state = given ?? (isFilterGiven(flags) ? undefined : 'scheduled');
  const { filter, cursor, told } = readWalk(filterFlags, { cursor: from });
  await checkQueue(session, queue);
  const found = await withClient(session, (client) => client.list(queue, { ...filter, state, sort, limit, cursor }));
  const states = state ? [state] : LIVE_STATES;
  const page = { states, jobs: found.jobs.map(rowOf), scanned: found.scanned, cursor: told(found.cursor) };
  session.out.answer({ queue, ...page }, () => linesOf(session, page, isFilterGiven(flags)));
  return 0;
}

/** @throws DuestreamError `usage` */
function checkTimes({ dueFrom, dueTo }: Flags, state: Flags['state']): void {
  if ((dueFrom ?? dueTo) === undefined) return;
  const allowed = '--tag, --set, --name, --id-prefix and --failed, in a queue that keeps a history';
  throw new DuestreamError('usage', `--due-from and --due-to do not go with --state ${state}; allowed: ${allowed}`);
}

function linesOf(session: Session, { states, jobs, scanned, cursor }: Page, isFiltered: boolean): readonly string[] {
  const more = cursor === undefined ? [] : ['there may be more; go on with', `--cursor ${cursor}`];
  if (jobs.length === 0) {
    return [isFiltered ? line`no such jobs among ${scanned} looked at` : `no ${states.join(', ')} jobs`, ...more];
  }
  const nowMs = systemClock.wallMs();
  const [hasStates, hasOwners] = [states.length > 1, jobs.some(({ owner }) => owner !== undefined)];
  const rows = jobs.map((job) => [
    job.id + (job.bare ? ' (bare)' : ''),
    ...(hasStates ? [job.state] : []),
    job.name,
    heldText(job, nowMs) ?? (job.dueMs === undefined ? undefined : second(job.dueMs, nowMs)),
    // Beside the state there is no room for it in 80 columns.
    ...(hasStates ? [] : [job.attempts]),
    ...(hasOwners ? [job.owner] : []),
  ]);
  const head = ['id', ...(hasStates ? ['state'] : []), 'name', 'due', ...(hasStates ? [] : ['attempts'])];
  return [...table(session.out.paint, [...head, ...(hasOwners ? ['worker'] : [])], rows), ...more];
}
