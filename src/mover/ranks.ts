/**
 * Where this daemon stands among the living ones, for each partition. The order is computed once per change of the
 * membership and partition, never per pass: a mover asks for its rank up to a thousand times per second.
 *
 * A daemon that was killed is listed until its heartbeat runs out, for up to 15 s. So a rank is good enough to be polite
 * for some milliseconds, and not good enough to give leadership away: for that, the better one must have sent a
 * heartbeat since this process began to lead.
 */
import type { Clock } from '../core/clock.ts';
import { rendezvous } from '../core/rendezvous.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { beatAges, type Identity } from '../redis/transitions/presence.ts';

export interface Ranks {
  /** The processes whose heartbeats are there. */
  readonly see: (living: readonly Identity[]) => void;
  /** Those who should lead rather than this process, best first; its own rank is how many they are. */
  readonly betterFor: (key: string) => readonly string[];
  /** Whether one of them has sent a heartbeat after this monotonic time. */
  readonly betterBeatSince: (key: string, sinceMs: number) => Promise<boolean>;
}

export function createRanks(parts: {
  readonly redis: Redis;
  readonly namespace: string;
  readonly processId: string;
  readonly clock: Clock;
}): Ranks {
  const { redis, namespace, processId, clock } = parts;
  let known: ReadonlyMap<string, Identity> = new Map();
  let ordered = new Map<string, readonly string[]>();

  function betterFor(key: string): readonly string[] {
    const found = ordered.get(key);
    if (found) return found;
    const order = rendezvous(key, [...new Set([processId, ...known.keys()])]);
    const better = order.slice(0, order.indexOf(processId));
    ordered.set(key, better);
    return better;
  }

  return {
    see(living) {
      const daemons = living.filter(({ role }) => role === 'daemon');
      const same = daemons.length === known.size && daemons.every(({ id }) => known.has(id));
      known = new Map(daemons.map((daemon) => [daemon.id, daemon]));
      if (!same) ordered = new Map();
    },
    betterFor,
    async betterBeatSince(key, sinceMs) {
      const better = betterFor(key).flatMap((id) => known.get(id) ?? []);
      const sentMs = clock.monotonicMs();
      const ages = await beatAges(redis, namespace, better);
      return [...ages.values()].some((ageMs) => sentMs - ageMs > sinceMs);
    },
  };
}
