/**
 * Reads new entries of the queue's partitions, as many as there are free slots and no more: an entry that is delivered and not
 * started would only wait here and be late if this worker died. Entries that come are started in bulk (`run/starter.ts`), and run
 * at once. The call that starts them and the next read go out together, on the reader's connection: at low rates every write
 * that is saved shows in the processor time of both sides.
 */
import type { Emitter } from '../../job/events.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import { createLoop, type Idle, idle, type Loop } from '../../kernel/loop.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { redial } from '../../redis/connection/dialing.ts';
import { outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { ensureGroup, readNew } from '../../redis/scripts/ready.ts';
import type { InFlight } from '../run/in-flight.ts';
import type { Starter } from '../run/starter.ts';
import type { RoundTrips } from './round-trips.ts';

interface StreamFetcherParts {
  readonly blocking: Redis;
  readonly commands: Redis;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  /** How long a read waits for entries. */
  readonly blockMs: number;
  readonly inFlight: InFlight;
  readonly roundTrips: RoundTrips;
  readonly starter: Starter;
  readonly clock: Clock;
  readonly events: Emitter;
}

type Batches = Awaited<ReturnType<typeof readNew>>;

interface Read {
  /** How many entries it asked for, of each partition. */
  readonly asked: number;
  readonly batches: Promise<Batches>;
}

/** Most entries per read; they are started in several calls. */
const READ_MAX = 256;
const UNBLOCK_EVERY_MS = 50;
/** While one partition has more, nobody waits in a read of all of them. So often they are looked into instead. */
const LOOK_EVERY_MS = 20;

export class StreamFetcher {
  readonly #parts: StreamFetcherParts;
  readonly loop: Loop;
  readonly #stopping = createAbort();
  /** Starts that are under way. */
  readonly #starts = new Set<Promise<void>>();
  /** The read that is under way. */
  #read: Read | undefined;
  /** Monotonic ms of the last look into all partitions. */
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** The partition that a read of a few begins with. */
  #first = 0;

  constructor(parts: StreamFetcherParts) {
    const { blocking, refs, clock, events } = parts;
    this.#parts = parts;
    watchReads(parts.commands, blocking);
    this.loop = createLoop({
      who: `consumer of ${refs[0]?.queue ?? ''}`,
      pass: () => this.pass(),
      probe: () => blocking.ping(),
      clock,
      events,
      pauseAfter,
      onError: (error) => this.#repair(error),
    });
  }

  start(): void {
    this.#parts.blocking.on('ready', () => this.wake());
    this.loop.start();
  }

  /** After a reconnect: go on at once. */
  wake(): void {
    this.loop.wake();
  }

  /** A read that waits ends: the worker is to take nothing new. One that Redis answers at that moment still brings something. */
  endRead(): void {
    if (this.#read) void unblock(this.#parts.commands, this.#parts.blocking);
  }

  /** One read: waits for a free slot and for entries. */
  async pass(): Promise<number | Idle> {
    const { inFlight, roundTrips } = this.#parts;
    const { signal } = this.#stopping;
    if (!this.#read) {
      await inFlight.whenFree(signal);
      if (signal.aborted) return idle(0);
      // Since the wait resolved, a take-over may have had the slot; the next pass waits again.
      if (inFlight.free() === 0) return idle(0);
      // Where more waits there is no need to wait for it.
      const hasMore = roundTrips.hasMore();
      if (hasMore && !this.isLookDue()) {
        await roundTrips.next();
        return 0;
      }
      this.#readOn(!hasMore);
    }
    const batches = await this.#readEnded();
    roundTrips.throughReader(() => this.#startAll(batches));
    const mayRead = !signal.aborted && !roundTrips.hasMore() && inFlight.mayRead();
    if (batches.length > 0 && mayRead) this.#readOn(true);
    return 0;
  }

  /** Of all partitions, also those that seemed empty while others have more and more. */
  isLookDue(): boolean {
    const { refs, clock } = this.#parts;
    return refs.length > 1 && clock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS;
  }

  /** Where round trips bring nearly all entries, the read waits for one of each partition, and leaves the slots to them. */
  #readOn(waits: boolean): void {
    const { inFlight, refs, roundTrips } = this.#parts;
    const slots = Math.min(READ_MAX, inFlight.free());
    const count = waits && roundTrips.leavesSlots() ? Math.min(refs.length, slots) : slots;
    roundTrips.readsUpTo(count);
    const batches = this.#readUpTo(count, waits);
    // The pass that waits for it hears of a failure.
    batches.catch(() => undefined);
    this.#read = { asked: Math.max(1, Math.floor(count / refs.length)), batches };
  }

  /** The entries that the read under way brings. */
  async #readEnded(): Promise<Batches> {
    const { roundTrips, clock } = this.#parts;
    const read = this.#read;
    if (!read) return [];
    try {
      const batches = await read.batches;
      this.#lookedMs = clock.monotonicMs();
      for (const { ref, deliveries } of batches) if (deliveries.length >= read.asked) roundTrips.expectMore(ref);
      return batches;
    } finally {
      this.#read = undefined;
      roundTrips.readsUpTo(0);
    }
  }

  /**
   * One read over all partitions. It waits for new entries, or with `waits` false only looks for them. COUNT bounds each stream,
   * so free slots are spread over the streams. It brings at most `count` entries, but for a wait with fewer slots than streams.
   */
  #readUpTo(count: number, waits: boolean): Promise<Batches> {
    const { blocking, refs, consumer, blockMs } = this.#parts;
    if (count < refs.length) return this.#readFew(count, waits);
    const each = Math.floor(count / refs.length);
    return readNew(blocking, refs, { consumer, count: each, blockMs: waits ? blockMs : 0 });
  }

  /**
   * Fewer slots than streams: a look into each, some at a time and in rotation, then a wait for the first entry of any. A short
   * BLOCK on a few would not do: Redis serves its end up to 100 ms late. Entries that the wait brings too much are released.
   */
  async #readFew(count: number, waits: boolean): Promise<Batches> {
    const { blocking, refs, consumer, blockMs } = this.#parts;
    for (let seen = 0; seen < refs.length; seen += count) {
      const streams = [...refs.slice(this.#first), ...refs.slice(0, this.#first)].slice(0, count);
      this.#first = (this.#first + count) % refs.length;
      const batches = await readNew(blocking, streams, { consumer, count: 1, blockMs: 0 });
      if (batches.length > 0) return batches;
    }
    return waits ? readNew(blocking, refs, { consumer, count: 1, blockMs }) : [];
  }

  #startAll(batches: Batches): void {
    for (const { ref, deliveries } of batches) {
      const started = this.#parts.starter.start(ref, deliveries).finally(() => this.#starts.delete(started));
      this.#starts.add(started);
      started.catch(crash);
    }
  }

  /** Stops reading. Entries that a last reply brought are released. */
  async stop(): Promise<void> {
    const { roundTrips, starter, commands, blocking, clock } = this.#parts;
    this.#stopping.abort();
    // First of all: the read below may take a while to end, and meanwhile a suspect could start.
    const released = [starter.stop(), roundTrips.close()];
    const over = createAbort();
    const stopped = this.#lastRead(this.loop.stop()).finally(() => over.abort());
    // Again and again: the first may reach Redis before the read it is meant to end.
    while (!over.signal.aborted) {
      await unblock(commands, blocking);
      await clock.sleep(UNBLOCK_EVERY_MS, over.signal);
    }
    await stopped;
    await Promise.all([...this.#starts, ...released]);
    starter.end();
  }

  /** A read that was sent when the loop ended may still bring something, which is released. */
  async #lastRead(loopEnded: Promise<void>): Promise<void> {
    await loopEnded;
    this.#startAll(await this.#readEnded().catch(() => []));
  }

  /** A vanished group is made again at 0; a read that timed out means a connection that may never speak again. */
  async #repair(error: unknown): Promise<void> {
    const { commands, blocking, refs } = this.#parts;
    const outage = outageOf(error);
    if (outage === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
    else if (outage === 'lost' && blocking.status === 'ready') redial(blocking);
  }
}

/** Ends a blocking read with an empty reply, so that nothing can be delivered into a closing socket. */
async function unblock(commands: Redis, blocking: Redis): Promise<void> {
  const id = clientIds.get(blocking);
  try {
    if (id !== undefined) await commands.call('CLIENT', 'UNBLOCK', id);
  } catch {
    // Not permitted or not reachable: the read ends by itself when its wait is over, or with the connection.
  }
}

/** From now on reads on this connection can be ended, and are where they stand in the way of a script. */
function watchReads(commands: Redis, blocking: Redis): void {
  watchClientId(blocking);
  unblockForTexts(commands, blocking);
}

/**
 * A script is sent by its name, together with the read that follows it. Where Redis has forgotten the script, the client
 * library sends it again with its text, and that would stand behind the read until the read ends: so the read is ended.
 */
function unblockForTexts(commands: Redis, blocking: Redis): void {
  const send = blocking.sendCommand.bind(blocking);
  let reading: object | undefined;
  blocking.sendCommand = (command, stream) => {
    if (/^xreadgroup$/i.test(command.name)) {
      const over = () => {
        if (reading === command) reading = undefined;
      };
      reading = command;
      command.promise.then(over, over);
    } else if (command.name === 'evalsha' && reading) {
      // No other script is sent on this connection while a read is under way.
      void unblock(commands, blocking);
    }
    return send(command, stream);
  };
}

/** Remembers the server's id of each blocking connection; it changes with every reconnect. */
const clientIds = new WeakMap<Redis, number>();

/** Learns the id of a blocking connection now and after every reconnect. */
function watchClientId(blocking: Redis): void {
  const learn = () => {
    blocking
      .call('CLIENT', 'ID')
      .then((id) => clientIds.set(blocking, Number(id)))
      .catch(() => undefined);
  };
  blocking.on('ready', learn);
  if (blocking.status === 'ready') learn();
}
