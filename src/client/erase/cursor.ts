/** Where an erase goes on, as a text for callers: base64url of JSON. It holds for one tag and the same queues. */

import { digestOf } from '../../job/record-header.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** A place of a queue that is looked through, and how far that has come. */
export interface Spot {
  readonly place: 'jobs' | 'dead' | 'history';
  readonly at: string | undefined;
}

/** A place in one of the queues, which come by their names. */
export interface QueueSpot {
  readonly queue: string;
  readonly spot: Spot;
}

export const BEGINNING: Spot = { place: 'jobs', at: undefined };

const PLACES: readonly unknown[] = ['jobs', 'dead', 'history'];

/** What is erased: the tag, and of which queues; undefined: all. */
export interface Erasing {
  readonly tag: string;
  readonly wanted: readonly string[] | undefined;
}

/** The tag may name a person, so the cursor has only what tells it from others. */
const keyOf = ({ tag, wanted }: Erasing): string =>
  digestOf(wanted ? JSON.stringify([tag, ...wanted.toSorted()]) : tag).slice(0, 8);

export const cursorOf = ({ queue, spot }: QueueSpot, erasing: Erasing): string =>
  Buffer.from(JSON.stringify([1, keyOf(erasing), spot.place, spot.at ?? null, queue])).toString('base64url');

/** @throws DuestreamError `bad-input` */
export function parseCursor(input: unknown, erasing: Erasing): QueueSpot {
  const parts = partsOf(input);
  const [version, key, place, at, queue] = parts;
  const isOurs = version === 1 && parts.length === 5 && PLACES.includes(place);
  if (!isOurs || (at !== null && typeof at !== 'string')) {
    throw new DuestreamError('bad-input', `cursor is ${show(input)}; allowed: the cursor that the call before replied`);
  }
  if (key !== keyOf(erasing)) {
    const allowed = 'the tag that it was given for, and the same queues';
    throw new DuestreamError('bad-input', `the cursor is of another tag or other queues; allowed: ${allowed}`);
  }
  return { spot: { place: place as Spot['place'], at: at ?? undefined }, queue: String(queue) };
}

function partsOf(input: unknown): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(String(input), 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}
