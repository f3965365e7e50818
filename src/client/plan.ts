/**
 * What a producer says → what is sent: a member, a record and an absolute due. All that can be wrong with a job is said
 * here, before anything is sent, so that one bad job never costs its neighbours in the same script call. Pure: the
 * clock's reading is passed in, and the same plan can be sent again and is the same call.
 */
import { encodeBody, encodeRecord, type JobOverrides, memberOf } from '../core/codec.ts';
import { type DurationInput, durationMs, type InstantInput, instantMs, show } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import { newJobId, parseJobId, parseJobName } from '../core/job.ts';
import { type LatenessOptions, latenessOf } from '../core/lateness.ts';
import { momentOf } from '../core/moment.ts';
import { hintOf } from '../core/nearest.ts';
import { type OverrideOptions, overridesOf } from '../core/overrides.ts';
import { DEFAULT_DST, parseZone } from '../core/recurring/zone.ts';

/** What to do when a job of the same id lives already. */
export type IfExists = 'keep' | 'replace' | 'error';

/** When a job runs, and how it differs from its queue's other jobs. */
export interface ScheduleOptions extends LatenessOptions, OverrideOptions {
  /** Wait this long from now: milliseconds, `"5m"`, `"PT1H30M"`; 0 to the producer's horizon. Not together with `at`. */
  readonly delay?: DurationInput | undefined;
  /** Run at this instant: a `Date`, an ISO 8601 text with offset or Z, a luxon `DateTime`. A past instant means now. */
  readonly at?: InstantInput | undefined;
  /**
   * The IANA zone in which an `at` without offset, such as `"2026-03-08T09:00"`, is a local time. If a clock change
   * skips that time, the job is later by the gap; if the time comes twice, the first one counts. Schedules do the same.
   */
  readonly zone?: string | undefined;
  /** 1 to 128 printable ASCII characters without space, `{` and `}`. Default: a new uuid v7 in 22 characters. */
  readonly id?: string | undefined;
  /** Picks the handler: 1 to 64 of `A-Z a-z 0-9 . _ : -`. Default `default`. */
  readonly name?: string | undefined;
  /**
   * What to do when a job of this id is scheduled, ready or running: `keep` (default) leaves it, `replace` puts this job in
   * its place unless it runs, `error` throws `exists`. The same call again is no conflict: its status is `already`.
   */
  readonly ifExists?: IfExists | undefined;
}

/** One job, ready to be sent any number of times. */
export interface Plan {
  readonly id: string;
  readonly member: string;
  readonly record: string;
  readonly dueMs: number;
  readonly bytes: number;
  readonly mode: 'keep' | 'replace';
  /** A live job of this id is an error. */
  readonly strict: boolean;
}

export interface PlanLimits {
  readonly horizonMs: number;
  readonly dataBytesMax: number;
  /** The primary's clock, never behind it. */
  readonly nowMs: number;
}

/** Smaller instants are seconds taken for milliseconds; the mover would make dead letters of them. */
const EARLIEST_MS = 1e11;
const DAY_MS = 86_400_000;
const MODES: readonly IfExists[] = ['keep', 'replace', 'error'];
/** Every option, also for those who read them from a file. */
export const scheduleOptionNames = [
  'delay',
  'at',
  'zone',
  'id',
  'name',
  'ifExists',
  'attempts',
  'timeout',
  'backoff',
  'expiresAt',
  'maxLateness',
  'onLate',
] as const satisfies readonly (keyof ScheduleOptions)[];
const OPTIONS: ReadonlySet<string> = new Set(scheduleOptionNames);

/** @throws DuestreamError `bad-input` that says what was given and what is allowed. */
export function planJob(data: unknown, options: ScheduleOptions, limits: PlanLimits): Plan {
  checkNames(options);
  const { ifExists = 'keep' } = options;
  if (!MODES.includes(ifExists)) {
    throw new DuestreamError('bad-input', `ifExists is ${show(ifExists)}; allowed: keep, replace, error`);
  }
  const id = options.id === undefined ? newJobId() : parseJobId(options.id);
  const job = { name: parseJobName(options.name), data, ...overridesOf(options) };
  const body = encodeBody(job);
  const bodyBytes = Buffer.byteLength(body);
  if (bodyBytes > limits.dataBytesMax) checkDataBytes(job, bodyBytes, limits.dataBytesMax);
  const dueMs = dueOf(options, limits);
  const record = encodeRecord(dueMs, body, latenessOf(options, dueMs));
  const member = memberOf(id);
  const bytes = bodyBytes + record.length - body.length + member.length;
  return {
    id,
    member,
    record,
    dueMs,
    bytes,
    mode: ifExists === 'replace' ? 'replace' : 'keep',
    strict: ifExists === 'error',
  };
}

/** The absolute due of a delay, an instant, or neither (now). @throws DuestreamError `bad-input` */
export function dueOf(
  { delay, at, zone }: Pick<ScheduleOptions, 'delay' | 'at' | 'zone'>,
  { horizonMs, nowMs }: Pick<PlanLimits, 'horizonMs' | 'nowMs'>,
): number {
  if (at !== undefined) {
    if (delay !== undefined) {
      throw new DuestreamError(
        'bad-input',
        `delay is ${show(delay)} and at is ${show(at)}; allowed: one of them, or neither`,
      );
    }
    const dueMs = zone === undefined ? instantMs(at, 'at') : localMs(at, zone);
    if (dueMs >= EARLIEST_MS && dueMs <= nowMs + horizonMs) return dueMs;
    const allowed = `${textOf(EARLIEST_MS)} to ${textOf(nowMs + horizonMs)} (the horizon of ${days(horizonMs)})`;
    throw new DuestreamError('bad-input', `at is ${textOf(dueMs)}; allowed: ${allowed}`);
  }
  if (zone !== undefined) {
    throw new DuestreamError(
      'bad-input',
      `zone is ${show(zone)} without at; allowed: a zone together with a local time in at`,
    );
  }
  if (delay === undefined) return Math.floor(nowMs);
  const delayMs = durationMs(delay, 'delay');
  if (delayMs > horizonMs) {
    throw new DuestreamError(
      'bad-input',
      `delay is ${show(delay)}; allowed: 0 to ${horizonMs} ms (the horizon of ${days(horizonMs)})`,
    );
  }
  // Rounded up, because a part of a millisecond too soon is too soon; nothing can be too soon for a delay of 0.
  return delayMs === 0 ? Math.floor(nowMs) : Math.ceil(nowMs + delayMs);
}

function localMs(at: InstantInput, zone: string): number {
  return momentOf(at, { what: 'at', zone: parseZone(zone), dst: DEFAULT_DST }) ?? 0;
}

/** A misspelt `delay` would otherwise run at once. */
function checkNames(options: ScheduleOptions): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new DuestreamError('bad-input', `options are ${show(options)}; allowed: an object`);
  }
  for (const name in options) {
    if (OPTIONS.has(name)) continue;
    const near = hintOf(name, scheduleOptionNames) || ';';
    throw new DuestreamError(
      'bad-input',
      `unknown option ${show(name)}${near} allowed: ${scheduleOptionNames.join(', ')}`,
    );
  }
}

/** The body is over the limit; its data alone may be not. */
function checkDataBytes(job: { readonly name: string } & JobOverrides, bodyBytes: number, dataBytesMax: number): void {
  const rest = encodeBody({ ...job, data: undefined });
  const bytes = bodyBytes - Buffer.byteLength(rest) - '"d":'.length - (rest === '{}' ? 0 : 1);
  if (bytes <= dataBytesMax) return;
  throw new DuestreamError(
    'bad-input',
    `data is ${bytes} bytes of JSON; allowed: ${dataBytesMax} bytes; store it elsewhere and schedule a reference to it`,
  );
}

const days = (ms: number) => `${Math.floor(ms / DAY_MS)} days`;

/** An instant for a message; a number where a Date cannot hold it. */
function textOf(epochMs: number): string {
  const date = new Date(Math.floor(epochMs));
  return Number.isNaN(date.getTime()) ? String(epochMs) : date.toISOString();
}
