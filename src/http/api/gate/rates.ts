/** How many requests a caller may send: so many per second, as many at once, and no more. Of bounded size. */
import type { Clock } from '../../../kernel/clock.ts';
import { Problem } from '../problem.ts';

export interface Rates {
  /** Counts one request. @throws Problem `too-many` with `Retry-After` */
  readonly take: (key: string) => void;
}

interface Bucket {
  left: number;
  atMs: number;
}

const CALLERS_MAX = 10_000;

export function createRates(perSecond: number, clock: Clock): Rates {
  const buckets = new Map<string, Bucket>();

  function bucketOf(key: string, nowMs: number): Bucket {
    const known = buckets.get(key);
    if (known) {
      known.left = Math.min(perSecond, known.left + ((nowMs - known.atMs) / 1000) * perSecond);
      known.atMs = nowMs;
      return known;
    }
    // The one that came first goes: whoever still asks has a full bucket again soon.
    const [first] = buckets.size >= CALLERS_MAX ? buckets.keys() : [];
    if (first !== undefined) buckets.delete(first);
    const made = { left: perSecond, atMs: nowMs };
    buckets.set(key, made);
    return made;
  }

  return {
    take(key) {
      const bucket = bucketOf(key, clock.monotonicMs());
      if (bucket.left >= 1) {
        bucket.left -= 1;
        return;
      }
      const seconds = Math.max(1, Math.ceil((1 - bucket.left) / perSecond));
      throw new Problem('too-many', {
        detail: `allowed: ${perSecond} requests per second; wait ${seconds} s`,
        headers: { 'Retry-After': String(seconds) },
      });
    },
  };
}
