/** Where an erase goes on, as a text for callers. It holds for one tag and the same queues. */

import { digestOf } from '../../job/record-header.ts';
import { otherCursor, packCursor, unpackCursor } from '../query/cursor.ts';

/** A place of a queue that is looked through, and how far that has come. */
export interface Spot {
  readonly place: 'jobs' | 'dead' | 'history' | 'logs';
  readonly at: string | undefined;
}

/** A place in one of the queues, which come by their names. */
export interface QueueSpot {
  readonly queue: string;
  readonly spot: Spot;
}

export const BEGINNING: Spot = { place: 'jobs', at: undefined };

const PLACES: readonly unknown[] = ['jobs', 'dead', 'history', 'logs'];

/** What is erased: the tag, and of which queues; undefined: all. */
export interface Erasing {
  readonly tag: string;
  readonly wanted: readonly string[] | undefined;
}

/** The tag may name a person, so the cursor has only what tells it from others. */
const keyOf = ({ tag, wanted }: Erasing): string =>
  digestOf(wanted ? JSON.stringify([tag, ...wanted.toSorted()]) : tag).slice(0, 8);

export const cursorOf = ({ queue, spot }: QueueSpot, erasing: Erasing): string =>
  packCursor([1, keyOf(erasing), spot.place, spot.at ?? null, queue]);

type Parts = readonly [version: 1, key: string, place: Spot['place'], at: string | null, queue: string];

/** @throws DuestreamError `bad-input` */
export function parseCursor(input: unknown, erasing: Erasing): QueueSpot {
  const [, key, place, at, queue] = unpackCursor(input, isParts);
  if (key !== keyOf(erasing)) throw otherCursor('tag or other queues', 'tag and queues');
  return { spot: { place, at: at ?? undefined }, queue };
}

function isParts(parts: readonly unknown[]): parts is Parts {
  const [version, key, place, at, queue] = parts;
  const areTexts = [key, at ?? '', queue].every((one) => typeof one === 'string');
  return version === 1 && parts.length === 5 && PLACES.includes(place) && areTexts;
}
