/**
 * Why something failed, in one line: the message of what was thrown, its `cause` and the causes of that, and each part of an
 * `AggregateError`, with the codes of errors (`ECONNREFUSED`, `23505`) that no message names.
 *
 *     fetch failed; cause: connect ECONNREFUSED 127.0.0.1:443
 *     AggregateError [connect ECONNREFUSED ::1:443; connect ETIMEDOUT 192.0.2.1:443]
 *
 * What an earlier text holds already is not said twice. Anything can be thrown: causes that go in a circle, and getters
 * that throw.
 */
import { errorCatalogue, messageOf, oneLine } from './errors.ts';

const REASON_CHARS = 800;
/** Errors that are looked at. What was thrown comes first, then its parts, then its cause. */
const ERRORS_MAX = 16;
/** A shorter text stands within too many others. */
const KNOWN_CHARS_MIN = 8;
const CODE_CHARS = 60;

/** A text as people may see it. */
export type Told = (text: string) => string;

interface Piece {
  /** What stands before it. */
  readonly lead: string;
  readonly text: string;
}

interface Telling {
  readonly told: Told;
  readonly seen: Set<unknown>;
  readonly pieces: Piece[];
  looked: number;
}

/** @param told what may be told of each text */
export function reasonOf(thrown: unknown, told: Told = (text) => text, charsMax = REASON_CHARS): string {
  const telling: Telling = { told, seen: new Set(), pieces: [], looked: 0 };
  tell(telling, thrown, '');
  return fitted(telling.pieces, charsMax);
}

function tell(telling: Telling, thrown: unknown, lead: string): void {
  const { pieces, seen } = telling;
  if (seen.has(thrown)) return;
  if (telling.looked === ERRORS_MAX) pieces.push({ lead: '; ', text: 'and more' });
  telling.looked += 1;
  if (telling.looked > ERRORS_MAX) return;
  seen.add(thrown);
  const text = textOf(telling, thrown);
  if (text !== '') pieces.push({ lead, text });
  tellParts(telling, partsOf(thrown));
  const cause = read(thrown, 'cause');
  if (cause !== undefined && cause !== null) tell(telling, cause, '; cause: ');
}

/** In brackets, if there is anything to tell of them. */
function tellParts(telling: Telling, parts: readonly unknown[]): void {
  const { pieces } = telling;
  const opening: Piece = { lead: ' [', text: '' };
  pieces.push(opening);
  for (const part of parts) tell(telling, part, pieces.at(-1) === opening ? '' : '; ');
  if (pieces.at(-1) === opening) pieces.pop();
  else pieces.push({ lead: ']', text: '' });
}

/** Its message and its code, as far as they are not told yet. */
function textOf({ told, pieces }: Telling, thrown: unknown): string {
  const before = pieces.map(({ text }) => text);
  const isKnown = (text: string) =>
    before.some((one) => one === text || (text.length >= KNOWN_CHARS_MIN && one.includes(text)));
  const message = oneLine(told(messageOf(thrown)), REASON_CHARS);
  const code = oneLine(told(codeOf(thrown)), CODE_CHARS);
  const isCodeTold = code === '' || message.includes(code) || before.some((one) => one.includes(code));
  if (isKnown(message)) return isCodeTold ? '' : code;
  return isCodeTold ? message : `${message} (${code})`;
}

/** Codes of ours are words of the message; those of the system, of Node and of databases are not. */
function codeOf(thrown: unknown): string {
  const code = read(thrown, 'code');
  if (typeof code === 'string') return Object.hasOwn(errorCatalogue, code) ? '' : code;
  // Every DOMException has a number from its class, which says nothing.
  const isOwn = typeof code === 'number' && safely(() => Object.hasOwn(Object(thrown), 'code'), false);
  return isOwn ? `code ${code}` : '';
}

/** Parts of an `AggregateError`, of whatever realm, and of what `using` throws. */
function partsOf(thrown: unknown): readonly unknown[] {
  const name = read(thrown, 'name');
  if (name === 'SuppressedError') return [read(thrown, 'error'), read(thrown, 'suppressed')];
  const errors = read(thrown, 'errors');
  return safely(() => {
    if (!Array.isArray(errors)) return [];
    const parts: readonly unknown[] = errors.slice(0, ERRORS_MAX + 1);
    const isAggregate = name === 'AggregateError' || thrown instanceof AggregateError;
    // Other errors have issues there, which their message tells.
    return isAggregate ? parts : parts.filter((part) => part instanceof Error);
  }, []);
}

/** Anything may be in the place of a property. Of a text or a number there is none to read. */
const read = (thrown: unknown, key: string): unknown =>
  safely(() => (typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, key) : undefined), undefined);

/** A getter or a proxy may throw when it is looked at. */
function safely<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

/** All of it, or as much of each piece that all have their place: a long message must not hide its cause. */
function fitted(pieces: readonly Piece[], charsMax: number): string {
  const leads = pieces.reduce((sum, { lead }) => sum + lead.length, 0);
  const most = shareOf(
    pieces.map(({ text }) => text.length),
    Math.max(1, charsMax - leads),
  );
  return oneLine(pieces.map(({ lead, text }) => lead + oneLine(text, Math.max(1, most))).join(''), charsMax);
}

/** How long each may be, so that all together are not longer than there is room. */
function shareOf(lengths: readonly number[], room: number): number {
  let left = room;
  const sorted = lengths.toSorted((a, b) => a - b);
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at));
    if (length > share) return share;
    left -= length;
  }
  return room;
}

/**
 * Hides credentials in whatever may be shown: a URL, or a text with URLs in it. The last @ of a word counts, because a
 * password may contain one, and a slash.
 */
export function withoutCredentials(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s"']*@/gi, '$1***@')
    .replace(/([?&](?:password|username)=)[^&\s"']*/gi, '$1***');
}
