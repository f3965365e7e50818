/** `queues stats <queue>`: counts per state and partition, what happened so far, who leads, and what comes due when. */

import type { Command } from 'commander';
import { leaderName } from '../../../inspect/processes.ts';
import {
  type BroadcastCounts,
  type DueSpan,
  type PartitionCounts,
  type QueueStats,
  queueStats,
} from '../../../inspect/queue-counts.ts';
import { durationText } from '../../../kernel/duration.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis } from '../../session.ts';
import { quotaText } from '../../terminal/quota.ts';
import type { Paint } from '../../terminal/screen.ts';
import { fields, line, table } from '../../terminal/text.ts';
import { pauseText } from './queues-pauses.ts';

export const queuesStats: Register = (parent, runner) => {
  const command = parent
    .command('stats <queue>')
    .description(
      'show how many jobs are in each state and partition, and how many become due in the next minute, hour, day and week',
    )
    .action((queue: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, queue)),
    );
  withExamples(command, ['duestream queues stats emails', 'duestream queues stats emails --json']);
};

async function run(session: Session, queue: string): Promise<Exit> {
  const { namespace } = session.config;
  const found = await withRedis(session, (redis) => queueStats({ redis, namespace }, queue));
  const { totals, partitions, dueNext: next, pause, nowMs, workers, broadcast } = found;
  const state = { workers, broadcast, paused: pause !== undefined, pause };
  const value = { queue, ...totals, ...state, dueNext: next, partitions, nowMs };
  session.out.answer(value, () => [
    ...head(queue, found),
    ...broadcastLines(session.out.paint, broadcast),
    '',
    ...table(session.out.paint, HEAD, partitions.map(row)),
    '',
    ...counterLines(totals.counters),
    '',
    ...bars(session.out.paint, next),
  ]);
  return 0;
}

function head(
  queue: string,
  of: Pick<QueueStats, 'totals' | 'pause' | 'nowMs' | 'workers' | 'broadcast'>,
): readonly string[] {
  const { scheduled, waiting, waitMs, ready, running, dead, over, oldestDueAgeMs, quota } = of.totals;
  const inLine = waiting === 0 ? '' : `${waiting} waiting, `;
  const counts = `${scheduled} scheduled, ${inLine}${ready} ready, ${running} running, ${dead} dead`;
  return fields([
    ['queue', queue],
    ['jobs', `${counts}; ${over} ended within the done window`],
    ['oldest', oldestDueAgeMs === 0 ? 'no due job waits' : `due and not started for ${span(oldestDueAgeMs)}`],
    ['in line', waiting === 0 ? undefined : `the first of them has waited for ${span(waitMs)}`],
    ['limits', quota && quotaText(quota)],
    ['workers', of.broadcast ? 'none: every subscriber gets each job' : of.workers],
    ['paused', of.pause && pauseText(of.pause, of.nowMs)],
  ]);
}

function broadcastLines(paint: Paint, broadcast: BroadcastCounts | undefined): readonly string[] {
  if (!broadcast) return [];
  const { kept, max, bytes, ageMs, subscribers } = broadcast;
  const rows = subscribers.map(({ id, host, pid, lag }) => [id, line`${host}:${pid}`, lag]);
  return [
    ...fields([
      ['broadcast', `keeps ${counted(kept, 'job')}; at most ${max}, of ${bytes} bytes, for ${durationText(ageMs)}`],
    ]),
    '',
    ...(rows.length === 0 ? ['nobody subscribes now'] : table(paint, ['subscriber', 'where', 'jobs behind'], rows)),
  ];
}

const HEAD = ['partition', 'scheduled', 'ready', 'running', 'dead', 'over', 'waits', 'leader'];

function row({ partition, scheduled, ready, running, dead, over, oldestDueAgeMs, leader }: PartitionCounts) {
  const led = leader === undefined ? 'none: start one with "duestream start"' : leaderName(leader);
  return [partition, scheduled, ready, running, dead, over, oldestDueAgeMs > 0 ? span(oldestDueAgeMs) : undefined, led];
}

function counterLines(counters: Readonly<Record<string, number>>): readonly string[] {
  const all = Object.entries(counters).map(([name, count]) => line`${count} ${name}`);
  return fields([['so far', all.length === 0 ? 'nothing' : all.join(', ')]]);
}

const BAR_CHARS = 40;

/** One bar per span; a span that holds anything is never shown as empty. */
function bars(paint: Paint, spans: readonly DueSpan[]): readonly string[] {
  const most = Math.max(1, ...spans.map(({ count }) => count));
  const rows = spans.map(({ fromMs, toMs, count }) => {
    const name = fromMs === undefined ? 'now' : toMs === undefined ? 'later' : `in ${SPAN_NAMES.get(toMs)}`;
    return [name, count, '█'.repeat(Math.ceil((count / most) * BAR_CHARS))];
  });
  return table(paint, ['due', 'jobs', ''], rows);
}

const SPAN_NAMES: ReadonlyMap<number, string> = new Map([
  [60_000, '1 min'],
  [300_000, '5 min'],
  [3_600_000, '1 h'],
  [21_600_000, '6 h'],
  [86_400_000, '1 d'],
  [604_800_000, '1 w'],
]);
