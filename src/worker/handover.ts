/**
 * What a stopping worker gives back, so that nobody has to wait for a lease to run out: entries it was given and never
 * saw, and jobs whose handlers did not end within the grace. Neither costs an attempt or counts as a crash. What cannot
 * be given back stays pending in Redis, and is reclaimed from there.
 */
import { READ_JOBS_MAX } from '../redis/bytes.ts';
import type { Redis } from '../redis/connect.ts';
import type { Jobs } from '../redis/jobs.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { ownPending, readEntries, retire } from '../redis/ready.ts';
import type { Held, Inflight } from './inflight.ts';

export interface HandoverParts {
  readonly commands: Redis;
  readonly jobs: Jobs;
  readonly inflight: Inflight;
  readonly consumer: string;
  readonly windowMs: number;
  readonly refs: () => readonly PartitionRef[];
}

export interface Handover {
  /** Entries delivered in a reply that nobody saw, for example because the connection broke while stopping. */
  readonly unseen: () => Promise<void>;
  /** Jobs whose handlers run on. */
  readonly running: () => Promise<void>;
  /** Leaves the consumer group, if nothing is held there any more. */
  readonly consumer: () => Promise<void>;
}

const SCAN_MAX = 1000;

export function createHandover(parts: HandoverParts): Handover {
  const { commands, jobs, inflight, consumer, windowMs, refs } = parts;

  async function release(ref: PartitionRef): Promise<void> {
    const pending = await ownPending(commands, ref.keys, { consumer, idleMs: 0, limit: SCAN_MAX });
    const unseen = pending.filter((entry) => !inflight.has(ref, entry));
    const deliveries = await readEntries(commands, ref.keys, unseen);
    for (let from = 0; from < deliveries.length; from += READ_JOBS_MAX)
      await jobs.release(ref, deliveries.slice(from, from + READ_JOBS_MAX), { consumer });
  }

  async function defer({ ref, delivery, token }: Held): Promise<void> {
    if (token === undefined) return;
    await jobs.defer(ref, { entry: delivery.entry, member: delivery.member, token }, { windowMs, delayMs: 0 });
  }

  return {
    async unseen() {
      await Promise.allSettled(refs().map(release));
    },
    async running() {
      const held = [...inflight.all()].filter((one) => one.phase === 'running' && !one.overtaken && !one.acknowledged);
      await Promise.allSettled(held.map(defer));
    },
    async consumer() {
      await Promise.allSettled(refs().map((ref) => retire(commands, ref, consumer)));
    },
  };
}
