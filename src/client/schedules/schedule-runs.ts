/**
 * Jobs of a schedule besides those that its time makes: one now, or those of a range that is past. A job of an instant
 * has the id of that instant, so a backfill never doubles a job that is live, or over within the done window.
 */
import { encodeRecord, memberOf } from '../../job/codec.ts';
import { ID_BYTES_MAX } from '../../job/job.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Steps } from '../../kernel/steps.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { ScheduleItem } from '../../redis/scripts/replies.ts';
import { dueOfFire, fireId, recurrenceOf, routingOf, type Schedule } from '../../schedule/schedule.ts';
import { occurrences } from '../../time/recurrence.ts';
import { CHUNK_BYTES_MAX, CHUNK_JOBS_MAX } from '../calls/batch.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { once, type Repeating } from '../calls/repeating.ts';
import { sendRepeated } from '../calls/repeats.ts';
import { type Scheduled, scheduledOf } from '../calls/scheduled.ts';

/** What became of one job. */
export interface FiredJob {
  readonly id: string;
  /** The instant it stands for; undefined for one that was asked for now. */
  readonly atMs: number | undefined;
  /** `would` in a dry run · `scheduled` · `exists` it is live · `over` it ran, and Redis still knows */
  readonly status: 'would' | 'scheduled' | 'exists' | 'over';
}

export interface BackfillRange {
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
export function* instantsOfRange(schedule: Schedule, { fromMs, toMs, limit }: BackfillRange): Steps<readonly number[]> {
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
export function triggerId(name: string, id: string): string {
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
      if (!item || reply.kind === 'later') break;
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
  // The call before may have scheduled it, and this one has met its work.
  if (isRepeated && status === 'already') return 'scheduled';
  return over === undefined ? 'exists' : 'over';
}
