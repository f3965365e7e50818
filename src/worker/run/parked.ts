/**
 * Jobs this worker could not read, because their record is of a later version. Each is put off for four seconds and
 * comes to some worker again. It counts as waiting here for just that time: so it counts at one worker at a time, and
 * the sum over all workers is how many jobs there are that none of them can read.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';

export interface Parked {
  /** So many were put off now. */
  readonly saw: (partition: number, count: number) => void;
  /** Forgets those that wait. */
  readonly stop: () => void;
}

/** How long `start` puts such a job off. */
const PARK_MS = 4000;

export function createParked(parts: {
  readonly queue: string;
  readonly clock: Clock;
  readonly events: Emitter;
}): Parked {
  const { queue, clock, events } = parts;
  const timers = new Set<() => void>();
  let waiting = 0;
  let stopped = false;

  function add(count: number): void {
    if (count === 0) return;
    waiting += count;
    events.emit('parked.waiting', { queue, waiting });
  }

  return {
    saw(partition, count) {
      if (count === 0) return;
      events.emit('jobs.parked', { queue, partition, count });
      if (stopped) return;
      add(count);
      const disarm = clock.timer(PARK_MS, () => {
        timers.delete(disarm);
        add(-count);
      });
      timers.add(disarm);
    },
    stop() {
      stopped = true;
      for (const disarm of timers) disarm();
      timers.clear();
      add(-waiting);
    },
  };
}
