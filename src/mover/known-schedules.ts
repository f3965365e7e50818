/**
 * The definitions that an enqueuer has read, and what it told of those that it could not. Each text is read once; one that
 * nobody can read is told once, and again when it reads otherwise. A definition may hold 256 KiB of data, so it is their
 * size that is bounded: those that were not used for longest go first, and are read again when they are due. Of what was
 * told only a digest is kept.
 */
import { createHash } from 'node:crypto';
import { messageOf } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Recurrence } from '../core/recurring/recurrence.ts';
import { recurrenceOf, type Schedule } from '../core/recurring/schedule.ts';
import { decodeDefinition } from '../core/recurring/schedule-text.ts';
import type { PartitionRef } from '../redis/keys.ts';

export interface ReadSchedule {
  readonly text: string;
  readonly schedule: Schedule;
  readonly recurrence: Recurrence;
}

export interface KnownSchedules {
  /** `what` cannot be read, because `why`. Told once. */
  readonly tell: (name: string, what: string, why: string) => void;
  /** @returns undefined for one that nobody can read */
  readonly read: (name: string, content: string) => ReadSchedule | undefined;
  /** It could be read and fired. */
  readonly wasFine: (name: string) => void;
  readonly forget: (name: string) => void;
}

/** Of text; what is made from it takes about as much again. Typical definitions have 300 characters. */
const KNOWN_CHARS_MAX = 4 << 20;
const TOLD_MAX = 10_000;

export function createKnownSchedules({
  ref,
  events,
}: {
  readonly ref: PartitionRef;
  readonly events: Emitter;
}): KnownSchedules {
  const known = new Map<string, ReadSchedule>();
  const told = new Map<string, string>();
  let chars = 0;

  function forget(name: string): void {
    chars -= known.get(name)?.text.length ?? 0;
    known.delete(name);
  }

  /** The last in the map is the one that was used last. */
  function keep(name: string, found: ReadSchedule): void {
    forget(name);
    known.set(name, found);
    chars += found.text.length;
    for (const oldest of known.keys()) {
      if (chars <= KNOWN_CHARS_MAX) return;
      if (oldest !== name) forget(oldest);
    }
  }

  function tell(name: string, what: string, why: string): void {
    const digest = createHash('sha1').update(what).digest('base64');
    if (told.get(name) === digest) return;
    if (told.size >= TOLD_MAX) told.clear();
    told.set(name, digest);
    events.emit('schedule.unreadable', { queue: ref.queue, partition: ref.partition, schedule: name, why });
  }

  return {
    tell,
    read(name, content) {
      const before = known.get(name);
      try {
        const found = before?.text === content ? before : readScheduleOf(name, content);
        keep(name, found);
        return found;
      } catch (error) {
        tell(name, content, messageOf(error));
        return undefined;
      }
    },
    wasFine: (name) => void told.delete(name),
    forget,
  };
}

function readScheduleOf(name: string, text: string): ReadSchedule {
  const { schedule } = decodeDefinition(name, text);
  return { text, schedule, recurrence: recurrenceOf(schedule) };
}
