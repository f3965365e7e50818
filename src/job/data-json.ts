/**
 * Data → JSON, or an error that names the part which JSON would drop or change in silence. What comes out of a handler's
 * `job.data` is what went in, or nothing was scheduled.
 *
 * Carried are texts, finite numbers, booleans, null, arrays, plain objects, and whatever has a `toJSON` that gives one of
 * those: a Date is carried as its text. Everything else is refused, whatever it is: an object of a class, a Map, bytes. An
 * object is plain by its prototype, so it does not matter which realm (`node:vm`, an iframe, a test runner) it comes from.
 */
import { DuestreamError, messageOf } from '../kernel/errors.ts';

/** Deeper data is refused: a walk through it, here or in a program in another language, could exhaust its stack. */
export const DATA_DEPTH_MAX = 1000;

const LIST_ASKED_MAX = 1000;

const ALLOWED =
  'objects, arrays, texts, finite numbers, booleans, null, dates (as text), and objects whose toJSON gives one of these';

/**
 * @param what names the whole in an error
 * @throws DuestreamError `bad-input` naming the part that cannot be carried
 */
export function dataJson(data: unknown, what = 'data'): string {
  try {
    return JSON.stringify(isSure(data) ? data : carriedPart(() => data, { key: what, holder: undefined, depth: 0 }));
  } catch (cause) {
    if (cause instanceof DuestreamError) throw cause;
    throw new DuestreamError('bad-input', `${what} cannot be carried by JSON: ${firstLine(cause)}`, { cause });
  }
}

/** Data whose JSON was made when the call was made that brought it: whatever becomes of the caller's object changes nothing. */
export class DataText {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }
}

/** @throws DuestreamError `bad-input` naming the part that cannot be carried */
export const dataText = (data: unknown): DataText | undefined =>
  data === undefined || data instanceof DataText ? data : new DataText(dataJson(data));

/** What throws when it is looked at is looked at again, with the names of its parts. */
function isSure(data: unknown): boolean {
  try {
    return isCarried(data);
  } catch {
    return false;
  }
}

/** Whether JSON surely carries it, without the names of its parts: nearly all data is of this kind, and it is asked often. */
export function isCarried(value: unknown, depth = 0): boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || depth >= DATA_DEPTH_MAX || 'toJSON' in value) return false;
  return Array.isArray(value) ? isCarriedList(value, depth + 1) : isCarriedObject(value, depth + 1);
}

/** A hole ends the loop, so a list that is said to be very long costs nothing. */
function isCarriedList(list: readonly unknown[], depth: number): boolean {
  for (let at = 0; at < list.length; at += 1) {
    if (!isCarried(list[at], depth)) return false;
  }
  return hiddenKey(list) === undefined;
}

function isCarriedObject(value: object, depth: number): boolean {
  if (!isPlain(value)) return false;
  const names = Object.keys(value);
  if (Reflect.ownKeys(value).length !== names.length) return false;
  for (const name of names) {
    const part: unknown = Reflect.get(value, name);
    if (part !== undefined && !isCarried(part, depth)) return false;
  }
  return true;
}

/** Its prototype is none, or `Object.prototype` of any realm. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf');
}

/**
 * A property that JSON leaves out without a word: a symbol, one of an object that is not enumerable, one of a list beside
 * its elements. A long list is not asked for those, since their names take longer than the JSON.
 */
function hiddenKey(value: object): string | symbol | undefined {
  const [symbol] = Object.getOwnPropertySymbols(value);
  if (symbol !== undefined) return symbol;
  if (Array.isArray(value)) return value.length > LIST_ASKED_MAX ? undefined : Object.keys(value)[value.length];
  const names = Object.getOwnPropertyNames(value);
  const seen = Object.keys(value);
  return names.length === seen.length ? undefined : names.find((name) => !seen.includes(name));
}

/** Where a part stands: its key, and what holds it. */
interface Place {
  readonly key: string;
  readonly holder: { readonly value: object; readonly place: Place } | undefined;
  readonly depth: number;
}

/** A copy as JSON carries it. What code of the user throws on the way (`toJSON`, a getter, a Proxy) is told with the place. */
function carriedPart(read: () => unknown, place: Place): unknown {
  try {
    const value = saidBy(read(), place);
    if (value === undefined && place.holder) return undefined;
    if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    if (typeof value === 'object') return carriedObject(value, place);
    throw uncarried(place, wordOf(value));
  } catch (cause) {
    if (cause instanceof DuestreamError) throw cause;
    const message = `${pathOf(place)} cannot be carried by JSON: ${firstLine(cause)}`;
    throw new DuestreamError('bad-input', message, { cause });
  }
}

/** What its `toJSON` says, once. The invalid dates of all libraries say null there, and a job would carry nothing. */
function saidBy(value: unknown, place: Place): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'bigint')) return value;
  const toJson: unknown = Reflect.get(Object(value), 'toJSON', value);
  if (typeof toJson !== 'function' || isBytes(value)) return value;
  const said: unknown = Reflect.apply(toJson, value, [place.holder === undefined ? '' : place.key]);
  const isFinal = typeof said === 'string' || typeof said === 'boolean' || Number.isFinite(said);
  if (isFinal || (typeof said === 'object' && said !== null)) return said;
  const why = isDate(value) ? 'an invalid Date' : `${nameOf(value)}, whose toJSON gives ${wordOf(said)}`;
  throw uncarried(place, why);
}

function carriedObject(value: object, place: Place): unknown {
  if (place.depth >= DATA_DEPTH_MAX) throw tooDeep(value, place);
  const inside = (key: string): unknown =>
    carriedPart(() => Reflect.get(value, key), { key, holder: { value, place }, depth: place.depth + 1 });
  if (!Array.isArray(value) && !isPlain(value)) throw uncarried(place, classOf(value));
  const hidden = hiddenKey(value);
  if (!Array.isArray(value)) {
    if (hidden !== undefined) throw uncarried(place, `an object whose ${String(hidden)} JSON leaves out`);
    return Object.fromEntries(Object.keys(value).flatMap((key) => pairOf(key, inside(key))));
  }
  const copy: unknown[] = [];
  for (let at = 0; at < value.length; at += 1) {
    const part = inside(String(at));
    if (part === undefined) throw uncarried(place, 'a list with undefined');
    copy.push(part);
  }
  if (hidden !== undefined) throw uncarried(place, `a list whose ${String(hidden)} JSON leaves out`);
  return copy;
}

/** Undefined properties are left out, as usual. */
const pairOf = (key: string, part: unknown) => (part === undefined ? [] : [[key, part] as const]);

/** Bytes are refused although a Buffer has a `toJSON`: its handler would get no bytes, and Redis four times as many. */
const isBytes = (value: unknown): boolean => ArrayBuffer.isView(value);

const isDate = (value: unknown): boolean => Object.prototype.toString.call(value) === '[object Date]';

/** Whoever holds itself is too deep as well, and is told so. */
function tooDeep(value: object, place: Place): DuestreamError {
  for (let up = place.holder; up; up = up.place.holder) {
    if (up.value === value) return uncarried(place, 'a circular reference');
  }
  const allowed = `${DATA_DEPTH_MAX} levels; store the data elsewhere, or flat`;
  return new DuestreamError('bad-input', `${pathOf(place)} is nested deeper than allowed; allowed: ${allowed}`);
}

const uncarried = (place: Place, why: string): DuestreamError =>
  new DuestreamError('bad-input', `${pathOf(place)} (${why}) cannot be carried by JSON; allowed: ${ALLOWED}`);

const PATH_CHARS_MAX = 120;

/** As it is written in code, but with a dot before each key. Of a long one its beginning. */
function pathOf(place: Place): string {
  const keys: string[] = [];
  for (let at: Place | undefined = place; at; at = at.holder?.place) keys.push(at.key);
  const path = keys.reverse().join('.');
  return path.length <= PATH_CHARS_MAX ? path : `${path.slice(0, PATH_CHARS_MAX)}…`;
}

/** `a Map`, `a Blob`, also of another realm. */
function nameOf(value: unknown): string {
  const maker: unknown = Reflect.get(Object(value), 'constructor');
  const name = typeof maker === 'function' && maker.name !== 'Object' ? maker.name : '';
  return name === '' ? 'an object' : `${/^[AEIO]/.test(name) ? 'an' : 'a'} ${name}`;
}

const classOf = (value: object): string =>
  nameOf(value) === 'an object' ? 'an object that inherits from another' : nameOf(value);

const wordOf = (value: unknown): string =>
  typeof value === 'object' || typeof value === 'number' || value === undefined ? String(value) : `a ${typeof value}`;

const firstLine = (error: unknown): string => messageOf(error).split('\n')[0] ?? '';
