/**
 * A producer puts no new job into a Redis that may evict it. It looks when it connects and, while it is used, every few
 * seconds; the answer of a look counts from the next call on, so that no call waits for one as long as all is well.
 */
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { EVICTION_LOOK_MS, type Eviction, evictionOf } from '../../redis/connection/memory.ts';

export interface Refusal {
  /** @throws DuestreamError `refused` while Redis may evict jobs. */
  readonly check: () => Promise<void>;
  readonly look: () => Promise<void>;
}

export function createRefusal(redis: Redis, clock: Clock): Refusal {
  let found: Eviction | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;

  /** A look that fails says nothing: the outage is told by the call itself. */
  async function look(): Promise<void> {
    lookedMs = clock.monotonicMs();
    found = await evictionOf(redis).catch(() => found);
  }

  return {
    look,
    async check() {
      const looking = clock.monotonicMs() - lookedMs >= EVICTION_LOOK_MS ? look() : undefined;
      // Who refuses must not do so a moment longer than needed.
      if (found) await looking;
      if (found?.jobs) throw refused(found);
    },
  };
}

const refused = ({ policy, limitBytes }: Eviction) =>
  new DuestreamError(
    'refused',
    `this Redis may evict jobs (maxmemory-policy ${policy}, limit ${Math.round(limitBytes / 2 ** 20)} MiB), so it gets no new ones: run CONFIG SET maxmemory-policy noeviction`,
  );
