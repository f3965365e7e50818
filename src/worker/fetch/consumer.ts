/**
 * Reads new entries of the queue's partitions, as many as there are free slots and no more: what is delivered and not
 * started would only wait here and be late if this worker died. What comes is started in bulk (`starter.ts`), and run at
 * once. The call that starts it and the next read go out together, on the reader's connection: at low rates every write
 * that is saved shows in the processor time of both sides.
 */
import { createAbort } from '../../kernel/abort.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { redial } from '../../redis/connection/dialing.ts';
import { outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import { together } from '../../redis/connection/together.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { ensureGroup } from '../../redis/scripts/ready.ts';
import type { Delivery } from '../../redis/scripts/replies.ts';
import { createStarter, type Starter, type StarterParts } from '../run/starter.ts';
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
  /** The read that is under way. */
  reading: Reading | undefined;
}

interface Reading {
  /** Of each partition. */
  readonly asked: number;
  readonly batches: ReturnType<ReadStreams>;
}

/** Most entries per read; they are started in several calls. */
const READ_MAX = 256;
const UNBLOCK_EVERY_MS = 50;
/** While one partition has more, nobody waits in a read of all of them. So often they are looked into instead. */
const LOOK_EVERY_MS = 20;

export function createConsumer(parts: ConsumerParts): Consumer {
  const { blocking, refs, consumer, clock, events, turns } = parts;
  const queue = refs[0]?.queue ?? '';
  const starter = createStarter({ ...parts, queue });
  const read = createStreams({ blocking, refs, consumer });
  const own = { starter, read, starts: new Set<Promise<void>>(), lookedMs: Number.NEGATIVE_INFINITY };
  const consuming: Consuming = { ...parts, stopping: createAbort(), ...own, reading: undefined };
  turns.yieldWhile(() => !isLookedInto(consuming));
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
  const { inFlight, stopping, turns, blocking } = consuming;
  if (!consuming.reading) {
    await inFlight.whenFree(stopping.signal);
    if (stopping.signal.aborted) return idle(0);
    // Since the wait resolved, a take may have had the slot; the next pass waits again.
    if (inFlight.free() === 0) return idle(0);
    // Where more waits there is no need to wait for it.
    const hasMore = turns.hasMore();
    if (hasMore && isLookedInto(consuming)) {
      await turns.next();
      return 0;
    }
    readOn(consuming, !hasMore);
  }
  const batches = await ended(consuming);
  together(blocking, () => {
    turns.throughReader(() => startAll(consuming, batches));
    const mayRead = !stopping.signal.aborted && !turns.hasMore() && inFlight.mayRead();
    if (batches.length > 0 && mayRead) readOn(consuming, true);
  });
  return 0;
}

/** All partitions, also those that seemed empty while others have more and more. */
const isLookedInto = ({ refs, clock, lookedMs }: Consuming) =>
  refs.length === 1 || clock.monotonicMs() - lookedMs < LOOK_EVERY_MS;

/** Where a leader relays what is due, the read waits for one entry of each partition, and leaves the slots to relays. */
function readOn(consuming: Consuming, waits: boolean): void {
  const { inFlight, refs, read, turns } = consuming;
  const slots = Math.min(READ_MAX, inFlight.free());
  const free = waits && turns.isRelayed() ? Math.min(refs.length, slots) : slots;
  turns.readsUpTo(free);
  const batches = read(free, waits);
  // Whoever waits for it hears of a failure.
  batches.catch(() => undefined);
  consuming.reading = { asked: Math.max(1, Math.floor(free / refs.length)), batches };
}

/** What the read that is under way brings. */
async function ended(consuming: Consuming): ReturnType<ReadStreams> {
  const { reading, turns } = consuming;
  if (!reading) return [];
  try {
    const batches = await reading.batches;
    consuming.lookedMs = consuming.clock.monotonicMs();
    for (const { ref, deliveries } of batches) if (deliveries.length >= reading.asked) turns.expectMore(ref);
    return batches;
  } finally {
    consuming.reading = undefined;
    turns.readsUpTo(0);
  }
}

function startAll({ starter, starts }: Consuming, batches: Awaited<ReturnType<ReadStreams>>): void {
  for (const { ref, deliveries } of batches) {
    const started = starter.start(ref, deliveries).finally(() => starts.delete(started));
    starts.add(started);
  }
}

async function stop(consuming: Consuming, stopLoop: () => Promise<void>) {
  const { stopping, starter, starts, commands, blocking, clock } = consuming;
  stopping.abort();
  // First of all: the read below may take a while to end, and meanwhile a suspect could have its turn.
  const released = starter.stop();
  const over = createAbort();
  const stopped = lastRead(consuming, stopLoop()).finally(() => over.abort());
  // Again and again: the first may reach Redis before the read it is meant to end.
  while (!over.signal.aborted) {
    await unblock(commands, blocking);
    await clock.sleep(UNBLOCK_EVERY_MS, over.signal);
  }
  await stopped;
  await Promise.all([...starts, released]);
  starter.end();
}

/** A read that was sent when the loop ended may still bring something, which is released. */
async function lastRead(consuming: Consuming, loopEnded: Promise<void>): Promise<void> {
  await loopEnded;
  startAll(consuming, await ended(consuming).catch(() => []));
}

/** A vanished group is made again at 0; a read that timed out means a connection that may never speak again. */
async function repair({ commands, blocking, refs }: Consuming, error: unknown): Promise<void> {
  const outage = outageOf(error);
  if (outage === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
  else if (outage === 'lost' && blocking.status === 'ready') redial(blocking);
}
