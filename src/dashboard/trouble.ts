/** How a queue fares, in one word: what stands beside its name, and which queues stand at the top. */
import { isUnserved, type LiveQueue } from './live.ts';
import { durationText, numberText } from './parts/words.ts';
import { words } from './words/words.ts';

/** Later than this is late: below it a job may be on its way. */
export const LATE_MS = 1000;

export interface Trouble {
  /** `bad` is trouble now; `warn` can wait, or somebody wants it so. */
  readonly level: 'bad' | 'warn' | 'none';
  /** `6 min`, `paused`, `212 dead`; empty where there is none. */
  readonly note: string;
}

type Seen = Pick<LiveQueue, 'queue' | 'paused' | 'oldestDueAgeMs' | 'dead' | 'leaders'> &
  Parameters<typeof isUnserved>[0];

/**
 * The worst that is seen of a queue. A pause is somebody's will, so it is no trouble now, whatever waits behind it.
 *
 * @example troubleOf({ …, oldestDueAgeMs: 360_000 }) // { level: 'bad', note: '6 min' }
 */
export function troubleOf(queue: Seen): Trouble {
  const { paused, oldestDueAgeMs, dead, leaders, scheduled, ready, waiting } = queue;
  if (paused) return { level: 'warn', note: words.trouble.paused };
  if (oldestDueAgeMs > LATE_MS) return { level: 'bad', note: durationText(oldestDueAgeMs) };
  if (scheduled + waiting + ready > 0 && leaders.some((leader) => leader === null)) {
    return { level: 'bad', note: words.trouble.noLeader };
  }
  // Jobs that wait for their time alone are late as soon as the first of them is due.
  if (isUnserved(queue)) return { level: ready + waiting > 0 ? 'bad' : 'warn', note: words.trouble.noWorker };
  return dead > 0 ? { level: 'warn', note: words.trouble.dead(numberText(dead)) } : { level: 'none', note: '' };
}

const RANKS: Readonly<Record<Trouble['level'], number>> = { bad: 0, warn: 1, none: 2 };

/** Those in trouble first, the latest of them at the top; others by name. */
export function byTrouble<Queue extends Seen>(queues: readonly Queue[]): readonly Queue[] {
  const rank = (queue: Queue) => RANKS[troubleOf(queue).level];
  return queues.toSorted(
    (a, b) => rank(a) - rank(b) || b.oldestDueAgeMs - a.oldestDueAgeMs || (a.queue < b.queue ? -1 : 1),
  );
}
