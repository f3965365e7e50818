/**
 * Job ⇄ bytes. One of the two borders where unknown data gets a type.
 *
 * A **record** is `1` + asked due (base 36) + optional `;letter=value` fields + `|` + compact JSON. Lua reads the part
 * before the bar and never the JSON. Letters in use: `b=1` bare; `e` expires at (ms, base 36); `l` most lateness (ms,
 * base 36); `p` what then: d drop (default), x dead letter, r run. Unknown letters are kept and ignored.
 * JSON keys: `n` name, `d` data, `o` options of this one job (`a` attempts, `t` timeout ms, `b` backoff). Defaults are
 * left out: a job named `default` with 200 bytes of data is 216 bytes, which fits the allocator's class of 224.
 *
 * A **tombstone** is what is left of a job that is over: `.` + outcome letter + asked due (base 36) + space + digest of the
 * record + space + finishing token + space + attempts + space + dead letter id or `-`.
 *
 * A **run** is the state of a job that was started, fields separated by spaces, then one line of JSON per error:
 * token generation attempts failures crashes entry owner nextDue cancel askedDue digest.
 */
import { type Backoff, isBackoff } from './backoff.ts';
import { dataJson } from './data-json.ts';
import { DEFAULT_NAME, type JobId, type Token } from './job.ts';
import type { Attempted } from './outcome.ts';
import { type OverState, outcomeLetters } from './state.ts';

/** Options of one job that differ from its queue's. */
export interface JobOverrides {
  readonly attempts?: number;
  readonly timeoutMs?: number;
  readonly backoff?: Backoff;
}

/** When a job is too late to start, and what happens then. */
export interface Lateness {
  readonly expiresAtMs?: number;
  readonly maxLatenessMs?: number;
  readonly onLate?: OnLate;
}

/** `drop` ends it as expired, `dead` makes a dead letter, `run` starts it all the same. */
export type OnLate = 'drop' | 'dead' | 'run';

const ON_LATE: Readonly<Record<string, OnLate>> = { d: 'drop', x: 'dead', r: 'run' };

export interface JobRecord extends JobOverrides, Lateness {
  readonly askedDueMs: number;
  readonly name: string;
  readonly data: unknown;
  readonly bare: boolean;
}

export interface Tombstone {
  readonly outcome: OverState;
  readonly askedDueMs: number;
  readonly digest: string;
  readonly token: Token;
  readonly attempts: number;
  readonly deadLetter: string | undefined;
}

export interface Run {
  readonly token: Token;
  readonly generation: number;
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly entry: string | undefined;
  readonly owner: string | undefined;
  readonly nextDueMs: number | undefined;
  readonly cancelRequested: boolean;
  readonly history: readonly Attempted[];
}

/** What stands for a job in the zset, the hashes and the stream. */
export const memberOf = (id: string, { bare = false } = {}): string => (bare ? id : `j:${id}`);

/** The id a member stands for, and whether it is bare. */
export function idOf(member: string): { readonly id: JobId; readonly bare: boolean } {
  return member.startsWith('j:') ? { id: member.slice(2) as JobId, bare: false } : { id: member as JobId, bare: true };
}

/** The JSON part of a record. @throws DuestreamError `bad-input` when JSON cannot carry the data. */
export function encodeBody(job: { readonly name: string; readonly data: unknown } & JobOverrides): string {
  const options: { a?: number; t?: number; b?: Backoff } = {};
  if (job.attempts !== undefined) options.a = job.attempts;
  if (job.timeoutMs !== undefined) options.t = job.timeoutMs;
  if (job.backoff !== undefined) options.b = job.backoff;
  const data = job.data === undefined ? '' : dataJson(job.data);
  const parts = [
    job.name === DEFAULT_NAME ? '' : `"n":${JSON.stringify(job.name)}`,
    data === '' ? '' : `"d":${data}`,
    Object.keys(options).length === 0 ? '' : `"o":${JSON.stringify(options)}`,
  ];
  return `{${parts.filter((part) => part !== '').join(',')}}`;
}

/** A whole record. `body` comes from `encodeBody`. */
export function encodeRecord(
  dueMs: number,
  body: string,
  { expiresAtMs, maxLatenessMs, onLate }: Lateness = {},
): string {
  if (expiresAtMs === undefined && maxLatenessMs === undefined) return `1${dueMs.toString(36)}|${body}`;
  const expiry = expiresAtMs === undefined ? '' : `;e=${expiresAtMs.toString(36)}`;
  const lateness = maxLatenessMs === undefined ? '' : `;l=${maxLatenessMs.toString(36)}`;
  const policy = onLate === 'dead' ? ';p=x' : onLate === 'run' ? ';p=r' : '';
  return `1${dueMs.toString(36)}${expiry}${lateness}${policy}|${body}`;
}

/** The header of a record, which can be read even when its JSON cannot. */
export function decodeHeader(
  record: string,
): ({ readonly askedDueMs: number; readonly bare: boolean } & Lateness) | undefined {
  // @record-header
  const header = /^1([0-9a-z]+)((?:;[^|]*)?)\|/.exec(record);
  if (!header) return undefined;
  const askedDueMs = Number.parseInt(header[1] ?? '', 36);
  if (!header[2]) return { askedDueMs, bare: false };
  const fields = new Map(
    header[2]
      .split(';')
      .reverse()
      .map((field) => [field.slice(0, 1), field.slice(2)]),
  );
  const time = (letter: string) => {
    const text = fields.get(letter) ?? '';
    return /^[0-9a-z]+$/.test(text) ? Number.parseInt(text, 36) : undefined;
  };
  const [expiresAtMs, maxLatenessMs] = [time('e'), time('l')];
  const late = expiresAtMs !== undefined || maxLatenessMs !== undefined;
  return {
    askedDueMs,
    bare: fields.get('b') === '1',
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(maxLatenessMs === undefined ? {} : { maxLatenessMs }),
    ...(late ? { onLate: ON_LATE[fields.get('p') ?? 'd'] ?? 'drop' } : {}),
  };
}

/** A record as a job's content. @throws Error when it cannot be read: the caller makes it a dead letter. */
export function decodeRecord(record: string): JobRecord {
  const header = decodeHeader(record);
  if (!header) throw new Error(`record has no header of version 1: ${JSON.stringify(record.slice(0, 24))}`);
  // @record-body
  const body: unknown = JSON.parse(record.slice(record.indexOf('|') + 1));
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('record is not a JSON object');
  const { n, d, o } = body as { n?: unknown; d?: unknown; o?: { a?: unknown; t?: unknown; b?: unknown } };
  if (n !== undefined && typeof n !== 'string') throw new Error('name in the record is not a text');
  return { ...header, name: n ?? DEFAULT_NAME, data: d, ...overridesOf(o ?? {}) };
}

const isCount = (value: unknown): value is number => typeof value === 'number' && value >= 1;

/** A foreign producer may write anything here: attempts that are no number would never be exhausted. */
function overridesOf({ a, t, b }: { a?: unknown; t?: unknown; b?: unknown }): JobOverrides {
  if (a !== undefined && !isCount(a)) throw new Error('attempts in the record are not a number');
  if (t !== undefined && !isCount(t)) throw new Error('timeout in the record is not a number of milliseconds');
  if (b !== undefined && !isBackoff(b)) throw new Error('backoff in the record is none');
  return {
    ...(a === undefined ? {} : { attempts: a }),
    ...(t === undefined ? {} : { timeoutMs: t }),
    ...(b === undefined ? {} : { backoff: b }),
  };
}

export const isTombstone = (value: string): boolean => value.startsWith('.');

/** A tombstone, or undefined when the text is none. */
export function decodeTombstone(value: string): Tombstone | undefined {
  const found = /^\.([a-z])([0-9a-z]+) (\S+) (\S+) (\d+) (\S+)$/.exec(value);
  const outcome = outcomeLetters[found?.[1] ?? ''];
  if (!found || !outcome) return undefined;
  return {
    outcome,
    askedDueMs: Number.parseInt(found[2] ?? '', 36),
    digest: found[3] ?? '',
    token: (found[4] ?? '0') as Token,
    attempts: Number(found[5]),
    deadLetter: found[6] === '-' ? undefined : found[6],
  };
}

/** A run, or undefined when the text is none. */
export function decodeRun(value: string): Run | undefined {
  const [head = '', ...lines] = value.split('\n');
  const fields = head.split(' ');
  if (fields.length !== 11) return undefined;
  const [token = '', generation, attempts, failures, crashes, entry, owner, next, cancel] = fields;
  return {
    token: token as Token,
    generation: Number(generation),
    attempts: Number(attempts),
    failures: Number(failures),
    crashes: Number(crashes),
    entry: entry === '-' ? undefined : entry,
    owner: owner === '-' ? undefined : owner,
    nextDueMs: next === '-' ? undefined : Number(next),
    cancelRequested: cancel === '1',
    history: decodeHistory(lines),
  };
}

/** One error as a line of a run or a dead letter. */
export const encodeAttempted = (error: Attempted): string =>
  JSON.stringify({ t: error.atMs, a: error.attempt, k: error.kind, m: error.message });

/** The lines of a history; a line that cannot be read is shown as it is rather than lost. */
export function decodeHistory(lines: readonly string[]): readonly Attempted[] {
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      try {
        const { t, a, k, m } = JSON.parse(line) as { t: number; a: number; k: Attempted['kind']; m: unknown };
        if (typeof m !== 'string') throw new Error('not a line of ours');
        return { atMs: t, attempt: a, kind: k, message: m };
      } catch {
        return { atMs: 0, attempt: 0, kind: 'failure', message: line };
      }
    });
}
