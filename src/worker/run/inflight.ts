/**
 * Everything this worker holds: entries it was given and has not finally settled. One map, filled **before** start is
 * called and emptied only on a final reply after the handler has ended. Adoption compares it with what Redis thinks
 * this consumer holds; an entry that is in Redis and not here was delivered in a reply that got lost.
 *
 * This file alone changes the state of an entry. Each method is named by what happened; `held.ts` says what follows from
 * it, and throws if it cannot happen there. Whoever holds a `Held` reads its state, and must read it anew after a wait.
 */
import type { Token } from '../../job/job.ts';
import type { AbortReason } from '../../job/outcome.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Claim, Delivery } from '../../redis/scripts/replies.ts';
import * as happens from './held.ts';

export interface Held {
  readonly ref: PartitionRef;
  readonly delivery: Delivery;
  readonly state: happens.HeldState;
}

/** What this file alone may write. */
interface Own extends Held {
  state: happens.HeldState;
}

interface Times {
  readonly nowMs: number;
  readonly sentMs: number;
}

/** What happens to an entry: see the picture in `held.ts`. */
interface Happenings {
  readonly add: (ref: PartitionRef, delivery: Delivery) => Held;
  /** Delivered and started in one call, which was sent at `sentMs`. */
  readonly startedAtOnce: (ref: PartitionRef, taken: Delivery & { readonly token: Token }, times: Times) => Held;
  readonly startSent: (held: Held, sentMs: number) => void;
  readonly suspected: (held: Held) => void;
  readonly turnCame: (held: Held) => void;
  readonly forgotten: (held: Held) => void;
  readonly started: (held: Held, token: Token, nowMs: number) => void;
  readonly acknowledged: (held: Held) => void;
  readonly refused: (held: Held) => void;
  readonly handlerBegan: (held: Held, handler: happens.Abortable) => void;
  /** Of a handler that ended while the call was under way it says nothing. */
  readonly extended: (held: Held, sentMs: number) => void;
  readonly overtaken: (held: Held) => void;
  readonly slotLost: (held: Held) => void;
  readonly handlerEnded: (held: Held) => void;
  readonly answered: (held: Held) => void;
  /** Of what is held no more it says nothing. */
  readonly abandoned: (held: Held) => void;
}

export interface Inflight extends Happenings {
  readonly has: (ref: PartitionRef, entry: string) => boolean;
  readonly all: () => Iterable<Held>;
  readonly size: () => number;
  /** Slots in use: what is settling uses none, so reading goes on meanwhile. */
  readonly busy: () => number;
  /**
   * Slots without a job that are not kept: for entries that a call under way may bring, or for a suspect that waits,
   * which starts without asking for one.
   */
  readonly free: (limit: number) => number;
  /** Keeps slots for what a call may bring, or with a negative count gives them back. */
  readonly keep: (count: number) => void;
  /** Whether slots are kept: a call under way may bring entries. */
  readonly isExpecting: () => boolean;
  /** How many suspects wait for their turn. */
  readonly suspects: () => number;
  /** How many handlers run on although their time was up. */
  readonly overdue: () => number;
  /** Slots whose handlers ignore that they were told to stop. */
  readonly lost: () => number;
  readonly isOpen: () => boolean;
  /** Closed, nothing more is to be started. */
  readonly setOpen: (open: boolean) => void;
  /** It is open, a slot is free and the settling backlog is small. */
  readonly mayRead: (limit: number) => boolean;
  /** Resolves when it is open, a slot is free and the settling backlog is small, or when the signal aborts. */
  readonly whenFree: (limit: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when nothing is held but lost slots whose outcome is settled, or when the signal aborts. */
  readonly whenEmpty: (signal: AbortSignal) => Promise<void>;
  /** Resolves when this holds, looked at after every change, or when the signal aborts. */
  readonly until: (holds: () => boolean, signal: AbortSignal) => Promise<void>;
}

interface Parts {
  /** Entry by id, in the place of its partition. */
  readonly maps: Map<string, Own>[];
  readonly count: Record<happens.Phase, number>;
  /** Looks of those who wait. */
  readonly waiting: Set<() => void>;
  open: boolean;
  kept: number;
}

export function createInflight(): Inflight {
  const count = { starting: 0, suspected: 0, started: 0, running: 0, overtaken: 0, settling: 0, gone: 0 };
  const parts: Parts = { maps: [], count, waiting: new Set(), open: true, kept: 0 };
  const all = () => parts.maps.flatMap((map) => [...map.values()]);
  const size = () => parts.maps.reduce((sum, map) => sum + map.size, 0);
  const busy = () => count.starting + count.started + count.running + count.overtaken;
  const free = (limit: number) => Math.max(0, limit - busy() - count.suspected - parts.kept);
  const mayRead = (limit: number) => parts.open && free(limit) > 0 && count.settling < 2 * limit;
  const isEmpty = () => count.overtaken === size() && all().every(isAbandoned);
  return {
    ...happeningsOf(parts),
    has: (ref, entry) => parts.maps[ref.partition]?.has(entry) ?? false,
    all,
    size,
    busy,
    free,
    keep(count) {
      parts.kept += count;
      if (count < 0) notify(parts);
    },
    isExpecting: () => parts.kept > 0,
    suspects: () => count.suspected,
    overdue: () => count.overtaken,
    lost: () => (count.overtaken === 0 ? 0 : all().filter(hasLostSlot).length),
    isOpen: () => parts.open,
    setOpen(open) {
      parts.open = open;
      notify(parts);
    },
    mayRead,
    whenFree: (limit, signal) => until(parts, () => mayRead(limit), signal),
    whenEmpty: (signal) => until(parts, isEmpty, signal),
    until: (holds, signal) => until(parts, holds, signal),
  };
}

function happeningsOf(parts: Parts): Happenings {
  return {
    add: (ref, delivery) => add(parts, { ref, delivery, state: happens.READ }),
    startedAtOnce: (ref, taken, { nowMs, sentMs }) =>
      add(parts, {
        ref,
        delivery: taken,
        state: happens.started(happens.startSent(happens.READ, sentMs), taken.token, nowMs),
      }),
    startSent: (held, sentMs) => move(parts, held, happens.startSent(held.state, sentMs)),
    suspected: (held) => move(parts, held, happens.suspected(held.state)),
    turnCame: (held) => move(parts, held, happens.turnCame(held.state)),
    forgotten: (held) => move(parts, held, happens.forgotten(held.state)),
    started: (held, token, nowMs) => move(parts, held, happens.started(held.state, token, nowMs)),
    acknowledged: (held) => move(parts, held, happens.acknowledged(held.state)),
    refused: (held) => move(parts, held, happens.refused(held.state)),
    handlerBegan: (held, handler) => move(parts, held, happens.handlerBegan(held.state, handler)),
    extended(held, sentMs) {
      if (held.state.phase === 'running') move(parts, held, happens.extended(held.state, sentMs));
    },
    overtaken: (held) => move(parts, held, happens.overtaken(held.state)),
    slotLost: (held) => move(parts, held, happens.slotLost(held.state)),
    handlerEnded: (held) => move(parts, held, happens.handlerEnded(held.state)),
    answered: (held) => move(parts, held, happens.answered(held.state)),
    abandoned(held) {
      if (held.state.phase !== 'gone') move(parts, held, happens.abandoned(held.state));
    },
  };
}

function add(parts: Parts, own: Own): Held {
  mapOf(parts, own.ref).set(own.delivery.entry, own);
  parts.count[own.state.phase] += 1;
  return own;
}

/** The only place where an entry changes. */
function move(parts: Parts, own: Own, next: happens.HeldState): void {
  const { count } = parts;
  count[own.state.phase] -= 1;
  own.state = next;
  if (next.phase === 'gone') mapOf(parts, own.ref).delete(own.delivery.entry);
  else count[next.phase] += 1;
  notify(parts);
}

function notify({ waiting }: Parts): void {
  if (waiting.size > 0) for (const look of waiting) look();
}

function until({ waiting }: Parts, holds: () => boolean, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      waiting.delete(look);
      signal.removeEventListener('abort', look);
      settle();
    };
    const look = () => {
      try {
        if (holds() || signal.aborted) end(resolve);
      } catch (thrown) {
        // It fails whoever waits, and not the job that has changed.
        end(() => reject(thrown));
      }
    };
    waiting.add(look);
    signal.addEventListener('abort', look);
    look();
  });
}

function mapOf({ maps }: Parts, { partition }: PartitionRef): Map<string, Own> {
  while (maps.length <= partition) maps.push(new Map());
  return maps[partition] ?? new Map();
}

const hasLostSlot = ({ state }: Held) => state.phase === 'overtaken' && state.slotLost;
const isAbandoned = ({ state }: Held) => state.phase === 'overtaken' && state.slotLost && !state.owed;

/** Its handler runs in its time, and its lease is to be extended: what is over in Redis needs none. */
export const isLeased = ({ state }: Held): boolean => state.phase === 'running' && !state.acknowledged;

/** Tells its handler to stop. What has none, or none any more, hears nothing. */
export function abort({ state }: Held, why: AbortReason): void {
  if (state.phase === 'running' || state.phase === 'overtaken') state.handler.abort(why);
}

/** What a settle of this start addresses. */
export function claimOf({ delivery: { entry, member }, state }: Held): Claim {
  if ('start' in state) return { entry, member, token: state.start.token };
  throw new Error(`bug: entry ${entry} is ${state.phase} and has no token to be settled with`);
}
