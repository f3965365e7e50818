/**
 * The definitions that an enqueuer has read, and the unreadable ones that it told of. Each text is read once; a schedule
 * that cannot be read is told once, and again when its text is another. A definition may hold 256 KiB of data, so the cache
 * is bounded by size: when the definitions that were used lately fill half of the room, the others go, and are read again
 * when they are due. Of an unreadable text the cache keeps only a digest. Schedules with the same rule, zone, calendar and
 * bounds share one recurrence.
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

/** Of text; what is made from it takes about as much again. Typical definitions have 300 characters. */
const CHARS_MAX = 8 << 20;
const TOLD_MAX = 10_000;
/** Recurrences that schedules share, so that what is remembered of one serves all. */
const SHARED_MAX = 1000;
const SHARED_CHARS = 1000;

export class ScheduleCache {
  readonly #parts: { readonly ref: PartitionRef; readonly events: Emitter };
  #lately = new Map<string, ReadSchedule>();
  #before = new Map<string, ReadSchedule>();
  /** Of the text of those used lately. */
  #chars = 0;
  readonly #told = new Map<string, string>();
  readonly #shared = new Map<string, Recurrence>();

  constructor(parts: { readonly ref: PartitionRef; readonly events: Emitter }) {
    this.#parts = parts;
  }

  /** @returns undefined for a definition that cannot be read */
  read(name: string, text: string): ReadSchedule | undefined {
    const recent = this.#lately.get(name);
    if (recent?.text === text) return recent;
    const older = this.#before.get(name);
    try {
      const found = older?.text === text ? older : this.#decode(name, text);
      this.#keep(name, found);
      return found;
    } catch (error) {
      this.tell(name, text, reasonOf(error));
      return undefined;
    }
  }

  /** `what` cannot be read, because `why`. Told once. */
  tell(name: string, what: string, why: string): void {
    const { ref, events } = this.#parts;
    const digest = createHash('sha1').update(what).digest('base64');
    if (this.#told.get(name) === digest) return;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    this.#told.set(name, digest);
    events.emit('schedule.unreadable', { queue: ref.queue, partition: ref.partition, schedule: name, why });
  }

  /** The schedule could be read and fired. */
  wasFine(name: string): void {
    this.#told.delete(name);
  }

  forget(name: string): void {
    this.#chars -= this.#lately.get(name)?.text.length ?? 0;
    this.#lately.delete(name);
    this.#before.delete(name);
  }

  #keep(name: string, found: ReadSchedule): void {
    this.#chars += found.text.length - (this.#lately.get(name)?.text.length ?? 0);
    this.#lately.set(name, found);
    this.#before.delete(name);
    if (this.#chars <= CHARS_MAX / 2) return;
    this.#before = this.#lately;
    this.#lately = new Map();
    this.#chars = 0;
  }

  #decode(name: string, text: string): ReadSchedule {
    const { schedule } = decodeDefinition(name, text);
    return { text, schedule, recurrence: this.#recurrenceOf(schedule) };
  }

  /** The recurrence of a schedule: the same for those that fire alike. */
  #recurrenceOf(schedule: Schedule): Recurrence {
    const shared = this.#shared;
    const { name, rule, zone, dst, calendar, startMs, endMs } = schedule;
    // `H` in an expression follows from the name.
    const seed = 'cron' in rule && rule.cron.includes('H') ? name : '';
    const key = JSON.stringify([seed, rule, zone, dst, calendar, startMs, endMs]);
    const recurrence = shared.get(key) ?? recurrenceOf(schedule);
    if (shared.size >= SHARED_MAX) shared.clear();
    if (key.length <= SHARED_CHARS) shared.set(key, recurrence);
    return recurrence;
  }
}
