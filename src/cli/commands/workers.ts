/** `workers`: every worker, whether it lives, and what it runs. */

import type { Command } from 'commander';
import { versionsText } from '../../inspect/processes.ts';
import { type SeenWorker, type SeenWorkers, workersSeen } from '../../inspect/workers.ts';
import { systemClock } from '../../kernel/clock.ts';
import { span } from '../../kernel/humanize.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../register.ts';
import { type Session, withRedis } from '../session.ts';
import { line, table } from '../terminal/text.ts';
import { relative } from '../terminal/when.ts';

interface Flags {
  readonly queue?: string;
  readonly limit: number;
}

export const workers: Register = (parent, runner) => {
  const command = parent
    .command('workers')
    .description('show workers, the last heartbeat of each, and the jobs that it runs')
    .option('--queue <name>', 'only workers of this queue')
    .option('--limit <n>', 'show at most this many jobs of each worker: the oldest', wholeNumber(0, 1000), 10)
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream workers', 'duestream workers --queue emails --limit 100 --json']);
};

async function run(session: Session, { queue, limit }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const seen = await withRedis(session, (redis) => workersSeen({ redis, namespace }, { queue, limit }));
  session.out.answer({ namespace, ...seen }, () => linesOf(session, seen));
  return 0;
}

function linesOf({ out, config }: Session, { workers: seen, versions }: SeenWorkers): readonly string[] {
  if (seen.length === 0) {
    return [line`no worker in namespace ${config.namespace}; start one with "duestream worker <module>"`];
  }
  const nowMs = systemClock.wallMs();
  const rows = seen.map(({ id, state, host, pid, version, startedMs, beatAgoMs, queues, connections, pending }) => [
    id,
    state,
    host === undefined ? undefined : `${host}:${pid}`,
    version,
    startedMs === undefined ? undefined : relative(startedMs, nowMs),
    beatAgoMs === undefined ? undefined : `${span(beatAgoMs)} ago`,
    queues.join(', '),
    connections,
    pending,
  ]);
  return [
    ...table(
      out.paint,
      ['worker', 'state', 'where', 'version', 'started', 'last beat', 'queues', 'connections', 'holds'],
      rows,
    ),
    ...seen.flatMap((worker) => jobLines(worker, nowMs)),
    ...(versions.length > 1 ? ['', out.paint.yellow(line`versions differ: ${versionsText(versions)}`)] : []),
  ];
}

function jobLines({ id, pending, jobs }: SeenWorker, nowMs: number): readonly string[] {
  if (jobs.length === 0) return [];
  return [
    '',
    line`${id} holds`,
    ...jobs.map(({ queue, id: job, bare, attempt, startedMs }) => {
      const name = bare ? `${job} (bare)` : job;
      if (attempt === undefined || startedMs === undefined) return `  ${line`${queue}  ${name}  about to start`}`;
      return `  ${line`${queue}  ${name}  attempt ${attempt}, for ${span(Math.max(0, nowMs - startedMs))}`}`;
    }),
    ...(pending > jobs.length ? [`  and ${pending - jobs.length} more`] : []),
  ];
}
