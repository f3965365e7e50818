/**
 * Where a list or a change of many jobs or dead letters goes on, as a text for callers: base64url of JSON. It holds for one
 * filter, for one change, and for one layout of the queue: with another one it would leave some out in silence, so it is
 * refused. What a call means is fixed when it begins: its due time, and the moment from which it counts ages, travel in the
 * cursor.
 */
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** A place in the walk through the sources and, in each, through the partitions. */
export interface Spot {
  readonly source: number;
  readonly partition: number;
  /** Behind it; undefined at the beginning of the partition. */
  readonly at: string | undefined;
  /** How far the walk goes in this partition; undefined at its beginning. */
  readonly end?: End | undefined;
}

/** The end of a walk through one partition, fixed when the walk enters the partition: so every walk ends. */
export interface End {
  /** The last place that there was; places behind it are not met. Undefined: there was none. */
  readonly last: string | undefined;
  /**
   * How many places the walk looks at yet. Jobs that others put in front of the last place do not hold it up for ever. Nobody
   * puts a dead letter or a record of the history there: then it is `UNBOUNDED`.
   */
  readonly left: number;
}

/** From where a walk goes on. */
export interface From {
  readonly spot: Spot;
  readonly layoutGeneration: number;
  /** The due time that the change gives; undefined: it gives none. */
  readonly dueMs?: number | undefined;
  /** When the call began, where its filter names ages; undefined: it names none. */
  readonly nowMs?: number | undefined;
}

/** What callers hand back and do not read. */
export const packCursor = (parts: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(parts)).toString('base64url');

/** The parts of a cursor. @throws DuestreamError `bad-input` for what is none, by `isOurs` too */
export function unpackCursor<Parts extends readonly unknown[]>(
  input: unknown,
  isOurs: (parts: readonly unknown[]) => parts is Parts,
): Parts {
  const parts = typeof input === 'string' ? partsOf(input) : undefined;
  if (parts && isOurs(parts)) return parts;
  throw new DuestreamError('bad-input', `cursor is ${show(input)}; allowed: the cursor that the call before replied`);
}

/** The refusal of a cursor that another call was given. */
export const otherCursor = (another: string, same: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `the cursor is of another ${another}; allowed: the call that it was given for, with the same ${same}`,
  );

/** Where a list without a filter goes on: the name of the list, and a place in it. */
export const listCursor = (list: string, place: string): string => packCursor([list, place]);

/** @throws DuestreamError `bad-input` */
export function parseListCursor(cursor: string | undefined, list: string, form: RegExp): string | undefined {
  if (cursor === undefined) return undefined;
  const isOurs = (parts: readonly unknown[]): parts is readonly [list: string, place: string] =>
    parts.length === 2 && parts.every((part) => typeof part === 'string');
  const [of, place] = unpackCursor(cursor, isOurs);
  if (of === list && form.test(place)) return place;
  throw otherCursor('list', 'path');
}

export const UNBOUNDED = Number.MAX_SAFE_INTEGER;
export const BEGINNING: Spot = { source: 0, partition: 0, at: undefined };

/** Where there is one source. */
export const spotAt = (partition: number, at?: string, end?: End): Spot => ({ source: 0, partition, at, end });

/** @param key tells the filter and the change from others, see `filterKey` */
export function cursorOf({ spot, layoutGeneration, dueMs, nowMs }: From, key: string): string {
  const { source, partition, at, end } = spot;
  const parts = [3, key, layoutGeneration, source, partition, at ?? null, end?.last ?? null, end?.left ?? -1];
  return packCursor([...parts, dueMs ?? -1, nowMs ?? -1]);
}

/** A cursor of a filter, whose layout is still to be compared. @throws DuestreamError `bad-input` */
export function parseCursor(input: unknown, key: string): From {
  const parts = unpackCursor(input, isParts);
  const [, of, layoutGeneration, source, partition, at, last, left, dueMs, nowMs] = parts;
  if (of !== key) throw otherCursor('filter or another change', 'filter, due time and change');
  const end = left < 0 ? undefined : { last: last ?? undefined, left };
  const spot = { source, partition, at: at ?? undefined, end };
  return { spot, layoutGeneration, dueMs: dueMs < 0 ? undefined : dueMs, nowMs: nowMs < 0 ? undefined : nowMs };
}

/** @throws DuestreamError `moved` */
export function checkLayout(given: number | undefined, now: number, queue: string): void {
  if (given === undefined || given === now) return;
  throw new DuestreamError('moved', `queue ${queue} was resized since this cursor was given; begin again without it`);
}

type Parts = readonly [
  ...[version: 3, key: string, layout: number, source: number, partition: number],
  ...[at: string | null, last: string | null, left: number, dueMs: number, nowMs: number],
];

function partsOf(text: string): readonly unknown[] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return Array.isArray(parts) ? parts : undefined;
  } catch {
    return undefined;
  }
}

function isParts(parts: readonly unknown[]): parts is Parts {
  const [version, key, layout, source, partition, at, last, left, dueMs, nowMs] = parts;
  const isNumber = (one: unknown, least: number) => Number.isSafeInteger(one) && Number(one) >= least;
  const areCounts = [layout, source, partition].every((one) => isNumber(one, 0));
  // -1 stands for none.
  const areNumbers = [left, dueMs, nowMs].every((one) => isNumber(one, -1));
  const areTexts = [at, last].every((one) => one === null || typeof one === 'string');
  return version === 3 && parts.length === 10 && typeof key === 'string' && areCounts && areNumbers && areTexts;
}
