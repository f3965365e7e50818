/**
 * Log lines: what a handler said of its job by `context.log`, for people who look at the job. They are kept with the job as long as
 * that, its tombstone or its dead letter is kept: the newest 100, and at most 8 KiB of them.
 *
 * In `K:logs` they stand as a head and one line of JSON for each: `t` when, in epoch ms by the clock of Redis, `a` at which attempt,
 * `m` the text, `f` the fields. `lua/verbs/log.lua` says what the head is.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError, messageOf, oneLine } from '../kernel/errors.ts';
import { reasonOf } from '../kernel/reason.ts';
import { tokenMs } from './account.ts';
import { REDACTED, type Redaction, redactedData } from './redaction.ts';

/** Kept of one job. */
export const LINES_MAX = 100;
export const LINES_BYTES_MAX = 8 * 1024;

const TEXT_CHARS_MAX = 1000;
const FIELDS_BYTES_MAX = 2000;

/** What a line has beside its text: names and values that JSON can hold. */
export type LogFields = Readonly<Record<string, unknown>>;

/** One line that a handler said of its job. */
export interface LogLine {
  /** When it said so, in epoch ms by the clock of Redis. */
  readonly atMs: number;
  readonly attempt: number;
  readonly text: string;
  /** Undefined where it gave none. */
  readonly fields: LogFields | undefined;
}

/** What the handlers of a job said. */
export interface JobLog {
  /** The oldest first. */
  readonly lines: readonly LogLine[];
  /** How many lines are not kept: they were too many, or Redis was full. */
  readonly leftOut: number;
}

/** Lines of one start that Redis is to keep. */
export interface SaidLines {
  /** The number of the last of them, counted from 1 in each start. */
  readonly last: number;
  /** The tags of the job, as a note of the history has them. */
  readonly tags: string;
  readonly texts: readonly string[];
}

/** @throws DuestreamError `bad-input` for what is no text, or fields that are no object */
export function parseLogLine(text: unknown, fields: unknown): Pick<LogLine, 'text' | 'fields'> {
  if (typeof text !== 'string') {
    throw new DuestreamError('bad-input', `the text of log is ${show(text)}; allowed: a text, and fields behind it`);
  }
  if (fields === undefined) return { text, fields };
  if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return { text, fields: { ...fields } };
  throw new DuestreamError(
    'bad-input',
    `the fields of log are ${show(fields)}; allowed: an object of names and values`,
  );
}

/** What a queue hides in lines, as it does in errors: fields by their paths, and what stands word for word in a text. */
export interface Hiding {
  readonly told: (text: string) => string;
  readonly redact: Redaction | undefined;
}

/** A line as it is stored. What is too long is cut, and fields that no JSON can hold are left out: a line never stops a handler. */
export function encodeLogLine({ atMs, attempt, text, fields }: LogLine, { told, redact }: Hiding): string {
  const head = { t: atMs, a: attempt, m: oneLine(told(text), TEXT_CHARS_MAX) };
  if (fields === undefined) return JSON.stringify(head);
  try {
    const json = JSON.stringify(hidden(redactedData(fields, redact), told));
    const bytes = Buffer.byteLength(json);
    if (bytes <= FIELDS_BYTES_MAX) return `${JSON.stringify(head).slice(0, -1)},"f":${json}}`;
    return JSON.stringify({ ...head, f: { notKept: `${bytes} bytes of JSON` } });
  } catch (error) {
    return JSON.stringify({ ...head, f: { notKept: oneLine(told(messageOf(error)), 200) } });
  }
}

/** Where a value is nested deeper, nobody reads it in a line. */
const DEPTH_MAX = 5;

function hidden(value: unknown, told: Hiding['told'], depth = 0): unknown {
  if (typeof value === 'string') return oneLine(told(value));
  if (typeof value === 'number') return told(String(value)) === String(value) ? value : REDACTED;
  if (typeof value === 'bigint') return told(String(value));
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return reasonOf(value, told);
  if ('toJSON' in value) return hidden(JSON.parse(JSON.stringify(value)), told, depth + 1);
  if (depth === DEPTH_MAX) return '…';
  if (Array.isArray(value)) return value.map((one) => hidden(one, told, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [told(name), hidden(one, told, depth + 1)]));
}

const HEAD = /^(\d+) \d+ (\d+) /;

/**
 * What is stored of a job; undefined: no handler said anything. A line that nobody can read is shown as it is.
 *
 * @param untilMs lines of a start after it belong to a later job with the same id
 */
export function decodeLog(
  stored: string | null | undefined,
  { untilMs = Number.POSITIVE_INFINITY }: { readonly untilMs?: number | undefined } = {},
): JobLog | undefined {
  const [head = '', ...texts] = (stored ?? '').split('\n');
  const [, token, leftOut] = HEAD.exec(head) ?? [];
  if (token === undefined || leftOut === undefined || tokenMs(token) > untilMs) return undefined;
  return { lines: texts.map(decodeLine), leftOut: Number(leftOut) };
}

function decodeLine(text: string): LogLine {
  try {
    const { t, a, m, f } = JSON.parse(text) as Readonly<Record<'t' | 'a' | 'm' | 'f', unknown>>;
    if (typeof t !== 'number' || typeof a !== 'number' || typeof m !== 'string') throw new Error('not a line of ours');
    const hasFields = typeof f === 'object' && f !== null && !Array.isArray(f);
    return { atMs: t, attempt: a, text: m, fields: hasFields ? { ...f } : undefined };
  } catch {
    return { atMs: 0, attempt: 0, text: oneLine(text), fields: undefined };
  }
}
