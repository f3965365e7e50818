/** Marks (test/chaos/marks.mjs): a test changes the line that a mark names, so each mark is there and each is used. */
import { expect, test } from 'vitest';
import { namesIn, partsNamed } from '../lua/assemble.mjs';
import { marksIn } from './chaos/marks.mjs';
import { marksUsed } from './support/mutants.ts';
import { read, walk } from './support/repository.ts';

/** A mark of a script that was put together, or of a script or part: as the repository keeps it. */
function inLua(of: string, mark: string): string {
  if (!namesIn('verbs').includes(of)) return `lua/lib/${of}.lua @${mark}`;
  const own = `lua/verbs/${of}.lua`;
  const has = (path: string) => marksIn(read(path).split('\n')).has(mark);
  const parts = partsNamed(read(own)).map((name) => `lua/lib/${name}.lua`);
  return `${[own, ...parts].find(has) ?? own} @${mark}`;
}

/** `path @mark` of every patch. What is compiled or put together is named by its source. */
const patched = ['test/chaos', 'test/sim', 'test/unit']
  .flatMap(walk)
  .flatMap((path) => [...read(path).matchAll(/file: '([^']+)',\s+mark: '([^']+)'/g)])
  .map(([, file = '', mark = '']) => {
    const verb = /^lua\/(.+)\.lua$/.exec(file)?.[1];
    return verb === undefined ? `${file.replace(/^dist\/(.+)\.js$/, 'src/$1.ts')} @${mark}` : inLua(verb, mark);
  });
const used = new Set([
  ...marksUsed.map((name) => inLua(name.split(' @')[0] ?? '', name.split(' @')[1] ?? '')),
  ...patched,
]);
const there = ['lua/verbs', 'lua/lib', 'src']
  .flatMap(walk)
  .flatMap((path) => [...marksIn(read(path).split('\n')).keys()].map((mark) => `${path} @${mark}`));

test('every mark that a test uses is there', () => {
  expect(patched.length).toBeGreaterThan(10);
  expect([...used].filter((name) => !there.includes(name))).toEqual([]);
});

test('a test uses every mark that is there', () => {
  const endless = (name: string) => /^lua\/\S+ @endless/.test(name);
  expect(there.filter((name) => !used.has(name) && !endless(name))).toEqual([]);
});
