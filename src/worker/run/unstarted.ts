/**
 * What a worker says of jobs that it was given and did not start: cancelled meanwhile, without a record, or waiting
 * because workers died under them.
 */

import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';

export interface Unstarted {
  readonly cancelled: (held: InFlightEntry) => void;
  /** An entry without a record: nothing can be run, and somebody should know. */
  readonly deadLetter: (held: InFlightEntry) => void;
  /** How many jobs wait to run alone, when that has changed. */
  readonly suspects: () => void;
}

export function createUnstarted(parts: {
  readonly queue: string;
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly events: Emitter;
}): Unstarted {
  const { queue, inFlight, clock, events } = parts;
  let waitingTold = 0;

  return {
    cancelled({ ref, delivery }) {
      events.emit('job.cancelled', { queue: ref.queue, id: idOf(delivery.member).id, name: DEFAULT_NAME });
    },
    deadLetter({ ref, delivery }) {
      const error = { atMs: clock.wallMs(), attempt: 0, kind: 'refused' as const, message: 'the record is missing' };
      const { id } = idOf(delivery.member);
      const told = { queue: ref.queue, id, name: DEFAULT_NAME, reason: 'record-missing', tookMs: 0, error };
      events.emit('job.dead', told);
    },
    suspects() {
      const waiting = inFlight.suspects();
      if (waiting === waitingTold) return;
      waitingTold = waiting;
      events.emit('suspects.waiting', { queue, waiting });
    },
  };
}
