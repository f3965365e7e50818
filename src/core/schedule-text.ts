/**
 * A definition ⇄ the text that is stored: `{"since": ms, "source": "call" | "file", "schedule": { … }}`. What is inside
 * is what people write, with instants in UTC, so that any client can write one and everybody can read it.
 */
import { dataJson } from './data-json.ts';
import { DuestreamError, messageOf } from './errors.ts';
import type { Schedule } from './schedule.ts';
import { parseSchedule, type ScheduleInput } from './schedule-input.ts';

/** Who answers for a definition: a call, or the file that the daemon was started with. */
export type Source = 'call' | 'file';

/** The last instant of a Date. */
const SINCE_MAX = 8.64e15;

export interface Definition {
  readonly schedule: Schedule;
  readonly source: Source;
  /** As people write it. */
  readonly input: ScheduleInput;
}

/** A checked definition of what somebody wrote. @throws DuestreamError `bad-input` */
export function defineSchedule(
  name: string,
  input: ScheduleInput,
  { sinceMs, source }: { readonly sinceMs: number; readonly source: Source },
): Definition {
  const schedule = parseSchedule(name, input, sinceMs);
  const { startMs, endMs } = schedule;
  const instants = {
    ...(startMs === undefined ? {} : { start: new Date(startMs).toISOString() }),
    ...(endMs === undefined ? {} : { end: new Date(endMs).toISOString() }),
  };
  return { schedule, source, input: { ...input, ...instants } };
}

export function encodeDefinition({ schedule, source, input }: Definition): string {
  return dataJson({ since: schedule.sinceMs, source, schedule: input });
}

/** @throws DuestreamError `bad-input` for what nobody can read */
export function decodeDefinition(name: string, content: string): Definition {
  const { since, source, schedule } = parsed(name, content);
  const sinceMs = typeof since === 'number' && since >= 0 && since <= SINCE_MAX ? Math.floor(since) : 0;
  const input = (schedule ?? {}) as ScheduleInput;
  return { schedule: readable(name, input, sinceMs), source: source === 'file' ? 'file' : 'call', input };
}

/** A field of a type that nobody foresaw is bad input like any other. */
function readable(name: string, input: ScheduleInput, sinceMs: number): Schedule {
  try {
    return parseSchedule(name, input, sinceMs);
  } catch (error) {
    if (error instanceof DuestreamError) throw error;
    throw new DuestreamError('bad-input', `schedule ${name}: ${messageOf(error)}`, { cause: error });
  }
}

/** Whether two definitions are the same but for the time since when they hold. */
export function isSame(one: Definition, other: Definition): boolean {
  const plain = ({ schedule, source }: Definition) => JSON.stringify({ ...schedule, sinceMs: 0, source });
  return plain(one) === plain(other);
}

/** Whether two definitions name the same instants. */
export function firesAlike({ schedule: one }: Definition, { schedule: other }: Definition): boolean {
  const plain = ({ rule, zone, dst, calendar, startMs, endMs, paused }: Schedule) =>
    JSON.stringify([rule, zone, dst, calendar, startMs, endMs, paused === undefined]);
  return plain(one) === plain(other);
}

function parsed(name: string, content: string): { since?: unknown; source?: unknown; schedule?: unknown } {
  try {
    const value: unknown = JSON.parse(content);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Said below.
  }
  throw new DuestreamError('bad-input', `schedule ${name}: its stored definition is not a JSON object`);
}
