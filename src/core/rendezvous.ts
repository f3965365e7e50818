/**
 * Highest-random-weight hashing: everybody who knows the same names comes to the same order for a key, and a name that
 * leaves changes only what was its own. It is a preference, never a proof: views of the membership may differ.
 */
import { createHash } from 'node:crypto';

/** The names in their order of preference for a key: the first should take it. */
export function rendezvous(key: string, names: readonly string[]): readonly string[] {
  return names
    .map((name) => ({ name, weight: weightOf(key, name) }))
    .sort((a, b) => (a.weight < b.weight ? -1 : a.weight > b.weight ? 1 : a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** 64 bits as fixed-width hex, which sorts like the number. */
function weightOf(key: string, name: string): string {
  return createHash('sha1').update(key).update('\0').update(name).digest('hex').slice(0, 16);
}
