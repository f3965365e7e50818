/** `leaders`: who leads each partition, since when, when it last passed, and how late its work is. */

import type { Command } from 'commander';
import { type Led, leadersOf } from '../../inspect/leaders.ts';
import { leaderName, versionsOf, versionsText } from '../../inspect/processes.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import { type Session, withRedis } from '../session.ts';
import { line, table } from '../terminal/text.ts';
import { relative } from '../terminal/when.ts';

export const leaders: Register = (parent, runner) => {
  const command = parent
    .command('leaders [queue]')
    .description('show which daemon leads each partition, when it last worked, and how late the partition is')
    .action((queue: string | undefined, _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, queue)),
    );
  withExamples(command, ['duestream leaders', 'duestream leaders emails --json']);
};

async function run(session: Session, queue: string | undefined): Promise<Exit> {
  const { namespace } = session.config;
  const partitions = await withRedis(session, (redis) => leadersOf({ redis, namespace }, queue));
  session.out.answer({ namespace, partitions }, () => {
    if (partitions.length === 0) return [line`no queue was used in namespace ${namespace} yet`];
    const rows = partitions.map(row);
    const head = ['queue', 'partition', 'leader', 'since', 'last pass', 'overdue', 'backlog'];
    // Of one without a heartbeat nobody knows it.
    const leaders = partitions.flatMap(({ leader }) => (leader?.host ? [[leader.process, leader] as const] : []));
    const versions = versionsOf(new Map(leaders));
    const alone = partitions.filter(({ leader }) => leader === undefined).length;
    return [
      ...table(session.out.paint, head, rows),
      ...(alone === 0 ? [] : [line`${counted(alone, 'partition')} without a leader: start one with "duestream start"`]),
      ...(versions.length > 1
        ? [session.out.paint.yellow(line`versions of leaders differ: ${versionsText(versions)}`)]
        : []),
    ];
  });
  return 0;
}

/** Id and version of the process, epoch and lease are in the JSON. */
function row({ queue, partition, leader, lagMs, backlog, paused, nowMs }: Led) {
  const late = `${lagMs ? span(lagMs) : '-'}${paused ? ' (paused)' : ''}`;
  if (leader === undefined) return [queue, partition, 'none', '-', '-', late, backlog];
  const { sinceMs, lastPassAgoMs } = leader;
  const passed = lastPassAgoMs === undefined ? '-' : `${span(lastPassAgoMs)} ago`;
  return [queue, partition, leaderName(leader), relative(sinceMs, nowMs), passed, late, backlog];
}
