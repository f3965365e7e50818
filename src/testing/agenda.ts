/**
 * Virtual time: what is to happen, in the order of its moments, and of the same moment in the order in which it was
 * noted. Nothing happens by itself; time passes when it is told to, and one thing ends before the next begins.
 */
import type { Clock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';

export interface Agenda {
  readonly nowMs: () => number;
  /** Notes what is to happen; of a moment that is past, as soon as time passes. The returned function strikes it out. */
  readonly at: (atMs: number, what: () => Promise<void> | void) => () => void;
  /** Lets time pass; all that is due happens. */
  readonly advanceTo: (untilMs: number) => Promise<void>;
  /** Time passes and nothing happens; what was due is late. */
  readonly skipTo: (untilMs: number) => void;
  /** The moment of the next thing; undefined when there is none. */
  readonly nextMs: () => number | undefined;
}

interface Entry {
  readonly atMs: number;
  readonly what: () => Promise<void> | void;
}

/** A chain of jobs that schedule each other for now would never end. */
const HAPPENINGS_MAX = 1_000_000;

export function createAgenda(startMs: number): Agenda {
  let nowMs = startMs;
  let advancing = false;
  const entries: Entry[] = [];

  function insert(entry: Entry): void {
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entries[middle]?.atMs ?? 0) <= entry.atMs) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, entry);
  }

  async function happen(untilMs: number): Promise<void> {
    for (let count = 0; ; count += 1) {
      const [next] = entries;
      if (!next || next.atMs > untilMs) return;
      if (count >= HAPPENINGS_MAX)
        throw new DuestreamError('failed', `more than ${HAPPENINGS_MAX} jobs or instants became due in one call`);
      entries.shift();
      nowMs = Math.max(nowMs, next.atMs);
      await next.what();
    }
  }

  return {
    nowMs: () => nowMs,
    at(atMs, what) {
      const entry = { atMs, what };
      insert(entry);
      return () => {
        const place = entries.indexOf(entry);
        if (place >= 0) entries.splice(place, 1);
      };
    },
    async advanceTo(untilMs) {
      if (advancing)
        throw new DuestreamError('bad-input', 'advance was called while time passes; allowed: one call at a time');
      advancing = true;
      try {
        await happen(untilMs);
        nowMs = Math.max(nowMs, untilMs);
      } finally {
        advancing = false;
      }
    },
    skipTo(untilMs) {
      nowMs = Math.max(nowMs, untilMs);
    },
    nextMs: () => entries[0]?.atMs,
  };
}

/** Both clocks are the agenda's; nobody waits on it. */
export function virtualClock(nowMs: () => number): Clock {
  return { wallMs: nowMs, monotonicMs: nowMs, sleep: async () => true, timer: () => () => undefined };
}
