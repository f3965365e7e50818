/**
 * `leaders`: who leads each partition, since when, when it last passed, and how late its work is. Every pass prolongs
 * the lease to its full length, so what has gone of the lease is the time since the last one.
 */
import type { Command } from 'commander';
import type { Redis } from '../../redis/connection/connect.ts';
import { stats } from '../../redis/inspect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { listQueues, partitionsOf } from '../../redis/transitions/queues.ts';
import { type Exit, type Register, withExamples } from '../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../session.ts';
import { counted, line, table } from '../terminal/text.ts';
import { relative, span } from '../terminal/when.ts';
import { type Leader, lagOf, leaderName, leaderOf, type ProcessesById, processesOf } from './processes.ts';

interface Led {
  readonly queue: string;
  readonly partition: number;
  readonly leader: Leader | undefined;
  /** How long the oldest job has been due. */
  readonly lagMs: number | undefined;
  /** Jobs that are ready and wait for a worker. */
  readonly backlog: number;
  readonly paused: boolean;
  readonly nowMs: number;
}

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
  const partitions = await withRedis(session, async (redis) => {
    const refs = await refsOf(session, redis, queue);
    const processes = await processesOf(redis, namespace);
    const all: Led[] = [];
    for (const ref of refs) all.push(await look(redis, ref, processes));
    return all;
  });
  session.out.answer({ namespace, partitions }, () => {
    if (partitions.length === 0) return [line`no queue was used in namespace ${namespace} yet`];
    const rows = partitions.map(row);
    const head = [
      'queue',
      'partition',
      'leader',
      'process',
      'epoch',
      'elected',
      'last pass',
      'lease left',
      'overdue',
      'backlog',
    ];
    const alone = partitions.filter(({ leader }) => leader === undefined).length;
    return [
      ...table(session.out.paint, head, rows),
      ...(alone === 0 ? [] : [line`${counted(alone, 'partition')} without a leader: start one with "duestream start"`]),
    ];
  });
  return 0;
}

async function refsOf(session: Session, redis: Redis, queue: string | undefined): Promise<readonly PartitionRef[]> {
  if (queue !== undefined) return partitionsOfQueue(session, redis, queue);
  const { namespace } = session.config;
  return (await listQueues(redis, namespace)).flatMap((layout) => partitionsOf(namespace, layout));
}

async function look(redis: Redis, ref: PartitionRef, processes: ProcessesById): Promise<Led> {
  const found = await stats(redis, ref);
  const { ready, paused, nowMs } = found;
  const { queue, partition } = ref;
  return { queue, partition, leader: leaderOf(found, processes), lagMs: lagOf(found), backlog: ready, paused, nowMs };
}

function row({ queue, partition, leader, lagMs, backlog, paused, nowMs }: Led) {
  const late = `${lagMs ? span(lagMs) : '-'}${paused ? ' (paused)' : ''}`;
  if (leader === undefined) return [queue, partition, 'none', '-', '-', '-', '-', '-', late, backlog];
  const { process, epoch, sinceMs, leaseLeftMs, lastPassAgoMs } = leader;
  const elected = relative(sinceMs, nowMs);
  const passed = lastPassAgoMs === undefined ? '-' : `${span(lastPassAgoMs)} ago`;
  return [queue, partition, leaderName(leader), process, epoch, elected, passed, span(leaseLeftMs), late, backlog];
}
