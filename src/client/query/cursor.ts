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

export const UNBOUNDED = Number.MAX_SAFE_INTEGER;
export const BEGINNING: Spot = { source: 0, partition: 0, at: undefined };

/** Where there is one source. */
export const spotAt = (partition: number, at?: string, end?: End): Spot => ({ source: 0, partition, at, end });

/** @param key tells the filter and the change from others, see `filterKey` */
export function cursorOf({ spot, layoutGeneration, dueMs, nowMs }: From, key: string): string {
  const { source, partition, at, end } = spot;
  const parts = [3, key, layoutGeneration, source, partition, at ?? null, end?.last ?? null, end?.left ?? -1];
  return Buffer.from(JSON.stringify([...parts, dueMs ?? -1, nowMs ?? -1])).toString('base64url');
}

/** A cursor of a filter, whose layout is still to be compared. @throws DuestreamError `bad-input` */
export function parseCursor(input: unknown, key: string): From {
  const parts = typeof input === 'string' ? partsOf(input) : undefined;
  if (!parts) {
    throw new DuestreamError('bad-input', `cursor is ${show(input)}; allowed: the cursor that the call before replied`);
  }
  const [, of, layoutGeneration, source, partition, at, last, left, dueMs, nowMs] = parts;
  if (of !== key) {
    throw new DuestreamError(
      'bad-input',
      'the cursor is of another filter or another change; allowed: the call that it was given for, with the same filter, due time and change',
    );
  }
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

function partsOf(text: string): Parts | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return isParts(parts) ? parts : undefined;
  } catch {
    return undefined;
  }
}

function isParts(parts: unknown): parts is Parts {
  if (!Array.isArray(parts) || parts.length !== 10) return false;
  const [version, key, layout, source, partition, at, last, left, dueMs, nowMs] = parts;
  const areCounts = [layout, source, partition].every((one) => Number.isSafeInteger(one) && one >= 0);
  // -1 stands for none.
  const areNumbers = [left, dueMs, nowMs].every((one) => Number.isSafeInteger(one) && one >= -1);
  const areTexts = [at, last].every((one) => one === null || typeof one === 'string');
  return version === 3 && typeof key === 'string' && areCounts && areNumbers && areTexts;
}
