/**
 * How long this process stands still: a timer that fires late by as much as something held the event loop, be it a
 * handler that computes, a large JSON, or a process that was frozen. Nothing else of ours runs meanwhile: no
 * heartbeat, no extension of a lease, no settle.
 */

import type { Emitter } from '../job/events.ts';
import type { Clock } from '../kernel/clock.ts';

/** Often enough to see what is longer, and nothing beside a job. */
const EVERY_MS = 500;

export function createLagWatch({ clock, events }: { readonly clock: Clock; readonly events: Emitter }) {
  let disarm: (() => void) | undefined;

  function arm(): void {
    const dueMs = clock.monotonicMs() + EVERY_MS;
    disarm = clock.timer(EVERY_MS, () => {
      events.emit('process.ticked', { lagMs: Math.max(0, clock.monotonicMs() - dueMs) });
      arm();
    });
  }

  return {
    start(): void {
      disarm?.();
      arm();
    },
    stop(): void {
      disarm?.();
      disarm = undefined;
    },
  };
}
