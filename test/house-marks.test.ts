/** Marks (test/chaos/marks.mjs): tests change the lines that they name, so each is there, once, and is gone by. */
import { expect, test } from 'vitest';
import { assembledScript, namesIn, partsNamed } from '../lua/assemble.mjs';
import { dropped, edited, marksIn } from './chaos/marks.mjs';
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

/** Script and mark of every patch that changes a script which was put together. */
const changedInLua = ['test/chaos', 'test/sim']
  .flatMap(walk)
  .flatMap((path) => [...read(path).matchAll(/file: 'lua\/([a-z-]+)\.lua',\s+mark: '([^']+)'/g)])
  .map(([, verb, mark]) => [verb, mark]);

/** `path @mark` of every patch. What is compiled or put together is named by its source. */
const patched = ['test/chaos', 'test/sim']
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

test('every mark that a test goes by is there', () => {
  expect(patched.length).toBeGreaterThan(10);
  expect([...used].filter((name) => !there.includes(name))).toEqual([]);
});

test('every mark that is there is one that a test goes by', () => {
  const endless = (name: string) => /^lua\/\S+ @endless/.test(name);
  expect(there.filter((name) => !used.has(name) && !endless(name))).toEqual([]);
});

test('what a test changes in a script that was put together is there once', () => {
  for (const [verb = '', mark = ''] of changedInLua) {
    const lines = assembledScript(verb).split('\n');
    const before = lines.slice(0, (marksIn(lines).get(mark) ?? 0) + 1).toReversed();
    const opening = before.find((line) => /^\s*local function/.test(line))?.trim() ?? '';
    const places = lines.filter((line) => opening !== '' && line.trim() === opening);
    expect(places.length, `${verb} @${mark}: ${opening}`).toBeLessThan(2);
  }
});

test('a mark names the next line of code, whatever it says', () => {
  const lines = ['a', '  -- @one', '  -- Why.', '  b', '// @two', 'c'];
  expect([...marksIn(lines)]).toEqual([
    ['one', 3],
    ['two', 5],
  ]);
  expect(edited(lines.join('\n'), 'one', dropped).split('\n')[3]).toBe('');
  expect(() => edited('a', 'one', dropped)).toThrow('no line is marked @one');
  expect(() => marksIn(['-- @one', 'a', '-- @one', 'b'])).toThrow('the mark @one is there twice');
  expect(() => marksIn(['a', '-- @one'])).toThrow('no code follows the mark @one');
});
