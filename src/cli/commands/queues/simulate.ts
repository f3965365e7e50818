/** `simulate <queue>`: what the queue would do with other limits, workers or run times, beside what it does as it is. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { simulatedWords, simulateRanges } from '../../../inspect/simulate/ask.ts';
import {
  type SimulatedGroup,
  type SimulatedRun,
  type Simulation,
  simulate as simulateQueue,
} from '../../../inspect/simulate/simulate.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples, withRedis } from '../../session.ts';
import { second } from '../../terminal/instants.ts';
import { fields, line, type Paint, table } from '../../terminal/output.ts';
import { readQueueFlags, type SettingFlags, withLineFlags } from '../../terminal/setting-flags.ts';

interface Flags extends SettingFlags {
  readonly workers?: number;
  readonly slots?: number;
  readonly runTime?: number;
  readonly until?: string;
  readonly seed: number;
}

export const simulate: Register = (parent, runner) => {
  const { workers, slots, seed } = simulateRanges;
  const command = withLineFlags(
    parent
      .command('simulate <queue>')
      .description(
        'show when the jobs of a queue would start with other limits, workers or run times; nothing is changed',
      ),
    simulatedWords,
  )
    .option('--workers <n>', 'so many workers; default: those that live', wholeNumber(workers.min, workers.max))
    .option(
      '--slots <n>',
      'so many jobs of the queue at a time in each worker; default: as now',
      wholeNumber(slots.min, slots.max),
    )
    .addOption(
      new Option('--run-time <duration>', 'each job runs for so long; default: as measured in the last day').argParser(
        time,
      ),
    )
    .option('--until <when>', 'play the jobs that become due up to then: 6h, or ISO 8601; default 24h')
    .option('--seed <n>', 'another number, other random times', wholeNumber(seed.min, seed.max), 1)
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    'duestream simulate mails --rate 5/s',
    'duestream simulate mails --rate 5/s --per-group 1 --workers 4 --run-time 200ms --until 6h',
    'duestream simulate imports --concurrency none --json',
  ]);
};

function time(text: string): number {
  try {
    return durationMs(text, '--run-time');
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}

async function run(session: Session, queue: string, flags: Flags): Promise<Exit> {
  const { workers, slots, runTime, until, seed, ...limits } = flags;
  const said = readQueueFlags(limits);
  const settings = Object.fromEntries(simulatedWords.map((word) => [word, said[word]]));
  const ask = { settings, workers, slots, runTime, until, seed };
  const { namespace } = session.config;
  const found = await withRedis(session, (redis) => simulateQueue({ redis, namespace }, queue, ask));
  session.out.answer(found, () => lines(session.out.paint, found));
  return 0;
}

function lines(paint: Paint, found: Simulation): readonly string[] {
  const { due, scheduled, coming, usual, untilMs, nowMs, asItIs, asAsked, assumptions } = found;
  const others = [`${coming} from schedules`, ...(usual === undefined ? [] : [`${usual} more as usual`])].join(', ');
  const until = second(untilMs, nowMs);
  const columns = asAsked ? [asItIs, asAsked] : [asItIs];
  const last = asAsked ?? asItIs;
  return [
    ...fields([
      ['queue', found.queue],
      ['jobs', `${counted(due, 'job')} due now; ${scheduled} become due until ${until}, ${others}`],
    ]),
    '',
    ...table(
      paint,
      asAsked ? ['', 'as it is', 'as asked'] : ['', 'as it is'],
      rows.map(([label, of]) => [label, ...columns.map((one) => of(one, nowMs))]),
    ),
    ...(last.groups.length === 0
      ? []
      : ['', ...groupLines(paint, last.groups, { nowMs, isAsked: asAsked !== undefined })]),
    '',
    'assumed:',
    ...assumptions.map((text) => line`- ${text}`),
  ];
}

type Cell = (run: SimulatedRun, nowMs: number) => string;

const rows: readonly (readonly [string, Cell])[] = [
  ['limits', ({ limits }) => limits],
  ['at a time', ({ slots }) => counted(slots, 'job')],
  ['run time', ({ runTime }) => runTime],
  ['through, due now', ({ backlogThroughMs }, nowMs) => instant(backlogThroughMs, nowMs)],
  ['through, all', ({ throughMs }, nowMs) => instant(throughMs, nowMs)],
  ['late, half', ({ p50Ms }) => late(p50Ms)],
  ['late, 99 %', ({ p99Ms }) => late(p99Ms)],
  ['late, the latest', ({ maxMs, started }) => late(started === 0 ? undefined : maxMs)],
  ['worst minute', ({ worstMinuteMs }, nowMs) => instant(worstMinuteMs, nowMs)],
  [
    'longest line',
    ({ maxLine, maxLineAtMs }, nowMs) =>
      maxLine === 0 ? 'none' : `${counted(maxLine, 'job')}, ${second(maxLineAtMs, nowMs)}`,
  ],
  ['not started', ({ left }) => (left === 0 ? '-' : `${counted(left, 'job')} within a year`)],
];

const instant = (atMs: number | undefined, nowMs: number): string => (atMs === undefined ? '-' : second(atMs, nowMs));
const late = (ms: number | undefined): string => (ms === undefined ? '-' : span(ms));

function groupLines(
  paint: Paint,
  groups: readonly SimulatedGroup[],
  { nowMs, isAsked }: { readonly nowMs: number; readonly isAsked: boolean },
): readonly string[] {
  const head = [`group${isAsked ? ', as asked' : ''}`, 'jobs', 'through', 'late, half', '99 %', 'the latest'];
  return table(
    paint,
    head,
    groups.map(({ group, jobs, throughMs, p50Ms, p99Ms, maxMs }) => [
      ...[group, jobs, instant(throughMs, nowMs), late(p50Ms), late(p99Ms), late(maxMs)],
    ]),
  );
}
