/** `leaders` and `workers`: which processes promote jobs and which run them; and pauses of single workers. */
import type { Command } from 'commander';
import { operations } from '../../client/operations.ts';
import {
  type Led,
  leaderName,
  leadersOf,
  type SeenWorker,
  type SeenWorkers,
  versionsOf,
  versionsText,
  workersSeen,
} from '../../client/queues/processes.ts';
import type { WorkerPause } from '../../client/queues/workers.ts';
import { heldText } from '../../job/state.ts';
import { systemClock } from '../../kernel/clock.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedis } from '../session.ts';
import { asking } from '../terminal/asking.ts';
import { relative } from '../terminal/instants.ts';
import { line, table, unreadLines } from '../terminal/output.ts';

// `leaders`: who leads each partition, since when, when it last passed, and how late its work is.

export const leaders: Register = (parent, runner) => {
  const command = parent
    .command('leaders [queue]')
    .description('show which daemon leads each partition, when it last worked, and how late the partition is')
    .action((queue: string | undefined, _flags: unknown, command: Command) =>
      runner.run(command, (session) => runLeaders(session, queue)),
    );
  withExamples(command, ['duestream queues leaders', 'duestream queues leaders emails --json']);
};

async function runLeaders(session: Session, queue: string | undefined): Promise<Exit> {
  const { namespace } = session.config;
  const { found: partitions, unread } = await withRedis(session, (redis) => leadersOf({ redis, namespace }, queue));
  session.out.answer({ namespace, partitions, unread }, () => {
    if (partitions.length + unread.length === 0) return [line`no queue was used in namespace ${namespace} yet`];
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
      ...unreadLines(unread),
    ];
  });
  return unread.length === 0 ? 0 : 1;
}

/** Id and version of the process, epoch and lease are in the JSON. */
function row({ queue, partition, leader, lagMs, backlog, paused, nowMs }: Led) {
  const late = `${lagMs ? span(lagMs) : '-'}${paused ? ' (paused)' : ''}`;
  if (leader === undefined) return [queue, partition, 'none', '-', '-', late, backlog];
  const { sinceMs, lastPassAgoMs } = leader;
  const passed = lastPassAgoMs === undefined ? '-' : `${span(lastPassAgoMs)} ago`;
  return [queue, partition, leaderName(leader), relative(sinceMs, nowMs), passed, late, backlog];
}

// `workers`: every worker, whether it lives, and what it runs.

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
    .action((flags: Flags, command: Command) => runner.run(command, (session) => runWorkers(session, flags)));
  withExamples(command, ['duestream queues workers', 'duestream queues workers --queue emails --limit 100 --json']);
};

/** Where a worker runs: over HTTP only its address is known. */
function placeOf({ via, address, host, pid }: SeenWorker): string | undefined {
  if (via === 'http') return `via HTTP, ${address ?? ''}`;
  return host === undefined ? undefined : `${host}:${pid}`;
}

async function runWorkers(session: Session, { queue, limit }: Flags): Promise<Exit> {
  const { namespace } = session.config;
  const seen = await withRedis(session, (redis) => workersSeen({ redis, namespace }, { queue, limit }));
  session.out.answer({ namespace, ...seen }, () => [...linesOf(session, seen), ...unreadLines(seen.unread)]);
  return seen.unread.length === 0 ? 0 : 1;
}

function linesOf({ out, config }: Session, { workers: seen, versions }: SeenWorkers): readonly string[] {
  if (seen.length === 0) {
    return [line`no worker in namespace ${config.namespace}; start one with "duestream worker <module>"`];
  }
  const nowMs = systemClock.wallMs();
  const rows = seen.map((worker) => {
    const { id, state, pause, version, startedMs, beatAgoMs, queues, connections, pending } = worker;
    return [
      id,
      pause === undefined ? state : 'paused',
      placeOf(worker),
      version,
      startedMs === undefined ? undefined : relative(startedMs, nowMs),
      beatAgoMs === undefined ? undefined : `${span(beatAgoMs)} ago`,
      queues.join(', '),
      connections,
      pending,
    ];
  });
  return [
    ...table(
      out.paint,
      ['worker', 'state', 'where', 'version', 'started', 'last beat', 'queues', 'connections', 'holds'],
      rows,
    ),
    ...seen.flatMap(({ id, pause }) => (pause ? ['', line`${id} is paused${whyText(pause)}`] : [])),
    ...seen.flatMap((worker) => jobLines(worker, nowMs)),
    ...(versions.length > 1 ? ['', out.paint.yellow(line`versions differ: ${versionsText(versions)}`)] : []),
  ];
}

// `workers pause` and `workers resume`: one process.

export const workersPause = asking(operations.workers.pause, {
  description:
    'pause one worker: it takes no new job until you resume it, or until its process ends; running jobs go on',
  examples: ['duestream workers pause w-7f3a --reason "a heap dump is taken"'],
  say: ({ worker, changed, pause }) => [
    changed
      ? line`${worker} is paused, from its next heartbeat on`
      : line`${worker} was paused already${whyText(pause)}`,
    'what it runs goes on to its end',
    line`to go on: duestream workers resume ${worker}`,
  ],
});

export const workersResume = asking(operations.workers.resume, {
  description: 'let a paused worker go on, with its next heartbeat',
  examples: ['duestream workers resume w-7f3a'],
  say: ({ worker, changed, pause }) => [
    changed ? line`${worker} goes on; it was paused${whyText(pause)}` : line`${worker} was not paused`,
  ],
});

/** @example whyText(pause) // for 12 min by ada: a heap dump is taken */
function whyText(pause: WorkerPause | undefined): string {
  if (!pause) return '';
  const { sinceMs, by, reason } = pause;
  const length = span(Math.max(0, systemClock.wallMs() - sinceMs));
  return ` for ${length}${by === undefined ? '' : ` by ${by}`}${reason === undefined ? '' : `: ${reason}`}`;
}

function jobLines({ id, pending, jobs }: SeenWorker, nowMs: number): readonly string[] {
  if (jobs.length === 0) return [];
  return [
    '',
    line`${id} holds`,
    ...jobs.map(({ queue, id: job, bare, attempt, startedMs, dueMs }) => {
      const name = bare ? `${job} (bare)` : job;
      if (attempt === undefined || startedMs === undefined) return `  ${line`${queue}  ${name}  about to start`}`;
      const held = heldText({ state: 'running', dueMs, startedMs }, nowMs);
      if (held) return `  ${line`${queue}  ${name}  ${held}`}`;
      return `  ${line`${queue}  ${name}  attempt ${attempt}, for ${span(Math.max(0, nowMs - startedMs))}`}`;
    }),
    ...(pending > jobs.length ? [`  and ${pending - jobs.length} more`] : []),
  ];
}
