/**
 * What people write of a schedule → a checked definition. The same grammar for calls, for files and for what is stored,
 * so that a client in any language can write it, and that everything can be read again that was ever accepted.
 */
import { encodeBody } from '../job/codec.ts';
import { Sealed, seal } from '../job/content.ts';
import { DataText } from '../job/data-json.ts';
import { headerOf, optionsOfFires, overridesOf } from '../job/fields.ts';
import { parseJobName, parseName } from '../job/job.ts';
import { asText } from '../job/labels.ts';
import type { OptionsOfFires, ScheduleOptions } from '../job/options.ts';
import { type Queue, queueOf } from '../job/queue.ts';
import { refuseRedacted } from '../job/redaction.ts';
import type { InputIn, NamedData, NameIn } from '../job/types.ts';
import { isPromise, noOption, WORDS_CHARS_MAX, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationMs, type InstantInput, show } from '../kernel/duration.ts';
import { DuestreamError, oneLine } from '../kernel/errors.ts';
import { snapshot } from '../kernel/snapshot.ts';
import { atOnce, within } from '../kernel/steps.ts';
import { type CalendarInput, parseCalendar } from '../time/calendar.ts';
import { parseCron } from '../time/cron.ts';
import { nextFire, SEARCH_YEARS } from '../time/recurrence.ts';
import { DEFAULT_DST, type DstPolicy, momentOf, parseZone, zoneNamed } from '../time/zone.ts';
import { type CatchUp, type OverlapPolicy, parseScheduleName, recurrenceOf, type Schedule } from './schedule.ts';

/** What a schedule is: where its jobs go, when it fires, and the options of its jobs. */
export interface ScheduleInput<Data = unknown> extends OptionsOfFires {
  /** The queue its jobs go to. */
  readonly queue: string;
  /** Picks the handler. Default `default`. */
  readonly job?: string | undefined;
  /** Tags of each of its jobs: at most 10 of 64 characters. Its own are `tags`. */
  readonly jobTags?: readonly string[] | undefined;
  readonly data?: Data | undefined;
  /** The codec that has encoded `data`, which is a text then. `put` says it for a queue that has one. */
  readonly codec?: string | undefined;
  /** 5 fields (minute first), 6 (second first), or `@daily` and its like. Either this or `every`. */
  readonly cron?: string | undefined;
  /** A fixed interval of elapsed time, from 1 s: `"15m"`. */
  readonly every?: DurationInput | undefined;
  /** Where `every` counts from: `epoch` (default: a full hour for `1h`), or `start`, the schedule's start. */
  readonly align?: 'epoch' | 'start' | undefined;
  /** IANA name. Default UTC. */
  readonly zone?: string | undefined;
  /** What to do with local times that a clock change skips or doubles. Default `{ gap: 'shift', overlap: 'first' }`. */
  readonly dst?: Partial<DstPolicy> | undefined;
  /** No instant before it. An instant, or a local time such as `2026-03-01T09:00`, which is meant in `zone`. */
  readonly start?: InstantInput | undefined;
  /** No instant at it or later; a date without a time means the end of that day. */
  readonly end?: InstantInput | undefined;
  /** The schedule ends after this many jobs. 1 to 1,000,000,000. */
  readonly maxRuns?: number | undefined;
  /** Spreads the due times: each job is due up to this long after its instant. At most 1 d. Default 0. */
  readonly jitter?: DurationInput | undefined;
  readonly calendar?: CalendarInput | undefined;
  /** What to do while the previous job is not over. Default `allow`. */
  readonly overlap?: OverlapPolicy | undefined;
  /** What to do with missed instants: a policy, perhaps with a `window` (default 1 d) and a `limit` (default 100). */
  readonly catchUp?: CatchUp['policy'] | CatchUpInput | undefined;
  /** For people and filters; at most 16 of 1 to 64 characters. */
  readonly tags?: readonly string[] | undefined;
  /** Paused: a reason, or `true`. A paused schedule makes no jobs. */
  readonly paused?: string | boolean | undefined;
}

interface CatchUpInput {
  readonly policy?: CatchUp['policy'] | undefined;
  readonly window?: DurationInput | undefined;
  readonly limit?: number | undefined;
}

/** Of the schedule itself; besides it has those of its jobs. */
const OWN_FIELDS =
  'queue data codec cron every align zone dst start end maxRuns jitter calendar overlap catchUp tags paused';
const FIELDS = [...OWN_FIELDS.split(' '), ...optionsOfFires.map(({ name }) => name)];
const NO_TAGS: readonly string[] = Object.freeze([]);
/** Working times that a rule may miss before it is accepted as it is: thirty years of one a week are less. */
const CHECKED_MAX = 2000;
const SECOND_MS = 1000;
const DAY_MS = 86_400_000;
/** Every job has a copy. */
const BODY_BYTES_MAX = 262_144;
const OVERLAPS: readonly OverlapPolicy[] = ['allow', 'skip', 'queue', 'replace'];
const POLICIES: readonly CatchUp['policy'][] = ['skip', 'once', 'all'];

export interface ScheduleFrom {
  /** Instants before it do not count. */
  readonly sinceMs: number;
  /** Where `align: start` counts from without a start. Default `sinceMs`. */
  readonly anchorMs?: number | undefined;
  /** Up to where a clock that was ahead had fired it before. */
  readonly aheadMs?: number | undefined;
  /** Why somebody paused it by hand, perhaps ''; undefined: nobody did. */
  readonly hand?: string | undefined;
  /** It was accepted before: it is read as it was then, and whether it has any instant is not computed again. */
  readonly isStored?: boolean;
}

/** @throws DuestreamError `bad-input` that names schedule, field, what was given and what is allowed */
export function parseSchedule(name: string, input: ScheduleInput, from: ScheduleFrom): Schedule {
  const { sinceMs, isStored = false } = from;
  try {
    const schedule = read(parseScheduleName(name), input, from);
    if (!isStored) checkInstants(schedule, sinceMs);
    return schedule;
  } catch (error) {
    if (!(error instanceof DuestreamError) || error.message.startsWith('schedule ')) throw error;
    throw new DuestreamError('bad-input', `schedule ${name}: ${error.message}`, { cause: error });
  }
}

function checkInstants(schedule: Schedule, sinceMs: number): void {
  const fromMs = schedule.startMs ?? sinceMs;
  if (schedule.endMs !== undefined) return;
  const budget = { left: CHECKED_MAX };
  const found = atOnce(within(nextFire(recurrenceOf(schedule), fromMs), budget));
  // What takes longer is not refused: whoever puts a schedule may be a leader, and all that it leads would wait.
  if (found !== undefined || budget.left === 0) return;
  const from = new Date(fromMs).toISOString();
  throw new DuestreamError(
    'bad-input',
    `cron and calendar leave no instant at all in the ${SEARCH_YEARS} years after ${from}; allowed: at least one`,
  );
}

function read(name: string, input: ScheduleInput, from: ScheduleFrom): Schedule {
  const { sinceMs, anchorMs = sinceMs, aheadMs, hand, isStored = false } = from;
  checkFields('a schedule', input, FIELDS);
  // What was accepted before is read again, also where it is not accepted any more.
  const zone = (isStored ? zoneNamed : parseZone)(input.zone ?? 'UTC');
  const dst = dstOf(input.dst);
  const startMs = momentOf(input.start, { what: 'start', zone, dst });
  const endMs = momentOf(input.end, { what: 'end', zone, dst, date: 'next' });
  if (endMs !== undefined && endMs <= (startMs ?? 0)) throw bad('end', input.end, 'an instant after the start');
  if (input.calendar !== undefined) checkCalendar(input.calendar);
  // Plain fields: a midnight reads 100,000 of these, and a spread takes longer than all the rest.
  return Object.freeze({
    name,
    queue: parseName(input.queue, 'queue'),
    sinceMs,
    aheadMs,
    zone: zone.name,
    dst,
    startMs,
    endMs,
    body: bodyOf(input),
    header: headerOf(optionsIn(input), 0),
    rule: ruleOf(name, input, startMs ?? anchorMs),
    calendar: input.calendar,
    maxRuns:
      input.maxRuns === undefined ? undefined : wholeNumber(input.maxRuns, { what: 'maxRuns', min: 1, max: 1e9 }),
    jitterMs: between(input.jitter ?? 0, 'jitter', [0, DAY_MS]),
    overlap: oneOf('overlap', input.overlap ?? 'allow', OVERLAPS),
    catchUp: catchUpOf(input.catchUp ?? 'once'),
    tags: tagsOf(input.tags ?? NO_TAGS, isStored),
    paused: hand === undefined ? pausedOf(input.paused, isStored) : pausedOf(hand || true, true),
  });
}

/** The tags of a schedule are not those of its jobs. */
function optionsIn(input: ScheduleInput): ScheduleOptions {
  const { tags, jobTags } = input;
  return tags === undefined && jobTags === undefined ? input : { ...input, tags: jobTags };
}

function bodyOf(input: ScheduleInput): string {
  const { data, codec } = input;
  const sealed = codec === undefined ? data : sealedBy(data, codec);
  const body = encodeBody({ name: parseJobName(input.job), data: sealed }, overridesOf(input, 0));
  const bytes = Buffer.byteLength(body);
  if (bytes <= BODY_BYTES_MAX) return body;
  throw new DuestreamError(
    'bad-input',
    `data is ${bytes} bytes of JSON; allowed: ${BODY_BYTES_MAX} bytes; store it elsewhere and name it in the data`,
  );
}

function sealedBy(data: unknown, codec: string): Sealed {
  if (typeof data === 'string' && typeof codec === 'string') return new Sealed(data, codec);
  throw bad('data', data, 'with codec, the text that it encoded');
}

function ruleOf(name: string, { cron, every, align = 'epoch' }: ScheduleInput, startMs: number): Schedule['rule'] {
  if ((cron === undefined) === (every === undefined)) {
    throw new DuestreamError(
      'bad-input',
      `${cron === undefined ? 'neither cron nor every is' : 'both cron and every are'} given; allowed: one of them`,
    );
  }
  if (cron !== undefined) return { cron: parseCron(cron, name).text };
  oneOf('align', align, ['epoch', 'start']);
  const everyMs = between(every ?? 0, 'every', [SECOND_MS, 3650 * DAY_MS]);
  return { everyMs, anchorMs: align === 'start' ? startMs : 0 };
}

function dstOf(input?: Partial<DstPolicy>): DstPolicy {
  if (input === undefined) return DEFAULT_DST;
  checkFields('dst', input, ['gap', 'overlap']);
  return {
    gap: oneOf('dst.gap', input.gap ?? DEFAULT_DST.gap, ['shift', 'skip']),
    overlap: oneOf('dst.overlap', input.overlap ?? DEFAULT_DST.overlap, ['first', 'second', 'both']),
  };
}

function checkCalendar(input: CalendarInput): void {
  checkFields('calendar', input, ['skip', 'hours', 'outside']);
  parseCalendar(input);
}

function catchUpOf(input: NonNullable<ScheduleInput['catchUp']>): CatchUp {
  const given = typeof input === 'object' ? input : { policy: input };
  checkFields('catchUp', given, ['policy', 'window', 'limit']);
  return {
    policy: oneOf('catchUp', given.policy ?? 'once', POLICIES),
    windowMs: between(given.window ?? DAY_MS, 'catchUp.window', [0, 366 * DAY_MS]),
    limit: wholeNumber(given.limit ?? 100, { what: 'catchUp.limit', min: 1, max: 1000 }),
  };
}

function tagsOf(given: readonly string[], isStored: boolean): readonly string[] {
  if (given === NO_TAGS) return NO_TAGS;
  if (!Array.isArray(given) || given.length > 16) throw bad('tags', given, TAGS);
  // Numbers were taken once, and kept as they were.
  const input: readonly unknown[] = isStored ? given.map(String) : given;
  const at = input.findIndex((tag) => typeof tag !== 'string' || !/^[!-~]{1,64}$/.test(tag));
  if (at < 0) return [...new Set(input as readonly string[])];
  const wrong = input[at];
  throw bad('a tag', wrong, `${TAGS}${asText(wrong)}`);
}

const TAGS = 'at most 16 texts of 1 to 64 printable ASCII characters without space';

/** What YAML 1.1, forms and people write for true and false; YAML 1.2 reads all of it as texts. */
const SWITCH = /^\s*(|true|false|yes|no|y|n|on|off|0|1|null|none|~)\s*$/i;

function pausedOf(input: ScheduleInput['paused'], isStored: boolean): string | undefined {
  if (input === undefined || input === false) return undefined;
  if (input === true) return '';
  const isReason = typeof input === 'string' && input.length <= WORDS_CHARS_MAX;
  if (isReason && (isStored || !SWITCH.test(input))) return oneLine(input);
  const hint = isReason ? '. A text is the reason for which it is paused, and this one reads like true or false' : '';
  throw bad('paused', input, `true, false, or a reason of at most ${WORDS_CHARS_MAX} characters${hint}`);
}

function between(input: DurationInput, what: string, [min, max]: readonly [number, number]): number {
  const value = durationMs(input, what);
  if (value >= min && value <= max) return value;
  throw bad(what, input, `${min} ms to ${max / DAY_MS} d`);
}

function oneOf<T extends string>(what: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  throw bad(what, value, allowed.join(', '));
}

function checkFields(what: string, input: object, allowed: readonly string[]): void {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) throw bad(what, input, 'an object');
  const unknown = Object.keys(input).find((field) => !allowed.includes(field));
  if (unknown === undefined) return;
  throw noOption(unknown, allowed, what, 'bad-input');
}

function bad(what: string, given: unknown, allowed: string): DuestreamError {
  return new DuestreamError('bad-input', `${what} is ${show(given)}; allowed: ${allowed}`);
}

// A schedule that names its queue by what `defineQueue` returned → one that names it by name: its data is checked and
// encoded as that of a single job is. All of its jobs have the same data, so this happens once, when it is put.

type Rest = Omit<ScheduleInput, 'queue' | 'job' | 'data' | 'codec'>;

/** A schedule whose jobs go to a defined queue, which says what their data is. */
export type QueueSchedule<Data> = Rest & {
  readonly queue: Queue<Data>;
  readonly job?: string | undefined;
  readonly data?: Data | undefined;
};

/** The same of a queue with `jobs`: `job` is one of their names. */
export type NamedSchedule<Jobs> = {
  readonly [Name in keyof Jobs]: Rest &
    NameIn<'job', Name> & { readonly queue: Queue<NamedData<Jobs>>; readonly data: InputIn<Jobs, Name> };
}[keyof Jobs];

/** What `put` takes, whatever the compiler knew. */
export type AnySchedule = ScheduleInput | QueueSchedule<unknown>;

/** @throws DuestreamError `bad-input`; the promise of a schema or codec that takes its time rejects with the same */
export function plainSchedule(input: AnySchedule): ScheduleInput | Promise<ScheduleInput> {
  const { queue: given, ...fields } = input;
  const rest = snapshot(fields);
  // What is no object is checked with the other fields of the schedule.
  if (typeof given !== 'object' || given === null) return { ...rest, queue: given };
  const queue = queueOf(given);
  refuseRedacted(rest.data, queue.redact);
  // As it was read: another time would encode what is encoded.
  if ('codec' in rest && rest.codec !== undefined) return { ...rest, queue: queue.name };
  const sealed = seal(queue, { name: rest.job, data: rest.data });
  const plain = (data: unknown): ScheduleInput => ({ ...rest, queue: queue.name, ...dataOf(data) });
  return isPromise(sealed) ? sealed.then(plain) : plain(sealed);
}

function dataOf(data: unknown): Pick<ScheduleInput, 'data' | 'codec'> {
  if (data instanceof Sealed) return { data: data.text, codec: data.codec };
  return data instanceof DataText ? { data: JSON.parse(data.json) } : {};
}
