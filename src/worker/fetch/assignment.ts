/**
 * Which partitions wake this worker, in a cluster. There each ready job is announced to a few workers of its
 * partition, not to all, so that a process hears and asks no more when there are more partitions. Each partition has two
 * workers or more, each worker as many as the others, and everybody comes to the same from the same heartbeats. The rest
 * of the partitions it looks into now and then (`cluster-fetcher.ts`): views may differ, and its workers may be full.
 */
import type { Clock } from '../../kernel/clock.ts';
import { createShares } from '../../kernel/shares.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { presence } from '../../redis/scripts/presence.ts';

export interface Assignment {
  readonly isMine: (ref: PartitionRef) => boolean;
  /** Looks who lives, unless that was just done. */
  readonly refresh: () => Promise<void>;
  /** Somebody came or left: it is out of date. */
  readonly outdate: () => void;
}

/** Workers of each partition, at least. */
const COPIES = 2;
/** Partitions of each worker, at least, where there are so many. */
const EACH = 2;
/** An event loop is not held for longer than this many orders take. */
const ORDERS_AT_ONCE = 2000;

export function createAssignment(parts: {
  readonly commands: Redis;
  readonly namespace: string;
  readonly queue: string;
  readonly consumer: string;
  readonly refs: readonly PartitionRef[];
  readonly everyMs: number;
  readonly clock: Clock;
}): Assignment {
  const { commands, namespace, queue, consumer, refs, everyMs, clock } = parts;
  /** `wake` of each partition that is ours; undefined until anybody was seen: then all are. */
  let mine: ReadonlySet<string> | undefined;
  let seen = '';
  let lookedMs = Number.NEGATIVE_INFINITY;

  async function refresh(): Promise<void> {
    if (clock.monotonicMs() - lookedMs < everyMs) return;
    const present = await presence(commands, namespace);
    const others = present.flatMap(({ id, identity }) =>
      identity?.role === 'worker' && identity.queues.includes(queue) ? [id] : [],
    );
    const names = [...new Set([...others, consumer])].sort();
    lookedMs = clock.monotonicMs();
    const now = `${refs.length} ${names.join()}`;
    if (now === seen) return;
    mine = await shareOf(names, consumer, refs);
    seen = now;
  }

  return {
    isMine: (ref) => mine?.has(ref.keys.wake) ?? true,
    refresh,
    outdate() {
      lookedMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Where few partitions have many workers, each has more of them, so that none has nothing to do. */
async function shareOf(
  names: readonly string[],
  consumer: string,
  refs: readonly PartitionRef[],
): Promise<ReadonlySet<string>> {
  const copies = Math.max(COPIES, Math.ceil((Math.min(EACH, refs.length) * names.length) / Math.max(1, refs.length)));
  const shares = createShares(names, refs.length, copies);
  const mine = new Set<string>();
  let orders = 0;
  for (const key of refs.map(({ keys }) => keys.wake).sort()) {
    if (shares.next(key).slice(0, copies).includes(consumer)) mine.add(key);
    orders += names.length;
    if (orders < ORDERS_AT_ONCE) continue;
    orders = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return mine;
}
