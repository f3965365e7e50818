/**
 * A look through dead letters that is bounded by what is looked at and by what is found, says where it ended, and goes on
 * from there.
 */
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { Layout } from '../calls/layouts.ts';
import { cursorOf, type From, parseCursor, type Spot } from '../query/cursor.ts';
import { filterKey } from '../query/filter.ts';
import { type Filter, matches } from './filter.ts';
import type { Met, Placed } from './walk.ts';

/** What is looked for, checked, and within which bounds. */
export interface SearchAsk {
  readonly filter: Filter;
  readonly cursor: string | undefined;
  /** Dead letters that may match. */
  readonly limit: number;
  /** Dead letters that may be looked at. */
  readonly scanMax: number;
}

/** A look that begins, or goes on as its cursor says. */
export interface Search extends Omit<SearchAsk, 'cursor'> {
  readonly from: From | undefined;
  /** Of the cursor: see `filterKey`. */
  readonly key: string;
  /** When the call began: ages count from then. */
  readonly nowMs: number;
  /** The due time that a replay gives, fixed when it began. */
  readonly dueMs?: number | undefined;
}

interface Begin {
  /** What the call does, and with what: a cursor holds for that alone. */
  readonly means: unknown;
  readonly nowMs: number;
  readonly dueMs?: number | undefined;
}

/** @throws DuestreamError `bad-input` for the cursor of another call */
export function begin({ cursor, ...ask }: SearchAsk, { means, nowMs, dueMs }: Begin): Search {
  const key = filterKey(ask.filter, means);
  const from = cursor === undefined ? undefined : parseCursor(cursor, key);
  return { ...ask, key, from, nowMs: from?.nowMs ?? Math.ceil(nowMs), dueMs: from?.dueMs ?? dueMs };
}

/** The cursor that goes on behind a spot. */
export function cursorAt({ filter, key, dueMs, ...search }: Search, layout: Layout, spot: Spot): string {
  const hasAge = filter.olderMs !== undefined || filter.newerMs !== undefined;
  const nowMs = hasAge ? search.nowMs : undefined;
  return cursorOf({ spot, layoutGeneration: generationOf(layout), nowMs, dueMs }, key);
}

export const generationOf = (layout: Layout): number => layout[0]?.layoutGeneration ?? 0;

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
  source: AsyncGenerator<Met>,
  { search, layout }: { readonly search: Search; readonly layout: Layout },
  act: (placed: Placed, scan: Scan) => Promise<boolean>,
): Promise<Scan> {
  const { filter, scanMax, nowMs } = search;
  let scanned = 0;
  for await (const met of source) {
    scanned += 1;
    const scan = { scanned, cursor: cursorAt(search, layout, met.spot) };
    const goesOn = !matches(met.letter, filter, nowMs) || (await act(met, scan));
    if (!goesOn || scanned >= scanMax) return scan;
  }
  return { scanned, cursor: undefined };
}
