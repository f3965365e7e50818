/**
 * Ends of jobs from several places, merged: each partition has them in the order of their ends, and a line reads one of them a
 * slice at a time. A list of one queue and a search through all of them take the latest end of all lines, again and again.
 */

import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Ended, EndIndex, EndPlace, JobEnd } from '../../redis/read/ends.ts';
import { createStep, type Step } from '../../redis/scripts/bytes.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { movedAway } from '../calls/layouts.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import { isFailedAs, isOverState, type ListFilter } from './filter.ts';
import type { Reader } from './reader.ts';

/** What is read of jobs that are over, and of which of them. */
export interface Indexed {
  readonly index: EndIndex;
  readonly isMeant: (ended: Ended) => boolean;
}

/**
 * Where ends of a queue are read, asked of one of its partitions: none if the filter means no job that is over. What a history kept is found by a filter until it goes, also
 * when the history was switched off.
 *
 * @throws DuestreamError `bad-input` for a filter in a queue that never kept a history
 */
export async function indexesOf(
  reader: Reader,
  { ref, filter, policy }: { readonly ref: PartitionRef; readonly filter: ListFilter; readonly policy: RetryPolicy },
): Promise<readonly Indexed[]> {
  const { states, tag, set, name, idPrefix, failed, ended } = filter;
  const over = states.filter(isOverState);
  if (over.length === 0) return [];
  const isIn = ({ state }: Ended) => over.includes(state);
  const given = Object.entries({ tag, set, name, idPrefix, failed, ended: ended?.fromMs ?? ended?.toMs });
  const [named] = given.find(([, value]) => value !== undefined) ?? [];
  const history = await withReadRetry('list', () => reader.history(ref), policy);
  if (history?.isOn || (history && named !== undefined)) {
    return [{ index: 'history', isMeant: (one) => isIn(one) && isPastLike(one, filter) }];
  }
  if (named !== undefined) throw unknownHere(ref.queue, named, over.includes('dead'));
  return [
    // A dead job has a tombstone too.
    ...(over.some((state) => state !== 'dead')
      ? [{ index: 'tombstones' as const, isMeant: (one: Ended) => isIn(one) && one.state !== 'dead' }]
      : []),
    ...(over.includes('dead') ? [{ index: 'dead' as const, isMeant: isIn }] : []),
  ];
}

function unknownHere(queue: string, named: string, hasDead: boolean): DuestreamError {
  const where = `client.deadLetters, duestream dead ls and /v1/queues/${queue}/dead find dead letters by name, tag, set and error`;
  return new DuestreamError(
    'bad-input',
    `${named} is given, and ${queue} keeps no history of jobs that are over; allowed: state, limit and cursor${hasDead ? `; ${where}` : ''}`,
  );
}

function isPastLike({ id, past }: Ended, { name, tag, set, idPrefix = '', failed }: ListFilter): boolean {
  if (
    !past ||
    !isFailedAs(past, failed) ||
    (set !== undefined && past.set !== set) ||
    (name !== undefined && past.name !== name)
  )
    return false;
  return (tag === undefined || past.tags.includes(tag)) && id.startsWith(idPrefix);
}

/** An end, and the line that it was taken from. */
interface TakenEnd {
  readonly line: EndLine;
  readonly end: JobEnd;
}

/**
 * Hands on the ends of all lines, the latest first; of the same millisecond, those of the first line. Ends before `fromMs` are not met.
 *
 * @returns where `take` said that it is enough; undefined: there are no more
 */
export async function mergeEnds(
  lines: readonly EndLine[],
  {
    fromMs = Number.NEGATIVE_INFINITY,
    take,
    failed,
  }: {
    readonly fromMs: number | undefined;
    readonly take: (line: EndLine, end: JobEnd) => boolean;
    /** Where one line stops no other: notes why it ends. */
    readonly failed?: (line: EndLine, error: unknown) => void;
  },
): Promise<TakenEnd | Moved | undefined> {
  for (;;) {
    const line = latestOf(lines);
    const end = line?.head;
    if (!line || !end || end.atMs < fromMs) return undefined;
    if (!take(line, end)) return { line, end };
    try {
      const reply = await line.next();
      if (!reply) continue;
      if (!failed) return reply;
      failed(line, movedAway(line.ref.queue));
    } catch (error) {
      if (!failed) throw error;
      failed(line, error);
    }
    line.end();
  }
}

function latestOf(lines: readonly EndLine[]): EndLine | undefined {
  let latest: EndLine | undefined;
  for (const line of lines) if (line.head && (!latest?.head || line.head.atMs > latest.head.atMs)) latest = line;
  return latest;
}

/** Ends that a line reads at once: a record may be of 256 KiB, a tombstone is short. */
const ENDS_SLICE: Readonly<Record<EndIndex, number>> = { history: 50, tombstones: 500, dead: 50 };

interface LineParts extends Indexed {
  readonly ref: PartitionRef;
  readonly policy: RetryPolicy;
}

/** The ends in one index of one partition, the latest first. */
export class EndLine {
  readonly #reader: Reader;
  readonly #parts: LineParts;
  readonly #step: Step;
  #slice: readonly JobEnd[] = [];
  #at = 0;

  constructor(reader: Reader, parts: LineParts) {
    this.#reader = reader;
    this.#parts = parts;
    this.#step = createStep(ENDS_SLICE[parts.index]);
  }

  /** The next end; undefined behind the last. */
  get head(): JobEnd | undefined {
    return this.#slice[this.#at];
  }

  get ref(): PartitionRef {
    return this.#parts.ref;
  }

  isMeant(ended: Ended): boolean {
    return this.#parts.isMeant(ended);
  }

  /** Nothing comes any more. */
  end(): void {
    this.#slice = [];
  }

  next(): Promise<Moved | undefined> | undefined {
    this.#at += 1;
    return this.head ? undefined : this.begin(this.#slice.at(-1));
  }

  async begin(after: EndPlace | undefined): Promise<Moved | undefined> {
    const { ref, index, policy } = this.#parts;
    const ask = { index, after, limit: this.#step.next() };
    const slice = await withReadRetry('list', () => this.#reader.ends(ref, ask), policy);
    if (isMoved(slice)) return slice;
    this.#step.saw(slice.map(({ size }) => size));
    this.#slice = slice;
    this.#at = 0;
    return undefined;
  }
}
