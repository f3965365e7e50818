/**
 * The last day of all queues, for who comes and asks whether all is well: starts, lateness and dead letters by the hour, and what
 * the diaries tell. Hours are read and not minutes, so a queue costs a few short commands however many partitions it has.
 */
import type { Namespaced } from '../client/queues/refs.ts';
import type { DiaryWord } from '../job/diary.ts';
import { BOUNDS_MS } from '../job/minutes.ts';
import { askEach, queuesIn, type UnreadQueue } from '../redis/read/each-queue.ts';
import { type QueueDiaryEntry, queueChanges } from './diary.ts';
import { codeOf } from './failure.ts';
import { queueMinutes } from './minutes.ts';

/** The last day of a queue, as lists of the same length, the oldest hour first. */
export interface QueueDay {
  readonly queue: string;
  /** Starts in each hour. */
  readonly starts: readonly number[];
  /** How late 99 % of them were at most; null: there were none. */
  readonly p99Ms: readonly (number | null)[];
  /** The latest of them; null: there were none, or only older versions have counted. */
  readonly maxMs: readonly (number | null)[];
  /** Jobs that died in each hour. */
  readonly dead: readonly number[];
  /** Starts in all hours that were late by less than a second. */
  readonly inTime: number;
  /** How late 99 % of the starts of the last 60 minutes were at most; null: there were none. */
  readonly hourP99Ms: number | null;
}

/** A change of a queue, or the end of a time in which nobody led it. */
export interface DayEvent
  extends Pick<QueueDiaryEntry, 'atMs' | 'by' | 'why' | 'group' | 'untilMs' | 'before' | 'after'> {
  readonly queue: string;
  readonly what: Exclude<DiaryWord, 'resigned'>;
  /** Of `elected`, `served` and `resumed`: since when nobody had led, nobody had served, or it was paused; undefined: nobody knows. */
  readonly fromMs?: number | undefined;
}

/** The last day of all queues. */
export interface Day {
  /** Whether leaders count minutes now, in any queue: see `http.minutes`. */
  readonly on: boolean;
  readonly nowMs: number;
  /** When the first hour began. */
  readonly startMs: number;
  readonly stepMs: number;
  /** By name. */
  readonly queues: readonly QueueDay[];
  /** The newest first. */
  readonly events: readonly DayEvent[];
  /** Queues that did not answer, each with the reason. */
  readonly unread: readonly UnreadQueue[];
}

const HOUR_MS = 3_600_000;
const HOURS = 24;
const IN_TIME = BOUNDS_MS.indexOf(1000) + 1;
const EVENTS_MAX = 200;

/** The last day as it was read, for everybody. */
export interface DayReading {
  readonly nowMs: number;
  readonly found: readonly Awaited<ReturnType<typeof dayOf>>[number][];
  readonly unread: readonly UnreadQueue[];
}

/** Reads of all queues. */
export async function readDay(place: Namespaced, nowMs: number): Promise<DayReading> {
  const queues = await queuesIn(place.redis, place.namespace);
  const { found, unread } = await askEach(queues, ({ queue }) => dayOf(place, queue, nowMs));
  return { nowMs, found: found.flat(), unread };
}

/** What one caller gets of it. @param may which queues count @param hidesReasons a handler may have given one */
export function dayFor(
  reading: DayReading,
  { may, hidesReasons }: { readonly may: (queue: string) => boolean; readonly hidesReasons: boolean },
): Day {
  const { nowMs } = reading;
  const found = reading.found.filter(({ day }) => may(day.queue));
  const events = found.flatMap((one) => one.events).sort((one, other) => other.atMs - one.atMs);
  return {
    on: found.some(({ isOn }) => isOn),
    nowMs,
    startMs: (Math.floor(nowMs / HOUR_MS) - HOURS + 1) * HOUR_MS,
    stepMs: HOUR_MS,
    queues: found.map(({ day }) => day),
    events: events.slice(0, EVENTS_MAX).map((one) => (hidesReasons ? { ...one, why: undefined } : one)),
    unread: reading.unread.filter(({ queue }) => may(queue)),
  };
}

/** Nothing of a queue that was removed since. */
async function dayOf(place: Namespaced, queue: string, nowMs: number) {
  try {
    const [hours, minutes, changes] = await Promise.all([
      queueMinutes(place, queue, { days: 1, by: 'hour', nowMs }),
      queueMinutes(place, queue, { hours: 1, nowMs }),
      queueChanges(place, queue, { fromMs: nowMs - HOURS * HOUR_MS, toMs: nowMs }),
    ]);
    const { start, counts, total } = hours;
    const day = {
      queue,
      ...{ starts: start.count, p99Ms: start.p99Ms, maxMs: start.maxMs },
      dead: counts.dead,
      inTime: total.start.counts.slice(0, IN_TIME).reduce((sum, one) => sum + one, 0),
      hourP99Ms: minutes.total.start.p99Ms,
    };
    const events = changes.flatMap((entry): DayEvent[] => eventOf(queue, entry));
    return [{ day, events, isOn: minutes.on }];
  } catch (error) {
    if (codeOf(error) === 'not-found') return [];
    throw error;
  }
}

/** A leader that resigns is followed by one that is elected. */
function eventOf(queue: string, { what, atMs, fromMs, by, why, group, ...rest }: QueueDiaryEntry): DayEvent[] {
  if (what === 'resigned') return [];
  const { untilMs, before, after } = rest;
  return [{ queue, what, atMs, fromMs, by, why, group, untilMs, before, after }];
}
