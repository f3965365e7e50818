/**
 * A record with some of it changed. What an edit does not name stays byte for byte where it can: letters and keys of a
 * later version, the data, the options. The record then carries the mark of the first one, so that the call which made
 * the job is still recognised, and tombstones stay what they would have been.
 */

import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { dataPart } from './codec.ts';
import { Sealed } from './content.ts';
import { bodyFields, hasNeeds, headerFields, type JobField } from './fields.ts';
import { DEFAULT_NAME } from './job.ts';
import { inexactNumber, parseBounded } from './json-text.ts';
import { COUNTED, TAGS_MAX } from './labels.ts';
import { decodeHeader, MARK_LETTER, markOf } from './record-header.ts';

/** What an edit changes. Of an option, `null`: as if it had never been given. */
export interface RecordChange {
  readonly name?: string;
  /** Whether there is new data; `data` alone cannot say so, because `undefined` takes the data away. */
  readonly hasData: boolean;
  readonly data?: unknown;
  /** By the names of `options.ts`, as callers give them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** When the job is due, which an expiry must not come before. */
  readonly dueMs: number;
}

/**
 * The new record, or undefined when the old one cannot be read. The same change of the same record is the same text.
 *
 * @throws DuestreamError `bad-input` for an option outside its range, or one without the option it needs; and where data
 * that stays holds a number that JavaScript would round
 */
export function editRecord(record: string, change: RecordChange): string | undefined {
  const header = decodeHeader(record);
  const mark = markOf(record);
  const body = header && mark !== '' ? bodyOf(record) : undefined;
  if (!body) return undefined;
  const fields = headerAfter(record, change);
  const bar = record.indexOf('|');
  const asked = record.slice(0, record.search(/[;|]/));
  const json = jsonAfter(record.slice(bar + 1), body, change);
  if (`${asked}${textOf(fields)}|${json}` === record) return record;
  fields.set(MARK_LETTER, mark.replace(' ', '.'));
  return `${asked}${textOf(fields)}|${json}`;
}

type Body = Record<string, unknown>;

function bodyOf(record: string): Body | undefined {
  try {
    const body: unknown = parseBounded(record.slice(record.indexOf('|') + 1), 'the record');
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Body) : undefined;
  } catch {
    return undefined;
  }
}

const textOf = (fields: ReadonlyMap<string, string>): string =>
  [...fields].map(([letter, value]) => `;${letter}=${value}`).join('');

/** The fields of the header by their letters, in their order. */
function headerAfter(record: string, { options, dueMs }: RecordChange): Map<string, string> {
  const [, ...fields] = record.slice(0, record.indexOf('|')).split(';');
  const found = new Map(fields.map((field) => [field.slice(0, 1), field.slice(2)]));
  for (const field of headerFields) {
    const given = options[field.name];
    if (given === undefined) continue;
    const stored = given === null ? undefined : field.option.check(given, field.name, dueMs);
    const isGone = stored === undefined || stored === field.fallback;
    const text = textWith(field, found.get(field.key) ?? '', isGone ? '' : field.option.toHeader(stored));
    if (text === '') found.delete(field.key);
    else found.set(field.key, text);
  }
  for (const field of headerFields) dropAlone(field, found, options[field.name]);
  checkTags(found.get('t') ?? '', options);
  return found;
}

/** A letter with another value of one of its options: the priority stands among the tags, and that a job counts in its group. */
function textWith(field: JobField, before: string, own: string): string {
  const texts = headerFields
    .filter(({ key }) => key === field.key)
    .map((one) => {
      if (one === field) return own;
      const value = one.option.ofHeader(before);
      return value === undefined ? '' : one.option.toHeader(value);
    });
  const isCounted = field.key === 't' && before.split(',').includes(COUNTED);
  return [...texts, isCounted ? COUNTED : ''].filter((text) => text !== '').join(',');
}

/** A priority, and that a job counts in its group, each take the place of a tag. @throws DuestreamError `bad-input` */
function checkTags(text: string, { tags, priority }: RecordChange['options']): void {
  const entries = text.split(',');
  if ((tags ?? priority) == null || entries.length <= TAGS_MAX) return;
  const own = entries.filter((tag) => !tag.startsWith(' ')).length;
  throw new DuestreamError(
    'bad-input',
    `tags would be a list of ${own}; allowed: up to ${TAGS_MAX - entries.length + own} beside what else stands among the tags of the job: its priority, or its group where that has a limit of pending jobs`,
  );
}

/** An option that means nothing without another: refused when it is given now, and left out when the other one has gone. */
function dropAlone(field: JobField, found: Map<string, string>, given: unknown): void {
  const there = Object.fromEntries(
    headerFields.flatMap(({ stored, key }) => (found.has(key) ? [[stored, found.get(key)]] : [])),
  );
  if (hasNeeds(field, there)) return;
  found.delete(field.key);
  if (given === undefined || given === null) return;
  const others = field.needs.map(({ name }) => name).join(' or ');
  throw new DuestreamError(
    'bad-input',
    `${field.name} is ${show(given)} without ${others}; allowed: together with one`,
  );
}

/** The JSON, or the text as it is when nothing of it changes. */
function jsonAfter(text: string, body: Body, { name, hasData, data, options }: RecordChange): string {
  const isOption = bodyFields.some((field) => options[field.name] !== undefined);
  if (name === undefined && !hasData && !isOption) return text;
  if (!hasData) checkNumbers(text);
  const { n, d, c, o, ...rest } = body;
  const newName = name ?? (typeof n === 'string' ? n : DEFAULT_NAME);
  const kept = typeof d === 'string' && typeof c === 'string' ? new Sealed(d, c) : d;
  const newData = hasData ? data : kept;
  const newOptions = isOption ? optionsAfter(o, options) : o;
  const parts = [
    newName === DEFAULT_NAME ? '' : `"n":${JSON.stringify(newName)}`,
    newData === undefined ? '' : dataPart(newData),
    newOptions === undefined ? '' : `"o":${JSON.stringify(newOptions)}`,
    ...Object.entries(rest).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`),
  ];
  return `{${parts.filter((part) => part !== '').join(',')}}`;
}

/** Another program may have written numbers that do not fit; writing them anew would change them in silence. */
function checkNumbers(json: string): void {
  const lost = inexactNumber(json);
  if (lost === undefined) return;
  throw new DuestreamError(
    'bad-input',
    `the data of the job holds ${lost.literal.slice(0, 60)}, which JavaScript would round; allowed: an edit that gives new data too`,
  );
}

function optionsAfter(stored: unknown, options: Readonly<Record<string, unknown>>): Body | undefined {
  const found = new Map(Object.entries(typeof stored === 'object' && stored !== null ? stored : {}));
  for (const { name, key, option } of bodyFields) {
    const given = options[name];
    if (given === undefined) continue;
    if (given === null) found.delete(key);
    else found.set(key, option.check(given, name));
  }
  return found.size === 0 ? undefined : Object.fromEntries(found);
}
