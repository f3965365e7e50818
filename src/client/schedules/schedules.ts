/**
 * Schedules as an application uses them: put, looked at, previewed, paused, run out of turn. The leader of their queue's
 * partition makes the jobs; this side only writes definitions.
 */

import { encodeRecord, memberOf } from '../../job/codec.ts';
import { ID_BYTES_MAX, parseJobId } from '../../job/job.ts';
import { newJobId } from '../../job/job-id.ts';
import { asText, type Carry } from '../../job/labels.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { checkNames, isPromise, wordsIn } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import { inTurns, type Steps } from '../../kernel/steps.ts';
import { userHere } from '../../redis/audit.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { ScheduleItem } from '../../redis/scripts/replies.ts';
import {
  type AnySchedule,
  type NamedSchedule,
  parseSchedule,
  plainSchedule,
  type QueueSchedule,
  type ScheduleInput,
} from '../../schedule/input.ts';
import type { PreviewRow } from '../../schedule/instants.ts';
import type { LeftOut, Preview } from '../../schedule/preview.ts';
import type { Pausing } from '../../schedule/progress.ts';
import { carriedBy, dueOfFire, fireId, recurrenceOf, routingOf, type Schedule } from '../../schedule/schedule.ts';
import { carrying } from '../../telemetry/spans.ts';
import { occurrences } from '../../time/recurrence.ts';
import { CHUNK_BYTES_MAX, CHUNK_JOBS_MAX } from '../calls/batch.ts';
import type { Calls } from '../calls/calls.ts';
import { type IfMatchOption, parseIfMatch } from '../calls/etag.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { sendRepeated } from '../calls/repeats.ts';
import { createRepeating, once, type Repeating } from '../calls/retry.ts';
import { type Scheduled, scheduledOf } from '../calls/scheduled.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { type Claim, SCHEDULES } from '../calls/turns.ts';
import { type Forecast, type ForecastOptions, forecastOf, forecastRange } from './forecast.ts';
import type { ScheduleParts } from './schedule-parts.ts';
import { type StoredSchedule, unknownSchedule } from './schedule-places.ts';
import { type FoundSchedule, matching, type ScheduleCall, type ScheduleChange } from './schedule-store.ts';
import {
  type BackfillOptions,
  type ListOptions,
  listSchedules,
  type PreviewOptions,
  previewRows,
  rangeOf,
  type SchedulesPage,
  type ScheduleView,
  UNNAMED,
  type UnreadableSchedule,
  viewOf,
} from './schedule-view.ts';

export type {
  BackfillOptions,
  Forecast,
  ForecastOptions,
  LeftOut,
  ListOptions,
  NamedSchedule,
  PreviewOptions,
  PreviewRow,
  QueueSchedule,
  ScheduleChange,
  ScheduleInput,
  SchedulesPage,
  ScheduleView,
  UnreadableSchedule,
};

/**
 * The schedules of a namespace: `client.schedules`. All methods reject with a `DuestreamError`: `bad-input` before anything is sent · `not-found` for a schedule that is
 * not there · `changed` for one that is not what `ifMatch` says · `unavailable` or `indeterminate` in an outage, when the same call may be repeated · `refused` ·
 * `wrong-schema` for a namespace of another layout.
 */
export interface Schedules {
  /**
   * Creates a schedule or changes it. The same definition again changes nothing. With a defined queue in `queue`, the data
   * is checked, and encoded by its codec; it changes nothing only if the codec gives the same text again. With `ifMatch` it is
   * changed only if it is what you have seen, and none is created.
   *
   * @throws DuestreamError `changed` for one that is not what `ifMatch` says
   * @example
   * await client.schedules.put('nightly', { queue: 'reports', cron: '30 2 * * *', zone: 'Europe/Berlin' });
   */
  put<Jobs>(name: string, input: NamedSchedule<Jobs>, options?: IfMatchOption): Promise<ScheduleChange>;
  /** Of a queue without `jobs`, or of a queue by its name. */
  put<Data>(name: string, input: ScheduleInput | QueueSchedule<Data>, options?: IfMatchOption): Promise<ScheduleChange>;
  /** One schedule as it is now: its definition, its next instant and how far it was fired. @returns undefined if there is none */
  get(name: string): Promise<ScheduleView | undefined>;
  /**
   * All schedules by name, or the first `limit` of them, and those that nobody can read. Each one costs memory and time.
   *
   * @example
   * const { schedules, unreadable } = await client.schedules.list({ queue: 'reports' });
   * for (const { name, nextMs } of schedules) console.log(name, nextMs && new Date(nextMs));
   * for (const { name, why } of unreadable) console.warn(`${name} does not fire: ${why}`);
   */
  list(options?: ListOptions): Promise<SchedulesPage>;
  /**
   * Removes a schedule; its jobs stay. With `ifMatch` only if it is what you have seen.
   *
   * @returns whether there was one
   * @throws DuestreamError `changed` for one that is not what `ifMatch` says
   * @example
   * const seen = await client.schedules.get('nightly');
   * await client.schedules.remove('nightly', { ifMatch: seen?.etag });
   */
  remove(name: string, options?: IfMatchOption): Promise<boolean>;
  /**
   * Pauses a schedule: it makes no jobs until `resume`. A second pause without a reason keeps the first reason. `by` is who
   * pauses it, for people who look at it, at most 200 characters; default: the user of this process.
   */
  pause(
    name: string,
    reason?: string,
    options?: IfMatchOption & { readonly by?: string | undefined },
  ): Promise<ScheduleChange>;
  /** Resumes a schedule from now on; instants that passed while it was paused are not caught up. */
  resume(name: string, options?: IfMatchOption): Promise<ScheduleChange>;
  /**
   * The coming instants of a stored schedule (a name) or of a definition. For a stored schedule, earlier runs count
   * against its `maxRuns`; while it is paused, all instants are dropped. Of the instants outside of working time some
   * are shown, and all together are at most a megabyte of JSON: `onLeftOut` tells what is left out.
   */
  preview(schedule: string | ScheduleInput, options?: PreviewOptions): Promise<readonly PreviewRow[]>;
  /** Makes one extra job of the schedule now, of the definition that `ifMatch` names. The same `id` twice makes one job. */
  trigger(name: string, options?: IfMatchOption & { readonly id?: string | undefined }): Promise<FiredJob>;
  /** Runs the jobs of a range of past instants now. It skips instants whose job is live, or over and still remembered. */
  backfill(name: string, options: BackfillOptions): Promise<readonly FiredJob[]>;
  /** How many jobs become due when: jobs that wait, and jobs that schedules are going to make. */
  forecast(options?: ForecastOptions): Promise<Forecast>;
}

interface ScheduledParts {
  /** @throws DuestreamError `wrong-schema` for a namespace of another layout */
  readonly schedules: (steps: Repeating) => Promise<ScheduleParts>;
}

/** The methods, over the calls of a client. */
export function schedulesOver({ clock, budgetMs }: ClientSettings, { runChecked }: Calls<ScheduledParts>): Schedules {
  /** A call whose steps are repeated in an outage. What it is given is read before the call returns. */
  const call = <Ask, T>(
    what: string,
    { read, work, claims }: { read: () => Ask; work: (parts: ScheduleParts, ask: Ask) => Promise<T>; claims?: Claims },
  ): Promise<T> =>
    runChecked(
      read,
      async ({ schedules }, ask) => work(await schedules(createRepeating(what, { clock, budgetMs })), ask),
      undefined,
      claims && (() => claims),
    );

  /** A call that changes nothing is one step. */
  const look = <Ask, T>(what: string, read: () => Ask, work: (parts: ScheduleParts, ask: Ask) => Promise<T>) =>
    call(what, { read, work: ({ steps, alone }, ask) => steps.read(() => work(alone(), ask)) });
  const change: Change = (verb, { name, options }, begin) =>
    call(`${verb} a schedule`, {
      claims: claimsOf(name),
      read() {
        checkOptions({ [verb]: options });
        return { work: begin(), by: { ifMatch: parseIfMatch(options.ifMatch) } };
      },
      work: (parts, { work, by }) => work(parts, by),
    });

  return {
    ...changesOf(change),
    get: (name) =>
      look(
        'read a schedule',
        () => name,
        (parts) => getOne(parts, name),
      ),
    list: (list = {}) => look('list schedules', () => listOf(list), listSchedules),
    preview: (schedule, range = {}) =>
      look(
        'preview a schedule',
        () => ({ of: snapshot(schedule), range: optionsOf('preview', range) }),
        (parts, ask) => preview(parts, ask.of, ask.range),
      ),
    backfill: (name, range) =>
      call('backfill a schedule', {
        claims: claimsOf(name),
        read: () => ({ range: optionsOf('backfill', range), carry: carrying() }),
        work: (parts, asked) => backfillOne(parts, name, asked),
      }),
    forecast: (forecast = {}) => look('forecast jobs', () => optionsOf('forecast', forecast), forecastIn),
  };
}

type Claims = readonly Claim[];

/** Calls on one schedule go one after the other. */
const claimsOf = (name: string): Claims => [{ lane: SCHEDULES, kind: 'jobs', keys: [name] }];

type Changing = 'put' | 'remove' | 'pause' | 'resume' | 'trigger';

/** A call that changes one schedule, if that is what was seen. */
type Change = <T>(
  verb: Changing,
  of: { readonly name: string; readonly options: IfMatchOption },
  begin: () => (parts: ScheduleParts, by: ScheduleCall) => Promise<T>,
) => Promise<T>;

function changesOf(change: Change): Pick<Schedules, Changing> {
  const setPaused = (
    verb: 'pause' | 'resume',
    of: { readonly name: string; readonly options: IfMatchOption },
    pausing: () => Pausing | undefined,
  ) =>
    change(verb, of, () => {
      const wanted = pausing();
      return ({ store }, by) => store.setPaused(of.name, wanted, by);
    });
  return {
    put: (name: string, input: AnySchedule, options: IfMatchOption = {}) =>
      change('put', { name, options }, () => {
        const plain = plainSchedule(input);
        // A call that waits for others is refused when it is its turn.
        if (isPromise(plain)) plain.catch(() => undefined);
        const queue = typeof input.queue === 'object' ? input.queue : undefined;
        return async ({ store }, by) => store.put(name, await plain, { ...by, queue });
      }),
    remove: (name, options = {}) =>
      change(
        'remove',
        { name, options },
        () =>
          ({ store }, by) =>
            store.remove(name, by),
      ),
    pause: (name, reason = '', options = {}) =>
      setPaused('pause', { name, options }, () => ({
        why: wordsIn(reason, 'reason'),
        by: wordsIn(options.by ?? userHere(), 'by'),
      })),
    resume: (name, options = {}) => setPaused('resume', { name, options }, () => undefined),
    trigger: (name, options = {}) =>
      change('trigger', { name, options }, () => {
        const id = triggerId(name, options.id === undefined ? newJobId() : parseJobId(options.id));
        const carry = carrying();
        return (parts, by) => triggerOne(parts, { name, id, by, carry });
      }),
  };
}

async function foundIn({ store, steps, definitions }: ScheduleParts, name: string): Promise<FoundSchedule> {
  const stored = await store.find(name);
  if (!stored) throw await steps.read(() => unknownSchedule(definitions, name));
  return stored;
}

/** Nobody leads the partitions of a queue that is not declared: a job there would wait for ever. */
async function housedIn(parts: ScheduleParts, name: string): Promise<StoredSchedule> {
  const { ref, ...stored } = await foundIn(parts, name);
  if (ref) return { ...stored, ref };
  throw new DuestreamError(
    'not-found',
    `schedule ${name}: its queue ${stored.definition.schedule.queue} is not declared; put the schedule again`,
  );
}

async function getOne({ store }: ScheduleParts, name: string): Promise<ScheduleView | undefined> {
  const stored = await store.find(name);
  return stored && inTurns(viewOf(stored, await store.nowMs()));
}

const forecastIn = async (parts: ScheduleParts, options: ForecastOptions) =>
  forecastOf(parts, forecastRange(options, await parts.store.nowMs()));

async function preview(
  parts: ScheduleParts,
  schedule: string | ScheduleInput,
  range: PreviewOptions,
): Promise<readonly PreviewRow[]> {
  const nowMs = await parts.store.nowMs();
  if (typeof schedule === 'string') {
    const stored = await foundIn(parts, schedule);
    return rowsOf(previewRows(stored.definition.schedule, range, { nowMs, stored }), range);
  }
  const since = { sinceMs: 0, anchorMs: nowMs };
  return rowsOf(previewRows(parseSchedule(range.name ?? UNNAMED, schedule, since), range, { nowMs }), range);
}

async function rowsOf(looking: Steps<Preview>, { onLeftOut }: PreviewOptions): Promise<readonly PreviewRow[]> {
  const { rows, leftOut } = await inTurns(looking);
  if (leftOut) quietly('onLeftOut', onLeftOut)?.(leftOut);
  return rows;
}

async function triggerOne(
  parts: ScheduleParts,
  {
    name,
    id,
    by,
    carry,
  }: { readonly name: string; readonly id: string; readonly by: ScheduleCall; readonly carry: Carry | undefined },
): Promise<FiredJob> {
  const { jobs, store, steps } = parts;
  const { definition, ref } = await housedIn(parts, name);
  const schedule = carriedBy(matching(definition, by).schedule, carry);
  return trigger(jobs, ref, { schedule, nowMs: await store.nowMs(), id, steps });
}

async function backfillOne(
  parts: ScheduleParts,
  name: string,
  { range, carry }: { readonly range: BackfillOptions; readonly carry: Carry | undefined },
): Promise<readonly FiredJob[]> {
  const { jobs, steps } = parts;
  const { definition, ref } = await housedIn(parts, name);
  const schedule = carriedBy(definition.schedule, carry);
  const instants = await inTurns(instantsOfRange(schedule, rangeOf(schedule, range)));
  if (!range.dryRun) return backfill(jobs, ref, { schedule, instants, steps });
  return instants.map((atMs) => ({ id: fireId(schedule.name, atMs), atMs, status: 'would' }));
}

// The options of the methods of schedules, by name: one that nobody knows is refused before anything is sent.

const IF_MATCH = { ifMatch: 0 } satisfies Record<keyof IfMatchOption, number>;

/** What the methods take. */
const METHOD_OPTIONS = {
  list: { queue: 0, tag: 0, limit: 0 } satisfies Record<keyof ListOptions, number>,
  preview: { next: 0, until: 0, from: 0, name: 0, onLeftOut: 0 } satisfies Record<keyof PreviewOptions, number>,
  put: IF_MATCH,
  remove: IF_MATCH,
  pause: { by: 0, ...IF_MATCH },
  resume: IF_MATCH,
  trigger: { id: 0, ...IF_MATCH },
  backfill: { from: 0, to: 0, dryRun: 0, limit: 0 } satisfies Record<keyof BackfillOptions, number>,
  forecast: { until: 0, by: 0, queue: 0, perQueue: 0 } satisfies Record<keyof ForecastOptions, number>,
} as const;

/** What was given to a method, under its name. */
type GivenOptions = { readonly [Method in keyof typeof METHOD_OPTIONS]?: object };

/** The options of a method, as they are now. @throws DuestreamError `bad-input` */
function optionsOf<T extends object>(method: keyof GivenOptions, options: T): T {
  checkOptions({ [method]: options });
  return snapshot(options);
}

/** @throws DuestreamError `bad-input` */
function listOf(given: ListOptions): ListOptions {
  const list = optionsOf('list', given);
  const tag: unknown = list.tag;
  if (tag === undefined || typeof tag === 'string') return list;
  throw new DuestreamError('bad-input', `tag is ${show(tag)}; allowed: a text${asText(tag)}`);
}

/** @throws DuestreamError `bad-input` with the nearest name */
function checkOptions(given: GivenOptions): void {
  for (const [method, options] of Object.entries(given)) {
    checkNames(options, Object.keys(METHOD_OPTIONS[method as keyof GivenOptions]), method, 'bad-input');
  }
}

// Jobs of a schedule besides those that its time makes: one now, or those of a range that is past. A job of an instant
// has the id of that instant, so a backfill never doubles a job that is live, or over within the done window.

/** What became of one job. */
export interface FiredJob {
  readonly id: string;
  /** The instant it stands for; undefined for one that was asked for now. */
  readonly atMs: number | undefined;
  /** `would` in a dry run · `scheduled` · `exists` it is live · `over` it ran, and Redis still knows · `closed` a tag of it is closed */
  readonly status: 'would' | 'scheduled' | 'exists' | 'over' | 'closed';
}

interface BackfillRange {
  readonly fromMs: number;
  /** Included. */
  readonly toMs: number;
  /** Refused beyond this, because a year of seconds is a mistake. */
  readonly limit: number;
}

const CHUNK = 500;
const HORIZON_MS = 3650 * 86_400_000;
const RECORD_BYTES_MAX = 64 * 1024 * 1024;

/** The instants of a range, whatever is paused or was fired. @throws DuestreamError `bad-input` over the limit */
function* instantsOfRange(schedule: Schedule, { fromMs, toMs, limit }: BackfillRange): Steps<readonly number[]> {
  const instants: number[] = [];
  for (const { atMs, dropped } of occurrences(recurrenceOf(schedule), fromMs - 1, { untilMs: toMs })) {
    yield;
    if (atMs > toMs) break;
    if (dropped === undefined) instants.push(atMs);
    if (instants.length > limit) {
      throw new DuestreamError(
        'bad-input',
        `the range has more than ${limit} instants; allowed: a shorter range, or a larger limit`,
      );
    }
  }
  return instants;
}

/**
 * Schedules the jobs of instants that are past; they are due at once, in their order.
 *
 * @throws DuestreamError `queue-full` where the queue has no room for one of them; those before it are scheduled, and the same
 * range once more leaves them as they are
 */
export async function backfill(
  jobs: Pick<Jobs, 'schedule'>,
  ref: PartitionRef,
  {
    schedule,
    instants,
    steps = once,
  }: { readonly schedule: Schedule; readonly instants: readonly number[]; readonly steps?: Sending['steps'] },
): Promise<readonly FiredJob[]> {
  const results: FiredJob[] = [];
  for (let from = 0; from < instants.length; from += CHUNK) {
    const slice = instants.slice(from, from + CHUNK);
    const items = slice.map((atMs) => itemOf(schedule, fireId(schedule.name, atMs), dueOfFire(schedule, atMs)));
    const statuses = await send({ jobs, ref, steps }, items);
    results.push(...slice.map((atMs, at) => ({ id: items[at]?.id ?? '', atMs, status: statuses[at] ?? 'exists' })));
  }
  return results;
}

/** One job now, beside whatever the schedule does. */
export async function trigger(
  jobs: Pick<Jobs, 'schedule'>,
  ref: PartitionRef,
  {
    schedule,
    nowMs,
    id,
    steps = once,
  }: {
    readonly schedule: Schedule;
    readonly nowMs: number;
    readonly id: string;
    readonly steps?: Sending['steps'];
  },
): Promise<FiredJob> {
  const [status = 'exists'] = await send({ jobs, ref, steps }, [itemOf(schedule, id, nowMs)]);
  return { id, atMs: undefined, status };
}

/** An id for a job that stands for no instant. @throws DuestreamError `bad-input` for one that is too long with the name */
function triggerId(name: string, id: string): string {
  const own = `{${routingOf(name)}}now:`;
  const most = ID_BYTES_MAX - own.length;
  if (id.length <= most) return own + id;
  throw new DuestreamError(
    'bad-input',
    `id is ${show(id)}, ${id.length} characters; allowed: at most ${most} for schedule ${name}, because the id of the job is ${own}<id>`,
  );
}

function itemOf(schedule: Schedule, id: string, dueMs: number) {
  return { id, member: memberOf(id), record: encodeRecord(dueMs, schedule.body, schedule.header), dueMs };
}

interface Sending {
  readonly jobs: Pick<Jobs, 'schedule'>;
  readonly ref: PartitionRef;
  readonly steps: Pick<Repeating, 'repeated'>;
}

async function send(
  { jobs, ref, steps }: Sending,
  items: readonly (ScheduleItem & { readonly id: string })[],
): Promise<readonly FiredJob['status'][]> {
  const statuses: FiredJob['status'][] = [];
  while (statuses.length < items.length) {
    const settings = { mode: 'keep', horizonMs: HORIZON_MS, bytesMax: RECORD_BYTES_MAX } as const;
    const some = sliceOf(items.slice(statuses.length));
    const sent = { items: some, send: () => jobs.schedule(ref, some, settings) };
    const replies = await steps.repeated((what, policy) => sendRepeated(what, sent, policy));
    if (isMoved(replies))
      throw new DuestreamError('moved', `queue ${ref.queue} is being resized; try again in a moment`);
    for (const { reply, isRepeated } of replies) {
      const item = items[statuses.length];
      if (!item || reply.kind === 'later' || reply.kind === 'held') break;
      const bytes = Buffer.byteLength(item.record);
      statuses.push(statusOf(scheduledOf(ref.queue, { ...item, strict: false, bytes }, reply), isRepeated));
    }
  }
  return statuses;
}

/** What one call may bring. */
function sliceOf<T extends { readonly record: string }>(items: readonly T[]): readonly T[] {
  const [first] = items;
  return items.slice(
    0,
    Math.max(1, Math.min(CHUNK_JOBS_MAX, Math.floor(CHUNK_BYTES_MAX / (first?.record.length ?? 1)))),
  );
}

function statusOf({ status, over }: Scheduled, isRepeated: boolean): FiredJob['status'] {
  if (status === 'scheduled' || status === 'replaced') return 'scheduled';
  if (status === 'closed') return 'closed';
  // The call before may have scheduled it, and this one has met its work.
  if (isRepeated && status === 'already') return 'scheduled';
  return over === undefined ? 'exists' : 'over';
}
