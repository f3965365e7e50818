/**
 * Ends of jobs: those of one job, and those of a partition a slice at a time, the latest first. A slice begins behind the
 * place where the last one ended. A job that ends meanwhile stands in front of every place, so a walk does not meet it.
 *
 *   history      by the ms of the end   records of a queue that keeps a history, as `lua/lib/past.lua` writes them
 *   tombstones   by the ms of the end   what is remembered without a history, within the done window
 *   dead         by entry               dead letters
 */
import type { OtherTurns } from '../../job/account.ts';
import { decodeTombstone, idOf, type Tombstone } from '../../job/codec.ts';
import { groupOf } from '../../job/labels.ts';
import { decodePast, type PastJob } from '../../job/past.ts';
import type { OverState } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { createStep } from '../scripts/bytes.ts';
import type { Moved } from '../scripts/replies.ts';
import { score } from '../scripts/scripts.ts';
import { type DeadLetter, deadLetters } from './inspect.ts';
import { unmoved } from './places.ts';

/** Where ends are read. */
export type EndIndex = 'history' | 'tombstones' | 'dead';

/** A place among the ends: its ms, and what tells it from others of that ms; without that, the place before all of that ms. */
export interface EndPlace {
  readonly atMs: number;
  readonly field: string | undefined;
}

/** A job that is over, with what is kept of its end: one of the three. */
export interface Ended {
  readonly id: string;
  readonly bare: boolean;
  readonly state: OverState;
  readonly overMs: number;
  readonly past?: PastJob | undefined;
  readonly tombstone?: Tombstone | undefined;
  readonly letter?: DeadLetter | undefined;
}

/** An end where it was met. */
export interface JobEnd extends EndPlace {
  readonly field: string;
  /** Undefined: what is there cannot be read, or is gone. */
  readonly ended: Ended | undefined;
  /** Of what was read of it, in bytes. */
  readonly size: number;
}

export interface EndsAsk {
  readonly index: EndIndex;
  /** Undefined: from the latest on. */
  readonly after: EndPlace | undefined;
  readonly limit: number;
}

/** The next ends of a partition, at most `limit`; none at the end. */
export function endsOf(
  redis: Redis,
  ref: PartitionRef,
  { index, ...ask }: EndsAsk,
): Promise<readonly JobEnd[] | Moved> {
  return unmoved(redis, ref, () => READERS[index](redis, ref, ask));
}

type Read = (redis: Redis, ref: PartitionRef, ask: Omit<EndsAsk, 'index'>) => Promise<readonly JobEnd[]>;

const READERS: Readonly<Record<EndIndex, Read>> = { history, tombstones, dead };

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

/** Ends that are looked at for the turns of others, and how many a call reads. */
const TURNS_MAX = 1000;
const TURNS_STEP = 200;
/** For so long a tombstone stays, unless it is set otherwise. */
const REMEMBERED_MS = 600_000;

/** Who had a turn while a job was in line: the jobs of its group, or all where it has none, that ended in this time in its partition. */
export async function turnsWhile(
  redis: Redis,
  ref: PartitionRef,
  wait: { readonly member: string; readonly fromMs: number; readonly toMs: number; readonly nowMs: number },
): Promise<OtherTurns | undefined> {
  const { member, fromMs, toMs, nowMs } = wait;
  const group = groupOf(member);
  const isMeant = ({ field, atMs, ended }: JobEnd) =>
    atMs >= fromMs &&
    field !== member &&
    (group === undefined || groupOf(field) === group) &&
    (ended?.tombstone?.attempts ?? 0) > 0;
  const turns: string[] = [];
  let after: EndPlace | undefined = { atMs: toMs, field: undefined };
  for (let seen = 0; after !== undefined && after.atMs >= fromMs && seen < TURNS_MAX; seen += TURNS_STEP) {
    const ends: readonly JobEnd[] | Moved = await endsOf(redis, ref, { index: 'tombstones', after, limit: TURNS_STEP });
    if ('kind' in ends) return undefined;
    turns.push(...ends.filter(isMeant).map(({ field }) => idOf(field).id));
    after = ends.length < TURNS_STEP ? undefined : ends.at(-1);
  }
  const [last] = turns;
  const isLeast = after === undefined ? nowMs - fromMs > REMEMBERED_MS : after.atMs >= fromMs;
  return last === undefined ? undefined : { count: turns.length, isLeast, ofGroup: group !== undefined, last };
}

const DEAD_LETTERS_STEP = 50;

/** Dead letters backwards, from the newest there was at the beginning, at most `max`. A record may be of 256 KiB: few are held at once. */
export async function* everyDeadLetter(redis: Redis, ref: PartitionRef, max: number): AsyncGenerator<DeadLetter> {
  let before: string | undefined;
  const step = createStep(DEAD_LETTERS_STEP);
  for (let seen = 0; seen < max; ) {
    const found = await deadLetters(redis, ref, { limit: Math.min(step.next(), max - seen), before });
    step.saw(found.map(({ id, record }) => id.length + record.length));
    yield* found;
    seen += found.length;
    before = found.at(-1)?.entry;
    if (before === undefined) return;
  }
}

async function history(
  redis: Redis,
  ref: PartitionRef,
  { after, limit }: Omit<EndsAsk, 'index'>,
): Promise<readonly JobEnd[]> {
  const places = await placesBehind(redis, ref, { key: 'ended', after, limit });
  const texts = places.length === 0 ? [] : await redis.hmget(ref.keys.past, ...places.map(({ field }) => field));
  return places.map((place, at): JobEnd => {
    const past = decodePast(place.field, texts[at])?.past;
    const ended = past && { id: past.id, bare: past.bare, state: past.outcome, overMs: past.overMs, past };
    return { ...place, ended, size: place.field.length + (texts[at]?.length ?? 0) };
  });
}

async function tombstones(
  redis: Redis,
  ref: PartitionRef,
  { after, limit }: Omit<EndsAsk, 'index'>,
): Promise<readonly JobEnd[]> {
  const places = await placesBehind(redis, ref, { key: 'done', after, limit });
  const values = places.length === 0 ? [] : await redis.hmget(ref.keys.jobs, ...places.map(({ field }) => field));
  return places.map(({ field, atMs }, at): JobEnd => {
    const tombstone = decodeTombstone(values[at] ?? '');
    const ended = tombstone && { ...idOf(field), state: tombstone.outcome, overMs: atMs, tombstone };
    return { field, atMs, ended, size: field.length + (values[at]?.length ?? 0) };
  });
}

async function dead(
  redis: Redis,
  ref: PartitionRef,
  { after, limit }: Omit<EndsAsk, 'index'>,
): Promise<readonly JobEnd[]> {
  // The end of a range of ids is exclusive here.
  const before = after && (after.field ?? `${after.atMs + 1}-0`);
  const letters = await deadLetters(redis, ref, { limit, before });
  return letters.map((letter): JobEnd => {
    const { entry, id, bare, record, atMs: overMs } = letter;
    const ended = { id, bare, state: 'dead' as const, overMs, letter };
    return { atMs: Number.parseInt(entry, 10), field: entry, ended, size: id.length + record.length };
  });
}

type Place = Pick<JobEnd, 'atMs' | 'field'>;

/**
 * The next places in an order of ends. Many jobs may have ended in one millisecond: the page grows until it reaches beyond
 * those that were seen.
 */
async function placesBehind(
  redis: Redis,
  { keys }: PartitionRef,
  { key, after, limit }: Omit<EndsAsk, 'index'> & { readonly key: 'ended' | 'done' },
): Promise<readonly Place[]> {
  const start = after ? String(after.atMs) : '+inf';
  for (let size = limit + 1; ; size *= 2) {
    const asked = redis.zrange(keys[key], start, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, size, 'WITHSCORES');
    const places = placesIn(await naming(redis, [keys], asked));
    const fresh = places.filter((place) => isBehind(place, after)).slice(0, limit);
    if (fresh.length > 0 || places.length < size) return fresh;
  }
}

/** Of the same millisecond Redis has the greatest name first, by its bytes. */
export function isBehind(place: Place, after: EndPlace | undefined): boolean {
  if (after === undefined) return true;
  if (place.atMs !== after.atMs || after.field === undefined) return place.atMs <= after.atMs;
  return Buffer.compare(Buffer.from(place.field), Buffer.from(after.field)) < 0;
}

function placesIn(flat: readonly string[]): readonly Place[] {
  return flat.flatMap((field, at) => (at % 2 === 0 ? [{ field, atMs: score(flat[at + 1] ?? '') }] : []));
}
