/**
 * The error catalogue: every error that leaves duestream carries one of these codes, and the code alone decides
 * the exit status of a command and the HTTP status of an answer. Messages say what was given and what is allowed.
 *
 * Bugs are not here (they are assertions), nor are refusals of a script (they are reply data), nor failures of a
 * handler (they are outcomes).
 */

/** Code → exit status of the CLI (sysexits) and HTTP status. */
export const errorCatalogue = {
  'bad-input': { exit: 64, http: 400 },
  'bad-config': { exit: 78, http: 500 },
  'wrong-schema': { exit: 78, http: 500 },
  usage: { exit: 64, http: 400 },
  exists: { exit: 1, http: 409 },
  'not-found': { exit: 1, http: 404 },
  moved: { exit: 1, http: 409 },
  changed: { exit: 1, http: 412 },
  stopped: { exit: 1, http: 503 },
  failed: { exit: 1, http: 500 },
  unavailable: { exit: 69, http: 503 },
  indeterminate: { exit: 69, http: 503 },
  'out-of-memory': { exit: 69, http: 507 },
  'queue-full': { exit: 1, http: 429 },
  'group-full': { exit: 1, http: 429 },
  'no-set': { exit: 1, http: 409 },
  refused: { exit: 69, http: 502 },
} as const;

/** What `error.code` may be. Each stands for one exit code of the command line and one status of HTTP. */
export type ErrorCode = keyof typeof errorCatalogue;

/**
 * An error of duestream with a stable `code`.
 *
 * @example
 * try { await client.schedule(emails, data, { delay: '2 fortnights' }) }
 * catch (error) { if (error instanceof DuestreamError && error.code === 'bad-input') console.error(error.message) }
 */
export class DuestreamError extends Error {
  static {
    knownByMark(DuestreamError, 'DuestreamError');
  }

  override readonly name: string = 'DuestreamError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/**
 * The call was sent, but its reply was lost: Redis may or may not have carried it out. Repeat **the same call**
 * (same id, same due time): it is safe while the job lives and within the done window afterwards.
 *
 * @example
 * const id = 'reminder-42';
 * const at = new Date(Date.now() + 3_600_000);
 * try { await client.schedule(emails, data, { id, at }) }
 * catch (error) {
 *   if (!(error instanceof Indeterminate)) throw error;
 *   await client.schedule(emails, data, { id, at });
 * }
 */
export class Indeterminate extends DuestreamError {
  static {
    knownByMark(Indeterminate, 'Indeterminate');
  }

  override readonly name: string = 'Indeterminate';

  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('indeterminate', message, options);
  }
}

/** The text of anything that can be thrown: `undefined`, a string, an error with a throwing getter, a circular object. */
export function messageOf(thrown: unknown): string {
  try {
    if (isError(thrown)) return `${thrown.message === '' ? thrown.name : thrown.message}`;
    if (typeof thrown === 'string') return thrown;
    if (thrown === undefined || thrown === null) return `handler threw ${String(thrown)}`;
    return typeof thrown === 'object' ? (JSON.stringify(thrown) ?? 'unprintable') : String(thrown);
  } catch {
    return 'unprintable error';
  }
}

/** Also one of another realm, such as that of a test runner. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]';
}

/** Control characters become spaces and long texts are cut: one error is one short line, wherever it is shown. */
export function oneLine(text: string, charsMax = 800): string {
  const flat = escapeDirections(text.slice(0, charsMax * 4))
    .replace(CONTROL, ' ')
    .trim();
  return flat.length <= charsMax ? flat : `${flat.slice(0, charsMax - 1)}…`;
}

/**
 * A line of JSON in which nothing is left that a terminal obeys or a reader takes for the end of the line. JSON itself
 * escapes the C0 controls only; it may hold DEL, the C1 controls and the two Unicode line ends as they are.
 */
export function escapeControls(json: string): string {
  return json.replace(UNESCAPED, escaped);
}

/**
 * Characters that turn the direction of a line, as `\\u202e`: an id or a name must not look like another one, and the text beside
 * it must stay where it is.
 */
function escapeDirections(text: string): string {
  return text.replace(DIRECTION, escaped);
}

const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** C0, C1 and the two Unicode line ends. */
const CONTROL = /[\p{Cc}\u2028\u2029]+/gu;
/** Marks, embeddings, overrides and isolates of direction. */
const DIRECTION = /\p{Bidi_Control}/gu;
/** Both, but not what ends the line. */
const UNESCAPED = /(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

// Classes of ours that cross the border between two copies of this package in one process: a monorepo, a plug-in, a
// command that is installed globally. Each copy has a class of its own, so `instanceof` knows them by a mark that all
// copies share. It looks at the mark alone and never throws, whatever it is asked about.

/** Called in a static block of the class. Its subclasses by others are known as always. */
export function knownByMark(type: { readonly prototype: object }, name: string): void {
  const mark = Symbol.for(`duestream.${name}`);
  Object.defineProperty(type.prototype, mark, { value: true });
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, given: unknown): boolean {
      try {
        if (this !== type) return Function.prototype[Symbol.hasInstance].call(this, given);
        return typeof given === 'object' && given !== null && Reflect.get(given, mark) === true;
      } catch {
        return false;
      }
    },
  });
}
