/**
 * Takes new entries where no read blocks: in a cluster, where one read cannot span partitions and a blocked connection for each
 * would grow with them; and where a worker is told so (`read: 'poll'`), as some services refuse reads that block. A partition that wakes the worker (`redis/channels.ts`) is asked, and one round trip
 * delivers its entries and starts them (`serve`). What always holds: no more is asked for than there are free slots.
 *
 *  K:work ──wake-up──▶ waiting ──a free slot──▶ round trip, which brings entries ──▶ handlers run
 *                       ▲   ▲                      │ as many as it asked for
 *     tick ─────────────┘   └──────────────────────┘
 *
 * The tick is the guarantee: each second, or as `pollEvery` says, every partition that is ours is asked, and some of the others, so that a job is found
 * whose wake-up was lost, or whose workers are full. A partition whose node is away rests, and the others go on.
 */
import type { Emitter } from '../../job/events.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop, type Idle, idle, type Loop } from '../../kernel/loop.ts';
import type { Channels } from '../../redis/channels.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { ensureGroup } from '../../redis/scripts/ready.ts';
import type { InFlight } from '../run/in-flight.ts';
import type { Starter } from '../run/starter.ts';
import type { Assignment } from './assignment.ts';
import type { RoundTrips } from './round-trips.ts';

interface PollingFetcherParts {
  readonly commands: Redis;
  readonly refs: readonly PartitionRef[];
  readonly inFlight: InFlight;
  readonly roundTrips: RoundTrips;
  readonly starter: Starter;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly wakeChannel: Channels;
  readonly assignment: Assignment;
  /** The channel on which processes come and go. */
  readonly fleet: string;
  readonly pace: Pace;
}

/** How often it looks, in ms. */
export interface Pace {
  /** Without a wake-up. */
  readonly tickMs: number;
  /** While wake-ups may be missed. */
  readonly deafMs: number;
  /** How often it then tries to hear them again, at most. */
  readonly mendDeafMs: number;
}

/** While wake-ups may be missed, where they are to be had. */
const DEAF_MS = 100;
/** A subscriber whose node froze says nothing: it is asked for a sign of life this often. */
const MEND_MS = 5000;

/** @param isPolling there may be no channels at all, and each command may have its price: no look is more frequent than it was said */
export const paceOf = (tickMs: number, isPolling: boolean): Pace =>
  isPolling
    ? { tickMs, deafMs: tickMs, mendDeafMs: MEND_MS }
    : { tickMs, deafMs: Math.min(tickMs, DEAF_MS), mendDeafMs: 0 };
/** In so many ticks every other partition is looked into once. */
const SWEEP_TICKS = 16;
/** A partition that did not answer is left alone for this time. */
const REST_MS = 250;

export class PollingFetcher {
  readonly #parts: PollingFetcherParts;
  readonly loop: Loop;
  readonly #stopping = createAbort();
  /** Partitions that are to be asked, in the order of their wake-ups. */
  readonly #waiting: Set<PartitionRef>;
  readonly #asking = new Set<PartitionRef>();
  /** Partitions that this worker listens to, and what ends that. */
  readonly #listening = new Map<PartitionRef, () => void>();
  /** Monotonic ms until when a partition that failed is left alone. */
  readonly #resting = new Map<PartitionRef, number>();
  readonly #forgetFleet: () => void;
  /** Monotonic ms of the next tick. */
  #tickMs = Number.NEGATIVE_INFINITY;
  #mendedMs: number;
  /** Where the sweep goes on. */
  #swept = 0;
  /** A partition has answered since the last pass. */
  #hasAnswer = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(parts: PollingFetcherParts) {
    const { refs, clock, events, commands, assignment } = parts;
    this.#parts = parts;
    this.#waiting = new Set(refs);
    this.#mendedMs = clock.monotonicMs();
    this.loop = createLoop({
      who: `consumer of ${refs[0]?.queue ?? ''}`,
      pass: () => this.pass(),
      probe: () => commands.ping(),
      clock,
      events,
      pauseAfter,
    });
    this.#forgetFleet = parts.wakeChannel.listen(parts.fleet, assignment.outdate);
  }

  /** A partition that waits is asked before a busy partition is given more. */
  isLookDue(): boolean {
    return this.#waiting.size > 0;
  }

  start(): void {
    this.loop.start();
  }

  /** After a reconnect: go on at once. */
  wake(): void {
    this.#tickMs = Number.NEGATIVE_INFINITY;
    this.loop.wake();
  }

  async stop(): Promise<void> {
    const { roundTrips, starter } = this.#parts;
    this.#stopping.abort();
    for (const forget of [...this.#listening.values(), this.#forgetFleet]) forget();
    // First of all: entries that are asked for now are released, and no suspect starts.
    const released = [starter.stop(), roundTrips.close()];
    await this.loop.stop();
    await Promise.all(released);
    starter.end();
  }

  async pass(): Promise<number | Idle> {
    const { inFlight, clock, refs } = this.#parts;
    const { signal } = this.#stopping;
    await inFlight.whenFree(signal);
    if (signal.aborted) return idle(0);
    const nowMs = clock.monotonicMs();
    if (nowMs >= this.#tickMs) this.#tick(nowMs);
    // None is waited for: one that does not answer must not hold up the others.
    for (const ref of this.#chosen()) void this.#ask(ref).finally(() => this.loop.wake());
    const hasAnswer = this.#hasAnswer;
    const failure = this.#failure;
    this.#hasAnswer = false;
    this.#failure = undefined;
    // The others go on as if nothing had happened; when none of them answers, it is an outage.
    if (failure && this.#resting.size === refs.length) throw failure.error;
    const untilTickMs = Math.max(1, this.#tickMs - clock.monotonicMs());
    const waitMs = this.#waiting.size > 0 ? Math.min(REST_MS, untilTickMs) : untilTickMs;
    return hasAnswer ? waitMs : idle(waitMs);
  }

  /** Listens to the partitions that are ours, and asks for a look into them and into a part of the rest. */
  #tick(nowMs: number): void {
    const { assignment, refs, wakeChannel, pace } = this.#parts;
    // Without an answer it stays as it was.
    assignment.refresh().then(
      () => this.#listen(),
      () => undefined,
    );
    const others = refs.filter((ref) => !assignment.isMine(ref));
    const some = Math.ceil(others.length / SWEEP_TICKS);
    for (let nth = 0; nth < some; nth += 1) {
      const ref = others[(this.#swept + nth) % others.length];
      if (ref) this.#waiting.add(ref);
    }
    this.#swept += some;
    for (const ref of refs) if (assignment.isMine(ref)) this.#waiting.add(ref);
    const isDeaf = wakeChannel.isDeaf();
    if (nowMs - this.#mendedMs >= (isDeaf ? pace.mendDeafMs : MEND_MS)) {
      this.#mendedMs = nowMs;
      wakeChannel.mend();
    }
    this.#tickMs = nowMs + (isDeaf ? pace.deafMs : pace.tickMs);
  }

  #listen(): void {
    const { assignment, refs, wakeChannel } = this.#parts;
    if (this.#stopping.signal.aborted) return;
    const mine = new Set(refs.filter(assignment.isMine));
    for (const [ref, forget] of this.#listening) {
      if (mine.has(ref)) continue;
      forget();
      this.#listening.delete(ref);
    }
    for (const ref of mine) {
      if (this.#listening.has(ref)) continue;
      const onWakeUp = () => {
        this.#waiting.add(ref);
        this.loop.wake();
      };
      this.#listening.set(ref, wakeChannel.listen(ref.keys.work, onWakeUp));
    }
  }

  /** As many partitions as there are free slots, and none that is being asked or rests. */
  #chosen(): readonly PartitionRef[] {
    const { refs, inFlight, clock, roundTrips } = this.#parts;
    const nowMs = clock.monotonicMs();
    const isFree = (ref: PartitionRef) => !this.#asking.has(ref) && (this.#resting.get(ref) ?? 0) <= nowMs;
    // The queue may have been laid out anew.
    for (const ref of this.#waiting) if (!refs.includes(ref)) this.#waiting.delete(ref);
    const some = [...this.#waiting].filter(isFree).slice(0, inFlight.free());
    for (const ref of some) {
      this.#waiting.delete(ref);
      roundTrips.expectMore(ref);
    }
    return some;
  }

  async #ask(ref: PartitionRef): Promise<void> {
    const { roundTrips, commands, clock } = this.#parts;
    this.#asking.add(ref);
    try {
      if (await roundTrips.to(ref)) this.#waiting.add(ref);
      this.#hasAnswer = true;
      this.#resting.delete(ref);
    } catch (error) {
      this.#waiting.add(ref);
      this.#failure = { error };
      this.#resting.set(ref, clock.monotonicMs() + REST_MS);
      if (outageOf(error) === 'no-group') await ensureGroup(commands, ref.keys).catch(() => undefined);
    } finally {
      this.#asking.delete(ref);
    }
  }
}
