/**
 * The header of a record: the text before the bar, which Lua reads too. `codec.ts` has the grammar.
 */
import { hash } from 'node:crypto';
import { type HeaderOptions, hasNeeds, headerFields } from './fields.ts';
import type { SetEnds } from './job.ts';
import { COUNTED, entriesOfHeader, setInEntries, tagsOfHeader } from './labels.ts';

/** The header of a record, which can be read even when its JSON cannot. */
export function decodeHeader(
  record: string,
): ({ readonly askedDueMs: number; readonly bare: boolean; readonly setEnds?: SetEnds } & HeaderOptions) | undefined {
  // @record-header
  const end = headerEnd(record);
  if (end === 0) return undefined;
  const askedDueMs = Number.parseInt(record.slice(1, end), 36);
  if (record.charCodeAt(end) === BAR) return { askedDueMs, bare: false };
  const bar = record.indexOf('|', end);
  if (bar < 0) return undefined;
  const fields = new Map(
    record
      .slice(end, bar)
      .split(';')
      .reverse()
      .map((field) => [field.slice(0, 1), field.slice(2)]),
  );
  const setEnds = setEndsIn(fields.get('n'));
  return { askedDueMs, bare: fields.get('b') === '1', ...(setEnds && { setEnds }), ...headerOptionsIn(fields) };
}

const BAR = 0x7c;
const SEMICOLON = 0x3b;

/** Where the asked due time of a record of version 1 ends, at a bar or a semicolon; 0 for any other text. */
function headerEnd(record: string): number {
  if (record.charCodeAt(0) !== 0x31) return 0;
  for (let at = 1; at < record.length; at += 1) {
    const code = record.charCodeAt(at);
    const isDigit = (code >= 0x30 && code <= 0x39) || (code >= 0x61 && code <= 0x7a);
    if (!isDigit) return at > 1 && (code === BAR || code === SEMICOLON) ? at : 0;
  }
  return 0;
}

/**
 * What the tombstone of a job keeps of its record: the asked due time and the digest of the call that made the job; after an
 * edit they stand in the header. Empty where only Redis has its bytes: a record that is no UTF-8 reached us with other bytes.
 */
export function markOf(record: string): string {
  const end = headerEnd(record);
  if (end === 0 || record.includes('\ufffd')) return '';
  return markAt(record, end);
}

/**
 * By what starts of one life of a job are told from those of another life of its id: retries, edits and replays keep it. It is
 * compared with others that this function gave, so the bytes in Redis do not matter.
 */
export const lifeMarkOf = (record: string): string => markAt(record, headerEnd(record));

function markAt(record: string, end: number): string {
  const first =
    record.charCodeAt(end) === SEMICOLON ? FIRST_MARK.exec(record.slice(end, record.indexOf('|', end))) : null;
  if (first) return `${first[1]} ${first[2]}`;
  return `${record.slice(1, end)} ${digestOf(record)}`;
}

/**
 * What a completion says of the record: its mark, where a tombstone is to be left, and behind a bar its tags, if it has
 * any; a bar alone where there is neither. Empty: Redis has to read the record for them.
 */
export function endMark(record: string, windowMs: number): string {
  const header = isPlain(record) ? '' : record.slice(0, record.indexOf('|'));
  const tags = TAGS.exec(header)?.[1];
  if (tags === undefined) return windowMs > 0 ? markOf(record) : '|';
  // A line break in what a foreign producer wrote would end the mark.
  const mark = tags.includes('\n') ? '' : markOf(record);
  return mark === '' ? '' : `${mark}|${tags}`;
}

const TAGS = /;t=([^;]+)/;

/** The letter under which a record keeps the mark of the call that made the job: after an edit, and where it has headers of a job. */
export const MARK_LETTER = 'm';
const FIRST_MARK = /;m=(\w+)\.([0-9a-f]+)/;

/**
 * The record of a job that counts in its group: with a tag for that behind the others, and with the mark that it has without
 * the tag, so that the same call is recognised also where the limit has come or gone in between.
 *
 * @example countedRecord('1abc|{}') // '1abc;t= group;m=abc.0123456789abcdef|{}'
 */
export function countedRecord(record: string): string {
  const bar = record.indexOf('|');
  const header = record.slice(0, bar);
  const tags = TAGS.exec(header)?.[1];
  const tagged =
    tags === undefined ? `${header};t=${COUNTED}` : header.replace(`;t=${tags}`, () => `;t=${tags},${COUNTED}`);
  return `${tagged}${markFieldOf(record, header)}${record.slice(bar)}`;
}

/** The mark of a record that has none yet, as a field of its header. */
function markFieldOf(record: string, header: string): string {
  const isMarked = header.includes(`;${MARK_LETTER}=`);
  return isMarked ? '' : `;${MARK_LETTER}=${record.slice(1, headerEnd(record))}.${digestOf(record)}`;
}

/**
 * The record of a job that comes into being when it is due already: it says when, and has the mark that it has without that, so
 * that the same call is recognised whenever it is made again.
 *
 * @example lateRecord('1abc|{}', 1763719000000) // '1abc;w=mi8n7ly8;m=abc.0123456789abcdef|{}'
 */
export function lateRecord(record: string, madeMs: number): string {
  const bar = record.indexOf('|');
  const header = record.slice(0, bar);
  return `${header};w=${madeMs.toString(36)}${markFieldOf(record, header)}${record.slice(bar)}`;
}

/** When the job was made, if that was after its due time. */
export function madeMsOf(record: string): number | undefined {
  if (isPlain(record)) return undefined;
  const text = /^[^|]*?;w=([0-9a-z]{1,10})[;|]/.exec(record)?.[1];
  return text === undefined ? undefined : Number.parseInt(text, 36);
}

/** Tells records apart, here as in Redis: the first 16 hexadecimal digits of the SHA-1. */
export const digestOf = (record: string): string => hash('sha1', record).slice(0, 16);

/** Whether a record has no fields in its header. */
export const isPlain = (record: string): boolean => record.charCodeAt(headerEnd(record)) === BAR;

/** A value that cannot be read counts as left out, here as in Redis. */
function headerOptionsIn(fields: ReadonlyMap<string, string>): HeaderOptions {
  const found: Record<string, unknown> = {};
  for (const field of headerFields) {
    const text = fields.get(field.key);
    const otherwise = field.needs.length === 0 ? undefined : field.fallback;
    const value = (text === undefined ? undefined : field.option.ofHeader(text)) ?? otherwise;
    if (value !== undefined && hasNeeds(field, found)) found[field.stored] = value;
  }
  return found;
}

/** Of the callback of a set: how its members ended, as four numbers and the name. */
function setEndsIn(text = ''): SetEnds | undefined {
  const [, done, dead, cancelled, expired, name] = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\.(.+)$/.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { name, done: Number(done), dead: Number(dead), cancelled: Number(cancelled), expired: Number(expired) };
}

const NO_TAGS: readonly string[] = Object.freeze([]);

/** The entries of a record in the index of tags, its priority included. */
export function entriesOfRecord(record: string): readonly string[] {
  const header = record.slice(0, Math.max(0, record.indexOf('|')));
  return entriesOfHeader(TAGS.exec(header)?.[1] ?? '');
}

/** The set that a record carries there. @example setOfRecord('1abc;t= set:import-7|{}') // 'import-7' */
export const setOfRecord = (record: string): string | undefined => setInEntries(entriesOfRecord(record));

/** The tags that a record carries in the letter `t`. @example tagsOfRecord('1abc;t=user:42,paid|{}') // ['user:42', 'paid'] */
export function tagsOfRecord(record: string): readonly string[] {
  const header = record.slice(0, Math.max(0, record.indexOf('|')));
  return tagsOfHeader(TAGS.exec(header)?.[1] ?? '') ?? NO_TAGS;
}

/** The instant after which a job does not start any more, as in `lua/lib/lateness.lua`; undefined: it starts however late. */
export function expiryIn(record: string): number | undefined {
  const { expiresAtMs, onLate } = decodeHeader(record) ?? {};
  return onLate === 'run' ? undefined : expiresAtMs;
}
