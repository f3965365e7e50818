/**
 * Job ⇄ bytes. One of the two borders where unknown data gets a type.
 *
 * A **record** is `1` + asked due time (base 36) + optional `;letter=value` fields + `|` + compact JSON. Lua reads the part
 * before the bar and never the JSON. Letters: `b=1` bare, `d` of a debounced job, `m` the mark of the call that made the job,
 * `n` of the callback of a set how its members ended, `w` when a job was made that was due by then, and those of `options.ts`;
 * unknown ones are ignored.
 * JSON keys: `n` name, `d` data, `c` the codec that encoded the data (then a text), `o` options of this one job, by their keys in `options.ts`. Defaults are left out: a
 * job named `default` with 200 bytes of data is 216 bytes, which fits the allocator's class of 224.
 *
 * A **tombstone** is what is left of a job that is over: `.` + outcome letter + asked due time (base 36) + space + digest of the
 * record + space + finishing token + space + attempts + space + dead letter id or `-`.
 *
 * A **run** is the state of a job that was started, fields separated by spaces, then one line of JSON per error:
 * token generation attempts failures crashes entry owner nextDue cancel. `cancel` is a digit of bits: 1 its worker is to stop,
 * 2 newer data came since its start, 4 somebody waits for the end of the job. Of a job that was put aside a line comes before the
 * errors: `~`, how often, a space, and JSON (`t` when, `m` the reason). How far the attempt that runs is
 * stands in a line behind them: JSON with `"k":"progress"`, `p` from 0 to 1, and `m`. It is no error, and says nothing once that attempt is over.
 */
import { show } from '../kernel/duration.ts';
import { accountText, readAccount } from './account.ts';
import { Sealed } from './content.ts';
import { DataText, dataJson } from './data-json.ts';
import {
  bodyFields,
  type HeaderOptions,
  hasNeeds,
  headerFields,
  type JobOverrides,
  NOTHING,
  type ToldOptions,
} from './fields.ts';
import { DEFAULT_NAME, type JobId, type SetEnds, type Token } from './job.ts';
import { parseBounded } from './json-text.ts';
import type { JobHeaders } from './labels.ts';
import type { Attempted, Deferral, Deferred, JobProgress, PutAside } from './outcome.ts';
import { decodeHeader, digestOf, isPlain, MARK_LETTER } from './record-header.ts';
import { type OverState, outcomeLetters } from './state.ts';

export interface JobRecord extends JobOverrides, HeaderOptions {
  readonly askedDueMs: number;
  readonly name: string;
  readonly data: unknown;
  readonly bare: boolean;
  /** Of the callback of a set. */
  readonly setEnds?: SetEnds;
  /** The codec that encoded the data, which is a text then. */
  readonly codec?: string;
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
  /** Newer data of a debounced job came while it runs: the record has them already. */
  readonly hasNews: boolean;
  readonly history: readonly Attempted[];
  readonly deferred: Deferred | undefined;
  /** Of the newest attempt; older ones say nothing any more. */
  readonly progress: JobProgress | undefined;
}

/** What stands for a job in the zset, the hashes and the stream. */
export const memberOf = (id: string, { bare = false } = {}): string => (bare ? id : `j:${id}`);

/** The id a member stands for, and whether it is bare. */
export function idOf(member: string): { readonly id: JobId; readonly bare: boolean } {
  return member.startsWith('j:') ? { id: member.slice(2) as JobId, bare: false } : { id: member as JobId, bare: true };
}

/** The JSON part of a record. @throws DuestreamError `bad-input` when JSON cannot carry the data. */
export function encodeBody(
  job: { readonly name: string; readonly data: unknown },
  overrides: JobOverrides = NOTHING,
): string {
  const data = job.data === undefined ? '' : dataPart(job.data);
  // Nearly every job; nothing is joined, so that its text is copied once, when it is sent.
  if (job.name === DEFAULT_NAME && overrides === NOTHING) return `{${data}}`;
  const name = job.name === DEFAULT_NAME ? '' : `"n":${JSON.stringify(job.name)}`;
  const options = overridesJson(overrides);
  const parts = [name, data, options === '' ? '' : `"o":{${options}}`];
  return `{${parts.filter((part) => part !== '').join(',')}}`;
}

/** The data, with the name of its codec beside it. */
export function dataPart(data: unknown): string {
  if (data instanceof DataText) return `"d":${data.json}`;
  if (!(data instanceof Sealed)) return `"d":${dataJson(data)}`;
  return `"d":${JSON.stringify(data.text)},"c":${JSON.stringify(data.codec)}`;
}

function overridesJson(overrides: Readonly<Record<string, unknown>>): string {
  let json = '';
  for (const { stored, key } of bodyFields) {
    const value = overrides[stored];
    if (value !== undefined) json += `${json === '' ? '' : ','}"${key}":${JSON.stringify(value)}`;
  }
  return json;
}

/** A whole record. `body` comes from `encodeBody`, and `letter` from `debounceLetter`. */
export function encodeRecord(dueMs: number, body: string, header: HeaderOptions = NOTHING, letter = ''): string {
  const asked = dueMs.toString(36);
  if (header === NOTHING) return `1${asked}${letter}|${body}`;
  const fields = letter + headerText(header, false);
  const record = `1${asked}${fields}|${body}`;
  const apart = headerText(header, true);
  if (apart === '') return record;
  // The mark is that of the record without what stands apart, as after an edit.
  return `1${asked}${fields}${apart};${MARK_LETTER}=${asked}.${digestOf(record)}|${body}`;
}

function headerText(header: Readonly<Record<string, unknown>>, isApart: boolean): string {
  let [text, last] = ['', ''];
  for (const field of headerFields) {
    if (field.isApart !== isApart) continue;
    const value = header[field.stored];
    if (value === undefined || value === field.fallback || !hasNeeds(field, header)) continue;
    const said = field.option.toHeader(value);
    if (said === '') continue;
    // The priority stands among the tags.
    text += field.key === last ? `,${said}` : `;${field.key}=${said}`;
    last = field.key;
  }
  return text;
}

/** A record as a job's content. @throws Error when it cannot be read: the caller makes it a dead letter. */
export function decodeRecord(record: string): JobRecord {
  const header = decodeHeader(record);
  if (!header) throw new Error(`record has no header of version 1: ${JSON.stringify(record.slice(0, 24))}`);
  // @record-body
  const body: unknown = parseBounded(record.slice(record.indexOf('|') + 1), 'the record');
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error('record is not a JSON object');
  const { n, d, c, o } = body as { n?: unknown; d?: unknown; c?: unknown; o?: Readonly<Record<string, unknown>> };
  if (n !== undefined && typeof n !== 'string') throw new Error('name in the record is not a text');
  const name = n ?? DEFAULT_NAME;
  // One shape for nearly all, made without copying.
  const { askedDueMs, bare } = header;
  if (o === undefined && c === undefined && isPlain(record)) return { askedDueMs, bare, name, data: d };
  return { ...header, name, data: d, ...(c === undefined ? {} : { codec: String(c) }), ...overridesIn(o ?? {}) };
}

/** A foreign producer may write anything here: attempts that are no number would never be exhausted. */
function overridesIn(options: Readonly<Record<string, unknown>>): JobOverrides {
  const found: Record<string, unknown> = {};
  for (const { name, stored, key, option } of bodyFields) {
    const value = options[key];
    if (value === undefined) continue;
    if (!option.isStored(value)) throw new Error(`${name} in the record is ${show(value)}; allowed: ${option.allowed}`);
    found[stored] = value;
  }
  return found;
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

/** The bits of a run's `cancel`, as in `lua/lib/run.lua`: its worker is to stop; newer data came. */
const STOP = 1;
const AGAIN = 2;

/** A run, or undefined when the text is none. */
export function decodeRun(value: string): Run | undefined {
  const [head = '', ...lines] = value.split('\n');
  const fields = head.split(' ');
  if (fields.length !== 9) return undefined;
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
    cancelRequested: (Number(cancel) & STOP) !== 0,
    hasNews: (Number(cancel) & AGAIN) !== 0,
    history: decodeHistory(lines),
    deferred: decodeDeferred(lines),
    progress: decodeProgress(lines, Number(attempts)),
  };
}

/** How far an attempt is, as a line of its run. */
export const encodeProgress = ({ atMs, fraction, text }: JobProgress, attempt: number): string =>
  JSON.stringify({ t: atMs, a: attempt, k: 'progress', p: fraction, m: text });

function decodeProgress(lines: readonly string[], attempt: number): JobProgress | undefined {
  const line = lines.findLast(isProgress);
  if (line === undefined) return undefined;
  try {
    const { t, a, p, m } = JSON.parse(line) as Readonly<Record<'t' | 'a' | 'p' | 'm', unknown>>;
    if (a !== attempt || typeof t !== 'number' || typeof p !== 'number') return undefined;
    return { fraction: p, text: typeof m === 'string' ? m : undefined, atMs: t };
  } catch {
    return undefined;
  }
}

/** No text in JSON has these words with their quotes as they are. */
const isProgress = (line: string): boolean => line.includes('"k":"progress"');

/** The script adds the attempt, and the deferrals before it. */
export const encodeDeferral = ({ atMs, reason, worker, tookMs }: Deferral): string =>
  JSON.stringify({ t: atMs, m: reason, w: worker, d: tookMs });

/** How often a job was put aside, from the lines of its history. */
export function decodeDeferred(lines: readonly string[]): Deferred | undefined {
  const [, times, json] = /^~(\d+) (.*)$/.exec(lines.find(isDeferred) ?? '') ?? [];
  if (times === undefined || json === undefined) return undefined;
  try {
    const last = JSON.parse(json) as Aside & { readonly e?: unknown };
    const before = Array.isArray(last.e) ? (last.e as readonly Aside[]) : [];
    const starts = [last, ...before].map(asideOf).reverse();
    const { atMs = 0, reason = '' } = starts.findLast(({ kind }) => kind === 'deferred') ?? {};
    return { times: Number(times), lastMs: atMs, reason, starts };
  } catch {
    return { times: Number(times), lastMs: 0, reason: json, starts: [] };
  }
}

type Aside = Readonly<Partial<Record<'t' | 'a' | 'k' | 'm' | 'w' | 'd', unknown>>>;

const asideOf = ({ t, a, k, m, w, d }: Aside): PutAside => ({
  atMs: Number(t),
  reason: String(m),
  kind: k === 'back' ? 'handed-back' : 'deferred',
  ...(typeof a === 'number' && { attempt: a }),
  ...(typeof w === 'string' && { worker: w }),
  ...(typeof d === 'number' && { tookMs: d }),
});

const isDeferred = (line: string): boolean => line.startsWith('~');

/** One error as a line of a run or a dead letter. The stack comes last, so that a script can take it off. */
export const encodeAttempted = (error: Attempted): string =>
  JSON.stringify({
    t: error.atMs,
    a: error.attempt,
    k: error.kind,
    m: error.message,
    w: error.worker,
    d: error.tookMs,
    l: error.account && accountText(error.account),
    s: error.stack,
  });

const HISTORY_MAX = 5;

/** A history with one more error, as `lua/lib/history.lua` makes it: without `stacks`, that of the newest one stays. */
export function lengthened(
  history: readonly Attempted[],
  error: Attempted,
  { stacks }: { readonly stacks: boolean },
): readonly Attempted[] {
  const bare = stacks || error.stack === undefined ? history : history.map(({ stack: _, ...older }) => older);
  return [...bare, error].slice(-HISTORY_MAX);
}

interface StoredAttempted {
  readonly t: number;
  readonly a: number;
  readonly k: Attempted['kind'];
  readonly m: unknown;
  readonly s?: unknown;
  readonly w?: unknown;
  readonly d?: unknown;
  readonly l?: unknown;
  readonly b?: unknown;
  readonly i?: unknown;
}

/** The lines of a history; a line that cannot be read is shown as it is rather than lost. */
export function decodeHistory(lines: readonly string[]): readonly Attempted[] {
  return lines
    .filter((line) => line !== '' && !isDeferred(line) && !isProgress(line))
    .map((line) => {
      try {
        const { t, a, k, m, s, w, d, l, b, i } = JSON.parse(line) as StoredAttempted;
        if (typeof m !== 'string') throw new Error('not a line of ours');
        const account = readAccount(l);
        return {
          atMs: t,
          attempt: a,
          kind: k,
          message: m,
          ...(typeof s === 'string' && { stack: s }),
          ...(typeof w === 'string' && { worker: w }),
          ...(typeof d === 'number' && { tookMs: d }),
          ...(account && { account }),
          ...(typeof b === 'number' && typeof i === 'number' && { beganMs: b, signMs: t - i }),
        };
      } catch {
        return { atMs: 0, attempt: 0, kind: 'failure', message: line };
      }
    });
}

// The content of a record for whoever looks. Reading a broken record must not throw: somebody looks because it is
// broken.

export interface RecordContent {
  readonly name: string | undefined;
  readonly data: unknown;
  readonly headers: JobHeaders | undefined;
  /** The codec that encoded the data, which is shown as it is stored. */
  readonly codec: string | undefined;
  /** Of the callback of a set: how its members ended. */
  readonly setEnds: SetEnds | undefined;
  readonly options: ToldOptions;
  readonly askedDueMs: number | undefined;
  readonly readable: boolean;
  /** The beginning of a record that cannot be read. */
  readonly unreadable: string | undefined;
}

const UNREADABLE_CHARS_MAX = 200;

export const NO_CONTENT: RecordContent = {
  name: undefined,
  data: undefined,
  headers: undefined,
  codec: undefined,
  setEnds: undefined,
  options: {},
  askedDueMs: undefined,
  readable: false,
  unreadable: undefined,
};

export function contentOf(record: string): RecordContent {
  const content = decoded(record);
  if (!content) {
    const unreadable = record === '' ? undefined : record.slice(0, UNREADABLE_CHARS_MAX);
    return { ...NO_CONTENT, askedDueMs: decodeHeader(record)?.askedDueMs, unreadable };
  }
  const { name, data, headers, askedDueMs, bare: _, codec, setEnds, ...options } = content;
  return { name, data, headers, codec, setEnds, options, askedDueMs, readable: true, unreadable: undefined };
}

function decoded(record: string): JobRecord | undefined {
  try {
    return decodeRecord(record);
  } catch {
    return undefined;
  }
}
