/**
 * A look through dead letters that is bounded by what is looked at and by what is found, says where it ended, and goes on
 * from there.
 */
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { type Filter, matches } from './filter.ts';
import { cursorOf, type Place, type Placed } from './walk.ts';

/** What is looked for, checked. */
export interface Search {
  readonly filter: Filter;
  readonly from: Place | undefined;
  /** Dead letters that may match. */
  readonly limit: number;
  /** Dead letters that may be looked at. */
  readonly scanMax: number;
  readonly nowMs: number;
}

/** How far a call came. */
export interface Scan {
  /** How many dead letters were looked at. */
  readonly scanned: number;
  /** Where the next call goes on; undefined when all were looked at. */
  readonly cursor: string | undefined;
}

/** What a look needs. */
export interface Reading {
  readonly redis: Redis;
  readonly policy: RetryPolicy;
}

/** Told how far a long call is. */
export type Tell<T> = ((progress: T) => void) | undefined;

/** Hands on what matches, until the bounds end it or `act` says no. */
export async function each(
  source: AsyncGenerator<Placed>,
  { filter, scanMax, nowMs }: Search,
  act: (placed: Placed, scan: Scan) => Promise<boolean>,
): Promise<Scan> {
  let scanned = 0;
  for await (const placed of source) {
    scanned += 1;
    const { ref, letter } = placed;
    const scan = { scanned, cursor: cursorOf({ partition: ref.partition, entry: letter.entry }) };
    const goesOn = !matches(letter, filter, nowMs) || (await act(placed, scan));
    if (!goesOn || scanned >= scanMax) return scan;
  }
  return { scanned, cursor: undefined };
}
