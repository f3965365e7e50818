/**
 * Keeps what this worker runs its own: extends the lease of every running entry well within the time after which
 * others may take it, and learns of cancel requests that way. If no extension has succeeded for almost a lease, the
 * worker fences itself: another one may start the job now, so the handlers are told to stop. A timer does that and not
 * the failure of the call, because a line that goes silent lets a call hang for its whole time-out.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop } from '../core/loop.ts';
import type { Jobs } from '../redis/jobs.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { ExtendReply } from '../redis/replies.ts';
import { pauseAfter } from '../redis/weather.ts';
import { claimOf, type Held, type Inflight } from './inflight.ts';

export interface ExtenderParts {
  readonly jobs: Jobs;
  readonly inflight: Inflight;
  readonly consumer: string;
  readonly queue: string;
  readonly extendEveryMs: number;
  readonly jobLeaseMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Extender {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  /** Extends everything that runs. Returns milliseconds until the next time. */
  readonly pass: () => Promise<number>;
}

const BATCH_MAX = 500;
/** `start` makes older entries young again, and leaves this age to the others. */
const AGE_AT_START_MS = 1000;

export function createExtender(parts: ExtenderParts): Extender {
  const { jobs, inflight, consumer, extendEveryMs, jobLeaseMs, clock, events } = parts;
  /** What was sent until then went through; the leases hold from that moment on. */
  let extendedMs = clock.monotonicMs();
  let disarm = (): void => undefined;

  async function pass(): Promise<number> {
    const sentMs = clock.monotonicMs();
    disarm();
    // A timer may fire up to a millisecond early.
    disarm = clock.timer(Math.max(0, trustedUntilMs() - sentMs) + 1, fenceSelf);
    const running = [...inflight.all()].filter(
      (held) => held.phase === 'running' && !held.overtaken && !held.acknowledged,
    );
    for (const [ref, held] of byPartition(running)) {
      for (let from = 0; from < held.length; from += BATCH_MAX) await extend(ref, held.slice(from, from + BATCH_MAX));
    }
    disarm();
    extendedMs = sentMs;
    return extendEveryMs;
  }

  async function extend(ref: PartitionRef, held: readonly Held[]): Promise<void> {
    const replies = await jobs.extend(ref, held.map(claimOf), consumer);
    for (const [index, one] of held.entries()) obey(one, replies[index]);
  }

  function obey(held: Held, reply: ExtendReply | undefined): void {
    if (reply === 'cancel') held.abort?.('cancelled');
    // The handler may have ended while the call was under way; then its own settle tells the rest.
    if (reply === 'fenced' || reply === 'gone') held.abort?.('lease lost');
  }

  const trustedUntilMs = (fromMs = extendedMs) => fromMs + jobLeaseMs - extendEveryMs / 2;

  /** What was started since then has a lease of its own; what is over in Redis needs none. */
  function fenceSelf(): void {
    const nowMs = clock.monotonicMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const held of inflight.all()) {
      if (held.acknowledged) continue;
      const untilMs = trustedUntilMs(Math.max(extendedMs, (held.leasedMs ?? 0) - AGE_AT_START_MS));
      if (nowMs >= untilMs) held.abort?.('lease lost');
      else nextMs = Math.min(nextMs, untilMs);
    }
    disarm();
    if (nextMs < Number.POSITIVE_INFINITY) disarm = clock.timer(nextMs - nowMs + 1, fenceSelf);
  }

  const loop = createLoop({ who: `extender of ${parts.queue}`, pass, clock, events, pauseAfter, onError: fenceSelf });
  return {
    start: loop.start,
    async stop() {
      await loop.stop();
      disarm();
    },
    wake: loop.wake,
    pass,
  };
}

function byPartition(held: readonly Held[]): Map<PartitionRef, Held[]> {
  const groups = new Map<PartitionRef, Held[]>();
  for (const one of held) {
    const group = groups.get(one.ref);
    if (group) group.push(one);
    else groups.set(one.ref, [one]);
  }
  return groups;
}
