/** A leader's pass: what it asks, what `promote` and `relay` answer, and how a worker in its process takes part in it. */
import type { Broadcast } from '../../job/queue-settings.ts';
import type { PartitionRef } from '../keys.ts';
import type { Reply } from './scripts.ts';

/** Most members in line: it bounds the memory of what is due and must wait. */
export const LINE_MAX = 1_000_000;

/** What a leader asks of a pass. */
export interface LeadersPass {
  readonly term: string;
  /** What the lease is prolonged to; undefined: it was prolonged lately, and stays as it is. */
  readonly leaseMs: number | undefined;
  /** Most members. */
  readonly limit: number;
  /** Most undelivered entries. */
  readonly cap: number;
  /** Most members in line, where the queue is gated. Default LINE_MAX. */
  readonly lineMax?: number;
  /** What is due within so many ms is offered to workers, which hold it until then. Default: nothing is. */
  readonly aheadMs?: number | undefined;
}

/** The same of a broadcast queue: its bounds, and how long the end of a job is remembered. */
export interface CastPass extends Omit<LeadersPass, 'cap' | 'lineMax'> {
  readonly broadcast: Broadcast;
  readonly windowMs: number;
}

export type PromoteReply =
  | { readonly kind: 'fenced' }
  | {
      readonly kind: 'promoted' | 'paused' | 'capped';
      readonly nowMs: number;
      readonly nextMs: number | undefined;
      readonly backlog: number;
      readonly deadLetters: number;
      /** How many became due: they went into ready, or in line. */
      readonly count: number;
      /** Of a gated queue: how many were let through, and how many are in line. */
      readonly gated?: { readonly through: number; readonly waiting: number };
      /** How many of these are not due yet: they are offered, and stay in scheduled until a worker starts them. */
      readonly offered?: number;
      readonly lateness: readonly (readonly [lateMs: number, count: number])[];
    };

/** What came of a leader's pass: its reply, when it came by the monotonic clock, and how many members it could move. */
export interface Passed {
  readonly reply: PromoteReply;
  readonly receivedMs: number;
  readonly limit: number;
}

/**
 * Makes a leader's pass part of a worker's turn: `RoundTrips.relay`, which the daemon hands to its movers. Undefined: the
 * worker takes nothing now, and no call was sent.
 */
export type Relay = (ref: PartitionRef, pass: LeadersPass) => Promise<Passed> | undefined;

export function promoteReply(reply: readonly Reply[]): PromoteReply {
  const [kind, now, next, backlog, deadLetters, count, through, waiting] = reply;
  if (kind === 'fenced') return { kind };
  const lateness: (readonly [number, number])[] = [];
  let offered = 0;
  for (let at = 8; at < reply.length; at += 2) {
    const [lateMs, many] = [Number(reply[at]), Number(reply[at + 1])];
    if (lateMs < 0) offered += many;
    lateness.push([Math.max(0, lateMs), many]);
  }
  return {
    kind: kind === 'moved' ? 'promoted' : (kind as 'paused' | 'capped'),
    nowMs: Number(now),
    nextMs: next === '' ? undefined : Number(next),
    backlog: Number(backlog),
    deadLetters: Number(deadLetters),
    count: Number(count),
    ...(offered > 0 && { offered }),
    lateness,
    ...(Number(waiting) >= 0 && { gated: { through: Number(through), waiting: Number(waiting) } }),
  };
}
