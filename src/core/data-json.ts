/**
 * Data → JSON, or an error that names the part which JSON would drop or change in silence. What comes out of a handler's
 * `job.data` is what went in, or nothing was scheduled.
 */
import { DuestreamError, messageOf } from './errors.ts';

/** @throws DuestreamError `bad-input` naming the part that cannot be carried. */
export function dataJson(data: unknown): string {
  try {
    const text = JSON.stringify(data);
    // A cycle would have thrown above, so these walks end.
    if (text !== undefined && isCarried(data)) return text;
    const uncarried = uncarriedPart(data, 'data') ?? (text === undefined ? 'data' : undefined);
    if (uncarried === undefined) return text;
    throw new DuestreamError(
      'bad-input',
      `${uncarried} cannot be carried by JSON; allowed: objects, arrays, texts, finite numbers, booleans, null, and dates (as text)`,
    );
  } catch (cause) {
    if (cause instanceof DuestreamError) throw cause;
    const why = messageOf(cause).split('\n')[0];
    throw new DuestreamError('bad-input', `data cannot be carried by JSON: ${why}`, { cause });
  }
}

/** Whether JSON surely carries it, without the names of its parts: nearly all data is of this kind, and it is asked often. */
export function isCarried(value: unknown): boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isCarried) && !value.includes(undefined);
  return isPlain(value) && Object.values(value).every((part) => part === undefined || isCarried(part));
}

function isPlain(value: unknown): value is object {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    !('toJSON' in value)
  );
}

/** What JSON turns into `{}` or `null` without a word. */
const UNCARRIED = [Map, Set, WeakMap, WeakSet, RegExp, Error, Promise, ArrayBuffer];

/** The first part that JSON would drop or change in silence: a function, NaN, a Map. Undefined properties are left out, as usual. */
function uncarriedPart(value: unknown, path: string): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `${path} (${value})`;
  if (typeof value === 'function' || typeof value === 'symbol') return `${path} (a ${typeof value})`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? `${path} (an invalid Date)` : undefined;
  if ('toJSON' in value) return undefined;
  return uncarriedObject(value, path) ?? uncarriedInside(value, path);
}

function uncarriedObject(value: object, path: string): string | undefined {
  const known = ArrayBuffer.isView(value) || UNCARRIED.some((kind) => value instanceof kind);
  if (known) return `${path} (a ${value.constructor.name})`;
  return Array.isArray(value) && value.includes(undefined) ? `${path} (a list with undefined)` : undefined;
}

function uncarriedInside(value: object, path: string): string | undefined {
  for (const [key, part] of Object.entries(value)) {
    const found = uncarriedPart(part, `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
