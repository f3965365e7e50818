/**
 * What a caller gave, as it is now. A call that cannot be sent in the turn in which it is made keeps this, so that a `Date` that
 * moves on, or a list that is emptied, changes no call that was made before.
 */

/** Whatever is deeper stays the caller's own: the refusal of such data says so. */
const DEPTH_MAX = 1000;

/**
 * A copy of plain objects, lists and dates, through and through. All else is itself: texts and numbers cannot change, and an
 * object of a class, a function or a signal is named and not described. What cannot be looked at is itself as well, and is
 * refused where it is read.
 */
export function snapshot<T>(given: T): T {
  try {
    // The copy has the shape of what was copied.
    return copyOf(given, { copies: new Map(), depth: 0 }) as T;
  } catch {
    return given;
  }
}

interface Copying {
  /** An object that stands in several places, or in itself, is copied once. */
  readonly copies: Map<object, object>;
  readonly depth: number;
}

function copyOf(given: unknown, { copies, depth }: Copying): unknown {
  if (typeof given !== 'object' || given === null || depth >= DEPTH_MAX) return given;
  if (given instanceof Date) return new Date(given.getTime());
  const known = copies.get(given);
  if (known) return known;
  const inside = { copies, depth: depth + 1 };
  if (Array.isArray(given)) {
    // A list with holes, or with more than its elements, is refused as it is.
    if (Object.keys(given).length !== given.length) return given;
    const list: unknown[] = [];
    copies.set(given, list);
    for (const one of given) list.push(copyOf(one, inside));
    return list;
  }
  const keys = Object.keys(given);
  if (!isPlain(given) || Reflect.ownKeys(given).length !== keys.length) return given;
  const copy: Record<string, unknown> = {};
  copies.set(given, copy);
  for (const key of keys) {
    const value = copyOf(Reflect.get(given, key), inside);
    Object.defineProperty(copy, key, { value, enumerable: true, writable: true, configurable: true });
  }
  return copy;
}

/** Of any realm: its prototype is none, or has none itself. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
