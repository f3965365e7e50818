/** Everybody comes to the same order, and a change of the membership moves only what it must. */
import { expect, it } from 'vitest';
import { rendezvous } from '../../src/kernel/shares.ts';

const keys = Array.from({ length: 300 }, (_, at) => `key-${at}`);
const first = (key: string, names: readonly string[]) => rendezvous(key, names)[0];

it('the order does not depend on the order of the names', () => {
  for (const key of keys.slice(0, 20)) {
    expect(rendezvous(key, ['a', 'b', 'c'])).toEqual(rendezvous(key, ['c', 'a', 'b']));
    expect([...rendezvous(key, ['a', 'b', 'c'])].sort()).toEqual(['a', 'b', 'c']);
  }
});

it('keys spread over the names', () => {
  const names = ['a', 'b', 'c'];
  for (const name of names) {
    const count = keys.filter((key) => first(key, names) === name).length;
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(140);
  }
});

it('a name that leaves changes only what was its own, and the next in order takes it', () => {
  for (const key of keys) {
    const order = rendezvous(key, ['a', 'b', 'c', 'd']);
    expect(
      rendezvous(
        key,
        ['a', 'b', 'c', 'd'].filter((name) => name !== 'c'),
      ),
    ).toEqual(order.filter((name) => name !== 'c'));
  }
});

it('nobody is there: nobody is preferred', () => {
  expect(rendezvous('key', [])).toEqual([]);
});
