/**
 * Everything this worker holds: entries it was given and has not finally settled. One map, filled **before** start is
 * called and emptied only on a final reply after the handler has ended. Adoption compares it with what Redis thinks
 * this consumer holds; an entry that is in Redis and not here was delivered in a reply that got lost.
 */
import type { Token } from '../core/job.ts';
import type { AbortReason } from '../core/outcome.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Claim, Delivery } from '../redis/transitions/replies.ts';

/**
 * suspected: waits until it can be started alone · starting: read, start under way · running: its handler runs ·
 * settling: the handler ended, its outcome is on the way.
 */
export type Phase = 'suspected' | 'starting' | 'running' | 'settling';

export interface Held {
  readonly ref: PartitionRef;
  readonly delivery: Delivery;
  phase: Phase;
  token: Token | undefined;
  /** Monotonic ms at which Redis had started it. */
  startedMs: number | undefined;
  /** Monotonic ms at which the call was sent that started it: its lease cannot have begun much earlier. */
  leasedMs: number | undefined;
  /** Monotonic ms at which the last call was sent that extended its lease. */
  extendedMs: number | undefined;
  /** Aborts the handler's signal. Set while it runs. */
  abort: ((why: AbortReason) => void) | undefined;
  /** The handler runs on although its time was up and its outcome is being settled: it keeps its slot. */
  overtaken: boolean;
  /** It did not end in the time it was given after that: nobody waits for it any more. */
  lost: boolean;
  /** Redis gave its final reply. */
  settled: boolean;
  /** Delivered at most once: the job is over in Redis although its handler runs. */
  acknowledged: boolean;
  /** Redis still has the entry of an acknowledged job, as the proof that this start ended it. */
  proven: boolean;
  /** The end of an acknowledged job's handler was told. */
  told: boolean;
}

export interface Inflight {
  readonly add: (ref: PartitionRef, delivery: Delivery) => Held;
  readonly has: (ref: PartitionRef, entry: string) => boolean;
  readonly remove: (held: Held) => void;
  readonly all: () => Iterable<Held>;
  readonly size: () => number;
  /** Slots in use: what is starting or running. What is settling uses none, so reading goes on meanwhile. */
  readonly busy: () => number;
  /** Slots without a job, and not kept for a suspect that waits: it starts without asking for one. */
  readonly free: (limit: number) => number;
  /** Suspects that wait for their turn. */
  readonly suspected: () => number;
  readonly isOpen: () => boolean;
  /** Closed, nothing more is to be started. */
  readonly setOpen: (open: boolean) => void;
  readonly setPhase: (held: Held, phase: Phase) => void;
  /** Resolves when it is open, a slot is free and the settling backlog is small, or when the signal aborts. */
  readonly whenFree: (limit: number, signal: AbortSignal) => Promise<void>;
  /** Its slot counts as lost until its handler ends. */
  readonly lose: (held: Held) => void;
  /** Slots whose handlers ignore that they were told to stop. */
  readonly lost: () => number;
  /** Resolves when nothing is held but lost slots whose outcome is settled, or when the signal aborts. */
  readonly whenEmpty: (signal: AbortSignal) => Promise<void>;
  /** Resolves when this holds, looked at after every change, or when the signal aborts. */
  readonly until: (holds: () => boolean, signal: AbortSignal) => Promise<void>;
}

export function createInflight(): Inflight {
  const map = new Map<string, Held>();
  const waiting = new Set<() => void>();
  const count = { suspected: 0, starting: 0, running: 0, settling: 0 };
  let open = true;

  const busy = () => count.starting + count.running;
  const free = (limit: number) => Math.max(0, limit - busy() - count.suspected);
  const keyOf = (ref: PartitionRef, entry: string) => `${ref.partition}:${entry}`;
  const notify = () => {
    for (const check of waiting) check();
  };
  const until = (done: () => boolean, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const check = () => {
        if (!done() && !signal.aborted) return;
        waiting.delete(check);
        signal.removeEventListener('abort', check);
        resolve();
      };
      waiting.add(check);
      signal.addEventListener('abort', check);
      check();
    });

  return {
    add(ref, delivery) {
      const held: Held = {
        ref,
        delivery,
        phase: 'starting',
        token: undefined,
        startedMs: undefined,
        leasedMs: undefined,
        extendedMs: undefined,
        abort: undefined,
        overtaken: false,
        lost: false,
        settled: false,
        acknowledged: false,
        proven: false,
        told: false,
      };
      map.set(keyOf(ref, delivery.entry), held);
      count.starting += 1;
      return held;
    },
    has: (ref, entry) => map.has(keyOf(ref, entry)),
    remove(held) {
      if (!map.delete(keyOf(held.ref, held.delivery.entry))) return;
      count[held.phase] -= 1;
      if (waiting.size > 0) notify();
    },
    all: () => map.values(),
    size: () => map.size,
    busy,
    free,
    suspected: () => count.suspected,
    isOpen: () => open,
    setOpen(next) {
      open = next;
      if (waiting.size > 0) notify();
    },
    setPhase(held, phase) {
      if (map.get(keyOf(held.ref, held.delivery.entry)) === held) {
        count[held.phase] -= 1;
        count[phase] += 1;
      }
      held.phase = phase;
      if (waiting.size > 0) notify();
    },
    whenFree: (limit, signal) => until(() => open && free(limit) > 0 && count.settling < 2 * limit, signal),
    lose(held) {
      held.lost = true;
      if (waiting.size > 0) notify();
    },
    lost: () => [...map.values()].filter((held) => held.lost).length,
    whenEmpty: (signal) => until(() => [...map.values()].every((held) => held.lost && held.settled), signal),
    until,
  };
}

/** What a settle of this start addresses. */
export function claimOf(held: Held): Claim {
  if (held.token === undefined) throw new Error(`entry ${held.delivery.entry} is settled before it was started`);
  return { entry: held.delivery.entry, member: held.delivery.member, token: held.token };
}
