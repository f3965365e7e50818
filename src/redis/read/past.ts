/** Records of jobs that are over, as `lua/lib/past.lua` keeps them: of one job, and in pages by the time of their end. */
import { decodePast, type PastJob } from '../../job/past.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { createStep } from '../scripts/bytes.ts';
import { score } from '../scripts/scripts.ts';

/** A record and where it stands in the order of ends. */
export interface KeptPast {
  readonly ref: PartitionRef;
  readonly past: PastJob;
  /** Its place: the id under which it is kept, and the score of that. */
  readonly field: string;
  readonly atMs: number;
}

const PAGE = 50;

/** How a job of this member ended, the latest first: its last end, and at most `max` before it, as far as they are kept. */
export async function pastOf(
  redis: Redis,
  { keys }: PartitionRef,
  { member, max }: { readonly member: string; readonly max: number },
): Promise<readonly PastJob[]> {
  const ends: PastJob[] = [];
  let field: string | undefined = member;
  while (field !== undefined && ends.length < max) {
    const text: string | null = await naming(redis, [keys], redis.hget(keys.past, field));
    const found = decodePast(member, text);
    if (!found) return ends;
    ends.push(found.past);
    field = found.before === undefined ? undefined : `${member}\0${found.before}`;
  }
  return ends;
}

/** Everything that is kept, the latest end first, from behind a place. What ends meanwhile is not among it. */
export async function* everyPast(
  redis: Redis,
  ref: PartitionRef,
  from: { readonly atMs: number; readonly field: string | undefined } | undefined,
): AsyncGenerator<KeptPast, undefined> {
  const { keys } = ref;
  const step = createStep(PAGE);
  let place = { atMs: from?.atMs ?? Number.POSITIVE_INFINITY, field: from?.field };
  for (;;) {
    const fresh = await placesBehind(redis, ref, { key: 'ended', from: place, count: step.next() });
    const last = fresh.at(-1);
    if (!last) return undefined;
    const texts = await redis.hmget(keys.past, ...fresh.map(({ field }) => field));
    step.saw(fresh.map(({ field }, at) => field.length + (texts[at]?.length ?? 0)));
    for (const [at, one] of fresh.entries()) {
      const found = decodePast(one.field, texts[at]);
      if (found) yield { ref, past: found.past, ...one };
    }
    place = last;
  }
}

/**
 * The next places in an order of ends, the latest first, of which there may be less than the count. Many may have ended in one millisecond: the page grows until
 * it reaches beyond those that were seen.
 */
export async function placesBehind(
  redis: Redis,
  { keys }: PartitionRef,
  {
    key,
    from,
    count,
  }: {
    readonly key: 'ended' | 'done';
    readonly from: { readonly atMs: number; readonly field: string | undefined };
    readonly count: number;
  },
): Promise<readonly Place[]> {
  const start = Number.isFinite(from.atMs) ? String(from.atMs) : '+inf';
  for (let size = count + 1; ; size *= 2) {
    const asked = redis.zrange(keys[key], start, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, size, 'WITHSCORES');
    const places = placesIn(await naming(redis, [keys], asked));
    const fresh = places.filter((place) => isBehind(place, from)).slice(0, count);
    if (fresh.length > 0 || places.length < size) return fresh;
  }
}

interface Place {
  readonly field: string;
  readonly atMs: number;
}

/** Of the same millisecond Redis has the greatest name first, by its bytes. */
function isBehind(place: Place, from: { readonly atMs: number; readonly field: string | undefined }): boolean {
  if (place.atMs !== from.atMs || from.field === undefined) return place.atMs <= from.atMs;
  return Buffer.compare(Buffer.from(place.field), Buffer.from(from.field)) < 0;
}

function placesIn(flat: readonly string[]): readonly Place[] {
  return flat.flatMap((field, at) => (at % 2 === 0 ? [{ field, atMs: score(flat[at + 1] ?? '') }] : []));
}
