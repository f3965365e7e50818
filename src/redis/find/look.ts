/**
 * What is stored of some members right now, for whoever looks for jobs: records, runs and due times, read side by side.
 * Members are texts of bytes (`latin1`), because a foreign one need not be text.
 */
import { decodeRun, idOf, isTombstone, type Run } from '../../core/codec.ts';
import { decodeHeader, digestOf } from '../../core/record-header.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { seenText } from '../transitions/edits.ts';
import { score } from '../transitions/scripts.ts';
import type { Place } from './places.ts';

/** Where a job is that is not over. */
export type LiveState = 'scheduled' | 'ready' | 'running';

/** A job that is not over, as it was seen. */
export interface Found {
  readonly ref: PartitionRef;
  readonly member: string;
  readonly id: string;
  readonly bare: boolean;
  readonly state: LiveState;
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
  return {
    jobs: places.map((place, at) => {
      const isOld = place.entryMs !== undefined && place.entryMs < Number(left[at] ?? 0);
      return isOld ? undefined : foundAt(ref, place, { record: records[at], run: started[at], due: dues[at] });
    }),
    sizes: places.map(({ member }, at) => member.length + (records[at]?.length ?? 0)),
  };
}

type Value = string | null | undefined;

function foundAt(
  ref: PartitionRef,
  place: Place,
  { record, run: text, due }: { readonly record: Value; readonly run: Value; readonly due: Value },
): Found | undefined {
  const { member } = place;
  const { id, bare } = idOf(Buffer.from(member, 'latin1').toString());
  const isLive = typeof record === 'string' && !isTombstone(record);
  const waits = typeof due === 'string';
  // One of ours without a record is damage, and what is left of an earlier life says nothing of a bare one.
  if (!isLive && !(bare && waits)) return undefined;
  const run = isLive ? decodeRun(text ?? '') : undefined;
  const state = run?.owner !== undefined ? 'running' : waits ? 'scheduled' : 'ready';
  const content = isLive ? record : undefined;
  const token = run?.token ?? '0';
  const digest = content === undefined ? '-' : digestOf(content);
  const known = state === 'scheduled' && waits ? score(due) : (place.dueMs ?? run?.nextDueMs);
  return {
    ...{ ref, member, id, bare, state, record: content, run },
    dueMs: known ?? decodeHeader(content ?? '')?.askedDueMs ?? 0,
    seen: seenText({ digest, token, place: state === 'scheduled' && waits ? due : state }),
  };
}
