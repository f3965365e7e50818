/** The commands of `schedules` that take a definition: put and preview. */
import { type Command, Option } from 'commander';
import { previewRows, UNNAMED } from '../../../client/schedules/schedule-view.ts';
import type { LeftOut, PreviewOptions, PreviewRow } from '../../../client/schedules/schedules.ts';
import { definitionIn } from '../../../config/file.ts';
import { queueOptions } from '../../../config/load.ts';
import { optionsOfFires } from '../../../job/fields.ts';
import { queueFrom } from '../../../job/queue.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { show } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { counted } from '../../../kernel/humanize.ts';
import { inTurns } from '../../../kernel/steps.ts';
import { declareQueue } from '../../../redis/scripts/queues.ts';
import { parseSchedule, type ScheduleInput } from '../../../schedule/input.ts';
import type { Preview } from '../../../schedule/preview.ts';
import type { CalendarInput } from '../../../time/calendar.ts';
import {
  collect,
  type Exit,
  type Register,
  type Session,
  wholeNumber,
  withExamples,
  withRedis,
  withSchedules,
} from '../../session.ts';
import { readData, readInput } from '../../terminal/input.ts';
import { absoluteOf, instantOf, iso, moment } from '../../terminal/instants.ts';
import { dashed, type FlagsOfFires, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { type Invocation, line, table } from '../../terminal/output.ts';
import { stateText } from './schedules.ts';

// `schedules put <name>`: creates a schedule or changes it, from flags or from a file; the same again changes nothing.

export const schedulesPut: Register = (parent, runner) => {
  const command = parent
    .command('put <name>')
    .description('create a schedule or change it; the same definition again changes nothing')
    .option('--file <file>', 'the definition in YAML or JSON; - for stdin')
    .action((name: string, flags: DefinitionFlags, command: Command) =>
      runner.run(command, (session) => runPut(session, name, flags)),
    );
  withRuleFlags(withJobFlags(command));
  withExamples(command, [
    `duestream schedules put nightly --queue reports --cron '30 2 * * *' --zone Europe/Berlin --data '{"kind":"sales"}'`,
    'duestream schedules put poll --queue feeds --every 5m --overlap skip --catch-up skip',
    `duestream schedules put digest --queue mails --cron '0 9 * * *' --calendar '{"hours":{"mon-fri":"09:00-17:00"},"outside":"next"}'`,
    'duestream schedules put nightly --file nightly.yaml',
  ]);
};

const NEEDS = 'a schedule needs --queue, and --cron or --every; or --file with all of it';

async function runPut(session: Session, name: string, flags: DefinitionFlags): Promise<Exit> {
  if (!saysDefinition(flags)) {
    throw new DuestreamError('usage', NEEDS);
  }
  if (flags.file === undefined && flags.queue === undefined) {
    throw new DuestreamError('usage', `--queue is missing; ${NEEDS}`);
  }
  const input = await definitionOf(session.invocation, name, flags);
  const { queue } = parseSchedule(name, input, { sinceMs: systemClock.wallMs() });
  await withRedis(session, (redis) => {
    // A queue that is new takes its partitions from the configuration.
    const { partitions } = queueFrom(queue, queueOptions(session.config, queue));
    return declareQueue(redis, { namespace: session.config.namespace, queue, partitions });
  });
  const { status, view } = await withSchedules(session, async (schedules) => {
    const change = await schedules.put(name, input);
    return { ...change, view: await schedules.get(name) };
  });
  const { nextMs, paused, unreadable } = view ?? { nextMs: undefined, paused: undefined, unreadable: undefined };
  session.out.answer({ name, status, queue, nextMs, paused, unreadable }, () => [
    line`${name}  ${status}  ${nextMs !== undefined ? `next ${moment(nextMs, systemClock.wallMs())}` : stateText({ nextMs, paused, unreadable })}`,
  ]);
  return 0;
}

// The fields of a schedule on the command line: one flag per field, or a file that holds all of them. Nothing is judged
// here; the library judges a definition wherever it comes from.

interface DefinitionFlags extends FlagsOfFires {
  readonly file?: string;
  readonly queue?: string;
  readonly data?: string;
  readonly cron?: string;
  readonly every?: string;
  readonly align?: 'epoch' | 'start';
  readonly zone?: string;
  readonly dstGap?: 'shift' | 'skip';
  readonly dstOverlap?: 'first' | 'second' | 'both';
  readonly start?: string;
  readonly end?: string;
  readonly maxRuns?: number;
  readonly jitter?: string;
  readonly calendar?: string;
  readonly overlap?: 'allow' | 'skip' | 'queue' | 'replace';
  readonly catchUp?: 'skip' | 'once' | 'all';
  readonly catchUpWindow?: string;
  readonly catchUpLimit?: number;
  readonly tag?: readonly string[];
  readonly paused?: string | true;
}

const OVERLAPS = ['allow', 'skip', 'queue', 'replace'];

/** The flags that decide when it fires; a preview needs no others. */
function withRuleFlags(command: Command): Command {
  return command
    .option(
      '--cron <expression>',
      '5 fields that begin with the minute, 6 that begin with the second, or a name such as @daily',
    )
    .option('--every <duration>', 'a fixed interval of elapsed time: 90s, 15m, 1h')
    .addOption(choice('--align <where>', 'where --every counts from (default: epoch)', ['epoch', 'start']))
    .option('--zone <name>', 'the zone of the rule: an IANA name such as Europe/Berlin (default: UTC)')
    .addOption(
      choice('--dst-gap <what>', 'what to do with a local time that a clock change skips (default: shift)', [
        'shift',
        'skip',
      ]),
    )
    .addOption(
      choice('--dst-overlap <which>', 'which one counts if the clock shows a local time twice (default: first)', [
        'first',
        'second',
        'both',
      ]),
    )
    .option(
      '--start <instant>',
      'make no jobs before this instant; without an offset it is a local time of the zone; a date means the beginning of that day',
    )
    .option('--end <instant>', 'make no jobs at this instant or later; a date means the end of that day in the zone')
    .option(
      '--calendar <json>',
      'working time: {"hours":{"mon-fri":"09:00-17:00"},"skip":["12-25"],"outside":"next"}, or @file',
    )
    .option('--jitter <duration>', 'spread the due times: each job is due up to this long after its instant');
}

/** The flags of what it makes and how. */
function withJobFlags(command: Command): Command {
  command
    .option('--queue <name>', 'the queue that its jobs go to')
    .option('--data <json>', 'the data of every job: JSON, @file, or - for stdin')
    .option('--max-runs <n>', 'end the schedule after this many jobs', wholeNumber(1, 1e9))
    .addOption(choice('--overlap <what>', 'what to do while the previous job is not over (default: allow)', OVERLAPS))
    .addOption(
      choice('--catch-up <what>', 'what to do with instants that passed while no daemon ran (default: once)', [
        'skip',
        'once',
        'all',
      ]),
    )
    .option('--catch-up-window <duration>', 'make no jobs for instants that were missed longer ago (default: 1d)')
    .option(
      '--catch-up-limit <n>',
      'with --catch-up all: how many missed instants at most (default: 100)',
      wholeNumber(1, 1000),
    )
    .option('--tag <text>', 'a tag, for people and filters; may be given several times', collect)
    .option('--paused [reason]', 'create it paused: it makes no jobs until you resume it');
  return withFlags(command, optionsOfFires);
}

/** Whether any flag says a part of a definition. */
const saysDefinition = (flags: DefinitionFlags): boolean => Object.keys(flags).length > 0;

/**
 * What was written, by flags or in a file.
 *
 * @throws DuestreamError `usage`, `bad-input`
 */
async function definitionOf(invocation: Invocation, name: string, flags: DefinitionFlags): Promise<ScheduleInput> {
  const { file, ...fields } = flags;
  if (file === undefined) return fieldsOf(invocation, fields);
  const [field] = Object.keys(fields);
  if (field === undefined) return definitionIn(await readInput(invocation, file), { name, file });
  throw new DuestreamError('usage', `--file and --${dashed(field)} are both given; say it in the file`);
}

async function fieldsOf(invocation: Invocation, flags: DefinitionFlags): Promise<ScheduleInput> {
  const {
    file: _file,
    backoff: _backoff,
    header: _header,
    dstGap,
    dstOverlap,
    catchUp,
    catchUpWindow,
    catchUpLimit,
    tag,
    jobTag,
    ...plain
  } = flags;
  return {
    ...plain,
    start: absoluteOf(plain.start, '--start', { local: 'zone given' }),
    end: absoluteOf(plain.end, '--end', { local: 'zone given' }),
    queue: plain.queue ?? '',
    data: await readData(invocation, flags.data),
    calendar:
      flags.calendar === undefined ? undefined : calendarOf(await readData(invocation, flags.calendar, '--calendar')),
    ...readFlags(flags, optionsOfFires),
    dst: isGiven(dstGap, dstOverlap)
      ? { ...(dstGap ? { gap: dstGap } : {}), ...(dstOverlap ? { overlap: dstOverlap } : {}) }
      : undefined,
    catchUp: isGiven(catchUp, catchUpWindow, catchUpLimit)
      ? { policy: catchUp, window: catchUpWindow, limit: catchUpLimit }
      : undefined,
    tags: tag,
    jobTags: jobTag,
  };
}

function calendarOf(value: unknown): CalendarInput {
  if (isMapping(value)) return value;
  throw new DuestreamError(
    'bad-input',
    `--calendar is ${show(value)}; allowed: an object with hours, skip and outside`,
  );
}

/** What its fields hold is judged where definitions are. */
const isMapping = (value: unknown): value is CalendarInput =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isGiven = (...values: readonly unknown[]): boolean => values.some((value) => value !== undefined);
const choice = (flags: string, text: string, choices: readonly string[]) => new Option(flags, text).choices(choices);

// `schedules preview [name]`: what a schedule will do, with every decision of clock changes and calendars. A rule in
// flags is previewed without any Redis; with a name beside it, `H` in its cron is that of this name.

interface RangeFlags {
  readonly next?: number;
  readonly until?: string;
  readonly from?: string;
}

export const schedulesPreview: Register = (parent, runner) => {
  const command = parent
    .command('preview [name]')
    .description('show the coming instants of a schedule or of a rule, and why each one makes a job or not')
    .option(
      '--next <n>',
      'show this many instants that make jobs (default: 10 without --until)',
      wholeNumber(1, 100_000),
    )
    .option(
      '--until <instant>',
      'the end of the preview: +30d, 2026-12-31, or ISO 8601; a date means the end of that day in the zone',
    )
    .option(
      '--from <instant>',
      'the beginning of the preview: -2h, 2026-03-01, or ISO 8601; a date means the beginning of that day (default: now)',
    )
    .option('--file <file>', 'the definition in YAML or JSON; - for stdin')
    .action((name: string | undefined, flags: DefinitionFlags & RangeFlags, command: Command) =>
      runner.run(command, (session) => runPreview(session, name, flags)),
    );
  withRuleFlags(command);
  withExamples(command, [
    'duestream schedules preview nightly --next 20',
    'duestream schedules preview nightly --until +30d --json',
    `duestream schedules preview --cron '30 2 * * *' --zone America/New_York --from 2026-03-07 --next 3`,
  ]);
};

async function runPreview(
  session: Session,
  name: string | undefined,
  { next, until, from, ...definition }: DefinitionFlags & RangeFlags,
): Promise<Exit> {
  const nowMs = systemClock.wallMs();
  const range = {
    next,
    until: until === undefined ? undefined : instantOf(until, '--until', nowMs),
    from: from === undefined ? undefined : instantOf(from, '--from', nowMs),
  };
  const { rows, leftOut } = saysDefinition(definition)
    ? await previewUnstored(session, name ?? UNNAMED, { definition, range, nowMs })
    : await previewStored(session, name, range);
  const assumedName = name === undefined ? UNNAMED : undefined;
  session.out.answer({ name, assumedName, rows, leftOut }, () => [
    ...shown(session, rows),
    ...(leftOut === undefined ? [] : leftOutLines(leftOut)),
    ...(assumedName === undefined
      ? []
      : [line`ids, H and jitter follow from the name; this preview uses the name ${UNNAMED}`]),
  ]);
  return 0;
}

async function previewUnstored(
  { invocation }: Session,
  name: string,
  { definition, range, nowMs }: { definition: DefinitionFlags; range: PreviewOptions; nowMs: number },
): Promise<Preview> {
  const input = await definitionOf(invocation, name, definition);
  // It may be asked about the past; only what counts from its put counts from now.
  const since = { sinceMs: 0, anchorMs: nowMs };
  const schedule = parseSchedule(name, { ...input, queue: input.queue || 'preview' }, since);
  return inTurns(previewRows(schedule, range, { nowMs }));
}

async function previewStored(session: Session, name: string | undefined, range: PreviewOptions): Promise<Preview> {
  if (name === undefined) {
    throw new DuestreamError('usage', 'a preview needs the name of a schedule, or a rule: --cron, --every or --file');
  }
  let leftOut: LeftOut | undefined;
  const onLeftOut = (told: LeftOut) => {
    leftOut = told;
  };
  const rows = await withSchedules(session, (schedules) => schedules.preview(name, { ...range, onLeftOut }));
  return { rows, leftOut };
}

function shown({ out }: Session, rows: readonly PreviewRow[]): readonly string[] {
  if (rows.length === 0) return ['no instant in this range'];
  const first = rows.find(({ id }) => id !== undefined);
  return [
    ...table(
      out.paint,
      ['local time', 'UTC', 'offset', 'clock change', 'note'],
      rows.map((row) => [
        row.local.replace('T', ' '),
        iso(row.atMs).replace('.000Z', 'Z'),
        row.offset,
        row.dst && row.named !== undefined ? `${row.dst}, from ${row.named.slice(11)}` : row.dst,
        noteOf(row),
      ]),
    ),
    ...(first?.id === undefined ? [] : [line`the first job will be ${first.id}`]),
  ];
}

function noteOf({ id, calendar, dropped, leftOut }: PreviewRow): string | undefined {
  const note = id === undefined ? `no job: ${dropped}` : calendar;
  return leftOut === undefined ? note : `${note}, and ${leftOut} more`;
}

function leftOutLines({ dropped, later, atLeast, upToMs }: LeftOut): readonly string[] {
  return [
    ...(dropped === 0
      ? []
      : [line`${counted(dropped, 'instant')} without a job ${dropped === 1 ? 'is' : 'are'} left out`]),
    ...(later === 0 && !atLeast
      ? []
      : [
          line`${atLeast ? 'at least ' : ''}${counted(later, 'later job')} left out; --from ${iso(upToMs)} goes on there`,
        ]),
  ];
}
