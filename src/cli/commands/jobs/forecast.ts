/** `forecast`: how many jobs come due per minute or hour, from what waits in Redis and from the schedules, as bars. */

import { type Command, Option } from 'commander';
import type { Forecast } from '../../../client/schedules/schedules.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { counted } from '../../../kernel/humanize.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withSchedules } from '../../session.ts';
import { instantOf } from '../../terminal/instants.ts';
import { fields, line } from '../../terminal/text.ts';
import { barsOf } from './forecast-bars.ts';

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
    'duestream forecast',
    'duestream forecast --until +2h --queue emails',
    'duestream forecast --until +7d --by hour --json',
  ]);
};

async function run(session: Session, { until, by, queue }: Flags): Promise<Exit> {
  const range = { until: instantOf(until, '--until', systemClock.wallMs()), by, queue };
  const found = await withSchedules(session, (schedules) => schedules.forecast(range));
  session.out.answer(found, () => [...head(found), '', ...barsOf(session.out.paint, found), ...notes(found)]);
  return 0;
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
