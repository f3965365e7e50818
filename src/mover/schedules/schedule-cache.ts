/**
 * The definitions that an enqueuer has read, and what it told of those that it could not. Each text is read once; one that
 * nobody can read is told once, and again when it reads otherwise. A definition may hold 256 KiB of data, so it is their
 * size that is bounded: when those that were used lately fill half of the room, the others go, and are read again when
 * they are due. Of what was
 * told only a digest is kept. Schedules with the same rule, zone, calendar and bounds have one recurrence.
 */
import { createHash } from 'node:crypto';
import type { Emitter } from '../../job/events.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { recurrenceOf, type Schedule } from '../../schedule/schedule.ts';
import { decodeDefinition } from '../../schedule/text.ts';
import type { Recurrence } from '../../time/recurrence.ts';

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
const KNOWN_CHARS_MAX = 8 << 20;
const TOLD_MAX = 10_000;
/** Recurrences that schedules share, so that what is remembered of one serves all. */
const SHARED_MAX = 1000;
const SHARED_CHARS = 1000;

export function createKnownSchedules({
  ref,
  events,
}: {
  readonly ref: PartitionRef;
  readonly events: Emitter;
}): KnownSchedules {
  let lately = new Map<string, ReadSchedule>();
  let before = new Map<string, ReadSchedule>();
  let chars = 0;
  const told = new Map<string, string>();
  const sharedOf = createShared();

  function keep(name: string, found: ReadSchedule): void {
    chars += found.text.length - (lately.get(name)?.text.length ?? 0);
    lately.set(name, found);
    before.delete(name);
    if (chars <= KNOWN_CHARS_MAX / 2) return;
    before = lately;
    lately = new Map();
    chars = 0;
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
      const recent = lately.get(name);
      if (recent?.text === content) return recent;
      const older = before.get(name);
      try {
        const found = older?.text === content ? older : readScheduleOf(name, content, sharedOf);
        keep(name, found);
        return found;
      } catch (error) {
        tell(name, content, reasonOf(error));
        return undefined;
      }
    },
    wasFine: (name) => void told.delete(name),
    forget(name) {
      chars -= lately.get(name)?.text.length ?? 0;
      lately.delete(name);
      before.delete(name);
    },
  };
}

function readScheduleOf(name: string, text: string, sharedOf: (schedule: Schedule) => Recurrence): ReadSchedule {
  const { schedule } = decodeDefinition(name, text);
  return { text, schedule, recurrence: sharedOf(schedule) };
}

/** The recurrence of a schedule: the same for those that fire alike. */
function createShared(): (schedule: Schedule) => Recurrence {
  const shared = new Map<string, Recurrence>();
  return (schedule) => {
    const { name, rule, zone, dst, calendar, startMs, endMs } = schedule;
    // `H` in an expression follows from the name.
    const seed = 'cron' in rule && rule.cron.includes('H') ? name : '';
    const key = JSON.stringify([seed, rule, zone, dst, calendar, startMs, endMs]);
    const recurrence = shared.get(key) ?? recurrenceOf(schedule);
    if (shared.size >= SHARED_MAX) shared.clear();
    if (key.length <= SHARED_CHARS) shared.set(key, recurrence);
    return recurrence;
  };
}
