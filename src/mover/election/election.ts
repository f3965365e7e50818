/**
 * Who moves a partition. One process holds a lease in Redis and is the leader; the others follow and wait for it to
 * run out or to be given back.
 *
 *            elect: elected                     renewed in time
 *  follower ────────────────▶ leader(term) ───────────────────┐
 *     ▲                        │   ▲                          │
 *     │  lost: fenced, no      │   └──────────────────────────┘
 *     │  reply, trust ran out  │
 *     └────────────────────────┤
 *     ▲        resign (stop, or a process of better rank is there)
 *     └────────────────────────┘
 *
 * **Term.** `<process>:<epoch>:<leaseMs>`. The process id is random per start, the epoch only grows. Renewing and
 * resigning compare the whole term, so a process that lost its lease can never act on the winner's.
 *
 * **Trust window.** A leader trusts its lease until `sent + lease − margin` on the monotonic clock, where `sent` is the
 * moment *before* the request went out: a slow reply cannot stretch leadership. After that it is a follower, whatever
 * the reply says. A failed renewal ends the trust at once; being elected again under the same term is cheap.
 *
 * **Rank.** Rendezvous hashing ranks the daemons of a partition. The best one takes a free lease at once, the others a
 * little later, and a leader of worse rank gives way after a while, to one that has sent a heartbeat since. That spreads
 * leadership; it decides nothing.
 *
 * Correctness never depends on any of this: the promote script checks the term itself, and two leaders would only do
 * the same work twice in turn.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { elect, renew, resign } from '../../redis/scripts/lease.ts';

export interface ElectionParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly processId: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
  /** 0 = this process should lead; higher = others should. */
  readonly rank: () => number;
}

export interface Leadership {
  readonly term: string;
  readonly epoch: number;
}

export interface Election {
  /** The term, while it can be trusted. */
  readonly leading: () => Leadership | undefined;
  /** Tries to become the leader. Returns milliseconds until the next try; 0 when elected. */
  readonly campaign: () => Promise<number>;
  /** The lease was prolonged by a request that was sent at this monotonic time. */
  readonly prolonged: (sentMs: number) => void;
  /** Keeps the lease without a pass. */
  readonly renew: () => Promise<void>;
  /** Leadership is over: fenced, or a reply is missing. */
  readonly concede: (why: string) => void;
  /** Gives the lease back, so that the next one need not wait for it to run out. */
  readonly resign: (why: string) => Promise<void>;
}

/** A follower of rank n waits this much longer than the best one. */
export const RANK_STEP_MS = 40;

interface Campaigning extends ElectionParts {
  /** The term this process was last elected with: it may still be the leader's in Redis after it was conceded here. */
  lastTerm: string | undefined;
  held: Trusted | undefined;
}

/** Leadership, and until when it can be trusted. */
interface Trusted extends Leadership {
  readonly trustedUntilMs: number;
}

export function createElection(parts: ElectionParts): Election {
  const campaigning: Campaigning = { ...parts, lastTerm: undefined, held: undefined };
  const { redis, ref, clock } = parts;
  return {
    leading() {
      const { held } = campaigning;
      if (held && clock.monotonicMs() >= held.trustedUntilMs) set(campaigning, undefined, 'the trust window ran out');
      return campaigning.held;
    },
    campaign: () => campaign(campaigning),
    prolonged: (sentMs) => prolonged(campaigning, sentMs),
    renew: () => keep(campaigning),
    concede: (why) => set(campaigning, undefined, why),
    async resign(why) {
      const term = campaigning.lastTerm;
      campaigning.lastTerm = undefined;
      set(campaigning, undefined, why);
      if (term !== undefined) await resign(redis, ref, term);
    },
  };
}

/** The only place where leadership changes hands. */
function set(campaigning: Campaigning, next: Trusted | undefined, why: string): void {
  const { ref, events, held: before } = campaigning;
  const { queue, partition } = ref;
  campaigning.held = next;
  if (before && before.term !== next?.term) events.emit('leader.lost', { queue, partition, epoch: before.epoch, why });
  if (next && before?.term !== next.term) events.emit('leader.elected', { queue, partition, epoch: next.epoch });
}

async function campaign(campaigning: Campaigning): Promise<number> {
  const { redis, ref, processId, leaseMs, clock, rank } = campaigning;
  const sentMs = clock.monotonicMs();
  const reply = await elect(redis, ref, { processId, leaseMs });
  if (reply.kind === 'held') return Math.max(10, Math.min(reply.ttlMs, leaseMs)) + 10 + rank() * RANK_STEP_MS;
  const { term, epoch } = reply;
  // Held by this very process already: elect does not prolong, so trust has to be earned by a renewal.
  if ((await renew(redis, ref, { term, leaseMs })) === 'lost') return 0;
  campaigning.lastTerm = term;
  set(campaigning, { term, epoch, trustedUntilMs: trustedUntilMs(campaigning, sentMs) }, '');
  return 0;
}

function prolonged(campaigning: Campaigning, sentMs: number): void {
  const { held } = campaigning;
  if (held) campaigning.held = { ...held, trustedUntilMs: trustedUntilMs(campaigning, sentMs) };
}

async function keep(campaigning: Campaigning): Promise<void> {
  const { redis, ref, leaseMs, clock, held } = campaigning;
  if (!held) return;
  const sentMs = clock.monotonicMs();
  try {
    if ((await renew(redis, ref, { term: held.term, leaseMs })) === 'ok') prolonged(campaigning, sentMs);
    else set(campaigning, undefined, 'the lease was lost');
  } catch (error) {
    set(campaigning, undefined, 'the renewal got no reply');
    throw error;
  }
}

const trustedUntilMs = ({ leaseMs }: Campaigning, sentMs: number) => sentMs + leaseMs - Math.min(500, leaseMs / 10);
