/** `count <queue>`: how many jobs there are that are not over, or that a filter means. */

import type { Command } from 'commander';
import { LIVE_STATES } from '../../../job/state.ts';
import { checkQueue, type Exit, type Register, type Session, withClient, withExamples } from '../../session.ts';
import { line } from '../../terminal/output.ts';
import { type FilterFlags, readFilter, withFilterFlags } from './filter-flags.ts';

export const count: Register = (parent, runner) => {
  const command = withFilterFlags(
    parent.command('count <queue>').description('count the jobs that are not over, all or by a filter'),
    { states: LIVE_STATES },
  ).action((queue: string, flags: FilterFlags, command: Command) =>
    runner.run(command, (session) => run(session, queue, flags)),
  );
  withExamples(command, ['duestream count emails --tag user:42', 'duestream count emails --due-to +1h']);
};

async function run(session: Session, queue: string, flags: FilterFlags): Promise<Exit> {
  const filter = readFilter(flags);
  await checkQueue(session, queue);
  const { count: jobs, atLeast } = await withClient(session, (producer) => producer.count(queue, filter));
  session.out.answer({ queue, count: jobs, ...(atLeast && { atLeast }) }, () => [
    atLeast ? line`at least ${jobs}: jobs moved while they were counted` : line`${jobs}`,
  ]);
  return 0;
}
