/**
 * Who looks for dead workers. Looking costs as much as there are workers, so while all live only a few of a queue do
 * (`lua/verbs/watch.lua`), in turn; the others ask for one word per pass. Whoever of the few misses one that holds
 * entries raises the alarm, which calls all of them, and each proves the death for itself.
 *
 *  rest ──a seat is free──▶ seat ──a minute over, nobody missed──▶ rest
 *    └────────alarm───────▶ alarm ──it runs out──▶ rest
 */
import type { Clock } from '../../kernel/clock.ts';
import { isCluster } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { watch } from '../../redis/scripts/ready.ts';

export interface DutyParts {
  readonly commands: Redis;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  /** How long a pass is from the next. */
  readonly restMs: number;
  readonly clock: Clock;
}

export interface Duty {
  /** Whether this pass is to look. One that misses somebody does not give its seat away. */
  readonly begin: (misses: boolean) => Promise<boolean>;
  /** Somebody is missing: all are called to look. */
  readonly alarm: () => Promise<void>;
}

/** How many workers of a queue look at a time: enough that one is left when some of them die, too. */
const WATCHERS = 4;
/** After this time a seat is given to others. */
const SEATED_MS = 60_000;
/** A seat and an alarm hold for so many rests. */
const TERM_RESTS = 3;

export function createDuty(parts: DutyParts): Duty {
  const { clock } = parts;
  /** Since when this worker is one of the few. */
  let seatedMs: number | undefined;
  return {
    async begin(misses) {
      const nowMs = clock.monotonicMs();
      const wish = seatedMs !== undefined && nowMs - seatedMs > SEATED_MS && !misses ? 'rest' : 'watch';
      const duty = await ask(parts, wish);
      seatedMs = duty === 'seat' ? (seatedMs ?? nowMs) : undefined;
      return duty !== 'rest';
    },
    async alarm() {
      await ask(parts, 'alarm');
    },
  };
}

/** All partitions of a queue have the same workers: the first that answers speaks for them. */
async function ask(
  { commands, refs, consumer, restMs }: DutyParts,
  wish: 'watch' | 'rest' | 'alarm',
): Promise<'seat' | 'alarm' | 'rest'> {
  const failures: unknown[] = [];
  for (const ref of refs) {
    try {
      return await watch(commands, ref, { consumer, wish, seats: WATCHERS, termMs: restMs * TERM_RESTS });
    } catch (error) {
      failures.push(error);
      // On one primary the others are away as well.
      if (!isCluster(commands)) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  return 'rest';
}
