/**
 * What a producer says → what is sent: a member, a record and an absolute due. All that can be wrong with a job is said
 * here, before anything is sent, so that one bad job never costs its neighbours in the same script call. Pure: the
 * clock's reading is passed in, and the same plan can be sent again and is the same call.
 */
import { encodeBody, encodeRecord, memberOf } from '../../job/codec.ts';
import { debounceLetter, withOrder } from '../../job/debounce.ts';
import { allOptions, editFields, headerOf, type JobOverrides, NOTHING, overridesOf } from '../../job/fields.ts';
import { parseJobId } from '../../job/job.ts';
import { newJobId } from '../../job/job-id.ts';
import { type Carry, COUNTED_ENTRY, groupedId, groupOf, memberId, TAGS_MAX } from '../../job/labels.ts';
import { jobOptions, type ScheduleOptions } from '../../job/options.ts';
import type { Queue } from '../../job/queue.ts';
import { countedRecord, entriesOfRecord, lateRecord } from '../../job/record-header.ts';
import { noOption } from '../../kernel/checks.ts';
import { type InstantInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { spreadMs } from '../../kernel/spread.ts';
import { DEFAULT_DST, momentOf, parseZone } from '../../time/zone.ts';
import { type Needs, needsOf } from './needs.ts';

/** One job, ready to be sent any number of times. */
export interface Plan {
  readonly id: string;
  readonly member: string;
  readonly record: string;
  readonly dueMs: number;
  readonly bytes: number;
  readonly mode: 'keep' | 'replace' | 'update' | 'debounce';
  /** Of an update: what of a job that waits is to be as this one says: `data`, `name`, `at` (its due time), options. */
  readonly names?: readonly string[] | undefined;
  /** A live job of this id is an error. */
  readonly strict: boolean;
  /** What only some queues can honour; undefined: any queue will do. */
  readonly needs?: Needs | undefined;
  /** Nobody said a time: in strict order its partition gives it the next one of its group. */
  readonly isNow?: true | undefined;
  /** The same call may have been carried out before, by somebody else: a debounce call that is overtaken then is done. */
  readonly isRepeated?: boolean;
  /** Its id was made for it, so no other call under way means it. */
  readonly isNewId?: boolean;
}

export interface PlanLimits {
  readonly horizonMs: number;
  readonly dataBytesMax: number;
  /** The primary's clock, never behind it. */
  readonly nowMs: number;
  /** The ids that were reserved for the call. Default: an id that is made here. */
  readonly newId?: (() => string) | undefined;
  /** Of a debounce call, newer calls have higher ones. Default: the clock's reading. */
  readonly orderOf?: (id: string, nowMs: number) => number;
  /** How the queue delivers, where that is known. */
  readonly delivery?: Queue['delivery'] | undefined;
  /** The schemas of the queue, by the names of its jobs. */
  readonly jobs?: Queue['jobs'] | undefined;
  /** The trace that the call belongs to. An update gives it to a job that it makes, and to no other. */
  readonly carry?: Carry | undefined;
}

/** What the settings of a client say of every job. */
export const limitsOf = ({
  horizonMs,
  dataBytesMax,
}: Omit<PlanLimits, 'nowMs'>): Pick<PlanLimits, 'horizonMs' | 'dataBytesMax'> => ({ horizonMs, dataBytesMax });

/** Smaller instants are seconds taken for milliseconds; the mover would make dead letters of them. */
const EARLIEST_MS = 1e11;
const DAY_MS = 86_400_000;
/** A job that is due for so long when it is made says when it was made: else its leader would seem to be late. */
const MADE_LATE_MS = 1000;
/** Every option, and whether it stands in the record as an option of this one job. */
const JOB_OPTIONS: readonly (readonly [string, boolean])[] = allOptions.map(({ name, option }) => [
  name,
  option.record !== undefined,
]);
/** Those of one call. */
const OPTIONS: ReadonlyMap<string, boolean> = new Map([...JOB_OPTIONS, ['durability', false]]);
/** Options that an update can change, beside the name. */
const EDITABLE: readonly string[] = editFields.map(({ name }) => name);
/** What an update can name. */
export const UPDATABLE: readonly string[] = ['data', 'name', 'at', ...EDITABLE];
/** Those of a job in a list, which has its data beside its options, and its durability from the call. */
const OPTIONS_AND_DATA: ReadonlyMap<string, boolean> = new Map([...JOB_OPTIONS, ['data', false]]);

/** @throws DuestreamError `bad-input` that says what was given and what is allowed. */
export function planJob(data: unknown, options: ScheduleOptions, limits: PlanLimits): Plan {
  return planned({ data, options, hasOwn: checkNames(options, OPTIONS) }, limits);
}

/** A job in a list. @throws DuestreamError `bad-input` that says what was given and what is allowed. */
export function planListed(job: ScheduleOptions & { readonly data: unknown }, limits: PlanLimits): Plan {
  return planned({ data: job.data, options: job, hasOwn: checkNames(job, OPTIONS_AND_DATA) }, limits);
}

function planned(
  { data, options, hasOwn }: { readonly data: unknown; readonly options: ScheduleOptions; readonly hasOwn: boolean },
  limits: PlanLimits,
): Plan {
  const ifExists = options.ifExists === undefined ? 'keep' : jobOptions.ifExists.check(options.ifExists, 'ifExists');
  const id = idOf(options, limits);
  const name = jobOptions.name.check(options.name, 'name');
  const debounced = debouncedCall(id, options, limits);
  const dueMs = debounced?.dueMs ?? spreadDue({ id, dueMs: dueOf(options, limits), within: options.within }, limits);
  const headers = limits.carry?.(options.headers);
  const overrides = hasOwn ? overridesOf(options, dueMs) : NOTHING;
  const body = encodeBody({ name, data }, overrides);
  const header = headers ? headerOf({ ...options, headers }, dueMs) : hasOwn ? headerOf(options, dueMs) : NOTHING;
  const asked = encodeRecord(dueMs, body, header, debounced?.letter);
  // A call with mode replace is the same one if the record is the same.
  const isLate = limits.nowMs - dueMs >= MADE_LATE_MS && ifExists !== 'replace';
  const record = isLate ? lateRecord(asked, Math.floor(limits.nowMs)) : asked;
  const recordBytes = Buffer.byteLength(record);
  const bodyBytes = recordBytes - record.length + body.length;
  if (bodyBytes > limits.dataBytesMax) checkDataBytes({ name, overrides, bodyBytes }, limits.dataBytesMax);
  const member = memberOf(id);
  const group = groupOf(id);
  const bytes = recordBytes + member.length;
  return {
    id,
    member,
    record,
    dueMs,
    bytes,
    mode: debounced ? 'debounce' : ifExists === 'error' ? 'keep' : ifExists,
    strict: ifExists === 'error',
    isNewId: options.id === undefined,
    names: ifExists === 'update' ? namesOf(options, { hasData: data !== undefined, jobs: limits.jobs }) : undefined,
    needs: needsOf(options, group),
    isNow: group !== undefined && isWithoutTime(options) ? true : undefined,
  };
}

/** Where data was checked by its name, the job that has the data has that name. */
function namesOf(
  { at, delay, ...options }: ScheduleOptions,
  { hasData, jobs }: Pick<PlanLimits, 'jobs'> & { readonly hasData: boolean },
): readonly string[] {
  const named = ['name', ...EDITABLE].filter((name) => Reflect.get(options, name) !== undefined);
  if (hasData) named.push('data');
  if (hasData && jobs && options.name === undefined) named.push('name');
  if ((at ?? delay) !== undefined) named.push('at');
  return named;
}

/** The member of the job whose id a caller gives, for its place among other calls; undefined where that is made, or is refused. */
export function namedMember(options: Pick<ScheduleOptions, 'id' | 'group' | 'set'>): string | undefined {
  try {
    return options.id === undefined ? undefined : memberOf(idOf(options, {}));
  } catch {
    return undefined;
  }
}

/** With its group or set. @throws DuestreamError `bad-input` */
function idOf(
  { id, group, set }: Pick<ScheduleOptions, 'id' | 'group' | 'set'>,
  { newId = newJobId }: Pick<PlanLimits, 'newId'>,
): string {
  const own = id === undefined ? newId() : jobOptions.id.check(id, 'id');
  if (group === undefined && set === undefined) return own;
  const grouped = group === undefined ? own : groupedId(jobOptions.group.check(group, 'group'), own);
  return parseJobId(set === undefined ? grouped : memberId(jobOptions.set.check(set, 'set'), grouped));
}

/** What would have to count together with it: the due time follows from the calls, and what lives is merged with. */
const NOT_DEBOUNCED = ['delay', 'at', 'zone', 'within', 'ifExists', 'set'] as const;

/** The due time and the letter of a debounce call. @throws DuestreamError `bad-input` */
function debouncedCall(
  id: string,
  options: ScheduleOptions,
  { nowMs, horizonMs, delivery, orderOf = (_, ms) => Math.floor(ms) }: PlanLimits,
): { readonly dueMs: number; readonly letter: string } | undefined {
  const { debounce } = options;
  if (debounce === undefined) return undefined;
  const { waitMs, maxMs = Math.max(horizonMs, waitMs) } = jobOptions.debounce.check(debounce, 'debounce');
  if (maxMs > horizonMs || waitMs > horizonMs) {
    throw badDebounce(`is ${JSON.stringify(debounce)}`, `up to the horizon of ${days(horizonMs)}`);
  }
  if (options.id === undefined) throw badDebounce('is given without id', 'together with the id of the job');
  const other = NOT_DEBOUNCED.find((option) => options[option] !== undefined);
  if (other !== undefined) {
    throw badDebounce(
      `is given together with ${other}`,
      `debounce alone says when the job is due, and what becomes of one that is there`,
    );
  }
  if (delivery === 'at-most-once') {
    throw badDebounce(
      'is given for a queue that delivers at most once, where a job is over before its handler runs',
      'in a queue that delivers at least once',
    );
  }
  const order = orderOf(id, nowMs);
  return { dueMs: Math.ceil(nowMs + waitMs), letter: debounceLetter(order, { waitMs, maxMs }) };
}

const badDebounce = (wrong: string, allowed: string) =>
  new DuestreamError('bad-input', `debounce ${wrong}; allowed: ${allowed}`);

/** The same call with a higher order, as somebody with a clock that is ahead has called before. */
export function newerPlan<Given extends Pick<Plan, 'record'>>(plan: Given, order: number): Given {
  return { ...plan, record: withOrder(plan.record, order) };
}

const isWithoutTime = ({ at, delay, within, debounce }: ScheduleOptions): boolean =>
  (at ?? within ?? debounce) === undefined && (delay === undefined || jobOptions.delay.check(delay, 'delay') === 0);

/** The job as it is sent in strict order: its partition says when it is due, if nobody has. */
export const inOrder = (plan: Plan): Plan => (plan.isNow === true ? { ...plan, dueMs: 0 } : plan);

/**
 * The job as it is sent where the pending jobs of each group are counted: its record says that it counts. The same plan again
 * is the same one.
 *
 * @throws DuestreamError `bad-input` where its tags leave no place for that
 */
export function countedPlan<Given extends Pick<Plan, 'id' | 'record'>>(plan: Given): Given {
  const entries = groupOf(plan.id) === undefined ? undefined : entriesOfRecord(plan.record);
  if (!entries || entries.includes(COUNTED_ENTRY)) return plan;
  if (entries.length >= TAGS_MAX) {
    const tags = entries.filter((tag) => !tag.startsWith('=')).length;
    throw new DuestreamError(
      'bad-input',
      `tags is a list of ${tags}, and the queue of job ${plan.id} has a limit of the pending jobs of a group; allowed: up to ${tags - 1} tags beside it`,
    );
  }
  return { ...plan, record: countedRecord(plan.record) };
}

/** The due time of one job of a herd. A part of a millisecond has no place in a spread. */
function spreadDue(
  { id, dueMs, within }: { readonly id: string; readonly dueMs: number; readonly within: ScheduleOptions['within'] },
  { nowMs, horizonMs }: PlanLimits,
): number {
  if (within === undefined) return dueMs;
  const spread = dueMs + spreadMs(id, Math.floor(jobOptions.within.check(within, 'within')));
  if (spread <= nowMs + horizonMs) return spread;
  throw new DuestreamError(
    'bad-input',
    `within is ${show(within)}, and the job would be due at ${textOf(spread)}; allowed: up to the horizon of ${days(horizonMs)}`,
  );
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
    const dueMs = zone === undefined ? jobOptions.at.check(at, 'at') : localMs(at, zone);
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
  const delayMs = jobOptions.delay.check(delay, 'delay');
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

/** Whether any option stands in the record. A misspelt `delay` would run at once if it were not refused. */
function checkNames(options: ScheduleOptions, known: ReadonlyMap<string, boolean>): boolean {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new DuestreamError('bad-input', `options are ${show(options)}; allowed: an object`);
  }
  let hasOwn = false;
  for (const name in options) {
    const isOwn = known.get(name);
    hasOwn ||= isOwn === true;
    if (isOwn !== undefined) continue;
    throw noOption(name, [...known.keys()], 'schedule', 'bad-input');
  }
  return hasOwn;
}

/** The body is over the limit; its data alone may be not. */
function checkDataBytes(
  { name, overrides, bodyBytes }: { readonly name: string; readonly overrides: JobOverrides; bodyBytes: number },
  dataBytesMax: number,
): void {
  const rest = encodeBody({ name, data: undefined }, overrides);
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
