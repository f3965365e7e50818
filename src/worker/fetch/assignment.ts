/**
 * Which partitions wake this worker, in a cluster. There each ready job is announced to a few workers of its
 * partition, not to all, so that a process hears and asks no more when there are more partitions. Each partition has two
 * workers or more, each worker as many as the others, and everybody comes to the same from the same heartbeats. The rest
 * of the partitions it looks into now and then (`polling-fetcher.ts`): views may differ, and its workers may be full. A worker that is paused
 * is told of nothing.
 */

import type { Queue } from '../../job/queue.ts';
import type { QueueSettings } from '../../job/queue-settings.ts';
import { type Clock, turn } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Log } from '../../kernel/log.ts';
import { createShares } from '../../kernel/shares.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { presence } from '../../redis/scripts/presence.ts';
import { declarationOf, declareQueue, partitionsOf, type QueueLayout, unheldOf } from '../../redis/scripts/queues.ts';
import { join } from '../../redis/scripts/ready.ts';
import { ofDispatchers } from '../options.ts';

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
      // A worker over HTTP listens to no partition: its daemon listens to all.
      identity?.role === 'worker' && identity.via !== 'http' && identity.queues.includes(queue) && !identity.paused
        ? [id]
        : [],
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
    await turn();
  }
  return mine;
}

// The partitions this worker reads. It declares its queue at start and looks with each heartbeat whether it is still
// declared: a queue that is removed under a worker that serves it comes back, or its jobs would wait where no daemon
// looks. Somebody else may have declared it before, over another number of partitions; then those are read from now on.
//
// `refs` is one list that changes in place: the parts of the worker look into it in each of their passes. What was
// taken from a partition that is gone keeps its own reference, and is acknowledged there.

export interface ServedPartitions {
  readonly refs: readonly PartitionRef[];
  /** Which versions of duestream live, as the registry said at the last look. */
  readonly versions: () => string | undefined;
  /** Declares the queue unless it is, and follows its layout. May be repeated. */
  readonly declare: () => Promise<void>;
}

export function createServedPartitions(parts: {
  readonly redis: Redis;
  readonly namespace: string;
  readonly queue: Pick<Queue, 'name' | 'partitions' | 'saysPartitions' | keyof QueueSettings>;
  readonly consumer: string;
  readonly log: Log;
  /** The worker is a dispatcher: it serves queues with a target alone. */
  readonly dispatches: boolean;
}): ServedPartitions {
  const { redis, namespace, queue, consumer, log, dispatches } = parts;
  const refs: PartitionRef[] = [];
  let versions: string | undefined;

  async function declared(isRepeated: boolean): Promise<QueueLayout> {
    const layout = await declareQueue(redis, { ...declarationOf(namespace, queue), isRepeated });
    const unheld = isRepeated ? [] : unheldOf(layout, queue);
    for (const text of unheld) log.warn({ what: text }, 'the definition does not hold');
    return layout;
  }

  async function declare(): Promise<void> {
    const { name } = queue;
    // Said once: what somebody sets later, for all processes, must not be undone by the next look.
    const isRepeated = refs.length > 0;
    const layout = await declared(isRepeated);
    versions = layout.versions;
    const next = partitionsOf(namespace, layout);
    if (refs.length === 0) refuseOthers(name, next, dispatches);
    const isSame = layout.partitions === refs.length && layout.layoutGeneration === refs[0]?.layoutGeneration;
    if (isSame && isSameSaid(next[0], refs[0])) return;
    if (isSame) {
      refs.splice(0, refs.length, ...next);
      return;
    }
    // Before the first read: the others must know of this worker when they share what a dead one left.
    for (const { keys } of next) await join(redis, keys, consumer);
    if (refs.length > 0)
      log.warn(
        { before: refs.length, partitions: next.length },
        'the queue was resized: it has another number of partitions',
      );
    refs.splice(0, refs.length, ...next);
  }

  return { refs, versions: () => versions, declare };
}

/** Queues whose jobs others run. @throws DuestreamError `bad-config` */
function refuseOthers(queue: string, refs: readonly PartitionRef[], dispatches: boolean): void {
  if (refs.some(isBroadcast)) throw ofSubscribers(queue);
  if (!dispatches && refs.some(({ target }) => target)) throw ofDispatchers(queue);
}

const ofSubscribers = (queue: string): DuestreamError =>
  new DuestreamError(
    'bad-config',
    `queue ${queue} is a broadcast: its jobs go to every subscriber; use createSubscriber, or set broadcast: false in defineQueue`,
  );

/** All that is said of them: history, redaction, and the limits that decide whether a job may have a priority. */
const isSameSaid = (one: PartitionRef | undefined, other: PartitionRef | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other);
