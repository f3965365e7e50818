/**
 * The fields of a schedule on the command line: one flag per field, or a file that holds all of them. Nothing is judged
 * here; the library judges a definition wherever it comes from.
 */
import { type Command, Option } from 'commander';
import { definitionIn } from '../../../config/schedule-file.ts';
import { optionsOfFires } from '../../../job/fields.ts';
import { show } from '../../../kernel/duration.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import type { ScheduleInput } from '../../../schedule/input.ts';
import type { CalendarInput } from '../../../time/calendar.ts';
import { collect, wholeNumber } from '../../register.ts';
import { readData, readInput } from '../../terminal/input.ts';
import { absoluteOf } from '../../terminal/instants.ts';
import { dashed, type FlagsOfFires, readFlags, withFlags } from '../../terminal/job-flags.ts';
import type { Invocation } from '../../terminal/screen.ts';

export interface DefinitionFlags extends FlagsOfFires {
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
export function withRuleFlags(command: Command): Command {
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
export function withJobFlags(command: Command): Command {
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
export const saysDefinition = (flags: DefinitionFlags): boolean => Object.keys(flags).length > 0;

/**
 * What was written, by flags or in a file.
 *
 * @throws DuestreamError `usage`, `bad-input`
 */
export async function definitionOf(
  invocation: Invocation,
  name: string,
  flags: DefinitionFlags,
): Promise<ScheduleInput> {
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
