/**
 * The life of one entry that this worker holds, as a closed union of states and one pure function per thing that can
 * happen. Only `inflight.ts` calls these functions. What happens in a state in which it cannot happen is a bug, and
 * throws. Two things may come late, and then change nothing: an extension's reply, and an order to abort the handler.
 *
 *            start sent            reply: run, again          handler began            time is up
 *  ──▶ starting ──────▶ starting ───────────────▶ started ──────────────────▶ running ───────────▶ overtaken
 *      │  ▲  │                                     │    │                       │                     │
 *      │  │  └──suspected──▶ suspected             │    └──refused──┐           │ handler ended       │ handler ended
 *      │  └──────turn came──────┘ │                │                ▼           ▼                     │
 *      └───────forgotten──────────┤                │             settling ◀───────────────────────────┘
 *                                 ▼                │ answered       │ answered        (or gone, when Redis has answered)
 *                                gone ◀────────────┴────────────────┘
 *
 *  at once        an entry that Redis delivered and started in one call is started as soon as it is here.
 *  acknowledged   started: the job is over in Redis before its handler begins, because it is delivered at most once.
 *                 From here on Redis owes one answer more, which removes the entry; the entry is the proof until then.
 *  answered       the final reply of Redis. It ends what is settling, and what was refused its acknowledgement. While
 *                 the handler runs on (overtaken, or running and acknowledged), it is noted, and nothing is owed any more.
 *  slot lost      overtaken: the handler did not end in the time it was given after that.
 *  abandoned      whatever its state: our own code failed at it (`faults.ts`).
 *  extended       running: the lease was renewed. A reply that comes after the handler ended changes nothing.
 */
import type { Token } from '../../job/job.ts';
import type { AbortReason } from '../../job/outcome.ts';

/** What Redis said when it started the entry. */
export interface Start {
  readonly token: Token;
  /** Monotonic ms at which its reply came. */
  readonly startedMs: number;
  /** Monotonic ms at which the call was sent: the lease cannot have begun much earlier. */
  readonly leasedMs: number;
}

interface Begun {
  readonly start: Start;
  /** Delivered at most once: the job is over in Redis although its handler is still to end. */
  readonly acknowledged: boolean;
}

/** A handler that can be told to stop. */
export interface Abortable {
  readonly abort: (why: AbortReason) => void;
}

interface Handled extends Begun {
  /** Redis still has to give its final reply. */
  readonly owed: boolean;
  readonly handler: Abortable;
}

/** Read, and its start is under way. */
export interface Starting {
  readonly phase: 'starting';
  /** Monotonic ms at which the last call was sent that would start it. */
  readonly leasedMs: number | undefined;
}

/** It waits in the quarantine until it can be started alone. */
export interface Suspected {
  readonly phase: 'suspected';
}

/** Redis started it, and its handler is still to begin. */
export interface Started extends Begun {
  readonly phase: 'started';
}

/** Its handler runs in its time. */
export interface Running extends Handled {
  readonly phase: 'running';
  /** Monotonic ms at which the last call was sent that extended its lease. */
  readonly extendedMs: number | undefined;
}

/** Its handler runs on although its time was up, and keeps its slot. Its outcome is settled meanwhile. */
export interface Overtaken extends Handled {
  readonly phase: 'overtaken';
  /** It did not end in the time it was given after that: nobody waits for it any more. */
  readonly slotLost: boolean;
}

/** Its handler ended or never ran, and its outcome is on the way. */
export interface Settling extends Begun {
  readonly phase: 'settling';
}

/** It is held no more. */
export interface Gone {
  readonly phase: 'gone';
}

export type HeldState = Starting | Suspected | Started | Running | Overtaken | Settling | Gone;
export type Phase = HeldState['phase'];

const GONE: Gone = { phase: 'gone' };
export const READ: Starting = { phase: 'starting', leasedMs: undefined };

/** A call is sent that starts it. It may be sent again. */
export function startSent(state: HeldState, leasedMs: number): Starting {
  if (state.phase === 'starting') return { phase: 'starting', leasedMs };
  throw illegal('start sent', state);
}

/** Workers died under it: it waits until it can be started alone. */
export function suspected(state: HeldState): Suspected {
  if (state.phase === 'starting') return { phase: 'suspected' };
  throw illegal('suspected', state);
}

/** Nothing young runs beside it now. */
export function turnCame(state: HeldState): Starting {
  if (state.phase === 'suspected') return READ;
  throw illegal('turn came', state);
}

/** This worker does not start it: it goes back, is over, or is left to adoption. */
export function forgotten(state: HeldState): Gone {
  if (state.phase === 'starting' || state.phase === 'suspected') return GONE;
  throw illegal('forgotten', state);
}

/** Redis said that it is ours to run. */
export function started(state: HeldState, token: Token, startedMs: number): Started {
  if (state.phase !== 'starting' || state.leasedMs === undefined) throw illegal('started', state);
  return { phase: 'started', start: { token, startedMs, leasedMs: state.leasedMs }, acknowledged: false };
}

/** Redis completed it before its handler begins. */
export function acknowledged(state: HeldState): Started {
  if (state.phase === 'started' && !state.acknowledged) return { ...state, acknowledged: true };
  throw illegal('acknowledged', state);
}

/** It has an outcome without a handler. */
export function refused(state: HeldState): Settling {
  if (state.phase !== 'started' || state.acknowledged) throw illegal('refused', state);
  return { phase: 'settling', start: state.start, acknowledged: false };
}

export function handlerBegan(state: HeldState, handler: Abortable): Running {
  if (state.phase !== 'started') throw illegal('handler began', state);
  const { start, acknowledged } = state;
  return { phase: 'running', start, acknowledged, owed: true, extendedMs: undefined, handler };
}

/** Its lease begins anew. */
export function extended(state: HeldState, extendedMs: number): Running {
  if (state.phase === 'running') return { ...state, extendedMs };
  throw illegal('extended', state);
}

/** Its time is up. */
export function overtaken(state: HeldState): Overtaken {
  if (state.phase !== 'running') throw illegal('overtaken', state);
  const { start, acknowledged, owed, handler } = state;
  return { phase: 'overtaken', start, acknowledged, owed, handler, slotLost: false };
}

export function slotLost(state: HeldState): Overtaken {
  if (state.phase === 'overtaken' && !state.slotLost) return { ...state, slotLost: true };
  throw illegal('slot lost', state);
}

export function handlerEnded(state: HeldState): Settling | Gone {
  if (state.phase !== 'running' && state.phase !== 'overtaken') throw illegal('handler ended', state);
  const { start, acknowledged } = state;
  return state.owed ? { phase: 'settling', start, acknowledged } : GONE;
}

/** Redis gave its final reply, or the worker gives up asking for it. */
export function answered(state: HeldState): Running | Overtaken | Gone {
  switch (state.phase) {
    case 'settling':
      return GONE;
    case 'started':
      if (!state.acknowledged) return GONE;
      break;
    case 'running':
      if (state.acknowledged && state.owed) return { ...state, owed: false };
      break;
    case 'overtaken':
      if (state.owed) return { ...state, owed: false };
      break;
    case 'starting':
    case 'suspected':
    case 'gone':
      break;
  }
  throw illegal('answered', state);
}

/** Our own code failed at it, and Redis is asked for nothing more. A handler that was overtaken keeps its slot until it ends. */
export function abandoned(state: HeldState): Overtaken | Gone {
  if (state.phase === 'gone') throw illegal('abandoned', state);
  return state.phase === 'overtaken' ? { ...state, owed: false } : GONE;
}

function illegal(what: string, state: HeldState): Error {
  return new Error(`bug: "${what}" cannot happen to an entry in the state ${JSON.stringify(state)}`);
}
