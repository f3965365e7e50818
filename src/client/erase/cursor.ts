/** Where an erase goes on, as a text for callers: base64url of JSON. It holds for one tag and the same queues. */

import { digestOf } from '../../job/record-header.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** A place that is looked through, and how far that has come. */
export interface Spot {
  readonly place: 'jobs' | 'dead' | 'history';
  readonly at: string | undefined;
}

/** The same over several queues, by their names. */
export interface QueueSpot {
  readonly queue: string;
  readonly spot: Spot;
}

export const BEGINNING: Spot = { place: 'jobs', at: undefined };

const PLACES: readonly unknown[] = ['jobs', 'dead', 'history'];

/** What is erased: the tag, and of which queues; undefined: all, or the one that is named beside it. */
export interface Erasing {
  readonly tag: string;
  readonly wanted?: readonly string[] | undefined;
}

/** The tag may name a person, so the cursor has only what tells it from others. */
const keyOf = ({ tag, wanted }: Erasing): string =>
  digestOf(wanted ? JSON.stringify([tag, ...wanted.toSorted()]) : tag).slice(0, 8);

const textOf = (parts: readonly unknown[]): string => Buffer.from(JSON.stringify(parts)).toString('base64url');

export const cursorOf = ({ place, at }: Spot, tag: string): string => textOf([1, keyOf({ tag }), place, at ?? null]);

export const queueCursorOf = ({ queue, spot }: QueueSpot, erasing: Erasing): string =>
  textOf([1, keyOf(erasing), spot.place, spot.at ?? null, queue]);

/** @throws DuestreamError `bad-input` */
export const parseCursor = (input: unknown, tag: string): Spot => partsIn(input, { tag }, 4).spot;

/** @throws DuestreamError `bad-input` */
export function parseQueueCursor(input: unknown, erasing: Erasing): QueueSpot {
  const { spot, queue } = partsIn(input, erasing, 5);
  return { spot, queue: String(queue) };
}

function partsIn(input: unknown, erasing: Erasing, count: number) {
  const parts = partsOf(input);
  const [version, key, place, at, queue] = parts;
  const isOurs = version === 1 && parts.length === count && PLACES.includes(place);
  if (!isOurs || (at !== null && typeof at !== 'string')) {
    throw new DuestreamError('bad-input', `cursor is ${show(input)}; allowed: the cursor that the call before replied`);
  }
  if (key !== keyOf(erasing)) {
    const allowed = 'the tag that it was given for, and the same queues';
    throw new DuestreamError('bad-input', `the cursor is of another tag or other queues; allowed: ${allowed}`);
  }
  return { spot: { place: place as Spot['place'], at: at ?? undefined }, queue };
}

function partsOf(input: unknown): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(String(input), 'base64url').toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return [];
  }
}
