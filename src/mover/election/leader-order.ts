/**
 * Which daemon should lead which partition: the daemons in order, best first, and where this one stands. The order is
 * computed once per change of the membership or of the partitions, never per pass: a mover asks for its rank up to a
 * thousand times per second. All daemons come to the same shares, and to even ones (`kernel/even-shares.ts`).
 *
 * A daemon that was killed is listed until its heartbeat runs out, for up to 15 s. So a rank is good enough to be polite
 * for some milliseconds, and not good enough to give leadership away: for that, the better daemon must have sent a
 * heartbeat since this process began to lead.
 */
import type { Clock } from '../../kernel/clock.ts';
import { createShares } from '../../kernel/even-shares.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { beatAges, type Identity } from '../../redis/scripts/presence.ts';

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

  /** Whether one of them has sent a heartbeat after this monotonic time. */
  async betterBeatSince(key: string, sinceMs: number): Promise<boolean> {
    const { redis, namespace, clock } = this.#parts;
    const better = this.betterFor(key).flatMap((id) => this.#daemons.get(id) ?? []);
    const sentMs = clock.monotonicMs();
    const ages = await beatAges(redis, namespace, better);
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
