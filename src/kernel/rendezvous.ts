/**
 * Highest-random-weight hashing: everybody who knows the same names comes to the same order for a key, and a name that
 * leaves changes only what was its own. It is a preference, never a proof: views of the membership may differ.
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
