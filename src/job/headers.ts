/**
 * The headers of a job: a few short texts beside its data, such as a `traceparent`. They say how a job came to be and not
 * what it is, so they are no part of what makes a call the same call. In a record they stand in the letter `h`, in the form
 * of a query string (`application/x-www-form-urlencoded`), which has neither `;` nor `|`.
 */
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

export type JobHeaders = Readonly<Record<string, string>>;

export const HEADERS_ALLOWED =
  'at most 20 texts by names as HTTP has them; 4096 bytes together; names become lower case';
export const NO_HEADERS: JobHeaders = Object.freeze({});

const HEADERS_MAX = 20;
const BYTES_MAX = 4096;
/** A token of RFC 9110. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Control characters, and halves of a character, which no UTF-8 carries. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** Sorted by name; undefined for none. @throws DuestreamError `bad-input` that names the header */
export function parseHeaders(given: unknown, what = 'headers'): JobHeaders | undefined {
  if (Object.prototype.toString.call(given) !== '[object Object]') throw bad(what, show(given), HEADERS_ALLOWED);
  const found = new Map<string, string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(given as object)) {
    const lower = name.toLowerCase();
    if (found.has(lower)) throw bad(`a name in ${what}`, show(name), `${lower} once, in whatever case`);
    found.set(lower, checkedHeader(what, name, value));
    bytes += Buffer.byteLength(name + value);
  }
  if (found.size > HEADERS_MAX) throw bad(`the number of ${what}`, String(found.size), `at most ${HEADERS_MAX}`);
  if (bytes > BYTES_MAX) {
    throw bad(`the size of ${what}`, `${bytes} bytes`, `at most ${BYTES_MAX} bytes of names and values`);
  }
  const sorted = [...found].sort(([one], [other]) => (one < other ? -1 : 1));
  return sorted.length === 0 ? undefined : Object.freeze(Object.fromEntries(sorted));
}

/** A value may be a secret, so no message shows it. */
function checkedHeader(what: string, name: string, value: unknown): string {
  if (!NAME.test(name)) throw bad(`a name in ${what}`, show(name), "letters, digits and !#$%&'*+-.^_`|~");
  if (typeof value !== 'string') throw bad(`${what}.${name}`, `a ${typeof value}`, 'a text');
  if (!UNFIT.test(value)) return value;
  throw bad(`${what}.${name}`, 'a text with a control character', 'a text without');
}

export const headersText = (headers: JobHeaders): string => new URLSearchParams(headers).toString();

/** Undefined for a text that is none; a foreign producer may have written anything. */
export function headersIn(text: string): JobHeaders | undefined {
  try {
    return parseHeaders(Object.fromEntries(new URLSearchParams(text)));
  } catch {
    return undefined;
  }
}

function bad(what: string, given: string, allowed: string): DuestreamError {
  return new DuestreamError('bad-input', `${what} is ${given}; allowed: ${allowed}`);
}
