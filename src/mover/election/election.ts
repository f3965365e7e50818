/**
 * Who moves a partition. One process holds a lease in Redis and is the leader; the others are followers and wait until
 * the lease runs out or the leader gives it back.
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
 * **Balance.** `LeaderOrder` ranks the daemons of a partition. The daemon of rank 0 takes a free lease at once, the
 * others a little later. A leader of worse rank gives way after a while, to a process that has sent a heartbeat since, and
 * then stays out of the election for a moment. That spreads leadership over the daemons and decides nothing.
 *
 * Correctness never depends on any of this: the promote script checks the term itself, and two leaders would only do
 * the same work twice in turn.
 */
import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createShares } from '../../kernel/shares.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { elect, holderOf, leaseTtl, renew, resign } from '../../redis/scripts/lease.ts';
import { beatAges, type Identity } from '../../redis/scripts/presence.ts';

interface ElectionParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly processId: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Which daemons should lead the partition rather than this one, and which are older than what it needs. */
  readonly order: Pick<LeaderOrder, 'rank' | 'betterBeatSince' | 'isOlder'>;
  /** The partition with the settings of its queue as they are now. Default: as it was given. */
  readonly current?: () => PartitionRef;
}

export interface Leadership {
  readonly term: string;
  readonly epoch: number;
}

/** Leadership, and until when it can be trusted. */
interface Trusted extends Leadership {
  readonly trustedUntilMs: number;
}

/** A follower of rank n waits this much longer than the best one. */
const RANK_STEP_MS = 40;
/** A leader gives way to a process of better rank after this time, so that a restart does not shuffle leadership. */
const GIVE_WAY_MS = 10_000;
/** After giving way, the better one must have had its chance. */
const RESIGNED_REST_MS = 500;

export class Election {
  readonly #parts: ElectionParts;
  /** The term of the last election that this process won. It may still stand in Redis after it was conceded here. */
  #lastTerm: string | undefined = undefined;
  #trusted: Trusted | undefined = undefined;
  /** Since when this leader has seen a process of better rank. */
  #outrankedSinceMs: number | undefined = undefined;
  #campaignFromMs = Number.NEGATIVE_INFINITY;
  /** Another process led at the last try. */
  #isFollower = false;
  /** The term of an older process, which this one takes over where the partition has a mark. */
  #over: string | undefined = undefined;
  /** When the leader before was last seen to prolong its lease, monotonic ms; undefined: this process saw none since it led. */
  #seenMs: number | undefined = undefined;

  constructor(parts: ElectionParts) {
    this.#parts = parts;
  }

  /** The term, while it can be trusted. */
  leading(): Leadership | undefined {
    const trusted = this.#trusted;
    if (trusted && this.#parts.clock.monotonicMs() >= trusted.trustedUntilMs) this.concede('the trust window ran out');
    return this.#trusted;
  }

  /** Milliseconds for which this process stays out of the election; 0 or less: none. */
  outForMs(): number {
    return this.#campaignFromMs - this.#parts.clock.monotonicMs();
  }

  /** Tries to become the leader; a follower asks first whether there is still one. Returns milliseconds until the next try; 0 when elected. */
  async campaign(): Promise<number> {
    const { redis, ref, processId, leaseMs, clock, order } = this.#parts;
    this.#outrankedSinceMs = undefined;
    // Whose lease it is counts where an older process may not have it.
    const heldMs = this.#isFollower && !this.#isMarked() ? await leaseTtl(redis, ref) : 0;
    // A lease of another length than ours may be void: the script knows.
    if (heldMs > 0 && heldMs <= leaseMs) return this.#follow(heldMs);
    const sentMs = clock.monotonicMs();
    const silentMs = this.#seenMs === undefined ? undefined : sentMs - this.#seenMs;
    const reply = await elect(redis, ref, { processId, leaseMs, silentMs, over: this.#over });
    this.#isFollower = reply.kind === 'held';
    const isTooOld = reply.kind === 'held' && this.#isMarked() && order.isOlder(holderOf(reply.term));
    this.#over = isTooOld ? reply.term : undefined;
    if (reply.kind === 'held') return this.#follow(reply.ttlMs);
    this.#seenMs = undefined;
    const { term, epoch } = reply;
    // This very process may hold the lease already: elect does not prolong it, so a renewal has to earn the trust.
    if ((await renew(redis, ref, { term, leaseMs })) === 'lost') return 0;
    this.#lastTerm = term;
    this.#become({ term, epoch, trustedUntilMs: this.#trustedUntilMs(sentMs) }, '');
    return 0;
  }

  /** An older process does not know all limits of such a queue, and nothing starts there while it leads. */
  #isMarked(): boolean {
    const { ref, current = () => ref } = this.#parts;
    return current().gates?.isMarked === true;
  }

  /** Another process leads: each of its passes prolongs its lease to the full length. */
  #follow(ttlMs: number): number {
    const { clock, leaseMs } = this.#parts;
    this.#seenMs = clock.monotonicMs() - Math.max(0, leaseMs - ttlMs);
    return this.#waitMs(ttlMs);
  }

  /** Until the lease of another has ended, and a little longer. */
  #waitMs(ttlMs: number): number {
    return Math.max(10, Math.min(ttlMs, this.#parts.leaseMs)) + 10 + this.#rank() * RANK_STEP_MS;
  }

  /** A request that was sent at this monotonic time has prolonged the lease. */
  prolonged(sentMs: number): void {
    const trusted = this.#trusted;
    if (trusted) this.#trusted = { ...trusted, trustedUntilMs: this.#trustedUntilMs(sentMs) };
  }

  /** Keeps the lease without a pass. */
  async renew(): Promise<void> {
    const { redis, ref, leaseMs, clock } = this.#parts;
    const trusted = this.#trusted;
    if (!trusted) return;
    const sentMs = clock.monotonicMs();
    try {
      if ((await renew(redis, ref, { term: trusted.term, leaseMs })) === 'ok') this.prolonged(sentMs);
      else this.concede('the lease was lost');
    } catch (error) {
      this.concede('the renewal got no reply');
      throw error;
    }
  }

  /** Leadership is over: the term was fenced, or a reply is missing. */
  concede(why: string): void {
    this.#become(undefined, why);
  }

  /** Gives the lease back, so that the next leader need not wait until it runs out. */
  async resign(why: string): Promise<void> {
    const { redis, ref } = this.#parts;
    const term = this.#lastTerm;
    this.#lastTerm = undefined;
    this.concede(why);
    if (term !== undefined) await resign(redis, ref, term);
  }

  /** Whether processes of better rank have been there for so long that this leader should offer them the lease. */
  isOutranked(): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    if (this.#rank() === 0) this.#outrankedSinceMs = undefined;
    else this.#outrankedSinceMs ??= nowMs;
    return this.#outrankedSinceMs !== undefined && nowMs - this.#outrankedSinceMs >= GIVE_WAY_MS;
  }

  /**
   * Gives the lease back for a process of better rank. A process that was killed does not get it: its heartbeat is listed for
   * longer than its lease, so only a heartbeat that was sent meanwhile counts. @returns whether the lease was given back
   */
  async giveWay(): Promise<boolean> {
    const { clock, order, ref } = this.#parts;
    const sinceMs = this.#outrankedSinceMs;
    this.#outrankedSinceMs = undefined;
    const { leader } = ref.keys;
    if (sinceMs === undefined || !(await order.betterBeatSince(leader, sinceMs, this.#isMarked()))) return false;
    this.#campaignFromMs = clock.monotonicMs() + RESIGNED_REST_MS;
    await this.resign('a process of better rank is there');
    return true;
  }

  /** Another process gave the lease back. The daemons take a free lease in the order of their rank. */
  onResigned(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#campaignFromMs = Math.max(this.#campaignFromMs, nowMs + this.#rank() * RANK_STEP_MS);
  }

  #rank(): number {
    return this.#parts.order.rank(this.#parts.ref.keys.leader);
  }

  /** The only place where leadership changes hands. */
  #become(next: Trusted | undefined, why: string): void {
    const { ref, events } = this.#parts;
    const { queue, partition } = ref;
    const before = this.#trusted;
    this.#trusted = next;
    if (before && before.term !== next?.term)
      events.emit('leader.lost', { queue, partition, epoch: before.epoch, why });
    if (next && before?.term !== next.term) events.emit('leader.elected', { queue, partition, epoch: next.epoch });
  }

  #trustedUntilMs(sentMs: number): number {
    const { leaseMs } = this.#parts;
    return sentMs + leaseMs - Math.min(500, leaseMs / 10);
  }
}

// Which daemon should lead which partition: the daemons in order, best first, and where this one stands. The order is
// computed once per change of the membership or of the partitions, never per pass: a mover asks for its rank up to a
// thousand times per second. All daemons come to the same shares, and to even ones (`kernel/shares.ts`).
//
// A daemon that was killed is listed until its heartbeat runs out and the registry is read again, for up to 30 s. So a rank is good enough to be
// polite for some milliseconds, and not good enough to give leadership away: for that, the better daemon must have sent
// a heartbeat since this process began to lead.

interface LeaderOrderParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly processId: string;
  readonly clock: Clock;
}

export class LeaderOrder {
  readonly #parts: LeaderOrderParts;
  #daemons: ReadonlyMap<string, Identity> = new Map();
  #keys: readonly string[] = [];
  #better: ReadonlyMap<string, readonly string[]> | undefined = undefined;

  constructor(parts: LeaderOrderParts) {
    this.#parts = parts;
  }

  /** The processes with a heartbeat, and all keys that their daemons share among them. */
  see(living: readonly Identity[], keys: readonly string[]): void {
    const daemons = living.filter(({ role }) => role === 'daemon');
    const isSame = daemons.length === this.#daemons.size && daemons.every(({ id }) => this.#daemons.has(id));
    this.#daemons = new Map(daemons.map((daemon) => [daemon.id, daemon]));
    const sorted = [...keys].sort();
    if (isSame && sorted.join() === this.#keys.join()) return;
    this.#keys = sorted;
    this.#better = undefined;
  }

  /** How many daemons should lead rather than this one: 0 = this one should. */
  rank(key: string): number {
    return this.betterFor(key).length;
  }

  /** The daemons that should lead rather than this one, best first. */
  betterFor(key: string): readonly string[] {
    const found = this.#better?.get(key);
    if (found) return found;
    if (!this.#keys.includes(key)) this.#keys = [...this.#keys, key].sort();
    this.#better = this.#orderAll();
    return this.#better.get(key) ?? [];
  }

  /** Whether it is a daemon that does not keep strict order. */
  isOlder(id: string): boolean {
    const daemon = this.#daemons.get(id);
    return daemon !== undefined && daemon.keepsOrder !== true;
  }

  /** Whether one of them has sent a heartbeat after this monotonic time. @param keepsOrder only those that keep strict order count */
  async betterBeatSince(key: string, sinceMs: number, keepsOrder = false): Promise<boolean> {
    const { redis, namespace, clock } = this.#parts;
    const better = this.betterFor(key).flatMap((id) => this.#daemons.get(id) ?? []);
    const meant = better.filter((one) => !keepsOrder || one.keepsOrder === true);
    const sentMs = clock.monotonicMs();
    const ages = await beatAges(redis, namespace, meant);
    return [...ages.values()].some((ageMs) => sentMs - ageMs > sinceMs);
  }

  /** Of all keys at once: the share of one depends on those of the others. */
  #orderAll(): ReadonlyMap<string, readonly string[]> {
    const { processId } = this.#parts;
    const shares = createShares([...new Set([processId, ...this.#daemons.keys()])].sort(), this.#keys.length, 1);
    return new Map(
      this.#keys.map((key) => {
        const order = shares.next(key);
        return [key, order.slice(0, order.indexOf(processId))];
      }),
    );
  }
}
