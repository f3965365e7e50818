/**
 * Jobs past their expiry → over without a start. One that was started before may have left half of its work outside,
 * like one that dies; so its compensation job comes in the same step. Lateness is rare, and it costs one more read only where
 * somebody wants to be told.
 */

import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { compensationOfExpired } from '../../job/judge.ts';
import { whyOf } from '../../job/judgement.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Log } from '../../kernel/log.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isOurs, withRetry } from '../../redis/connection/outage.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { peek } from '../../redis/read/inspect.ts';
import { EXPIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Compensation, Delivery, ExpireReply } from '../../redis/scripts/replies.ts';

export interface ExpiryParts {
  readonly commands: Redis;
  readonly jobs: Jobs;
  readonly consumer: string;
  readonly windowMs: number;
  /** Whether anybody takes half-done work back. */
  readonly compensations: boolean;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  readonly log: Log;
  readonly events: Emitter;
}

type Expiring = Delivery & { readonly compensation?: Compensation | undefined };

/** Ends what is late, and returns what is not late after all. Without a reply the entries are left to adoption. */
export type Expire = (
  ref: PartitionRef,
  deliveries: readonly Delivery[],
  signal: AbortSignal,
) => Promise<readonly Delivery[]>;

const BUDGET_MS = 10_000;
/** Records that are read here at once, and travel back in the estates. */
const COMPENSATIONS_MAX = 16;

export function createExpire(parts: ExpiryParts): Expire {
  const { commands, jobs, consumer, windowMs, compensations, clock, serverOf, log, events } = parts;

  async function expire(ref: PartitionRef, deliveries: readonly Delivery[], signal: AbortSignal) {
    const policy = { clock, budgetMs: BUDGET_MS, signal };
    const kept: Delivery[] = [];
    for (let rest = deliveries; rest.length > 0; ) {
      const some = rest.slice(0, compensations ? COMPENSATIONS_MAX : EXPIRE_JOBS_MAX);
      const call = async (mayHaveRun: boolean) => (await judge(ref, some)).map((reply) => ownWork(reply, mayHaveRun));
      const replies = await withRetry('expire', call, policy).catch(() => undefined);
      if (!replies) break;
      tell(ref, some, replies);
      kept.push(...some.filter((_, index) => replies[index] === 'kept'));
      // Redis looks at the first at least, so this comes to an end.
      const later = some.filter((_, index) => replies[index] === 'later');
      rest = [...later, ...rest.slice(some.length)];
    }
    return kept;
  }

  function tell({ queue }: PartitionRef, deliveries: readonly Delivery[], replies: readonly ExpireReply[]): void {
    for (const [index, { member }] of deliveries.entries()) {
      const reply = replies[index];
      if (reply !== 'expired' && reply !== 'dead') continue;
      events.emit('job.expired', { queue, id: idOf(member).id, dead: reply === 'dead' });
    }
  }

  async function judge(ref: PartitionRef, deliveries: readonly Delivery[]) {
    const late = compensations ? await Promise.all(deliveries.map((one) => withCompensation(ref, one))) : deliveries;
    return jobs.expire(ref, late, { consumer, windowMs });
  }

  /** Where our own code throws at one job, it expires without its compensation job, and the others with theirs. */
  async function withCompensation(ref: PartitionRef, delivery: Delivery): Promise<Expiring> {
    try {
      return await readCompensation(ref, delivery);
    } catch (error) {
      if (!isOurs(error)) throw error;
      const { id } = idOf(delivery.member);
      log.error(
        { job: id, error: whyOf(error, ref) },
        'duestream failed at the compensation job of a job that expires',
      );
      return delivery;
    }
  }

  /** Nobody starts the job meanwhile, because its entry is ours; if it is replaced, `expire` keeps it. */
  async function readCompensation(ref: PartitionRef, delivery: Delivery): Promise<Expiring> {
    const found = await peek(commands, ref, delivery.member);
    if (!found || 'kind' in found || !found.run || found.record === undefined) return delivery;
    const { run, record } = found;
    return {
      ...delivery,
      compensation: compensationOfExpired(
        { member: delivery.member, started: { ...run, record } },
        Math.round(serverOf(ref).nowMs()),
      ),
    };
  }

  return expire;
}

/** What an earlier call has ended, whose reply was lost, is told as that one would have been told. */
function ownWork(reply: ExpireReply, mayHaveRun: boolean): ExpireReply {
  if (reply === 'over expired') return mayHaveRun ? 'expired' : 'lost';
  if (reply === 'over dead') return mayHaveRun ? 'dead' : 'lost';
  return reply;
}
