/** `queues ls`: every queue with its counts per state, how long jobs have waited, and who leads and serves it. */

import type { Command } from 'commander';
import { type QueueCounts, queueCounts } from '../../../inspect/queue-counts.ts';
import { span } from '../../../kernel/humanize.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { fullText } from '../../terminal/quota.ts';
import { line, table } from '../../terminal/text.ts';

export const queuesLs: Register = (parent, runner) => {
  const command = parent
    .command('ls')
    .description('list queues: their counts, how long the oldest due job has waited, workers and leaders')
    .action((_flags: unknown, command: Command) => runner.run(command, run));
  withExamples(command, ['duestream queues ls', 'duestream queues ls --json']);
};

async function run(session: Session): Promise<Exit> {
  const { namespace } = session.config;
  const queues = await withRedis(session, (redis) => queueCounts({ redis, namespace }));
  session.out.answer({ namespace, queues }, () => {
    if (queues.length === 0) {
      return [line`no queue was used in namespace ${namespace} yet; the first "duestream schedule" makes one`];
    }
    const isLimited = queues.some(({ quota }) => quota !== undefined);
    const rows = queues.map((queue) => [
      queue.queue,
      queue.partitions,
      queue.scheduled,
      queue.ready,
      queue.running,
      queue.dead,
      queue.oldestDueAgeMs === 0 ? undefined : span(queue.oldestDueAgeMs),
      ...(isLimited ? [queue.quota && fullText(queue.quota)] : []),
      queue.workers,
      leaderText(queue) + (queue.paused ? ' (paused)' : ''),
    ]);
    return table(session.out.paint, isLimited ? HEAD.toSpliced(7, 0, 'full') : HEAD, rows);
  });
  return 0;
}

const HEAD = ['queue', 'partitions', 'scheduled', 'ready', 'running', 'dead', 'waits', 'workers', 'leader'];

/** One name when one process leads everything, else how many partitions are led. */
function leaderText({ leaders }: QueueCounts): string {
  const led = leaders.filter((leader) => leader !== undefined);
  const names = [...new Set(led)];
  if (names.length === 0) return 'none: start one with "duestream start"';
  const missing = leaders.length - led.length;
  return names.join(', ') + (missing > 0 ? ` (${missing} partitions without)` : '');
}
