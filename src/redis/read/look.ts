/**
 * What is stored of some members right now, for whoever looks for jobs: records, runs and due times, read side by side.
 * Members are texts of bytes (`latin1`), because a foreign one need not be text.
 */
import { decodeRun, idOf, isTombstone, type Run } from '../../job/codec.ts';
import { decodeHeader } from '../../job/record-header.ts';
import { isHeldAt, type LiveState } from '../../job/state.ts';
import { serverNowMs } from '../connection/call-end.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { seenIn } from '../scripts/edits.ts';
import { dueOf } from '../scripts/scripts.ts';
import type { Place } from './places.ts';

/** A job that is not over, as it was seen. */
export interface Found {
  readonly ref: PartitionRef;
  readonly member: string;
  readonly id: string;
  readonly bare: boolean;
  readonly state: LiveState;
  /** It is `running`, but its worker holds it until it is due, so it can still be changed. */
  readonly isHeld: boolean;
  /** Undefined: a bare job that was not promoted yet. */
  readonly record: string | undefined;
  readonly run: Run | undefined;
  /** Of its next start, or of the one that is due; of a job that runs, of the entry under which it runs. */
  readonly dueMs: number;
  /** For a change that holds only if it is still so. */
  readonly seen: string;
}

/** The jobs at these places, undefined where there is none any more, and the bytes that were read. */
export async function lookAt(
  redis: Redis,
  ref: PartitionRef,
  places: readonly Place[],
): Promise<{ readonly jobs: readonly (Found | undefined)[]; readonly sizes: readonly number[] }> {
  if (places.length === 0) return { jobs: [], sizes: [] };
  const members = places.map(({ member }) => Buffer.from(member, 'latin1'));
  const { jobs, runs, scheduled, stale } = ref.keys;
  const [records, started, dues, left] = await Promise.all([
    redis.hmget(jobs, ...members),
    redis.hmget(runs, ...members),
    redis.zmscore(scheduled, ...members),
    places.some(({ entryMs }) => entryMs !== undefined) ? redis.zmscore(stale, ...members) : [],
  ]);
  // What was held when it was read may run by now.
  const nowMs = serverNowMs(redis, jobs);
  return {
    jobs: places.map((place, at) => {
      const isOld = place.entryMs !== undefined && place.entryMs < Number(left[at] ?? 0);
      return isOld ? undefined : foundAt(ref, place, { record: records[at], run: started[at], due: dues[at], nowMs });
    }),
    sizes: places.map(({ member }, at) => member.length + (records[at]?.length ?? 0)),
  };
}

type Value = string | null | undefined;

function foundAt(
  ref: PartitionRef,
  place: Place,
  stored: {
    readonly record: Value;
    readonly run: Value;
    readonly due: Value;
    /** By the clock of Redis; undefined while nobody knows it. */
    readonly nowMs: number | undefined;
  },
): Found | undefined {
  const { member } = place;
  const { id, bare } = idOf(Buffer.from(member, 'latin1').toString());
  const record = recordIn(stored.record);
  const due = stored.due ?? undefined;
  // One of ours without a record is damage, and what is left of an earlier life says nothing of a bare one.
  if (record === undefined && !(bare && due !== undefined)) return undefined;
  const run = record === undefined ? undefined : decodeRun(stored.run ?? '');
  const state = run?.owner === undefined ? stateAt(due) : 'running';
  const at = state === 'running' ? undefined : due;
  const isHeld = state === 'running' && stored.nowMs !== undefined && isHeldAt(run?.nextDueMs, stored.nowMs);
  return {
    ref,
    member,
    id,
    bare,
    state,
    isHeld,
    record,
    run,
    dueMs: at === undefined ? entryDue(place, record, run) : dueOf(at).dueMs,
    seen: seenIn({ record, run, due: at }),
  };
}

/** Of a job that does not run: `due` is its score in scheduled. */
export function stateAt(due: string | undefined): Exclude<LiveState, 'running'> {
  if (due === undefined) return 'ready';
  return dueOf(due).isWaiting ? 'waiting' : 'scheduled';
}

const recordIn = (value: Value): string | undefined =>
  typeof value === 'string' && !isTombstone(value) ? value : undefined;

/** When a job was due that waits for a worker, or runs. */
function entryDue({ dueMs }: Place, record: string | undefined, run: Run | undefined): number {
  return dueMs ?? run?.nextDueMs ?? decodeHeader(record ?? '')?.askedDueMs ?? 0;
}
