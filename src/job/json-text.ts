/**
 * JSON that others wrote, before or beside the parser: numbers that would lose digits, and nesting that is too deep. Both
 * are loops over the text, so that no text, whatever it holds, costs more than its length.
 *
 * `JSON.parse` makes 1234567824702058500 of 1234567824702058497 without a word, and a job would carry the id of somebody
 * else. Whatever takes JSON or YAML from outside asks here: bodies of HTTP, flags, lines of `--bulk`, files.
 */

import { DuestreamError } from '../kernel/errors.ts';
import { DATA_DEPTH_MAX } from './data-json.ts';

/** Data within a record, and that of the job that died within a compensation job. */
const RECORD_DEPTH_MAX = DATA_DEPTH_MAX + 3;

/** A value, or an error that names the number in it which would lose digits. @throws DuestreamError `bad-input`, SyntaxError */
export function parseExact(text: string, what: string): unknown {
  const value: unknown = JSON.parse(text);
  refuseInexact(text, what);
  return value;
}

/**
 * @param what names the whole in the error; empty: the names of its parts are enough
 * @throws DuestreamError `bad-input`
 */
export function refuseInexact(json: string, what: string): void {
  const lost = inexactNumber(json);
  if (lost) throw inexact([...(what === '' ? [] : [what]), ...lost.path], lost.literal);
}

export function inexact(path: readonly string[], literal: string): DuestreamError {
  const given = literal.length <= 60 ? literal : `${literal.slice(0, 59)}…`;
  return new DuestreamError(
    'bad-input',
    `${path.join('.').slice(0, 120) || 'the number'} is ${given}, which would be read as ${Number(literal)}; allowed: a number that keeps its digits, or the same digits in quotes`,
  );
}

/** Numbers of up to 15 digits keep them all, so most texts need no second look. */
const SUSPECT = /[\d.]{16}|[eE][-+]?\d{3}/;

/** A container that is open: its key or index that is being read. */
interface Level {
  readonly isList: boolean;
  key: string | number;
}

/** The first number of a JSON text that JavaScript cannot hold as it is written. */
export function inexactNumber(
  json: string,
): { readonly literal: string; readonly path: readonly string[] } | undefined {
  if (!SUSPECT.test(json)) return undefined;
  const number = /-?\d[\d.eE+-]*/y;
  const open: Level[] = [];
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') {
      const end = endOfText(json, at);
      const level = open.at(-1);
      if (level && !level.isList && isKey(json, end)) level.key = json.slice(at + 1, end);
      at = end;
      continue;
    }
    if (stepped(open, char)) continue;
    number.lastIndex = at;
    const literal = number.exec(json)?.[0];
    if (literal === undefined) continue;
    if (!keepsDigits(literal)) return { literal, path: open.map(({ key }) => String(key)) };
    at = number.lastIndex - 1;
  }
  return undefined;
}

/** Whether the character was one that opens, closes or goes on with a container. */
function stepped(open: Level[], char: string | undefined): boolean {
  const level = open.at(-1);
  if (char === '{' || char === '[') open.push({ isList: char === '[', key: char === '[' ? 0 : '' });
  else if (char === '}' || char === ']') open.pop();
  else if (char !== ',') return false;
  else if (typeof level?.key === 'number') level.key += 1;
  return true;
}

/** Where the text ends that begins here: its closing quote, or the end of everything. */
function endOfText(json: string, from: number): number {
  for (let at = json.indexOf('"', from + 1); at !== -1; at = json.indexOf('"', at + 1)) {
    let slashes = 0;
    while (json[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return json.length;
}

function isKey(json: string, end: number): boolean {
  let at = end + 1;
  while (at < json.length && ' \t\n\r'.includes(json[at] ?? '')) at += 1;
  return json[at] === ':';
}

/**
 * Whether a number as it is written is the one that would be written again, however it was spelt: 1.0, 1e3, 1.10. Many
 * languages write all fractions with 17 digits, 0.10000000000000001 for 0.1: that is no loss.
 */
export function keepsDigits(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value)) return false;
  const written = decimalOf(literal);
  return (
    written === decimalOf(String(value)) || (/[.eE]/.test(literal) && written === decimalOf(value.toPrecision(17)))
  );
}

/** Its digits without zeros around them, and the power of ten of the last: `-120.0` → `-12e1`. */
function decimalOf(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', part = ''] = mantissa.replace(/^[-+]/, '').split('.');
  const digits = `${whole}${part}`.replace(/^0+/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  if (end === 0) return '0';
  return `${sign}${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`;
}

/** What a record, a note or a decoder says. @throws SyntaxError, or an Error for what is nested too deeply */
export function parseBounded(json: string, what: string): unknown {
  if (isDeep(json, RECORD_DEPTH_MAX)) throw new Error(`${what} is nested deeper than ${DATA_DEPTH_MAX} levels`);
  return JSON.parse(json);
}

/** Each level has two brackets, so that short texts need no look. */
function isDeep(json: string, max: number): boolean {
  if (json.length <= 2 * max) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') at = endOfText(json, at);
    else if (char === '[' || char === '{') depth += 1;
    else if (char === ']' || char === '}') depth -= 1;
    if (depth > max) return true;
  }
  return false;
}
