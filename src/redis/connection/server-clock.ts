/**
 * What the clock of Redis reads, without asking each time: an offset to this process's monotonic clock, taken from the
 * TIME command. The sample with the shortest round trip counts, because its error is at most half of that trip.
 */
import type { Clock } from '../../core/clock.ts';
import type { Redis } from './connect.ts';

export interface ServerClock {
  /** Epoch ms of the server, or of this machine until the first sample. */
  readonly nowMs: () => number;
  /** Takes one sample. */
  readonly sample: () => Promise<void>;
}

/** A sample older than this is replaced whatever its round trip: clocks drift. */
const FRESH_MS = 60_000;

export function createServerClock(redis: Redis, clock: Clock): ServerClock {
  let best: { readonly offsetMs: number; readonly tripMs: number; readonly atMs: number } | undefined;
  return {
    nowMs: () => (best ? clock.monotonicMs() + best.offsetMs : clock.wallMs()),
    async sample() {
      const sentMs = clock.monotonicMs();
      const [seconds, micros] = await redis.time();
      const receivedMs = clock.monotonicMs();
      const tripMs = receivedMs - sentMs;
      const serverMs = Number(seconds) * 1000 + Number(micros) / 1000;
      if (best && tripMs > best.tripMs && receivedMs - best.atMs < FRESH_MS) return;
      best = { offsetMs: serverMs - (sentMs + receivedMs) / 2, tripMs, atMs: receivedMs };
    },
  };
}
