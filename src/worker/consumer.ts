/**
 * Reads new entries of the queue's partitions, as many as there are free slots and no more: what is delivered and not
 * started would only wait here and be late if this worker died. What comes is started in bulk (`starter.ts`), and run at
 * once.
 */
import { createLoop, type Idle, idle } from '../core/loop.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { redial } from '../redis/connection/dialing.ts';
import { outageOf, pauseAfter } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { ensureGroup } from '../redis/transitions/ready.ts';
import type { Delivery } from '../redis/transitions/replies.ts';
import { createStarter, type Starter, type StarterParts } from './starter.ts';
import { createStreams, type ReadStreams } from './streams.ts';
import { unblock } from './unblock.ts';

export interface ConsumerParts extends Omit<StarterParts, 'queue'> {
  readonly commands: Redis;
  readonly blocking: Redis;
  readonly refs: readonly PartitionRef[];
}

export interface Consumer {
  readonly start: () => void;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  /** Stops reading. Entries that a last reply brought are still started, or released by the caller. */
  readonly stop: () => Promise<void>;
  /** One read: waits for a free slot and for data. */
  readonly pass: () => Promise<number | Idle>;
  /** Takes entries that came another way: reclaimed or adopted. */
  readonly take: (ref: PartitionRef, deliveries: readonly Delivery[]) => Promise<void>;
  readonly lastTurnMs: () => number;
  readonly lastProgressMs: () => number;
}

interface Consuming extends ConsumerParts {
  readonly stopping: AbortController;
  readonly starter: Starter;
  readonly read: ReadStreams;
  /** Monotonic ms of the last look into all partitions. */
  lookedMs: number;
  /** Starts that are under way. */
  readonly starts: Set<Promise<void>>;
}

/** Most entries per read; they are started in several calls. */
const READ_MAX = 256;
const UNBLOCK_EVERY_MS = 50;
/** While one partition has more, nobody waits in a read of all of them. So often they are looked into instead. */
const LOOK_EVERY_MS = 20;

export function createConsumer(parts: ConsumerParts): Consumer {
  const { blocking, refs, consumer, clock, events } = parts;
  const queue = refs[0]?.queue ?? '';
  const starter = createStarter({ ...parts, queue });
  const read = createStreams({ blocking, refs, consumer });
  const own = { starter, read, starts: new Set<Promise<void>>(), lookedMs: Number.NEGATIVE_INFINITY };
  const consuming: Consuming = { ...parts, stopping: new AbortController(), ...own };
  const loop = createLoop({
    who: `consumer of ${queue}`,
    pass: () => pass(consuming),
    probe: () => blocking.ping(),
    clock,
    events,
    pauseAfter,
    onError: (error) => repair(consuming, error),
  });
  return {
    start: loop.start,
    wake: loop.wake,
    stop: () => stop(consuming, loop.stop),
    pass: () => pass(consuming),
    take: starter.take,
    lastTurnMs: loop.lastTurnMs,
    lastProgressMs: loop.lastProgressMs,
  };
}

async function pass(consuming: Consuming): Promise<number | Idle> {
  const { inflight, concurrency, stopping, refs, clock, turns } = consuming;
  await inflight.whenFree(concurrency, stopping.signal);
  if (stopping.signal.aborted) return idle(0);
  const free = Math.min(READ_MAX, inflight.free(concurrency));
  // Since the wait resolved, a take may have had the slot; the next pass waits again.
  if (free === 0) return idle(0);
  // Where more waits there is no need to wait for it.
  const hasMore = turns.hasMore();
  const isLookedInto = refs.length === 1 || clock.monotonicMs() - consuming.lookedMs < LOOK_EVERY_MS;
  if (hasMore && isLookedInto) await turns.next();
  else await readAll(consuming, free, !hasMore);
  return 0;
}

async function readAll(consuming: Consuming, free: number, waits: boolean): Promise<void> {
  const { read, refs, turns, starter, starts, clock } = consuming;
  const asked = Math.max(1, Math.floor(free / refs.length));
  const batches = await read(free, waits);
  consuming.lookedMs = clock.monotonicMs();
  for (const { ref, deliveries } of batches) {
    if (deliveries.length >= asked) turns.expectMore(ref);
    const started = starter.start(ref, deliveries).finally(() => starts.delete(started));
    starts.add(started);
  }
}

async function stop(
  { stopping, starter, starts, commands, blocking, clock }: Consuming,
  stopLoop: () => Promise<void>,
) {
  stopping.abort();
  // First of all: the read below may take a while to end, and meanwhile a suspect could have its turn.
  const released = starter.stop();
  const over = new AbortController();
  const ended = stopLoop().finally(() => over.abort());
  // Again and again: the first may reach Redis before the read it is meant to end.
  while (!over.signal.aborted) {
    await unblock(commands, blocking);
    await clock.sleep(UNBLOCK_EVERY_MS, over.signal);
  }
  await ended;
  await Promise.all([...starts, released]);
  starter.end();
}

/** A vanished group is made again at 0; a read that timed out means a connection that may never speak again. */
async function repair({ commands, blocking, refs }: Consuming, error: unknown): Promise<void> {
  const outage = outageOf(error);
  if (outage === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
  else if (outage === 'lost' && blocking.status === 'ready') redial(blocking);
}
