/**
 * Who should take which of many keys, evenly: rendezvous order with a bound. Plain rendezvous of 64 keys over 20 names gives
 * one name 1.8 times what is its share, and another one next to nothing. Here each key goes to the first in its own order
 * that is not full, and a name is full with a quarter more than its share. So what a name that leaves had is spread over
 * the others, and few other keys move. It is a preference, never a proof: views of names and keys may differ.
 */
import { rendezvous } from './rendezvous.ts';

/** A name is full above its share by this factor. */
const ROOM = 1.25;

export interface Shares {
  /** The names in the order of preference for the next key. Keys are to be asked for in the order of the alphabet. */
  readonly next: (key: string) => readonly string[];
}

/** @param copies so many of the first names of each key count for the bound */
export function createShares(names: readonly string[], keys: number, copies: number): Shares {
  const wanted = Math.min(copies, names.length);
  const most = Math.ceil((ROOM * keys * wanted) / Math.max(1, names.length));
  const loads = new Map(names.map((name) => [name, 0]));
  const loadOf = (name: string) => loads.get(name) ?? 0;
  return {
    next(key) {
      const order = rendezvous(key, names);
      const first = order.filter((name) => loadOf(name) < most).slice(0, wanted);
      for (const name of first) loads.set(name, loadOf(name) + 1);
      return [...first, ...order.filter((name) => !first.includes(name))];
    },
  };
}
