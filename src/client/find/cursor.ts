/**
 * Where a list goes on, as a text for callers: base64url of JSON. It holds for one filter and one layout of the queue; with
 * another one it would leave jobs out in silence, so it is refused.
 */
import { show } from '../../core/duration.ts';
import { DuestreamError } from '../../core/errors.ts';

/** A place in the walk through the sources and, in each, through the partitions. */
export interface Spot {
  readonly source: number;
  readonly partition: number;
  /** Behind it; undefined at the beginning of the partition. */
  readonly at: string | undefined;
}

export const BEGINNING: Spot = { source: 0, partition: 0, at: undefined };

interface Bound {
  /** See `filterKey`. */
  readonly key: string;
  readonly layoutGeneration: number;
}

export function cursorOf({ source, partition, at }: Spot, { key, layoutGeneration }: Bound): string {
  return Buffer.from(JSON.stringify([1, key, layoutGeneration, source, partition, at ?? null])).toString('base64url');
}

/** A cursor of a filter, whose layout is still to be compared. @throws DuestreamError `bad-input` */
export function parseCursor(input: unknown, key: string): { readonly spot: Spot; readonly layoutGeneration: number } {
  const parts = typeof input === 'string' ? partsOf(input) : undefined;
  if (!parts) {
    throw new DuestreamError('bad-input', `cursor is ${show(input)}; allowed: the cursor that the call before replied`);
  }
  const [, of, layoutGeneration, source, partition, at] = parts;
  if (of !== key) {
    throw new DuestreamError('bad-input', 'the cursor is of another filter; allowed: the filter it was given for');
  }
  return { spot: { source, partition, at: at ?? undefined }, layoutGeneration };
}

/** @throws DuestreamError `moved` */
export function checkLayout(given: number | undefined, now: number, queue: string): void {
  if (given === undefined || given === now) return;
  throw new DuestreamError('moved', `queue ${queue} was resized since this cursor was given; begin again without it`);
}

type Parts = readonly [version: 1, key: string, layout: number, source: number, partition: number, at: string | null];

function partsOf(text: string): Parts | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    return isParts(parts) ? parts : undefined;
  } catch {
    return undefined;
  }
}

function isParts(parts: unknown): parts is Parts {
  if (!Array.isArray(parts) || parts.length !== 6) return false;
  const [version, key, layout, source, partition, at] = parts;
  const areNumbers = [layout, source, partition].every((one) => Number.isSafeInteger(one) && one >= 0);
  return version === 1 && typeof key === 'string' && areNumbers && (at === null || typeof at === 'string');
}
