/**
 * What a stopping worker leaves to others, so that nobody has to wait for a lease to run out. Entries it was given and
 * never saw are released; jobs that were started, and whose handlers did not end within the shutdown time, are deferred
 * to now. Neither counts as a failure or a crash. What Redis does not answer for stays pending, and is reclaimed.
 */

import type { EntryId } from '../../job/job.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { READ_BYTES_MAX, READ_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import { ownPending, readEntries, retire } from '../../redis/scripts/ready.ts';
import type { Claim, Delivery } from '../../redis/scripts/replies.ts';
import { claimOf, type InFlight, isLeased } from '../run/in-flight.ts';

export interface HandoverParts {
  readonly commands: Redis;
  readonly jobs: Jobs;
  readonly inFlight: InFlight;
  readonly consumer: string;
  readonly windowMs: number;
  readonly refs: readonly PartitionRef[];
}

export interface Handover {
  /** Entries delivered in a reply that nobody saw, for example because the connection broke while stopping. */
  readonly unseen: () => Promise<void>;
  /** Jobs whose handlers run on. */
  readonly running: () => Promise<void>;
  /** Leaves the consumer group, if nothing is in flight there any more. */
  readonly consumer: () => Promise<void>;
}

/** Entries per call, as many as a read brings at most. */
const PAGE = 256;

export function createHandover(parts: HandoverParts): Handover {
  const { commands, inFlight, consumer, refs } = parts;
  return {
    async unseen() {
      await Promise.allSettled(refs.map((ref) => releaseUnseen(parts, ref)));
    },
    async running() {
      await Promise.allSettled(
        inFlight
          .all()
          .filter(isLeased)
          .map((entry) => defer(parts, entry.ref, claimOf(entry))),
      );
    },
    async consumer() {
      await Promise.allSettled(refs.map((ref) => retire(commands, ref, consumer)));
    },
  };
}

async function releaseUnseen(parts: HandoverParts, ref: PartitionRef): Promise<void> {
  const { commands, consumer, inFlight } = parts;
  let after: EntryId | undefined;
  do {
    const page = await ownPending(commands, ref.keys, { consumer, idleMs: 0, limit: PAGE, after });
    const unseen = page.filter((entry) => !inFlight.has(ref, entry));
    for (let from = 0; from < unseen.length; from += READ_JOBS_MAX) {
      await release(parts, ref, await readEntries(commands, ref.keys, unseen.slice(from, from + READ_JOBS_MAX)));
    }
    after = page.length < PAGE ? undefined : page.at(-1);
  } while (after !== undefined);
}

async function release(parts: HandoverParts, ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  const replies = await parts.jobs.release(ref, deliveries, { consumer: parts.consumer });
  let started: readonly Delivery[] = deliveries.filter((_, index) => replies[index] === 'started');
  while (started.length > 0) started = await deferStarted(parts, ref, started);
}

/**
 * Started, in a reply that was lost or came too late to be trusted, and never run. The same call again tells its token;
 * left alone it would count as a crash of this worker. A job that was started before it was due waits for its due time again,
 * as if it had not been started. Returns what is left for the next call.
 */
async function deferStarted(
  parts: HandoverParts,
  ref: PartitionRef,
  started: readonly Delivery[],
): Promise<readonly Delivery[]> {
  const { jobs, consumer, windowMs } = parts;
  const replies = await jobs.start(ref, started, { consumer, bytesMax: READ_BYTES_MAX, windowMs });
  const later: Delivery[] = [];
  for (const [index, delivery] of started.entries()) {
    const reply = replies[index];
    if (reply?.kind === 'later') later.push(delivery);
    if (reply?.kind !== 'run' && reply?.kind !== 'again') continue;
    const { entry, member, dueMs } = delivery;
    await defer(parts, ref, { entry, member, token: reply.token }, reply.holdMs === undefined ? undefined : dueMs);
  }
  return later.length < started.length ? later : [];
}

async function defer(
  { jobs, windowMs }: HandoverParts,
  ref: PartitionRef,
  claim: Claim,
  heldDueMs?: number,
): Promise<void> {
  await jobs.defer(ref, claim, { windowMs, delayMs: 0, ...(heldDueMs !== undefined && { heldDueMs }) });
}
