/**
 * Who takes which of many keys, by their names alone: rendezvous hashing, and even shares made of it. Everybody who
 * knows the same names comes to the same order for a key, and a name that leaves changes only what was its own. Both
 * are preferences, never proofs: views of the membership may differ.
 */
import { hash } from 'node:crypto';

/** The names in their order of preference for a key: the first should take it. */
export function rendezvous(key: string, names: readonly string[]): readonly string[] {
  return names
    .map((name) => ({ name, weight: weightOf(key, name) }))
    .sort((a, b) => (a.weight < b.weight ? -1 : a.weight > b.weight ? 1 : a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** The least weight comes first. 64 bits as fixed-width hex, which sorts like the number. */
export function weightOf(key: string, name: string): string {
  return hash('sha1', `${key}\0${name}`).slice(0, 16);
}

// Who should take which of many keys, evenly: rendezvous order with a bound. Plain rendezvous of 64 keys over 20 names
// gives one name 1.8 times what is its share, and another one next to nothing. Here each key goes to the first in its
// own order that is not full, and a name is full with a quarter more than its share. So what a name that leaves had is
// spread over the others, and few other keys move. It is a preference, never a proof: views of names and keys may
// differ.

/** A name is full above its share by this factor. */
const ROOM = 1.25;

interface Shares {
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
