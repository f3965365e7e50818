/**
 * Whether Redis was at its memory limit a moment ago, for what is asked with every job: nobody waits for the answer, and
 * one question a second is enough.
 */
import type { Clock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';

const FRESH_MS = 1000;

export type FullWatch = (ref: PartitionRef) => boolean;

export function createFullWatch(isFull: (ref: PartitionRef) => Promise<boolean>, clock: Clock): FullWatch {
  let full = false;
  let askedMs = Number.NEGATIVE_INFINITY;
  return (ref) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - askedMs >= FRESH_MS) {
      askedMs = nowMs;
      void isFull(ref).then((answer) => {
        full = answer;
      });
    }
    return full;
  };
}
