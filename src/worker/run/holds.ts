/**
 * Jobs that Redis started shortly before they are due, so that one call carries several. Each waits here, and its handler is
 * called when it is due:
 *
 *  started ──▶ held ──due──▶ its execution begins
 *                │
 *                └──let go──▶ it is as if it had not been started: it waits in `scheduled` for its due time
 *
 * What must always hold. No handler begins early: the reply that started the job says what time it was at Redis, and the job
 * waits for what is left from when that reply is here, so only the way of the reply is unknown, and that makes it late. Where a
 * later reply tells that the clock of Redis was set back, the job waits until that clock has come to its due time. A job
 * is let go when somebody cancels, edits or reschedules it (Redis says so on `K:stop`, and the caller asks until Redis knows
 * that it waits again, or has begun), when its queue is paused or a tag is closed, when a job that is due needs the slot, and
 * when the worker stops. It is not handed out ahead once more. Without a message it begins when it is due, and
 * the caller is told that it runs.
 */
import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { Clock } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { SettleReply } from '../../redis/scripts/replies.ts';
import { trustedUntilMs } from './extender.ts';
import { claimOf, type InFlight, type InFlightEntry } from './in-flight.ts';

interface HoldsParts {
  readonly inFlight: InFlight;
  readonly jobs: Pick<Jobs, 'defer'>;
  readonly windowMs: number;
  readonly jobLeaseMs: number;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  /** Aborted when nothing is worth a further try. */
  readonly signal: AbortSignal;
  readonly events: Emitter;
  /** The first job is held: somebody may want it back. */
  readonly onHeld: () => void;
}

interface Held {
  /** Monotonic ms. */
  beginMs: number;
  readonly begin: () => void;
}

/** As `lua/lib/held.lua` has it: where a job would be held for longer, the clock of Redis went back. */
export const HOLD_MS_MAX = 10_000;
/** Two clocks part by less while one of them is not set. */
const SET_BACK_MS = 2;
/** For so long Redis is asked to take a job back; then it is left to adoption. */
const BUDGET_MS = 10_000;

export class Holds {
  readonly #parts: HoldsParts;
  /** In the order in which they were delivered: they are few. */
  readonly #held = new Map<InFlightEntry, Held>();
  readonly #underWay = new Set<Promise<void>>();
  #disarm: (() => void) | undefined = undefined;
  /** When the timer rings. */
  #ringsMs = Number.POSITIVE_INFINITY;
  #isStopped = false;

  constructor(parts: HoldsParts) {
    this.#parts = parts;
  }

  /** Holds a started entry for so long, then begins. Where more are started than there are slots, one is let go. */
  hold(entry: InFlightEntry, holdMs: number, begin: () => void): void {
    const { clock, inFlight, onHeld } = this.#parts;
    if (this.#isStopped) {
      this.#giveBack(entry);
      return;
    }
    const beginMs = this.#inOrder(entry, clock.monotonicMs() + holdMs);
    this.#held.set(entry, { beginMs, begin });
    inFlight.spare(true);
    onHeld();
    if (inFlight.busy() > inFlight.concurrency) this.#letGoLast();
    this.#arm(beginMs);
  }

  /**
   * Each reply says when Redis will have come to a due time, at the latest: so it will have come to all that are earlier. What has
   * the same due time begins in the order in which it was delivered.
   */
  #inOrder(entry: InFlightEntry, latestMs: number): number {
    const { ref, delivery } = entry;
    let beginMs = latestMs;
    for (const [other, held] of this.#held) {
      if (other.ref !== ref) continue;
      if (other.delivery.dueMs <= delivery.dueMs) held.beginMs = Math.min(held.beginMs, latestMs);
      if (other.delivery.dueMs >= delivery.dueMs) beginMs = Math.min(beginMs, held.beginMs);
    }
    return beginMs;
  }

  /** A job that is due has been started. Whether it has a slot: a job that is held gives up its own. */
  hasSlot(entry: InFlightEntry): boolean {
    const { inFlight } = this.#parts;
    if (inFlight.busy() <= inFlight.concurrency || !inFlight.hadSpare()) return true;
    // @gives-its-slot
    if (this.#letGoLast()) return true;
    this.#giveBack(entry);
    return false;
  }

  /** Whether it was held. */
  letGo(entry: InFlightEntry): boolean {
    // @lets-go
    if (!this.#held.delete(entry)) return false;
    this.#parts.inFlight.spare(this.#held.size > 0);
    this.#giveBack(entry);
    return true;
  }

  letAllGo(): void {
    for (const entry of [...this.#held.keys()]) this.letGo(entry);
  }

  /** Resolves when Redis has them back, or they are left to adoption. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.letAllGo();
    this.#disarm?.();
    await Promise.all(this.#underWay);
  }

  /** The one that is due last waits longest for its turn in any case. */
  #letGoLast(): boolean {
    let last: InFlightEntry | undefined;
    for (const entry of this.#held.keys()) {
      if (last === undefined || entry.delivery.dueMs >= last.delivery.dueMs) last = entry;
    }
    return last !== undefined && this.letGo(last);
  }

  /** One timer for all, which rings for the first. */
  #arm(beginMs: number): void {
    const { clock } = this.#parts;
    if (beginMs >= this.#ringsMs) return;
    this.#disarm?.();
    this.#ringsMs = beginMs;
    this.#disarm = clock.timer(Math.max(0, Math.ceil(beginMs - clock.monotonicMs())), () => this.#ring());
  }

  #ring(): void {
    const { clock, inFlight } = this.#parts;
    this.#ringsMs = Number.POSITIVE_INFINITY;
    const nowMs = clock.monotonicMs();
    const inOrder = [...this.#held].sort(([one], [other]) => one.delivery.dueMs - other.delivery.dueMs);
    const nextMs = Math.min(...inOrder.map(([entry, held]) => this.#end(entry, held, nowMs)));
    inFlight.spare(this.#held.size > 0);
    if (nextMs < Number.POSITIVE_INFINITY) this.#arm(nextMs);
  }

  /** Begins a job that is due. @returns the monotonic ms at which one will be that is not */
  #end(entry: InFlightEntry, held: Held, nowMs: number): number {
    const { serverOf, jobLeaseMs } = this.#parts;
    // The one that began before may have let this one go.
    if (!this.#held.has(entry)) return Number.POSITIVE_INFINITY;
    // A timer may ring up to a millisecond early.
    if (held.beginMs > nowMs) return held.beginMs;
    const { dueMs } = entry.delivery;
    const server = serverOf(entry.ref);
    const isSetBack = dueMs - server.latestMs(nowMs) > SET_BACK_MS;
    const leftMs = dueMs - server.earliestMs(nowMs);
    // @set-back
    if (isSetBack && leftMs <= HOLD_MS_MAX) {
      held.beginMs = nowMs + leftMs;
      return held.beginMs;
    }
    // This process stood still for so long that another worker may have the job: Redis knows. So it does after a long step back.
    if (isSetBack || nowMs >= trustedUntilMs(entry, { jobLeaseMs, nowMs })) this.letGo(entry);
    // @begins
    else if (this.#held.delete(entry)) held.begin();
    return Number.POSITIVE_INFINITY;
  }

  /** Its slot is free at once; the entry stays known until Redis has answered. */
  #giveBack(entry: InFlightEntry): void {
    const { inFlight, jobs, windowMs, clock, signal } = this.#parts;
    inFlight.refused(entry);
    const { ref, delivery } = entry;
    const call = () => jobs.defer(ref, claimOf(entry), { windowMs, delayMs: 0, heldDueMs: delivery.dueMs });
    const given = withRetry('let go', call, { clock, budgetMs: BUDGET_MS, signal })
      .then(
        (reply) => this.#answered(entry, reply),
        () => inFlight.abandoned(entry),
      )
      .finally(() => this.#underWay.delete(given));
    this.#underWay.add(given);
    given.catch(crash);
  }

  /** Somebody has asked the job to stop who did not know that it is held, or when it was just due: then it is over. */
  #answered(entry: InFlightEntry, reply: SettleReply): void {
    const { inFlight, events } = this.#parts;
    const { ref, delivery } = entry;
    inFlight.answered(entry);
    if (reply !== 'cancelled') return;
    events.emit('job.cancelled', { queue: ref.queue, id: idOf(delivery.member).id, name: DEFAULT_NAME });
  }
}
