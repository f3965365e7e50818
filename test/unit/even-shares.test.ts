/** Many keys over some names: evenly, the same for everybody, and much the same when somebody leaves. */
import { expect, test } from 'vitest';
import { createShares, rendezvous } from '../../src/kernel/shares.ts';

const named = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}-${at}`).sort();

function sharedOut(names: readonly string[], keys: readonly string[], copies: number) {
  const shares = createShares(names, keys.length, copies);
  return new Map(keys.map((key) => [key, shares.next(key).slice(0, copies)]));
}

function loadsOf(names: readonly string[], shares: ReadonlyMap<string, readonly string[]>) {
  const all = [...shares.values()].flat();
  return names.map((name) => all.filter((one) => one === name).length);
}

test.each([
  { names: 20, keys: 64, copies: 2 },
  { names: 4, keys: 64, copies: 1 },
  { names: 7, keys: 3, copies: 5 },
  { names: 400, keys: 64, copies: 13 },
])('$keys keys over $names names with $copies each: nobody has half as much again as its share', (of) => {
  const names = named('w', of.names);
  const shares = sharedOut(names, named('k', of.keys), of.copies);
  expect([...shares.values()].every((some) => new Set(some).size === of.copies)).toBe(true);
  const mean = (of.keys * of.copies) / of.names;
  expect(Math.max(...loadsOf(names, shares))).toBeLessThanOrEqual(Math.ceil(1.25 * mean));
});

test('with fewer names than copies everybody has every key', () => {
  expect(sharedOut(['only'], ['a', 'b'], 2)).toEqual(
    new Map([
      ['a', ['only']],
      ['b', ['only']],
    ]),
  );
});

test('all names are ranked, those that are full behind those that are not', () => {
  const names = named('w', 5);
  const shares = createShares(names, 10, 1);
  for (const key of named('k', 10)) expect(shares.next(key).toSorted()).toEqual(names);
});

test('most keys stay where rendezvous puts them, also when a name leaves', () => {
  const [names, keys] = [named('w', 20), named('k', 64)];
  const before = sharedOut(names, keys, 2);
  const plain = keys.filter((key) => rendezvous(key, names)[0] === before.get(key)?.[0]).length;
  const after = sharedOut(names.slice(1), keys, 2);
  const stayed = keys.filter((key) => before.get(key)?.some((name) => after.get(key)?.includes(name))).length;
  expect({ plain: plain > 40, stayed: stayed > 56 }).toEqual({ plain: true, stayed: true });
});
