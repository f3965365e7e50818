/** `queues ls`: every queue with its counts per state, how long jobs have waited, and who leads and serves it. */
import type { Command } from 'commander';
import type { Redis } from '../../../redis/connection/connect.ts';
import { oldestDueAge, type PartitionStats, stats } from '../../../redis/inspect.ts';
import { listQueues, partitionsOf, type QueueLayout } from '../../../redis/transitions/queues.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { span } from '../../terminal/when.ts';
import { leaderName, leaderOf, type ProcessesById, processesOf, workersOf } from '../processes.ts';

interface Listed {
  readonly queue: string;
  readonly partitions: number;
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly paused: boolean;
  /** For how long the oldest job that is due has waited for its start; 0 when none waits. */
  readonly oldestDueAgeMs: number;
  /** Living workers that serve it. */
  readonly workers: number;
  /** Per partition: the process that leads it, or undefined. */
  readonly leaders: readonly (string | undefined)[];
}

export const queuesLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list queues: their counts, how long the oldest due job has waited, workers and leaders')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, ['duestream queues ls', 'duestream queues ls --json']);
};

async function run(session: Session): Promise<Exit> {
  const { namespace } = session.config;
  const queues = await withRedis(session, async (redis) => {
    const processes = await processesOf(redis, namespace);
    const layouts = await listQueues(redis, namespace);
    const listed: Listed[] = [];
    for (const layout of layouts) listed.push(await countsOf(redis, { namespace, layout, processes }));
    return listed;
  });
  session.out.answer({ namespace, queues }, () => {
    if (queues.length === 0) {
      return [line`no queue was used in namespace ${namespace} yet; the first "duestream schedule" makes one`];
    }
    const rows = queues.map((queue) => [
      queue.queue,
      queue.partitions,
      queue.scheduled,
      queue.ready,
      queue.running,
      queue.dead,
      queue.oldestDueAgeMs === 0 ? undefined : span(queue.oldestDueAgeMs),
      queue.workers,
      leaderText(queue) + (queue.paused ? ' (paused)' : ''),
    ]);
    return table(session.out.paint, HEAD, rows);
  });
  return 0;
}

const HEAD = ['queue', 'partitions', 'scheduled', 'ready', 'running', 'dead', 'waits', 'workers', 'leader'];

async function countsOf(
  redis: Redis,
  from: {
    readonly namespace: string;
    readonly layout: QueueLayout;
    readonly processes: ProcessesById;
  },
): Promise<Listed> {
  const refs = partitionsOf(from.namespace, from.layout);
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const ages = await Promise.all(refs.map((ref) => oldestDueAge(redis, ref)));
  const sum = (of: (one: PartitionStats) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    queue: from.layout.queue,
    partitions: from.layout.partitions,
    scheduled: sum(({ scheduled }) => scheduled),
    ready: sum(({ ready }) => ready),
    running: sum(({ running }) => running),
    dead: sum(({ dead }) => dead),
    paused: all.some(({ paused }) => paused),
    oldestDueAgeMs: Math.max(...ages),
    workers: workersOf(from.layout.queue, from.processes),
    leaders: all.map((one) => {
      const leader = leaderOf(one, from.processes);
      return leader && leaderName(leader);
    }),
  };
}

/** One name when one process leads everything, else how many partitions are led. */
function leaderText({ leaders }: Listed): string {
  const led = leaders.filter((leader) => leader !== undefined);
  const names = [...new Set(led)];
  if (names.length === 0) return 'none: start one with "duestream start"';
  const missing = leaders.length - led.length;
  return names.join(', ') + (missing > 0 ? ` (${missing} partitions without)` : '');
}
