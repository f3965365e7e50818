/**
 * The tables of keys, compared with what they cannot write themselves. Whoever adds a row is led by these tests to the
 * rest: a partition that is removed with all its keys, and the pages that name them.
 */
import { describe, expect, test } from 'vitest';
import { controlTable, type KeyRow, partitionKeys, partitionTable, storedKeys } from '../src/redis/keys.ts';
import { scripts } from '../src/redis/scripts/script-table.ts';
import { read, walk } from './support/repository.ts';

const keys = partitionKeys({ namespace: 't', queue: 'q', partition: 0 });
const stored = storedKeys(keys).map(({ key }) => key.slice(key.lastIndexOf(':') + 1));

test('a partition is removed with every key that holds something', () => {
  expect([...scripts.remove.keys].sort()).toEqual(stored.toSorted());
});

test('the lease is the only key whose value says how long it lives: doctor reads it there', () => {
  const rows: readonly (readonly [string, KeyRow])[] = Object.entries({ ...partitionTable, ...controlTable });
  expect(rows.filter(([, { ttl }]) => ttl === 'as its value says').map(([name]) => name)).toEqual(['leader']);
});

test('nobody else builds the name of a key', () => {
  const built = /:v\d:|\{control\}/;
  const code = (path: string) => read(path).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const sources = walk('src').filter((path) => path !== 'src/redis/keys.ts');
  expect(sources.filter((path) => built.test(code(path)))).toEqual([]);
});

describe('the pages', () => {
  test('docs/wire-protocol.md names every key', () => {
    const text = read('docs/wire-protocol.md');
    expect(named('K', partitionTable).filter(({ name }) => !text.includes(`\`${name}`))).toEqual([]);
    expect(named('C', controlTable).filter(({ name }) => !text.includes(`\`${name}`))).toEqual([]);
  });

  test.each(['docs/architecture.md', 'docs/wire-protocol.md'])('%s names each key with its type', (path) => {
    const text = read(path);
    const types = new Map(
      [...named('K', partitionTable), ...named('C', controlTable)].map((one) => [one.name, one.type]),
    );
    const wrong = [...text.matchAll(/^\| ((?:`[KC]:[a-z]+[^`]*`(?:, )?)+) \| ([a-z, ]+) \|/gm)].filter(
      ([, names = '', said = '']) => {
        const wanted = [...names.matchAll(/`([KC]:[a-z]+)/g)].map(([, name = '']) => types.get(name) ?? 'no such key');
        return ![wanted.join(', '), [...new Set(wanted)].join(', ')].includes(said);
      },
    );
    expect(wrong.map(([row]) => row)).toEqual([]);
  });
});

const named = (place: string, table: Readonly<Record<string, KeyRow>>) =>
  Object.entries(table).map(([name, { type }]) => ({ name: `${place}:${name}`, type }));
