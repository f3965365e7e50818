/**
 * What a stopping worker gives back, so that nobody has to wait for a lease to run out: entries it was given and never
 * saw or never ran, and jobs whose handlers did not end within the grace. Neither costs an attempt or counts as a crash.
 * What cannot be given back stays pending in Redis, and is reclaimed from there.
 */

import type { EntryId } from '../core/job.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { READ_BYTES_MAX, READ_JOBS_MAX } from '../redis/transitions/bytes.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import { ownPending, readEntries, retire } from '../redis/transitions/ready.ts';
import type { Delivery } from '../redis/transitions/replies.ts';
import type { Held, Inflight } from './inflight.ts';

export interface HandoverParts {
  readonly commands: Redis;
  readonly jobs: Jobs;
  readonly inflight: Inflight;
  readonly consumer: string;
  readonly windowMs: number;
  readonly refs: readonly PartitionRef[];
}

export interface Handover {
  /** Entries delivered in a reply that nobody saw, for example because the connection broke while stopping. */
  readonly unseen: () => Promise<void>;
  /** Jobs whose handlers run on. */
  readonly running: () => Promise<void>;
  /** Leaves the consumer group, if nothing is held there any more. */
  readonly consumer: () => Promise<void>;
}

/** Entries per call, as many as a read brings at most. */
const PAGE = 256;

export function createHandover(parts: HandoverParts): Handover {
  const { commands, jobs, inflight, consumer, windowMs, refs } = parts;

  async function release(ref: PartitionRef): Promise<void> {
    let after: EntryId | undefined;
    do {
      const page = await ownPending(commands, ref.keys, { consumer, idleMs: 0, limit: PAGE, after });
      const unseen = page.filter((entry) => !inflight.has(ref, entry));
      for (let from = 0; from < unseen.length; from += READ_JOBS_MAX) {
        await giveBack(ref, await readEntries(commands, ref.keys, unseen.slice(from, from + READ_JOBS_MAX)));
      }
      after = page.length < PAGE ? undefined : page.at(-1);
    } while (after !== undefined);
  }

  async function giveBack(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const replies = await jobs.release(ref, deliveries, { consumer });
    let started: readonly Delivery[] = deliveries.filter((_, index) => replies[index] === 'started');
    while (started.length > 0) started = await putBack(ref, started);
  }

  /**
   * Started, in a reply that was lost or came too late to be trusted, and never run. The same call again tells its token;
   * left alone it would count as a crash of this worker. Returns what is left for the next call.
   */
  async function putBack(ref: PartitionRef, started: readonly Delivery[]): Promise<readonly Delivery[]> {
    const replies = await jobs.start(ref, started, { consumer, bytesMax: READ_BYTES_MAX, windowMs });
    const later: Delivery[] = [];
    for (const [index, delivery] of started.entries()) {
      const reply = replies[index];
      if (reply?.kind === 'later') later.push(delivery);
      if (reply?.kind !== 'run' && reply?.kind !== 'again') continue;
      const { entry, member } = delivery;
      await jobs.defer(ref, { entry, member, token: reply.token }, { windowMs, delayMs: 0 });
    }
    return later.length < started.length ? later : [];
  }

  async function defer({ ref, delivery, token }: Held): Promise<void> {
    if (token === undefined) return;
    await jobs.defer(ref, { entry: delivery.entry, member: delivery.member, token }, { windowMs, delayMs: 0 });
  }

  return {
    async unseen() {
      await Promise.allSettled(refs.map(release));
    },
    async running() {
      const held = [...inflight.all()].filter((one) => one.phase === 'running' && !one.overtaken && !one.acknowledged);
      await Promise.allSettled(held.map(defer));
    },
    async consumer() {
      await Promise.allSettled(refs.map((ref) => retire(commands, ref, consumer)));
    },
  };
}
