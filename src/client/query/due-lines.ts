/**
 * The jobs of one partition by their due time, a slice at a time. Among those of one due time the order is that of their members'
 * bytes, as Redis has it.
 *
 *   scheduled, waiting   the index by due time has this order: a slice is read when the one before is used up
 *   tag                  where few jobs have it, all of them are looked at once and sorted; else the index by due time is read
 *   ready, running       their entries come in the order of their turn: all are read, without their records, and sorted
 */
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Place, Source } from '../../redis/read/places.ts';
import { scoresOf } from '../../redis/scripts/scripts.ts';
import { movedAway } from '../calls/layouts.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { isWithin, type ListFilter, sourcesOf } from './filter.ts';
import type { Reader } from './reader.ts';

/** A place with the due time by which it stands in the order. */
export interface DuePlace extends Place {
  readonly dueMs: number;
}

/** Where a line begins in the order of all. */
export interface Behind {
  readonly dueMs: number;
  /** Behind this one of the due time; undefined: at no job of this partition. */
  readonly member: string | undefined;
  /** Without a member: whether jobs of this very due time are still to come. */
  readonly isIncluded: boolean;
}

interface Reading {
  readonly reader: Reader;
  readonly policy: RetryPolicy;
  readonly filter: ListFilter;
  /** How many entries of ready and of what runs one call reads yet. */
  readonly left: { entries: number };
}

/** Jobs of a tag in one partition that are sorted. Where more have it, the index by due time is read. */
const TAGGED_MAX = 1000;
const LOOKED_AT_ONCE = 100;
/** Entries of ready and of what runs, in all partitions: of one queue more than leaders put there. */
export const ENTRIES_MAX = 50_000;
const ENTRIES_SLICE = 500;
const SLICE = 100;

/** The lines of a partition for the jobs that a filter means, of which none was read yet. */
export async function dueLinesOf(reading: Reading, ref: PartitionRef): Promise<readonly DueLine[]> {
  const { filter } = reading;
  const sources = sourcesOf(filter).filter((source): source is Source => source.kind !== 'over');
  const lines = await Promise.all(
    sources.map(async (source) => {
      if (source.kind !== 'tag') return [new DueLine(reading, { ref, source })];
      const places = await taggedPlaces(reading, ref, source);
      if (places) return [new DueLine(reading, { ref, source, places })];
      const untagged = sourcesOf({ ...filter, tag: undefined, set: undefined });
      return untagged.flatMap((one) => (one.kind === 'over' ? [] : [new DueLine(reading, { ref, source: one })]));
    }),
  );
  return lines.flat();
}

/** All jobs of a tag with their due times; undefined: too many have it. */
async function taggedPlaces(
  { reader, policy }: Reading,
  ref: PartitionRef,
  source: Source,
): Promise<readonly DuePlace[] | undefined> {
  const ask = { source, after: undefined, last: undefined, limit: TAGGED_MAX + 1 };
  const slice = await withReadRetry('find', () => reader.places(ref, ask), policy);
  if (isMoved(slice)) throw movedAway(ref.queue);
  if (slice.places.length > TAGGED_MAX) return undefined;
  const found: DuePlace[] = [];
  for (let from = 0; from < slice.places.length; from += LOOKED_AT_ONCE) {
    const some = slice.places.slice(from, from + LOOKED_AT_ONCE);
    const { jobs } = await withReadRetry('find', () => reader.look(ref, some), policy);
    for (const [at, place] of some.entries()) {
      const job = jobs[at];
      if (job) found.push({ ...place, dueMs: job.dueMs });
    }
  }
  return found;
}

interface LineParts {
  readonly ref: PartitionRef;
  readonly source: Source;
  /** Those that are known already, in any order. */
  readonly places?: readonly DuePlace[];
}

export class DueLine {
  readonly ref: PartitionRef;
  readonly source: Source;
  /** There are more than are read at all. */
  isCut = false;
  readonly #reading: Reading;
  readonly #known: readonly DuePlace[] | undefined;
  #slice: readonly DuePlace[] = [];
  #at = 0;
  /** Behind it the next slice begins; undefined: there is none. */
  #next: string | undefined;

  constructor(reading: Reading, { ref, source, places }: LineParts) {
    this.#reading = reading;
    this.ref = ref;
    this.source = source;
    this.#known = places;
  }

  /** The next place; undefined behind the last. */
  get head(): DuePlace | undefined {
    return this.#slice[this.#at];
  }

  async begin(behind: Behind | undefined, limit: number): Promise<void> {
    if (this.source.kind === 'scheduled' || this.source.kind === 'waiting') {
      await this.#read(this.#startAt(this.source.kind, behind), limit);
      return;
    }
    const { due } = this.#reading.filter;
    const places = this.#known ?? (await this.#entries());
    this.#slice = places
      .filter((place) => isWithin(due, place.dueMs) && isBehind(place, behind))
      .toSorted((one, other) => one.dueMs - other.dueMs || (one.member < other.member ? -1 : 1));
  }

  async next(): Promise<void> {
    this.#at += 1;
    if (this.head === undefined && this.#next !== undefined) await this.#read({ after: this.#next }, SLICE);
  }

  /** Nothing comes any more. */
  end(): void {
    this.#slice = [];
    this.#next = undefined;
  }

  #startAt(kind: 'scheduled' | 'waiting', behind: Behind | undefined): Start {
    if (behind === undefined) return {};
    const { dueMs, member, isIncluded } = behind;
    if (member !== undefined) return { after: `${scoresOf(kind, { fromMs: dueMs }).from} ${member}` };
    return { fromMs: isIncluded ? dueMs : nextAfter(kind, dueMs) };
  }

  /** A slice that has nothing behind the place does not end the line. */
  async #read({ after, fromMs }: Start, limit: number): Promise<void> {
    const { reader, policy } = this.#reading;
    const source = narrowed(this.source, fromMs);
    const ask = { source, after, last: undefined, limit };
    const slice = await withReadRetry('find', () => reader.places(this.ref, ask), policy);
    if (isMoved(slice)) throw movedAway(this.ref.queue);
    this.#slice = slice.places.map((place) => ({ ...place, dueMs: place.dueMs ?? 0 }));
    this.#at = 0;
    this.#next = slice.next;
  }

  async #entries(): Promise<readonly DuePlace[]> {
    const { reader, policy, left } = this.#reading;
    const found: DuePlace[] = [];
    let after: string | undefined;
    do {
      const ask = { source: this.source, after, last: undefined, limit: ENTRIES_SLICE };
      const slice = await withReadRetry('find', () => reader.places(this.ref, ask), policy);
      if (isMoved(slice)) throw movedAway(this.ref.queue);
      // What a foreign writer put there may have no due time.
      for (const place of slice.places) found.push({ ...place, dueMs: place.dueMs || 0 });
      after = slice.next;
      left.entries -= slice.places.length;
    } while (after !== undefined && left.entries > 0);
    this.isCut = after !== undefined;
    return found;
  }
}

interface Start {
  readonly after?: string | undefined;
  readonly fromMs?: number | undefined;
}

/** The least score above that of a due time: a foreign producer may put one with a fraction, and those in line have none. */
const nextAfter = (kind: 'scheduled' | 'waiting', dueMs: number): number =>
  kind === 'scheduled' ? dueMs + 2 ** -11 : Math.floor(dueMs) + 1;

/** The same source, of which what is due before is left out. */
function narrowed(source: Source, fromMs: number | undefined): Source {
  if (fromMs === undefined || !('due' in source)) return source;
  const { due } = source;
  return { ...source, due: { ...due, fromMs: Math.max(fromMs, due.fromMs ?? fromMs) } };
}

function isBehind({ dueMs, member }: DuePlace, behind: Behind | undefined): boolean {
  if (behind === undefined || dueMs !== behind.dueMs) return behind === undefined || dueMs > behind.dueMs;
  return behind.member === undefined ? behind.isIncluded : member > behind.member;
}

/** The line whose next job is due first; of the same due time, the first partition, and in it the first member. */
export function earliestOf(
  lines: readonly DueLine[],
  orderOf: (one: PartitionRef, other: PartitionRef) => number,
): DueLine | undefined {
  let earliest: DueLine | undefined;
  for (const line of lines) {
    const [head, first] = [line.head, earliest?.head];
    if (!head) continue;
    if (!earliest || !first || head.dueMs < first.dueMs) earliest = line;
    else if (head.dueMs === first.dueMs) {
      const order = orderOf(line.ref, earliest.ref);
      if (order < 0 || (order === 0 && head.member < first.member)) earliest = line;
    }
  }
  return earliest;
}
