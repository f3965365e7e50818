/**
 * Dead letters of a queue in pages that are bounded by bytes. A walk goes through one partition after the other, newest or
 * oldest first, and may begin where an earlier one ended: what stays put meanwhile comes exactly once. `newest` merges
 * the partitions instead, for people who look.
 */
import { show } from '../../core/duration.ts';
import { DuestreamError } from '../../core/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { type DeadLetter, deadLetters, oldestDeadLetters } from '../../redis/inspect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { createStep } from '../../redis/transitions/bytes.ts';
import type { Layout } from '../layouts.ts';
import { withReadRetry } from '../read-retry.ts';

/** One dead letter, and where it is. */
export interface Placed {
  readonly ref: PartitionRef;
  readonly letter: DeadLetter;
}

/** The last dead letter that was looked at. */
export interface Place {
  readonly partition: number;
  readonly entry: string;
}

const PAGE = 50;
const CURSOR = /^(\d{1,4})\/(\d{1,16}-\d{1,16})$/;

/** @throws DuestreamError `bad-input` */
export function parseCursor(cursor: unknown): Place | undefined {
  if (cursor === undefined) return undefined;
  const [, partition, entry] = (typeof cursor === 'string' && CURSOR.exec(cursor)) || [];
  if (partition !== undefined && entry !== undefined) return { partition: Number(partition), entry };
  throw new DuestreamError('bad-input', `cursor is ${show(cursor)}; allowed: the cursor that the last call returned`);
}

export const cursorOf = ({ partition, entry }: Place): string => `${partition}/${entry}`;

interface Walking {
  readonly redis: Redis;
  readonly policy: RetryPolicy;
}

/** One partition after the other, from behind the place. */
export async function* walk(
  walking: Walking,
  layout: Layout,
  { from, order }: { readonly from: Place | undefined; readonly order: 'newest' | 'oldest' },
): AsyncGenerator<Placed> {
  for (const ref of layout) {
    if (from && ref.partition < from.partition) continue;
    const after = from && ref.partition === from.partition ? from.entry : undefined;
    yield* lettersOf(walking, ref, { after, order });
  }
}

/** All partitions merged, newest first; of the same moment, those of the first partition. */
export async function* newest(walking: Walking, layout: Layout, from: Place | undefined): AsyncGenerator<Placed> {
  const lines = layout.map((ref) => lettersOf(walking, ref, { after: from && startIn(ref, from), order: 'newest' }));
  const heads = await Promise.all(lines.map(async (line) => (await line.next()).value));
  for (;;) {
    let best = -1;
    for (const [at, head] of heads.entries()) {
      const leader = heads[best];
      if (head && (!leader || compareEntries(head.letter.entry, leader.letter.entry) > 0)) best = at;
    }
    const found = heads[best];
    if (!found) return;
    yield found;
    heads[best] = (await lines[best]?.next())?.value;
  }
}

/** In later partitions the entry of the same number is still to come. */
function startIn(ref: PartitionRef, { partition, entry }: Place): string {
  if (ref.partition <= partition) return entry;
  const [ms = '', nth = ''] = entry.split('-');
  return `${ms}-${BigInt(nth) + 1n}`;
}

function compareEntries(one: string, other: string): number {
  const [ms = 0, nth = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherNth = 0] = other.split('-').map(Number);
  return ms - otherMs || nth - otherNth;
}

async function* lettersOf(
  { redis, policy }: Walking,
  ref: PartitionRef,
  { after, order }: { readonly after: string | undefined; readonly order: 'newest' | 'oldest' },
): AsyncGenerator<Placed, undefined> {
  let last = after;
  const step = createStep(PAGE);
  const page = () => {
    const limit = step.next();
    if (order === 'oldest') return oldestDeadLetters(redis, ref, { limit, after: last });
    return deadLetters(redis, ref, { limit, ...(last !== undefined && { before: last }) });
  };
  for (;;) {
    const found = await withReadRetry('read dead letters', page, policy);
    if (found.length === 0) return undefined;
    step.saw(found.map(({ id, record }) => id.length + record.length));
    last = found.at(-1)?.entry;
    for (const letter of found) yield { ref, letter };
  }
}
