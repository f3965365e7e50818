/** Virtual time: what is to happen, in its order. One event has ended, and with it all that follows at once, before the next begins. */
import { setImmediate as turn } from 'node:timers/promises';

export interface Times {
  readonly nowMs: number;
  /** So many ms from now. */
  readonly at: (inMs: number, act: () => unknown) => void;
  /** The next event. False: there is none. */
  readonly next: () => Promise<boolean>;
  /** Nothing happens any more. */
  readonly end: () => Promise<void>;
}

interface Event {
  readonly atMs: number;
  readonly nth: number;
  readonly act: () => unknown;
}

export function createTimes(): Times {
  let nowMs = 0;
  let nth = 0;
  const heap: Event[] = [];
  const isSooner = (one: Event, other: Event) =>
    one.atMs < other.atMs || (one.atMs === other.atMs && one.nth < other.nth);
  return {
    get nowMs() {
      return nowMs;
    },
    at(inMs, act) {
      nth += 1;
      push(heap, { atMs: nowMs + Math.ceil(Math.max(0, inMs)), nth, act }, isSooner);
    },
    async next() {
      const event = pop(heap, isSooner);
      if (!event) return false;
      nowMs = event.atMs;
      await event.act();
      await turn();
      return true;
    },
    async end() {
      heap.length = 0;
      await turn();
    },
  };
}

type Sooner = (one: Event, other: Event) => boolean;

function push(heap: Event[], event: Event, isSooner: Sooner): void {
  heap.push(event);
  for (let at = heap.length - 1; at > 0; ) {
    const above = (at - 1) >> 1;
    if (!swapped(heap, at, above, isSooner)) return;
    at = above;
  }
}

function pop(heap: Event[], isSooner: Sooner): Event | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (!first || !last || heap.length === 0) return first;
  heap[0] = last;
  for (let at = 0; ; ) {
    const [left, right] = [2 * at + 1, 2 * at + 2];
    const [one, other] = [heap[left], heap[right]];
    if (!one) return first;
    const below = other && isSooner(other, one) ? right : left;
    if (!swapped(heap, below, at, isSooner)) return first;
    at = below;
  }
}

/** Changes their places where the one that is below comes sooner. */
function swapped(heap: Event[], below: number, above: number, isSooner: Sooner): boolean {
  const [low, high] = [heap[below], heap[above]];
  if (!low || !high || !isSooner(low, high)) return false;
  heap[above] = low;
  heap[below] = high;
  return true;
}
