/**
 * Writes the state of a led partition at the beginning of each minute, for charts: `core/minutes.ts` says what that is. One
 * write per partition and minute, and none while this process does not lead.
 *
 *     elected ──▶ what is the state? ──▶ minute begins ──▶ state ──▶ written if it differs from the last, and `at` ──▶ …
 *
 * A state that did not change is not written; when the next differs, it is written beside that, as it was one minute
 * before. A leader that dies takes the lateness of a minute with it, and nothing else. Nobody is told of a failure: the chart
 * has a gap, and whatever failed is told by those who need Redis for jobs.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter, EventSource } from '../core/events.ts';
import { createLoop, type Idle, idle } from '../core/loop.ts';
import { bucketOf, MINUTE_MS, type MinuteMark, noBuckets } from '../core/minutes.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { addTimes, stateNow, type WrittenState, writeStates, writtenState } from '../redis/minutes.ts';
import type { Leadership } from './election.ts';

export interface RecorderParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly leading: () => Leadership | undefined;
  /** Epoch ms by the clock of Redis. */
  readonly serverMs: () => number;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Recorder {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** Looks, and writes where a minute has begun. Returns milliseconds until the next. */
  readonly pass: () => Promise<number | Idle>;
}

/** The last state that was seen, at the beginning of a minute, or when this process began to lead. */
interface Seen extends WrittenState {
  readonly isWritten: boolean;
}

/** How often somebody who does not lead looks whether it does. */
const IDLE_MS = 5000;
/** Behind the beginning of a minute, so that a clock that is a little behind has reached it. */
const BEHIND_MS = 20;

export function createRecorder(parts: RecorderParts): Recorder {
  const { ref, leading, serverMs, clock, events } = parts;
  const late = noBuckets();
  let seen: Seen | undefined;
  let stopListening: (() => void) | undefined;

  async function pass(): Promise<number | Idle> {
    if (!leading()) {
      seen = undefined;
      late.fill(0);
      return idle(IDLE_MS);
    }
    const minute = Math.floor(serverMs() / MINUTE_MS);
    try {
      if (!seen || seen.minute > minute) seen = await firstSeen(parts, minute);
      else if (seen.minute < minute) seen = await looked(parts, { seen, minute, late });
    } catch {
      // The next minute is another one.
    }
    return idle(Math.max(BEHIND_MS, (minute + 1) * MINUTE_MS - serverMs() + BEHIND_MS));
  }

  const loop = createLoop({ who: `recorder of ${ref.queue}:${ref.partition}`, pass, clock, events });
  return {
    start() {
      stopListening ??= listen(events, ref, late);
      loop.start();
    },
    stop() {
      stopListening?.();
      return loop.stop();
    },
    pass,
  };
}

function listen(events: EventSource, ref: PartitionRef, late: number[]): () => void {
  return events.on('jobs.promoted', ({ queue, partition, lateness }) => {
    if (queue !== ref.queue || partition !== ref.partition) return;
    for (const [lateMs, count] of lateness) {
      const at = bucketOf(lateMs);
      late[at] = (late[at] ?? 0) + count;
    }
  });
}

/** The state with which the leader before has begun this minute, or that of now. */
async function firstSeen({ redis, ref }: RecorderParts, minute: number): Promise<Seen> {
  const known = await writtenState(redis, ref, minute);
  if (known) return { ...known, since: minute, isWritten: true };
  return { minute, since: minute, text: await stateNow(redis, ref), isWritten: false };
}

interface Look {
  readonly seen: Seen;
  readonly minute: number;
  readonly late: number[];
}

async function looked({ redis, ref }: RecorderParts, { seen, minute, late }: Look): Promise<Seen> {
  // What is refused, by a Redis that is full, waits for the next minute.
  await addTimes(redis, ref, 'promotion', late);
  const text = await stateNow(redis, ref);
  const isSame = text === seen.text;
  const at: MinuteMark = { minute, since: minute === seen.minute + 1 ? seen.since : minute };
  const before = isSame || seen.isWritten ? [] : [seen];
  await writeStates(redis, ref, { at, states: isSame ? [] : [...before, { ...at, text }] });
  return { ...at, text, isWritten: !isSame };
}
