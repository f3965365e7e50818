/** What became of one job: how it ended, and what it returned. Nothing here waits for a job to end. */
import { memberOf } from '../../job/codec.ts';
import type { Attempted } from '../../job/outcome.ts';
import type { KeptResult } from '../../job/past.ts';
import type { Queue } from '../../job/queue.ts';
import type { JobState, OverState } from '../../job/state.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { pastOf } from '../../redis/read/ends.ts';
import { deadLetter, type Peek, peek } from '../../redis/read/inspect.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { type CallPartitions, placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';

/** What is stored about the end of a job, at this moment. */
export type JobResult<Result = unknown> =
  /** Nothing is known of the id: it never existed, or its end was too long ago. */
  | { readonly status: 'unknown' }
  | { readonly status: 'pending'; readonly state: Exclude<JobState, OverState>; readonly dueMs: number | undefined }
  /** `result`: what the handler returned, where the queue keeps it. */
  | { readonly status: 'done'; readonly overMs: number | undefined; readonly result: KeptResult<Result> }
  /** `reason` is there as long as the dead letter is. */
  | {
      readonly status: 'dead';
      readonly overMs: number | undefined;
      readonly reason: string | undefined;
      readonly error: Attempted | undefined;
      readonly deadLetter: string | undefined;
    }
  | { readonly status: 'cancelled' | 'expired'; readonly overMs: number | undefined };

interface PastParts {
  readonly redis: Redis;
  readonly callPartitions: CallPartitions;
}

export interface Past {
  readonly result: (queue: Queue, id: string, how: { readonly bare: boolean }) => Promise<JobResult>;
}

export function createPast({ redis, callPartitions }: PastParts): Past {
  return {
    result: (queue, id, { bare }) =>
      callPartitions(queue, async (layout, policy) => {
        for (const ref of placesOf(layout, id, bare)) {
          const found = await resultIn(redis, ref, { member: memberOf(id, { bare }), policy });
          if (!('status' in found) || found.status !== 'unknown') return found;
        }
        return { status: 'unknown' };
      }),
  };
}

async function resultIn(
  redis: Redis,
  ref: PartitionRef,
  { member, policy }: { readonly member: string; readonly policy: RetryPolicy },
): Promise<JobResult | Moved> {
  const seen = await withReadRetry('result', () => peek(redis, ref, member), policy);
  if (seen && 'kind' in seen) return seen;
  if (seen && !seen.tombstone) return pending(seen);
  const read = async () => (ref.history ? pastOf(redis, ref, { member, max: 1 }) : []);
  const [past] = await withReadRetry('result', read, policy);
  const status = seen?.tombstone?.outcome ?? past?.outcome;
  if (status === undefined) return { status: 'unknown' };
  const overMs = seen?.overMs ?? past?.overMs;
  if (status === 'done') return { status, overMs, result: past?.result ?? { kind: 'none' } };
  if (status !== 'dead') return { status, overMs };
  const entry = seen?.tombstone?.deadLetter ?? past?.deadLetter;
  const find = async () => (entry === undefined ? undefined : deadLetter(redis, ref, entry));
  const letter = await withReadRetry('result', find, policy);
  const error = (past?.history ?? letter?.history ?? []).at(-1);
  return { status, overMs, reason: letter?.reason, error, deadLetter: entry };
}

const pending = ({ state, dueMs }: Peek): JobResult => ({
  status: 'pending',
  state: state as Exclude<JobState, OverState>,
  dueMs,
});
