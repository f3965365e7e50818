/** `forecast`: how many jobs come due per minute or hour, from what waits in Redis and from the schedules, as bars. */
import { type Command, Option } from 'commander';
import type { Forecast, ForecastBucket } from '../../../client/schedules/forecast.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { counted, span } from '../../../kernel/humanize.ts';
import { type Exit, type Register, type Session, withExamples, withSchedules } from '../../session.ts';
import { instantOf } from '../../terminal/instants.ts';
import { fields, line, type Paint, unreadLines } from '../../terminal/output.ts';

interface Flags {
  readonly until: string;
  readonly by: 'minute' | 'hour' | 'auto';
  readonly queue?: string;
}

export const forecast: Register = (parent, runner) => {
  const command = parent
    .command('forecast')
    .description(
      'show how many jobs become due per minute or hour: those that wait now, and those that schedules will make',
    )
    .option(
      '--until <instant>',
      'the end of the forecast: +24h, 2026-03-08, or ISO 8601; a date means the end of that day in UTC',
      '+24h',
    )
    .addOption(
      new Option(
        '--by <unit>',
        'count per minute or per hour; auto counts per minute if the end is at most two hours away',
      )
        .choices(['minute', 'hour', 'auto'])
        .default('auto'),
    )
    .option('--queue <name>', 'only the jobs of this queue')
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, [
    'duestream schedules forecast',
    'duestream schedules forecast --until +2h --queue emails',
    'duestream schedules forecast --until +7d --by hour --json',
  ]);
};

async function run(session: Session, { until, by, queue }: Flags): Promise<Exit> {
  const range = { until: instantOf(until, '--until', systemClock.wallMs()), by, queue };
  const found = await withSchedules(session, (schedules) => schedules.forecast(range));
  session.out.answer(found, () => [
    ...head(found),
    '',
    ...barsOf(session.out.paint, found),
    ...backlogLines(found),
    ...notes(found),
    ...unreadLines(found.unread),
  ]);
  return found.unread.length === 0 ? 0 : 1;
}

function head({ buckets, busiest, overdue, ready, by }: Forecast): readonly string[] {
  const sum = (of: 'jobs' | 'scheduled' | 'coming') => buckets.reduce((total, bucket) => total + bucket[of], 0);
  const all = sum('jobs');
  return fields([
    ['comes due', `${counted(all, 'job')}: ${sum('scheduled')} wait now, ${sum('coming')} from schedules`],
    ['overdue', overdue],
    ['ready', ready],
    ['busiest', busiest && `${minuteText(busiest.fromMs)} UTC, ${counted(busiest.jobs, 'job')} in this ${by}`],
  ]);
}

/** When the rates will be through with what waits in line, and with what becomes due until then. */
function backlogLines({ backlogs, atMs, untilMs }: Forecast): readonly string[] {
  const lines = backlogs.map(({ queue, rate, waiting, waitingThroughMs, throughMs, left }) => {
    const now = `${counted(waiting, 'job')} wait in line, and the rate ${rate} takes ${span(waitingThroughMs - atMs)} for them at the least`;
    const then =
      throughMs === undefined
        ? `with what becomes due ${left} still wait at ${minuteText(untilMs)}`
        : `with what becomes due all are through at ${minuteText(throughMs)}`;
    return line`${queue}: ${now}; ${then} UTC`;
  });
  return lines.length === 0 ? [] : ['', ...lines];
}

function notes({ schedules, paused }: Forecast): readonly string[] {
  const { counted: known, paused: resting, unreadable, uncounted, estimated } = schedules;
  const sampled = estimated === 0 ? '' : `, ${estimated} of them estimated from schedules with the same rule but for H`;
  const others = [
    ...(resting === 0 ? [] : [`${resting} paused`]),
    ...(unreadable === 0 ? [] : [`${unreadable} that cannot be read`]),
    ...(uncounted === 0 ? [] : [`${uncounted} with too many instants`]),
  ];
  const without = others.length === 0 ? '' : `; not ${others.join(', ')}`;
  return [
    '',
    line`${counted(known, 'schedule')} counted at their instants, without jitter${sampled}${without}`,
    ...(paused.length === 0 ? [] : [line`paused queues, whose jobs wait: ${paused.slice(0, 10).join(', ')}`]),
  ];
}

const minuteText = (atMs: number) => new Date(atMs).toISOString().slice(0, 16).replace('T', ' ');

const BAR_CHARS = 48;
const WAITING = '█';
const COMING = '░';
/** So many empty buckets in a row become one line. */
const REST_MIN = 4;

/** A forecast as bars in 80 columns. A bucket with a job has at least one cell; a long run of empty buckets is one line. */
function barsOf(paint: Paint, { buckets, by }: Pick<Forecast, 'buckets' | 'by'>): readonly string[] {
  const most = Math.max(...buckets.map(({ jobs }) => jobs));
  if (most === 0) return ['no job becomes due'];
  const perChar = scaleOf(most);
  const width = Math.max(4, String(most).length);
  const legend = `${WAITING} waits now  ${COMING} from schedules; one character is ${counted(perChar, 'job')}`;
  const head = paint.dim(`${`by ${by}, UTC`.padEnd(16)}  ${'jobs'.padStart(width)}  ${legend}`);
  const rows: string[] = [];
  for (let at = 0; at < buckets.length; ) {
    const rest = restFrom(buckets, at);
    if (rest >= REST_MIN)
      rows.push(paint.dim(`${' '.repeat(16)}  ${'0'.padStart(width)}  ${rest} ${by}s without a job`));
    else rows.push(...buckets.slice(at, at + Math.max(1, rest)).map((bucket) => row(bucket, perChar, width)));
    at += Math.max(1, rest);
  }
  return [head, ...rows];
}

/** 1, 2 or 5 times a power of ten, so that the longest bar fits. */
function scaleOf(most: number): number {
  for (let power = 1; ; power *= 10) {
    const fits = [1, 2, 5].find((digit) => most / (digit * power) <= BAR_CHARS - 1);
    if (fits !== undefined) return fits * power;
  }
}

function restFrom(buckets: readonly ForecastBucket[], from: number): number {
  const next = buckets.findIndex(({ jobs }, at) => at >= from && jobs > 0);
  return (next < 0 ? buckets.length : next) - from;
}

function row({ fromMs, jobs, scheduled, coming }: ForecastBucket, perChar: number, width: number): string {
  const bar = WAITING.repeat(Math.ceil(scheduled / perChar)) + COMING.repeat(Math.ceil(coming / perChar));
  const time = new Date(fromMs).toISOString().slice(0, 16).replace('T', ' ');
  return `${time}  ${String(jobs).padStart(width)}  ${bar}`.trimEnd();
}
