/**
 * What a person hands to `schedule`: JSON in a flag, in a file or on stdin. Everything read is bounded.
 */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import type { BackoffInput } from '../../job/backoff.ts';
import type { Debounce } from '../../job/debounce.ts';
import { parseExact } from '../../job/json-text.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import type { Invocation } from './output.ts';

/** Larger than any data a configuration may allow. */
const INPUT_BYTES_MAX = 32 * 1024 * 1024;

/**
 * The value of `--data` and its like: JSON, `@file`, or `-` for stdin.
 *
 * @throws DuestreamError `bad-input`
 */
export async function readData(invocation: Invocation, text: string | undefined, flag = '--data'): Promise<unknown> {
  if (text === undefined) return undefined;
  if (text === '-') return parse(await readAll(invocation.stdin, 'stdin'), 'stdin', flag);
  if (text.startsWith('@')) return parse(await readAll(openFile(invocation, text.slice(1)), text), text, flag);
  return parse(text, flag, flag);
}

/** The value of `--backoff`, which the library judges. */
export const readBackoff = (text: string | undefined): BackoffInput | undefined =>
  text === undefined ? undefined : (jsonIn(text) as BackoffInput);

/**
 * The wait, and the longest one behind a comma; or both as JSON, which the library judges.
 *
 * @throws DuestreamError `bad-input`
 * @example readDebounce('1s,5s') // { wait: '1s', max: '5s' }
 */
export function readDebounce(text: string): Debounce {
  if (text.startsWith('{')) return objectOf(text) as unknown as Debounce;
  const [wait = '', max, ...more] = text.split(',');
  if (wait !== '' && max !== '' && more.length === 0) return { wait, ...(max === undefined ? {} : { max }) };
  throw new DuestreamError(
    'bad-input',
    `debounce is ${show(text)}; allowed: a wait, or a wait and the longest one with a comma between them, such as 1s,5s`,
  );
}

/** An object, or an empty one for all else. */
export function objectOf(text: string): Readonly<Record<string, unknown>> {
  const value = jsonIn(text);
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A text that is no JSON stays a text. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The whole text of a file, or of stdin for `-`. @throws DuestreamError `bad-input` */
export function readInput(invocation: Invocation, path: string): Promise<string> {
  return readAll(openInput(invocation, path), path);
}

/** The bytes of a file, or of stdin for `-`. A file that cannot be opened is an error of the first read. */
export function openInput(invocation: Invocation, path: string): AsyncIterable<Uint8Array | string> {
  return path === '-' ? invocation.stdin : openFile(invocation, path);
}

/** A line: its number, from 1, and its text, or why it has none. */
export interface Line {
  readonly number: number;
  readonly text: string | { readonly flaw: string };
}

/** Input → lines, each of at most `charsMax` characters of UTF-8. */
export async function* linesOf(input: AsyncIterable<Uint8Array | string>, charsMax: number): AsyncGenerator<Line> {
  let number = 0;
  for await (const bytes of cutLines(input, (charsMax + 1) * UTF8_BYTES_MAX)) {
    number += 1;
    yield { number, text: lineOf(bytes, charsMax) };
  }
}

function lineOf(bytes: Uint8Array, charsMax: number): Line['text'] {
  const isLong = bytes.length > charsMax * UTF8_BYTES_MAX;
  // Each byte that is none would become another character without a word.
  if (!isLong && !isUtf8(bytes)) return { flaw: 'the line holds bytes that are no UTF-8; allowed: text in UTF-8' };
  const text = isLong ? '' : new TextDecoder().decode(bytes);
  return isLong || text.length > charsMax ? { flaw: `the line is longer than ${charsMax} characters` } : text;
}

/** Of one unit of a text of JavaScript: a character of four bytes has two. */
const UTF8_BYTES_MAX = 3;
const NEW_LINE = 10;

/** Keeps at most `keep` bytes of a line that is too long. No character of UTF-8 has the byte of a new line in it. */
async function* cutLines(input: AsyncIterable<Uint8Array | string>, keep: number): AsyncGenerator<Uint8Array> {
  let rest: Uint8Array = new Uint8Array();
  for await (const chunk of input) {
    const bytes = Buffer.concat([rest, Buffer.from(chunk as Uint8Array)]);
    let from = 0;
    for (let at = bytes.indexOf(NEW_LINE); at >= 0; at = bytes.indexOf(NEW_LINE, from)) {
      yield bytes.subarray(from, at);
      from = at + 1;
    }
    rest = bytes.subarray(from, from + keep);
  }
  if (rest.length > 0) yield rest;
}

/** @throws DuestreamError `bad-input` for what is no UTF-8 */
function textOf(bytes: Uint8Array, what: string): string {
  if (isUtf8(bytes)) return new TextDecoder().decode(bytes);
  throw new DuestreamError('bad-input', `${what} holds bytes that are no UTF-8; allowed: text in UTF-8`);
}

async function* openFile(invocation: Invocation, path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(resolve(invocation.cwd, path))) yield chunk;
  } catch (error) {
    throw new DuestreamError('bad-input', `${show(path)} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

async function readAll(input: AsyncIterable<Uint8Array | string>, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    const part = typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk);
    bytes += part.length;
    if (bytes > INPUT_BYTES_MAX) {
      throw new DuestreamError('bad-input', `${what} holds more than ${INPUT_BYTES_MAX} bytes`);
    }
    chunks.push(part);
  }
  return textOf(Buffer.concat(chunks), what);
}

function parse(text: string, what: string, flag: string): unknown {
  try {
    return parseExact(text, flag.slice('--'.length));
  } catch (error) {
    if (error instanceof DuestreamError) throw error;
    throw new DuestreamError(
      'bad-input',
      `${what} is not JSON: ${reasonOf(error)}; allowed: JSON such as '{"to":"a@b.c"}', @file, or - for stdin`,
      { cause: error },
    );
  }
}
