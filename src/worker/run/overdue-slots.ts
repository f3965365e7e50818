/**
 * Slots that handlers keep although their time was up. A handler cannot be ended from outside: one that ignores its
 * signal costs its slot until the process ends. So it is given a moment to clean up, then its slot counts as lost,
 * which is told; and when a share of all slots is lost, the worker says that it is exhausted. Who runs the process ends
 * it then in order, and a supervisor starts it anew with all its slots.
 */

import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Held, Inflight } from './inflight.ts';

export interface SlotsParts {
  readonly inflight: Inflight;
  readonly queue: string;
  readonly concurrency: number;
  readonly abortGraceMs: number;
  /** 0 = never. */
  readonly recycleAtPercent: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Slots {
  /** The handler of this job was told that its time is up. The returned function calls the watch off. */
  readonly watch: (held: Held, id: string) => () => void;
  /** The handler of a slot that counted as lost ended after all. */
  readonly freed: (id: string) => void;
  /** Too many are lost for this process to go on. */
  readonly exhausted: () => boolean;
}

export function createSlots(parts: SlotsParts): Slots {
  const { inflight, queue, concurrency, abortGraceMs, recycleAtPercent, clock, events } = parts;
  const most = recycleAtPercent === 0 ? Number.POSITIVE_INFINITY : Math.ceil((concurrency * recycleAtPercent) / 100);
  let told = false;

  function tell(id: string): void {
    const lost = inflight.lost();
    events.emit('slots.lost', { queue, id, lost, concurrency });
    if (lost < most || told) return;
    told = true;
    events.emit('worker.exhausted', { queue, lost, concurrency });
  }

  return {
    watch: (held, id) =>
      clock.timer(abortGraceMs, () => {
        inflight.slotLost(held);
        tell(id);
      }),
    freed: tell,
    exhausted: () => inflight.lost() >= most,
  };
}
