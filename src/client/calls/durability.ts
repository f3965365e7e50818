/** Who must have a write before its call resolves: what a caller says, and what is asked of Redis for it. */

import type { Queue } from '../../job/queue.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { Level } from '../../redis/durable/level.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import { type CallPartitions, isMoved } from './partition-calls.ts';

/**
 * Who must have a write before its call resolves.
 *
 * - `memory`: the primary, in its memory. What a failover or a restart keeps depends on replication and on its settings.
 * - `replicated`: also every replica that is connected to the primary, in memory. The same as `{ replicas: 'all' }`.
 * - `fsynced`: also the disk of the primary. Needs Redis 7.2 or Valkey, and `appendonly yes`. The same as
 *   `{ fsynced: true, replicas: 0 }`.
 * - `{ replicas: 2 }`: two replicas, whichever are first. If there are more, a failover to another one may lose the write.
 * - `{ replicas: 1, fsynced: true }`: the disk of the primary and that of one replica.
 *
 * A call that is not confirmed within `durabilityTimeout` rejects with `indeterminate`: it was carried out, but not
 * everybody may have it. The same call can be repeated.
 *
 * @example
 * const client = createClient({ redis, durability: 'replicated' });
 * await client.schedule(invoices, { order }, { id: `invoice:${order}`, delay: '1d' });
 * await client.schedule(hints, { order }, { durability: 'memory' });
 */
export type Durability =
  | 'memory'
  | 'replicated'
  | 'fsynced'
  | { readonly replicas: number | 'all'; readonly fsynced?: boolean | undefined };

/** An option of each call that writes. */
export interface DurabilityOption {
  /** Who must have it before this call resolves. Default: what the producer was made with. */
  readonly durability?: Durability | undefined;
}

/** Of calls that are to be durable, and may find all as it should be without a script of theirs. */
export interface Confirming {
  /** Resolves when what the partitions of a queue hold is durable. Undefined where the memory of the primary is enough. */
  readonly confirm?: ((queue: Queue) => Promise<void>) | undefined;
}

/** A call that means no job: it changes nothing, and is waited for like any other. */
export function confirming(jobs: Pick<Jobs, 'cancel'>, callPartitions: CallPartitions): Required<Confirming> {
  return {
    confirm: (queue) =>
      callPartitions(queue, async (layout, policy) => {
        const call = (ref: (typeof layout)[number]) =>
          withRetry('confirm', () => jobs.cancel(ref, [], { windowMs: 0 }), policy);
        return (await Promise.all(layout.map(call))).find(isMoved);
      }),
  };
}

/** Reads what calls ask for; undefined where the memory of the primary is enough. @throws DuestreamError `bad-input` */
export function createLevels(settings: {
  readonly level: Level | undefined;
  readonly durabilityTimeoutMs: number;
}): (options: DurabilityOption) => Level | undefined {
  return (options) => {
    const durability = options?.durability;
    return durability === undefined ? settings.level : levelOf(durability, settings.durabilityTimeoutMs);
  };
}

const REPLICAS_MAX = 100;

const ALLOWED = `memory, replicated, fsynced, or { replicas, fsynced } with replicas from 0 to ${REPLICAS_MAX}, or all, and one of the two`;

/** Undefined: the memory of the primary is enough. @throws DuestreamError `bad-input` */
export function levelOf(input: unknown, timeoutMs: number): Level | undefined {
  if (input === undefined || input === 'memory') return undefined;
  if (input === 'replicated') return { fsynced: false, replicas: 'all', timeoutMs };
  if (input === 'fsynced') return { fsynced: true, replicas: 0, timeoutMs };
  const asked = fieldsOf(input);
  if (asked) return { ...asked, timeoutMs };
  throw new DuestreamError('bad-input', `durability is ${show(input)}; allowed: ${ALLOWED}`);
}

function fieldsOf(input: unknown): Omit<Level, 'timeoutMs'> | undefined {
  if (typeof input !== 'object' || input === null || !('replicas' in input)) return undefined;
  const { replicas, fsynced = false, ...others }: { replicas: unknown; fsynced?: unknown } = input;
  if (typeof fsynced !== 'boolean' || Object.keys(others).length > 0) return undefined;
  if (replicas === 'all') return { fsynced, replicas };
  if (typeof replicas !== 'number' || !Number.isInteger(replicas)) return undefined;
  // No replica and no disk is the memory of the primary, which has its own name.
  const fewest = fsynced ? 0 : 1;
  return replicas >= fewest && replicas <= REPLICAS_MAX ? { fsynced, replicas } : undefined;
}
