/**
 * The definitions that a firer has read, and what it told of those that it could not. Each text is read once; one that
 * nobody can read is told once, and again when it reads otherwise.
 */
import { messageOf } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Recurrence } from '../core/recurrence.ts';
import { recurrenceOf, type Schedule } from '../core/schedule.ts';
import { decodeDefinition } from '../core/schedule-text.ts';
import type { PartitionRef } from '../redis/keys.ts';

export interface Known {
  readonly text: string;
  readonly schedule: Schedule;
  readonly recurrence: Recurrence;
}

const KNOWN_MAX = 10_000;

export function createKnownSchedules({ ref, events }: { readonly ref: PartitionRef; readonly events: Emitter }) {
  const known = new Map<string, Known>();
  const told = new Map<string, string>();

  /** `what` cannot be read, because `why`. */
  function tell(name: string, what: string, why: string): void {
    if (told.get(name) === what) return;
    if (told.size >= KNOWN_MAX) told.clear();
    told.set(name, what);
    events.emit('schedule.unreadable', { queue: ref.queue, partition: ref.partition, schedule: name, why });
  }

  return {
    tell,
    /** @returns undefined for one that nobody can read */
    read(name: string, content: string): Known | undefined {
      const before = known.get(name);
      if (before?.text === content) return before;
      try {
        const { schedule } = decodeDefinition(name, content);
        const found = { text: content, schedule, recurrence: recurrenceOf(schedule) };
        if (known.size >= KNOWN_MAX) known.clear();
        known.set(name, found);
        return found;
      } catch (error) {
        tell(name, content, messageOf(error));
        return undefined;
      }
    },
    /** It could be read and fired. */
    wasFine: (name: string): boolean => told.delete(name),
    forget: (name: string): boolean => known.delete(name),
  };
}
