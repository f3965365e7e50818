/**
 * The record of a job that is over ⇄ text, as `K:past` keeps it. `lua/lib/past.lua` writes it, from the run of the job and
 * the note of its worker:
 *
 *     1<place of the end before or -> <outcome letter> <token> <attempts> <failures> <crashes> <generation>
 *       <asked due>.<digest> <ended ms> <worker or -> <dead letter or -> <tags or ->
 *     <JSON of the note>
 *     <~, how often it was put aside, and why: see codec.ts>, if it was
 *     <one line of JSON per error>
 *
 * The asked due time is in base 36, with the digest of the call that made the job. Earlier ends stand under the id, a zero
 * byte and their place: the ms of the end, or the next that was free. The one tag `-` is written `,-`. A **note** is what
 * only a worker knows: tags, a space, and JSON: `n` name, `s` started, `k` took, both in ms, `l` the account of its last start,
 * `r` result, `z` bytes of a result that is too large, `x` why a result is no JSON.
 */

import { messageOf, oneLine } from '../kernel/errors.ts';
import { accountText, readAccount, type StartAccount } from './account.ts';
import { decodeDeferred, decodeHistory, idOf } from './codec.ts';
import { dataJson } from './data-json.ts';
import { DEFAULT_NAME } from './job.ts';
import { parseBounded } from './json-text.ts';
import { setInEntries } from './labels.ts';
import type { Attempted, Deferred } from './outcome.ts';
import type { History } from './queue-settings.ts';
import { entriesOfRecord } from './record-header.ts';
import { type OverState, outcomeLetters } from './state.ts';

/** What became of what a handler returned. */
export type KeptResult<Result = unknown> =
  | { readonly kind: 'kept'; readonly value: Result }
  /** It returned nothing, or the queue keeps no results. */
  | { readonly kind: 'none' }
  | { readonly kind: 'too-large'; readonly bytes: number }
  | { readonly kind: 'no-json'; readonly why: string };

/** How a job ended. */
export interface PastJob<Result = unknown> {
  readonly id: string;
  readonly bare: boolean;
  readonly outcome: OverState;
  /** Undefined where nobody could read it. */
  readonly name: string | undefined;
  readonly tags: readonly string[];
  /** The set that it was a member of. */
  readonly set: string | undefined;
  /** The due time that the producer asked for, in epoch ms. */
  readonly askedDueMs: number;
  readonly attempts: number;
  readonly failures: number;
  readonly crashes: number;
  readonly generation: number;
  /** The number of its last start; undefined for a job that was never started. */
  readonly token: string | undefined;
  /** The worker that had it last. */
  readonly owner: string | undefined;
  /** When its last handler began, in epoch ms by the clock of Redis. */
  readonly startedMs: number | undefined;
  readonly tookMs: number | undefined;
  /** Why its last start was when it was. */
  readonly account: StartAccount | undefined;
  /** When it ended, in epoch ms. */
  readonly overMs: number;
  /** The errors of its starts, oldest first, at most 5, each with its stack. */
  readonly history: readonly Attempted[];
  readonly deferred: Deferred | undefined;
  readonly result: KeptResult<Result>;
  /** The address of its dead letter, which may be gone by now. */
  readonly deadLetter: string | undefined;
}

export interface Note {
  readonly name: string;
  readonly record: string;
  readonly startedMs: number | undefined;
  readonly tookMs: number | undefined;
  readonly account?: StartAccount | undefined;
}

/** @param returned what the handler returned; undefined where it is not to be kept */
export function encodeNote(note: Note, returned: unknown, history: History): string {
  const name = note.name === DEFAULT_NAME ? undefined : note.name;
  const took = note.tookMs === undefined ? undefined : Math.round(note.tookMs);
  const kept = keptOf(returned, history);
  const account = note.account && accountText(note.account);
  const head = JSON.stringify({ n: name, s: note.startedMs, k: took, l: account, z: kept.z, x: kept.x });
  const json = kept.r === undefined ? head : `${head === '{}' ? '{' : `${head.slice(0, -1)},`}"r":${kept.r}}`;
  return `${tagsInNote(note.record)} ${json}`;
}

/** The tags of a record as a note has them: `-` where it has none. */
export function tagsInNote(record: string): string {
  const tags = entriesOfRecord(record).join(',');
  return tags === '' ? '-' : tags === '-' ? ',-' : tags;
}

/** The JSON of a result, or why it is not kept. */
function keptOf(
  returned: unknown,
  { keepsResult, resultBytesMax }: History,
): { readonly r?: string; readonly z?: number; readonly x?: string } {
  if (!keepsResult || returned === undefined) return {};
  try {
    const json = dataJson(returned, 'the result');
    const bytes = Buffer.byteLength(json);
    return bytes <= resultBytesMax ? { r: json } : { z: bytes };
  } catch (error) {
    return { x: oneLine(messageOf(error), 200) };
  }
}

const HEAD = /^1(\S+) ([a-z]) (\d+) (\d+) (\d+) (\d+) (\d+) ([0-9a-z]+)(?:\.[0-9a-f]*)? (\d+) (\S+) (\S+) (\S+)$/;

/** A record and the place of the end before it, or undefined where the text is none. */
export function decodePast(
  member: string,
  text: string | null | undefined,
): { readonly past: PastJob; readonly before: string | undefined } | undefined {
  const [first = '', note = '', ...lines] = (text ?? '').split('\n');
  const [
    ,
    before,
    letter = '',
    token,
    attempts,
    failures,
    crashes,
    generation,
    asked = '',
    ms,
    owner,
    dead,
    tags = '-',
  ] = HEAD.exec(first) ?? [];
  const outcome = outcomeLetters[letter];
  if (outcome === undefined) return undefined;
  const { n, s, k, l, ...result } = noteOf(note);
  const entries = tags === '-' ? [] : tags.split(',').filter((tag) => tag !== '');
  const past: PastJob = {
    ...idOf(member.split('\0')[0] ?? ''),
    outcome,
    name: typeof n === 'string' ? n : DEFAULT_NAME,
    tags: entries.filter((tag) => !tag.startsWith('=')),
    set: setInEntries(entries),
    askedDueMs: Number.parseInt(asked, 36),
    attempts: Number(attempts),
    failures: Number(failures),
    crashes: Number(crashes),
    generation: Number(generation),
    token: token === '0' ? undefined : token,
    owner: owner === '-' ? undefined : owner,
    startedMs: numberOr(s),
    tookMs: numberOr(k),
    account: withHandler(readAccount(l), numberOr(s)),
    overMs: Number(ms),
    history: decodeHistory(lines),
    deferred: decodeDeferred(lines),
    result: resultOf(result),
    deadLetter: dead === '-' ? undefined : dead,
  };
  return { past, before: before === '-' ? undefined : before };
}

type Stored = Readonly<Record<string, unknown>>;

function noteOf(text: string): Stored {
  try {
    const note: unknown = parseBounded(text, 'the note');
    return typeof note === 'object' && note !== null ? (note as Stored) : {};
  } catch {
    return {};
  }
}

function resultOf({ r, z, x }: Stored): KeptResult {
  if (r !== undefined) return { kind: 'kept', value: r };
  if (typeof z === 'number') return { kind: 'too-large', bytes: z };
  return typeof x === 'string' ? { kind: 'no-json', why: x } : { kind: 'none' };
}

function withHandler(account: StartAccount | undefined, beganMs: number | undefined): StartAccount | undefined {
  if (!account || beganMs === undefined) return account;
  return { ...account, toHandlerMs: Math.max(0, beganMs - Math.max(account.dueMs, account.startedMs)) };
}

const numberOr = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Whether a record tells of the end that a tombstone or a look at the job tells of, and not of one of an earlier life. */
export const isEndOf = (
  past: PastJob | undefined,
  end: { readonly outcome: string; readonly token: string | undefined; readonly attempts: number },
): past is PastJob =>
  past?.outcome === end.outcome && (past.token ?? '0') === (end.token ?? '0') && past.attempts === end.attempts;
