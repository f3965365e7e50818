/**
 * Where this daemon stands among the living ones, for each partition. The order is computed once per change of the
 * membership or of the partitions, never per pass: a mover asks for its rank up to a thousand times per second. Everybody
 * comes to the same shares, and to even ones (`kernel/even-shares.ts`).
 *
 * A daemon that was killed is listed until its heartbeat runs out, for up to 15 s. So a rank is good enough to be polite
 * for some milliseconds, and not good enough to give leadership away: for that, the better one must have sent a
 * heartbeat since this process began to lead.
 */
import type { Clock } from '../../kernel/clock.ts';
import { createShares } from '../../kernel/even-shares.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { beatAges, type Identity } from '../../redis/scripts/presence.ts';

export interface Ranks {
  /** The processes whose heartbeats are there, and all keys that are to be shared among the daemons of them. */
  readonly see: (living: readonly Identity[], keys: readonly string[]) => void;
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
  let listed: readonly string[] = [];
  let ordered: Map<string, readonly string[]> | undefined;

  /** Of all keys at once: the share of one depends on those of the others. */
  function orderAll(): Map<string, readonly string[]> {
    const shares = createShares([...new Set([processId, ...known.keys()])].sort(), listed.length, 1);
    return new Map(
      listed.map((key) => {
        const order = shares.next(key);
        return [key, order.slice(0, order.indexOf(processId))];
      }),
    );
  }

  function betterFor(key: string): readonly string[] {
    const found = ordered?.get(key);
    if (found) return found;
    if (!listed.includes(key)) listed = [...listed, key].sort();
    ordered = orderAll();
    return ordered.get(key) ?? [];
  }

  return {
    see(living, keys) {
      const daemons = living.filter(({ role }) => role === 'daemon');
      const isSame = daemons.length === known.size && daemons.every(({ id }) => known.has(id));
      known = new Map(daemons.map((daemon) => [daemon.id, daemon]));
      const now = [...keys].sort();
      if (isSame && now.join() === listed.join()) return;
      listed = now;
      ordered = undefined;
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
