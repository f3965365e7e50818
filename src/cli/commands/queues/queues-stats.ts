/** `queues stats <queue>`: counts per state and partition, what happened so far, who leads, and what comes due when. */
import type { Command } from 'commander';
import { DUE_SPANS_MS, dueNext } from '../../../redis/due-next.ts';
import { oldestDueAge, type PartitionStats, stats } from '../../../redis/inspect.ts';
import type { Pause } from '../../../redis/transitions/upkeep.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import type { Paint } from '../../terminal/paint.ts';
import { fields, line, table } from '../../terminal/text.ts';
import { span } from '../../terminal/when.ts';
import { leaderName, leaderOf, processesOf, workersOf } from '../processes.ts';
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

interface Span {
  /** Ms from now; undefined: all that is due by now, or all that comes later. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  readonly count: number;
}

type Partition = ReturnType<typeof partitionOf>;

async function run(session: Session, queue: string): Promise<Exit> {
  const { partitions, next, pause, nowMs, workers } = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const processes = await processesOf(redis, session.config.namespace);
    const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
    const ages = await Promise.all(refs.map((ref) => oldestDueAge(redis, ref)));
    const spans = await Promise.all(refs.map((ref, at) => dueNext(redis, ref, all[at]?.nowMs ?? 0)));
    return {
      partitions: all.map((one, partition) =>
        partitionOf(one, { partition, oldestDueAgeMs: ages[partition] ?? 0, leader: leaderOf(one, processes) }),
      ),
      next: spansOf(spans),
      pause: all.find(({ paused }) => paused)?.pause,
      nowMs: Math.max(...all.map((one) => one.nowMs)),
      workers: workersOf(queue, processes),
    };
  });
  const totals = sumOf(partitions);
  const value = { queue, ...totals, workers, paused: pause !== undefined, pause, dueNext: next, partitions, nowMs };
  session.out.answer(value, () => [
    ...head(queue, { totals, pause, nowMs, workers }),
    '',
    ...table(session.out.paint, HEAD, partitions.map(row)),
    '',
    ...counterLines(totals.counters),
    '',
    ...bars(session.out.paint, next),
  ]);
  return 0;
}

function partitionOf(
  { scheduled, ready, running, dead, done, paused, counters }: PartitionStats,
  of: {
    readonly partition: number;
    readonly oldestDueAgeMs: number;
    readonly leader: ReturnType<typeof leaderOf>;
  },
) {
  return { ...of, scheduled, ready, running, dead, over: done, paused, counters };
}

function sumOf(partitions: readonly Partition[]) {
  const sum = (of: (one: Partition) => number) => partitions.reduce((total, one) => total + of(one), 0);
  const names = [...new Set(partitions.flatMap(({ counters }) => Object.keys(counters)))].sort();
  return {
    scheduled: sum((one) => one.scheduled),
    ready: sum((one) => one.ready),
    running: sum((one) => one.running),
    dead: sum((one) => one.dead),
    over: sum((one) => one.over),
    oldestDueAgeMs: Math.max(...partitions.map((one) => one.oldestDueAgeMs)),
    counters: Object.fromEntries(names.map((name) => [name, sum(({ counters }) => counters[name] ?? 0)])),
  };
}

function head(
  queue: string,
  of: {
    readonly totals: ReturnType<typeof sumOf>;
    readonly pause: Pause | undefined;
    readonly nowMs: number;
    readonly workers: number;
  },
): readonly string[] {
  const { scheduled, ready, running, dead, over, oldestDueAgeMs } = of.totals;
  const counts = `${scheduled} scheduled, ${ready} ready, ${running} running, ${dead} dead`;
  return fields([
    ['queue', queue],
    ['jobs', `${counts}; ${over} ended within the done window`],
    ['oldest', oldestDueAgeMs === 0 ? 'no due job waits' : `due and not started for ${span(oldestDueAgeMs)}`],
    ['workers', of.workers],
    ['paused', of.pause && pauseText(of.pause, of.nowMs)],
  ]);
}

const HEAD = ['partition', 'scheduled', 'ready', 'running', 'dead', 'over', 'waits', 'leader'];

function row({ partition, scheduled, ready, running, dead, over, oldestDueAgeMs, leader }: Partition) {
  const led = leader === undefined ? 'none: start one with "duestream start"' : leaderName(leader);
  return [partition, scheduled, ready, running, dead, over, oldestDueAgeMs > 0 ? span(oldestDueAgeMs) : undefined, led];
}

function counterLines(counters: Readonly<Record<string, number>>): readonly string[] {
  const all = Object.entries(counters).map(([name, count]) => line`${count} ${name}`);
  return fields([['so far', all.length === 0 ? 'nothing' : all.join(', ')]]);
}

/** The spans of all partitions together. */
function spansOf(all: readonly (readonly number[])[]): readonly Span[] {
  const ends = [0, ...DUE_SPANS_MS, undefined];
  return ends.map((toMs, at) => ({
    fromMs: at === 0 ? undefined : ends[at - 1],
    toMs,
    count: all.reduce((total, counts) => total + (counts[at] ?? 0), 0),
  }));
}

const BAR_CHARS = 40;

/** One bar per span; a span that holds anything is never shown as empty. */
function bars(paint: Paint, spans: readonly Span[]): readonly string[] {
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
