/**
 * A definition ⇄ the text that is stored: `{"since": ms, "anchor": ms, "source": "call" | "file", "schedule": { … }}`. The
 * anchor is where `align: start` counts from when nobody said, and is there only then. A pause is `paused` of the schedule,
 * whoever paused it: with `"pausedBy": "definition"` beside it the definition says so itself, and without it somebody did by
 * hand, which holds until somebody resumes it, whatever is put meanwhile; `"hand": {"by", "at": ms}` says who and when, where
 * that is known. What is inside is what people write, with instants in UTC, so that any client can write one and everybody can read it.
 */

import { digestOf } from '../job/record-header.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import { parseSchedule, type ScheduleFrom, type ScheduleInput } from './input.ts';
import type { Schedule } from './schedule.ts';

/** Who answers for a definition: a call, or the file that the daemon was started with. */
export type Source = 'call' | 'file';

/** The last instant of a Date. */
const SINCE_MAX = 8.64e15;

export interface Definition {
  readonly schedule: Schedule;
  readonly source: Source;
  /** As people write it. */
  readonly input: ScheduleInput;
  /** A pause by hand, above what the definition says; undefined: nobody paused it. */
  readonly hand?: Hand | undefined;
  /** Tells the text that is stored from any other; undefined for a definition that was not read. */
  readonly etag?: string;
}

/** A pause by hand. */
export interface Hand {
  /** Perhaps ''. */
  readonly why: string;
  /** Undefined where a version wrote it that did not say so. */
  readonly who?: PausedBy | undefined;
}

/** Who paused a schedule, and when. */
export interface PausedBy {
  /** The name of a token, or the user of a process. */
  readonly by: string;
  /** Epoch ms by the clock of Redis. */
  readonly atMs: number;
}

/** Tells a stored definition from any other. */
export const etagOfDefinition = (content: string): string => digestOf(content);

/**
 * A checked definition of what somebody wrote.
 *
 * @param anchorMs where `align: start` counts from without a start; default `sinceMs`
 * @throws DuestreamError `bad-input`
 */
export function defineSchedule(
  name: string,
  input: ScheduleInput,
  { source, hand, ...from }: Omit<ScheduleFrom, 'isStored' | 'hand'> & Pick<Definition, 'source' | 'hand'>,
): Definition {
  const schedule = parseSchedule(name, input, { ...from, hand: hand?.why });
  const { startMs, endMs } = schedule;
  const cleaned = {
    ...(startMs === undefined ? {} : { start: new Date(startMs).toISOString() }),
    ...(endMs === undefined ? {} : { end: new Date(endMs).toISOString() }),
    ...(typeof input.paused === 'string' ? { paused: schedule.paused } : {}),
  };
  return { schedule, source, input: { ...input, ...cleaned }, hand };
}

/** With a pause by hand above what it says. */
const pausedBy = (input: ScheduleInput, hand: Hand | undefined): ScheduleInput =>
  hand === undefined ? input : { ...input, paused: hand.why || true };

export function encodeDefinition(definition: Definition): string {
  const { schedule, source, input, hand } = definition;
  const anchor = pinnedOf(definition);
  // Its data was judged when it was parsed.
  return JSON.stringify({
    since: schedule.sinceMs,
    ...(anchor === undefined ? {} : { anchor }),
    ...(schedule.aheadMs === undefined ? {} : { ahead: schedule.aheadMs }),
    ...(schedule.paused !== undefined && hand === undefined ? { pausedBy: 'definition' } : {}),
    ...(hand?.who ? { hand: { by: hand.who.by, at: hand.who.atMs } } : {}),
    source,
    schedule: pausedBy(input, hand),
  });
}

/** Where an interval counts from that is aligned to its start and has none; undefined for all others. */
export function pinnedOf({ schedule: { rule, startMs }, input }: Definition): number | undefined {
  return 'everyMs' in rule && input.align === 'start' && startMs === undefined ? rule.anchorMs : undefined;
}

/** @throws DuestreamError `bad-input` for what nobody can read */
export function decodeDefinition(name: string, content: string): Definition {
  const { since, anchor, ahead, source, schedule, pausedBy: by, hand } = parsed(name, content);
  const sinceMs = msOf(since) ?? 0;
  const input = (schedule ?? {}) as ScheduleInput;
  const parsedInput = readable(name, input, { sinceMs, anchorMs: msOf(anchor), aheadMs: msOf(ahead), isStored: true });
  const why = by === 'definition' ? undefined : parsedInput.paused;
  const { paused: _, ...own } = input;
  return {
    schedule: parsedInput,
    source: source === 'file' ? 'file' : 'call',
    ...(why === undefined ? { input } : { input: own, hand: { why, who: whoIn(hand) } }),
    etag: etagOfDefinition(content),
  };
}

/** What nobody can read says nothing. */
function whoIn(given: unknown): PausedBy | undefined {
  const { by, at }: { readonly by?: unknown; readonly at?: unknown } =
    typeof given === 'object' && given !== null ? given : {};
  const atMs = msOf(at);
  return typeof by === 'string' && atMs !== undefined ? { by, atMs } : undefined;
}

/** A field of a type that nobody foresaw is bad input like any other. */
function readable(name: string, input: ScheduleInput, from: ScheduleFrom): Schedule {
  try {
    return parseSchedule(name, input, from);
  } catch (error) {
    if (error instanceof DuestreamError) throw error;
    throw new DuestreamError('bad-input', `schedule ${name}: ${messageOf(error)}`, { cause: error });
  }
}

function msOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= SINCE_MAX ? Math.floor(value) : undefined;
}

/** Whether two definitions are the same but for the time since when they hold. */
export function isSame(one: Definition, other: Definition): boolean {
  const plain = ({ schedule, source, hand }: Definition) =>
    JSON.stringify({ ...schedule, sinceMs: 0, aheadMs: 0, source, isByHand: hand !== undefined });
  return plain(one) === plain(other);
}

/** Whether two definitions name the same instants. */
export function firesAlike({ schedule: one }: Definition, { schedule: other }: Definition): boolean {
  const plain = ({ rule, zone, dst, calendar, startMs, endMs, paused }: Schedule) =>
    JSON.stringify([rule, zone, dst, calendar, startMs, endMs, paused === undefined]);
  return plain(one) === plain(other);
}

function parsed(
  name: string,
  content: string,
): { [Name in 'since' | 'anchor' | 'ahead' | 'source' | 'schedule' | 'pausedBy' | 'hand']?: unknown } {
  try {
    const value: unknown = JSON.parse(content);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new DuestreamError('bad-input', `schedule ${name}: its stored definition is not a JSON object`);
}
