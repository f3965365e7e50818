/** The history of a queue in virtual time: how its jobs ended, in the order of their ends. */
import type { ErasingParts } from '../client/erase/erase.ts';
import { ENDS_MAX } from '../client/query/report.ts';
import { memberOf } from '../job/codec.ts';
import type { PastJob } from '../job/past.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { JobBook } from './jobs.ts';
import { endsOf, type Kept, overOf, refOf } from './kept.ts';

/** Those that a look at the job shows: each record says where the one before it is, so the first gap ends the chain. */
export function shownEndsOf(job: Kept): readonly PastJob[] {
  const ends = endsOf(job).slice(0, ENDS_MAX);
  const gap = ends.indexOf(undefined);
  return ends.slice(0, gap < 0 ? ends.length : gap).flatMap((end) => end ?? []);
}

/** A record of the history in the order of ends. */
interface Place {
  readonly at: string;
  readonly atMs: number;
  readonly field: string;
  readonly tags: readonly string[];
  readonly erase: () => void;
}

/** The history of the kit, by the rules of `erase.lua`. */
export function historyIn(book: JobBook): Pick<ErasingParts, 'erase' | 'lastEnd'> {
  const placesIn = ({ queue, partition }: PartitionRef) =>
    [...book.inQueue(queue)]
      .filter((job) => refOf(job).partition === partition)
      .flatMap(placesOf)
      .toSorted(inOrder);
  return {
    async erase(ref, { tag, mode, limit, after }) {
      const all = placesIn(ref);
      const behind = after === undefined ? all : all.filter((place) => inOrder(place, placeAt(after)) > 0);
      const looked = behind.slice(0, limit);
      const matched = looked.filter(({ tags }) => tags.includes(tag));
      if (mode === 'remove') for (const { erase } of matched) erase();
      return {
        matched: matched.length,
        looked: looked.length,
        next: looked.length === limit ? looked.at(-1)?.at : undefined,
      };
    },
    lastEnd: async (ref) => placesIn(ref).at(-1)?.at,
  };
}

/** The last end of an id stands under the id, each earlier one under the id and its moment, or the next that was free. */
function placesOf(job: Kept): readonly Place[] {
  const isOver = overOf(job.state) !== undefined;
  const ends = endsOf(job);
  const places: Place[] = [];
  let freeMs = 0;
  for (let nth = ends.length - 1; nth >= 0; nth -= 1) {
    const end = ends[nth];
    if (!end) continue;
    const { overMs: atMs, tags } = end;
    freeMs = Math.max(freeMs, atMs);
    const field = nth === 0 ? memberOf(job.id) : `${memberOf(job.id)}\0${freeMs}`;
    freeMs += 1;
    const erase = () => {
      if (isOver && nth === 0) job.isErased = true;
      else job.past = job.past.with(isOver ? nth - 1 : nth, undefined);
    };
    places.push({ at: `${atMs} ${field}`, atMs, field, tags, erase });
  }
  return places;
}

function placeAt(at: string): Pick<Place, 'atMs' | 'field'> {
  const space = at.indexOf(' ');
  return { atMs: Number(at.slice(0, space)), field: at.slice(space + 1) };
}

/** Of one moment by the bytes of their names, as in Redis. */
const inOrder = (one: Pick<Place, 'atMs' | 'field'>, other: Pick<Place, 'atMs' | 'field'>): number =>
  one.atMs - other.atMs || Buffer.compare(Buffer.from(one.field), Buffer.from(other.field));
