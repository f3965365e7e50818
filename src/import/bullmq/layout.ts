/**
 * Where BullMQ 5 and 6 keep a queue in Redis, and what stands in a job and in a job scheduler. Pure: texts in, values out. `P` is
 * the prefix (`bull` unless the queue says another one), `Q` the queue.
 *
 *  P:Q:meta          hash    version (`bullmq:5.81.5`), paused, concurrency, max and duration of the rate
 *  P:Q:delayed       zset    id → due ms × 4096 + the low bits of a counter
 *  P:Q:prioritized   zset    id → priority × 2^32 + a counter
 *  P:Q:wait          list    ids; the one at the right is next
 *  P:Q:paused        list    the same of a paused queue in BullMQ 5; in BullMQ 6 its ids stay in wait
 *  P:Q:failed        zset    id → ms when it failed; `completed` likewise
 *  P:Q:active        list    ids that run now; `waiting-children`: parents of flows
 *  P:Q:repeat        zset    scheduler → ms of its next job, which has the id `repeat:<scheduler>:<ms>`
 *  P:Q:repeat:<s>    hash    a scheduler: its rule, and the data and options of its jobs
 *  P:Q:<id>          hash    a job
 *  P:Q:de:<d>        string  id of the job that holds a deduplication id
 *
 * Two keys beside them are ours, and gone when an import has ended: `P:Q:duestream:taken`, jobs that were taken out of their place
 * and are not confirmed by duestream, and `P:Q:duestream:schedulers`, the same of schedulers. BullMQ takes no id with one colon.
 */
import { type Flaw, isFlaw } from '../flaw.ts';

/** A queue of BullMQ. */
export interface BullQueue {
  readonly prefix: string;
  readonly name: string;
}

/** A key of a queue, by what stands behind its name. @example keyOf({ prefix: 'bull', name: 'mails' }, 'wait') // 'bull:mails:wait' */
export const keyOf = ({ prefix, name }: BullQueue, part: string): string => `${prefix}:${name}:${part}`;

/** Where jobs wait, in the order in which they are read: a job moves from one to a later one, so none is passed over. */
export const places = {
  delayed: 'zset',
  prioritized: 'zset',
  wait: 'list',
  paused: 'list',
  failed: 'zset',
} as const satisfies Readonly<Record<string, 'zset' | 'list'>>;

export type Place = keyof typeof places;

export const placeNames = Object.keys(places) as readonly Place[];

/** Where the next job of a scheduler may wait. */
export const waitingPlaces = placeNames.filter((place) => place !== 'failed');

export const TAKEN = 'duestream:taken';
export const TAKEN_SCHEDULERS = 'duestream:schedulers';

/** The due time in the score of the delayed set. */
export const dueOfScore = (score: string): number => Math.floor(Number(score) / 4096);

/** The id of the job of one instant of a scheduler. */
export const schedulerJobId = (scheduler: string, atMs: number): string => `repeat:${scheduler}:${atMs}`;

/** A job as BullMQ has it, as far as an import needs it. */
export interface BullJob {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  /** By the short names under which BullMQ stores some of them. */
  readonly options: Options;
  /** When it was made, and how long it was to wait from then. */
  readonly madeMs: number;
  readonly delayMs: number;
  readonly attemptsMade: number;
  /** It is a child in a flow. */
  readonly isChild: boolean;
  readonly deduplication: string | undefined;
}

export type Options = Readonly<Record<string, unknown>>;

/** The fields that `readJob` takes, in its order. */
export const JOB_FIELDS = [
  'name',
  'data',
  'opts',
  'timestamp',
  'delay',
  'atm',
  'attemptsMade',
  'parentKey',
  'deid',
] as const;

/** A job from its fields; null where it has none of a name. */
export function readJob(id: string, fields: readonly (string | null)[]): BullJob | Flaw {
  const [name, data, opts, timestamp, delay, atm, attemptsMade, parentKey, deid] = fields;
  if (typeof name !== 'string') return { flaw: 'the place names the job, and its data is not there' };
  const content = readJson(data);
  const options = readOptions(opts);
  if (!content || !options) return NO_JSON;
  return {
    id,
    name,
    data: content.value,
    options,
    madeMs: numberIn(timestamp),
    delayMs: numberIn(delay),
    attemptsMade: numberIn(attemptsMade ?? atm),
    isChild: typeof parentKey === 'string' && parentKey !== '',
    deduplication: deid ?? undefined,
  };
}

/** When a job that waits was due: what comes first here came first there, but for jobs that were put at the front. */
export const waitingSince = ({ madeMs, delayMs }: BullJob): number => madeMs + Math.max(0, delayMs);

/** A job scheduler of BullMQ: its rule, and what its jobs have. */
export interface BullScheduler {
  readonly id: string;
  /** When its next job is due. */
  readonly nextMs: number;
  readonly name: string;
  readonly pattern: string | undefined;
  readonly everyMs: number | undefined;
  readonly zone: string | undefined;
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
  /** After so many jobs it ends; of these so many were made, the next one included. */
  readonly limit: number | undefined;
  readonly made: number;
  readonly data: unknown;
  readonly options: Options;
}

export const SCHEDULER_FIELDS = [
  'name',
  'pattern',
  'every',
  'tz',
  'startDate',
  'endDate',
  'limit',
  'ic',
  'data',
  'opts',
] as const;

/** @param job its next job, of which an older version keeps data and options alone */
export function readScheduler(
  { id, nextMs }: { readonly id: string; readonly nextMs: number },
  fields: readonly (string | null)[],
  job: BullJob | Flaw,
): BullScheduler | Flaw {
  const [name, pattern, every, zone, startDate, endDate, limit, made, data, opts] = fields;
  if (!pattern && !every) {
    return { flaw: 'it has no rule of its own, as repeatable jobs of old versions: make it a job scheduler first' };
  }
  const template = isFlaw(job) ? undefined : job;
  const content = data ? readJson(data) : { value: template?.data ?? {} };
  const options = opts ? readOptions(opts) : withoutOwn(template?.options ?? {});
  if (!content || !options) return NO_JSON;
  return {
    id,
    nextMs,
    name: name || template?.name || 'default',
    pattern: pattern || undefined,
    everyMs: pattern ? undefined : numberIn(every),
    zone: zone || undefined,
    startMs: positive(startDate),
    endMs: positive(endDate),
    limit: positive(limit),
    made: numberIn(made),
    data: content.value,
    options,
  };
}

/** What the job of one instant has of its own. */
function withoutOwn({ delay, jobId, timestamp, repeat, prevMillis, repeatJobKey, ...rest }: Options): Options {
  return rest;
}

const NO_JSON: Flaw = { flaw: 'its data or its options are no JSON' };

function readJson(text: string | null | undefined): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text || '{}') };
  } catch {
    return undefined;
  }
}

function readOptions(text: string | null | undefined): Options | undefined {
  const read = readJson(text);
  if (read === undefined) return undefined;
  // Lua writes an object without names as a list or as an object.
  return typeof read.value === 'object' && read.value !== null ? { ...read.value } : {};
}

/** A number in a text; 0 where there is none. */
function numberIn(text: string | null | undefined): number {
  const value = Number(text ?? 0);
  return Number.isFinite(value) ? value : 0;
}

const positive = (text: string | null | undefined): number | undefined => {
  const value = numberIn(text);
  return value > 0 ? value : undefined;
};
