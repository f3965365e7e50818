/**
 * What BullMQ says of a job → what is said of it here. The table has a row for every option; what has no counterpart is counted in
 * the report of the import, and never dropped in silence. Pure: the same job becomes the same call each time, so that a second
 * import is recognised.
 *
 * Two things differ in what they mean, and are recalculated:
 *
 *  attempts   there, all attempts; here, failures that are left: at least one. The job begins with no failures.
 *  backoff    BullMQ waits delay × 2^(n − 1) after failure n of the job's life, without an end. Here n counts from the import on, so
 *             the base is delay × 2^made, and the longest wait is the one that the last attempt needs.
 */
import { type Backoff, exponential, fixed } from '../../job/backoff.ts';
import type { Priority } from '../../job/labels.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { queueRanges } from '../../kernel/checks.ts';
import type { Jitter } from '../../kernel/spread.ts';
import { jobName, type NameMap } from '../names.ts';
import type { Said } from '../tally.ts';
import type { BullJob, Options } from './layout.ts';

/** One option of a job of BullMQ. */
interface Counterpart {
  /** Its name in code; the key of the row is how it is stored. */
  readonly name: string;
  /** What it is here. */
  readonly here: string;
  /** `kept`: it becomes an option. `lost`: it is told. `own`: BullMQ writes it for itself. `flow`: its job stays. */
  readonly fate: 'kept' | 'lost' | 'own' | 'flow';
}

/** Every option of BullMQ 5 and 6, by the name under which it is stored. */
export const bullOptions: Readonly<Record<string, Counterpart>> = {
  attempts: { name: 'attempts', here: '`attempts`, less those that were made, and at least 1', fate: 'kept' },
  backoff: { name: 'backoff', here: '`backoff`: `fixed` or `exponential`', fate: 'kept' },
  delay: { name: 'delay', here: '`at`: the same due time', fate: 'kept' },
  jobId: { name: 'jobId', here: '`id`', fate: 'kept' },
  de: { name: 'deduplication', here: '`id`, while the job holds the deduplication id', fate: 'kept' },
  debounce: { name: 'debounce', here: 'as `deduplication`', fate: 'kept' },
  priority: { name: 'priority', here: '`priority: low` in a queue with limits', fate: 'kept' },
  tm: { name: 'telemetry.metadata', here: 'the headers `traceparent` and `tracestate`', fate: 'kept' },
  lifo: { name: 'lifo', here: 'none: jobs start in the order of their due times', fate: 'lost' },
  kl: { name: 'keepLogs', here: 'none: a handler logs where your program does', fate: 'lost' },
  removeOnComplete: { name: 'removeOnComplete', here: '`history` of the queue', fate: 'lost' },
  removeOnFail: { name: 'removeOnFail', here: 'none: dead letters stay until they are removed', fate: 'lost' },
  sizeLimit: { name: 'sizeLimit', here: '`limits.dataBytesMax` of the configuration', fate: 'lost' },
  stackTraceLimit: { name: 'stackTraceLimit', here: 'none: the last five failures are kept', fate: 'lost' },
  omc: { name: 'telemetry.omitContext', here: 'none is needed', fate: 'own' },
  parent: { name: 'parent', here: 'none: parts of flows stay in BullMQ', fate: 'flow' },
  fpof: { name: 'failParentOnFailure', here: 'as `parent`', fate: 'flow' },
  cpof: { name: 'continueParentOnFailure', here: 'as `parent`', fate: 'flow' },
  idof: { name: 'ignoreDependencyOnFailure', here: 'as `parent`', fate: 'flow' },
  rdof: { name: 'removeDependencyOnFailure', here: 'as `parent`', fate: 'flow' },
  repeat: { name: 'repeat', here: 'the schedule of the job', fate: 'own' },
  repeatJobKey: { name: 'repeatJobKey', here: 'the schedule of the job', fate: 'own' },
  prevMillis: { name: 'prevMillis', here: 'the schedule of the job', fate: 'own' },
  jobSchedulerId: { name: 'jobSchedulerId', here: 'the schedule of the job', fate: 'own' },
  timestamp: { name: 'timestamp', here: 'none: when the job was made in BullMQ', fate: 'own' },
};

interface Noted<T> {
  readonly value: T;
  readonly notes: readonly Said[];
}

/** What decides beside the job itself. */
export interface Meant {
  readonly names: Pick<NameMap, 'jobs'>;
  /** The queue here has limits: only then a job may have a priority. */
  readonly isGated: boolean;
}

/** What a job, or each job of a scheduler, is told here beside its id and its time. */
export interface Told extends Pick<ScheduleOptions, 'attempts' | 'backoff' | 'priority' | 'headers'> {
  readonly name: string;
}

/** The options of a job that wants to be made again. */
export function toldOf(
  { name, options, attemptsMade }: Pick<BullJob, 'name' | 'options' | 'attemptsMade'>,
  { names, isGated }: Meant,
): Noted<Told> {
  const attempts = attemptsOf(options, attemptsMade);
  const backoff = backoffOf(options.backoff, { made: attemptsMade, left: attempts.value });
  const priority = priorityOf(options.priority, isGated);
  const own = jobName(name, names);
  const headers = tracesOf(options.tm);
  const renamed: readonly Said[] =
    own === name ? [] : [{ kind: 'name', text: `jobs have other names here, such as ${own} for ${name}` }];
  return {
    value: {
      name: own,
      attempts: attempts.value,
      ...(backoff.value && { backoff: backoff.value }),
      ...(priority.value && { priority: priority.value }),
      ...(headers && { headers }),
    },
    notes: [...attempts.notes, ...backoff.notes, ...priority.notes, ...renamed, ...lostOf(options)],
  };
}

function attemptsOf({ attempts }: Options, made: number): Noted<number> {
  const { min, max } = queueRanges.attempts;
  const all = Math.max(1, Math.floor(numberOf(attempts) ?? 1));
  const value = Math.min(max, Math.max(min, all - made));
  const before: readonly Said[] = made > 0 ? [{ kind: 'made', text: MADE }] : [];
  const capped: readonly Said[] = all - made > max ? [{ kind: 'attempts', text: `attempts are at most ${max}` }] : [];
  return { value, notes: [...before, ...capped] };
}

const MADE = 'attempts were made in BullMQ: those that are left go on here, and context.attempt counts from 1';

/** The longest wait that a record may say; a retry beyond it would be a job that nobody waits for. */
const WAIT_MS_MAX = 3650 * 86_400_000;

/** @param given a number of ms, `{ type, delay, jitter }`, or nothing: then BullMQ tries again at once */
function backoffOf(
  given: unknown,
  { made, left }: { readonly made: number; readonly left: number },
): Noted<Backoff | undefined> {
  // No attempt comes after the only one.
  if (left <= 1) return { value: undefined, notes: [] };
  if (given === undefined || given === null || typeof given === 'number') {
    return { value: fixed(waitMs(numberOf(given) ?? 0)), notes: [] };
  }
  const { type, delay, jitter }: Options = typeof given === 'object' ? { ...given } : {};
  const spread = jitterOf(numberOf(jitter) ?? 0);
  const delayMs = numberOf(delay) ?? 0;
  if (type === 'fixed') return { value: fixed(waitMs(delayMs), { jitter: spread.value }), notes: spread.notes };
  if (type === 'exponential') {
    const base = waitMs(delayMs * 2 ** made);
    const max = Math.max(1, waitMs(base * 2 ** (left - 2)));
    return { value: exponential(base, { jitter: spread.value, max }), notes: spread.notes };
  }
  return { value: undefined, notes: [{ kind: 'backoff', text: `${CUSTOM} (${String(type)})` }] };
}

const CUSTOM =
  "a backoff strategy of your own has no counterpart: these jobs have the backoff of their queue's definition";

const waitMs = (ms: number): number => Math.min(WAIT_MS_MAX, Math.max(0, Math.round(ms)));

/** BullMQ spreads over the last part of a wait, of any size: none of it, the second half and all of it are the same here. */
function jitterOf(share: number): Noted<Jitter> {
  const value = share < 0.25 ? 'none' : share < 0.75 ? 'equal' : 'full';
  const isSame = [0, 0.5, 1].includes(share);
  return {
    value,
    notes: isSame ? [] : [{ kind: 'jitter', text: 'a jitter is 0, 0.5 or 1 here: these jobs have the nearest' }],
  };
}

/** BullMQ starts jobs without a priority before all that have one. */
function priorityOf(given: unknown, isGated: boolean): Noted<Priority | undefined> {
  if ((numberOf(given) ?? 0) <= 0) return { value: undefined, notes: [] };
  const text = isGated
    ? 'a priority is a number in BullMQ: these jobs are `low`, because BullMQ starts jobs without one before them'
    : 'a priority counts in a queue with limits alone: these jobs start by their due times';
  return { value: isGated ? 'low' : undefined, notes: [{ kind: 'priority', text }] };
}

/** The context that a producer with traces has sent along. */
function tracesOf(given: unknown): Readonly<Record<string, string>> | undefined {
  const carried = typeof given === 'string' ? objectIn(given) : undefined;
  const found = ['traceparent', 'tracestate'].flatMap((name): readonly (readonly [string, string])[] => {
    const value = carried?.[name];
    return typeof value === 'string' && TRACE.test(value) ? [[name, value]] : [];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

const TRACE = /^[ -~]{1,512}$/;

function objectIn(text: string): Options | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** What is said of the job and has no counterpart. */
function lostOf(options: Options): readonly Said[] {
  return Object.entries(options).flatMap(([stored, value]): readonly Said[] => {
    const row = Object.hasOwn(bullOptions, stored) ? bullOptions[stored] : undefined;
    if (row !== undefined && row.fate !== 'lost') return [];
    // What is false, 0 or null was not asked for.
    if (!value) return [];
    const text =
      row === undefined
        ? `${stored} is an option that nobody knows here`
        : `${row.name} has no counterpart: ${row.here}`;
    return [{ kind: `option ${stored}`, text }];
  });
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
