/**
 * Dead letters go for ever, oldest first, by age and reason. They are matched and removed where they are, a bounded batch at
 * a time, so a run that was cut short goes on where it stopped when it is repeated.
 */
import { systemClock } from '../core/clock.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type PurgeReply, purge } from '../redis/transitions/upkeep.ts';
import { type Place, refsOfQueue } from './refs.ts';

export interface PurgeRequest {
  readonly ageMs: number;
  readonly reason?: string | undefined;
  /** Most that match. */
  readonly limit: number;
  /** Only counts them. */
  readonly dryRun: boolean;
  /** Told how far it is after each batch. */
  readonly onBatch?: ((before: number, purged: Purged) => void) | undefined;
}

export interface Purged {
  readonly matched: number;
  readonly looked: number;
  /** Whether the limit ended the run. */
  readonly more: boolean;
}

const BATCH = 100;
const RETRY = { clock: systemClock, budgetMs: 10_000 };

/** @throws DuestreamError `not-found` */
export async function purgeDead(place: Place, queue: string, request: PurgeRequest): Promise<Purged> {
  let tally: Purged = { matched: 0, looked: 0, more: false };
  for (const ref of await refsOfQueue(place, queue)) {
    tally =
      tally.matched >= request.limit ? { ...tally, more: true } : await inPartition(place.redis, ref, request, tally);
  }
  return tally;
}

/** A batch is never larger than what is left of the limit. */
async function inPartition(
  redis: Redis,
  ref: PartitionRef,
  { dryRun, ageMs, reason, limit: most, onBatch }: PurgeRequest,
  begun: Purged,
): Promise<Purged> {
  const mode = dryRun ? 'count' : 'remove';
  let { matched, looked } = begun;
  let after: string | undefined;
  do {
    const which = { mode, ageMs, limit: Math.min(BATCH, most - matched), reason, after } as const;
    const batch: PurgeReply = await withRetry('purge', () => purge(redis, ref, which), RETRY);
    const before = looked;
    matched += batch.matched;
    looked += batch.looked;
    after = batch.next;
    onBatch?.(before, { matched, looked, more: false });
  } while (after !== undefined && matched < most);
  return { matched, looked, more: begun.more || after !== undefined };
}
