/**
 * Jobs that are over, as a partition remembers them without a history: tombstones within the done window, and dead letters.
 * The latest end comes first. No step reads more than a bounded part: a record may be of 256 KiB, so few are held at once
 * and none is kept.
 */
import { decodeTombstone, idOf } from '../../job/codec.ts';
import type { PastJob } from '../../job/past.ts';
import { decodeHeader } from '../../job/record-header.ts';
import type { OverState } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { createStep } from '../scripts/bytes.ts';
import { type DeadLetter, deadLetters } from './inspect.ts';
import { placesBehind } from './past.ts';

/** What is remembered of an end. */
export interface Remembered
  extends Pick<PastJob, 'id' | 'bare' | 'outcome' | 'name' | 'tags' | 'attempts' | 'overMs' | 'deadLetter'> {
  readonly askedDueMs: number | undefined;
}

/** A place that was looked at: its ms, what tells it from others of that ms, and the end that is there. */
export interface RememberedEnd {
  readonly ref: PartitionRef;
  readonly atMs: number;
  readonly field: string;
  /** Undefined: the job ended otherwise. */
  readonly past: Remembered | undefined;
}

/** Behind which place a walk begins; without a field it begins with all of that ms. */
export interface EndPlace {
  readonly atMs: number;
  readonly field: string | undefined;
}

const TOMBSTONES_STEP = 500;
const DEAD_LETTERS_STEP = 50;

/** Each place of an outcome in a partition. */
export const everyRemembered = (
  redis: Redis,
  ref: PartitionRef,
  { outcome, from }: { readonly outcome: OverState; readonly from: EndPlace | undefined },
): AsyncGenerator<RememberedEnd, undefined> =>
  outcome === 'dead' ? deadEnds(redis, ref, from) : tombstones(redis, ref, { outcome, from });

/** Dead letters backwards, from the newest there was at the beginning or from before one of them, at most `max`. */
export async function* everyDeadLetter(
  redis: Redis,
  ref: PartitionRef,
  max: number,
  from?: string,
): AsyncGenerator<DeadLetter> {
  let before = from;
  const step = createStep(DEAD_LETTERS_STEP);
  for (let seen = 0; seen < max; ) {
    const found = await deadLetters(redis, ref, {
      limit: Math.min(step.next(), max - seen),
      ...(before && { before }),
    });
    step.saw(found.map(({ id, record }) => id.length + record.length));
    yield* found;
    seen += found.length;
    before = found.at(-1)?.entry;
    if (before === undefined) return;
  }
}

async function* tombstones(
  redis: Redis,
  ref: PartitionRef,
  { outcome, from }: { readonly outcome: OverState; readonly from: EndPlace | undefined },
): AsyncGenerator<RememberedEnd, undefined> {
  let place = from ?? { atMs: Number.POSITIVE_INFINITY, field: undefined };
  const step = createStep(TOMBSTONES_STEP);
  for (;;) {
    const over = await placesBehind(redis, ref, { key: 'done', from: place, count: step.next() });
    const last = over.at(-1);
    if (!last) return undefined;
    const values = await redis.hmget(ref.keys.jobs, ...over.map((one) => one.field));
    step.saw(over.map((one, at) => one.field.length + (values[at]?.length ?? 0)));
    for (const [at, { field, atMs }] of over.entries()) {
      const tombstone = decodeTombstone(values[at] ?? '');
      const { askedDueMs = 0, attempts = 0, deadLetter } = tombstone ?? {};
      const known = { outcome, name: undefined, tags: [], askedDueMs, attempts, deadLetter, overMs: atMs };
      yield { ref, atMs, field, past: tombstone?.outcome === outcome ? { ...idOf(field), ...known } : undefined };
    }
    place = last;
  }
}

async function* deadEnds(
  redis: Redis,
  ref: PartitionRef,
  from: EndPlace | undefined,
): AsyncGenerator<RememberedEnd, undefined> {
  // The end of a range of ids is exclusive here.
  const before = from && (from.field ?? `${from.atMs + 1}-0`);
  for await (const letter of everyDeadLetter(redis, ref, Number.POSITIVE_INFINITY, before)) {
    const { entry, id, bare, record, attempts, atMs: overMs } = letter;
    const known = { ...contentOf(record), outcome: 'dead', tags: [], attempts, overMs, deadLetter: entry } as const;
    yield { ref, atMs: Number.parseInt(entry, 10), field: entry, past: { id, bare, ...known } };
  }
  return undefined;
}

/** The name is copied: a part of a text keeps the whole text in memory. */
function contentOf(record: string): Pick<Remembered, 'askedDueMs' | 'name'> {
  const name = /^[^|]*\|\{"n":"([^"]*)"/.exec(record)?.[1];
  return {
    askedDueMs: decodeHeader(record)?.askedDueMs,
    name: name === undefined ? undefined : Buffer.from(name).toString(),
  };
}
