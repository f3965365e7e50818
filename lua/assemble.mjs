/**
 * The scripts as Redis gets them: a script's header, the parts it names in `USES`, its own body. The repository keeps
 * `lua/verbs/` and `lua/lib/`; what is assembled lies in `lua/<verb>.lua`, is made by every build and by every test run,
 * is not committed, and is what foreign clients, the simulation and planted bugs use: that very text. All of them together are
 * a module, `lua/scripts.mjs`: the product imports it, so that a bundler takes them along.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** What the compiler of this file does not know of vitest. @typedef {{ onTestsRerun: (call: () => void) => void }} Project */

/** The names in the `USES` line of a script or the `NEEDS` line of a part. @param {string} text @returns {readonly string[]} */
export function partsNamed(text) {
  const [, names = ''] = /^-- (?:USES|NEEDS) +([^\n]*(?:\n-- {7}[a-z-]+(?:, [a-z-]+)*,?$)*)/m.exec(text) ?? [];
  return names.match(/[a-z][a-z-]*/g) ?? [];
}

/**
 * `#!lua` and the comments below it stay first: they name the flags, and say what the script is. Of a part comes what the
 * script uses: Redis makes every function anew for each call, used or not (0.1 to 0.3 us each). What is used only in lines
 * below the directive `--@lazy`, up to the end of their block, comes there, and is made when a call gets there. A mark names
 * one line: of several copies the first keeps its marks.
 *
 * @param {string} own the text of a script in `lua/verbs`
 * @param {(name: string) => string} part the text of a part in `lua/lib`
 */
export function assembled(own, part) {
  const lines = own.split('\n');
  const from = lines.findIndex((line) => !/^(#!|--)/.test(line));
  const body = lines.slice(from).join('\n');
  const parts = partsNamed(own).map((name) => piecesOf(part(name)));
  const pieces = parts.flatMap(({ pieces: some }) => some);
  const always = neededBy(withoutLazy(body), pieces, withoutLazy);
  const filled = (/** @type {string} */ text) =>
    text.replaceAll(LAZY, (_, indent, block) => `${indent}${lazy(indent, block)}`);
  const lazy = (/** @type {string} */ indent, /** @type {string} */ block) => {
    const needed = neededBy(block, pieces);
    const late = pieces.filter((piece) => needed.has(piece) && !always.has(piece));
    return `--@lazy\n${late.map((piece) => `${copyOf(piece, indent)}\n\n`).join('')}${block}`;
  };
  /** @type {Set<string>} */
  const copied = new Set();
  const copyOf = (/** @type {string} */ piece, /** @type {string} */ indent) => {
    const text = copied.has(piece) ? piece.replaceAll(/^ *-- @[\w-]+\n/gm, '') : piece;
    copied.add(piece);
    return text.replaceAll(/^(?=.)/gm, indent);
  };
  const texts = parts.flatMap(({ header, pieces: some }) => {
    const kept = some.filter((piece) => always.has(piece)).map(filled);
    return kept.length === 0 ? [] : [[header, ...kept].join('\n\n').replace('\n\n', '\n')];
  });
  return [lines.slice(0, from).join('\n'), ...texts, filled(body)].join('\n\n');
}

/** The directive, and the lines below it that are not outside of its block. */
const LAZY = /^( +)--@lazy\n((?:\1.*\n|\n)+)/gm;
const withoutLazy = (/** @type {string} */ text) => text.replaceAll(LAZY, '');

/** @param {string} code */
const wordsOf = (code) => code.replace(/--.*$/gm, '').match(/(?<![.:\w'])[A-Za-z_]\w*/g) ?? [];

/** A part's header, and its functions and constants. @param {string} text */
function piecesOf(text) {
  const [header = '', ...pieces] = text.trim().split(/\n(?=local )/);
  // Where its rules are. They would make the scripts a third longer.
  const [, name = ''] = /^-- ([a-z-]+):/.exec(header) ?? [];
  return { header: `-- lua/lib/${name}.lua`, pieces: pieces.map((piece) => piece.trimEnd()) };
}

/**
 * The pieces that a text uses, and those that these use. What is used comes first in Lua, so they are looked at from the last
 * to the first.
 *
 * @param {string} text
 * @param {readonly string[]} pieces
 * @param {(piece: string) => string} looked at of each; all of it
 */
function neededBy(text, pieces, looked = (piece) => piece) {
  const used = new Set(wordsOf(text));
  const needed = pieces.toReversed().filter((piece) => {
    const [, name = ''] = /^local (?:function )?(\w+)/.exec(piece) ?? [];
    if (used.has(name)) for (const word of wordsOf(looked(piece))) used.add(word);
    return used.has(name);
  });
  return new Set(needed);
}

/** The names of the scripts, or of the parts. @param {'verbs' | 'lib'} kind @param {string} [folder] of the product */
export const namesIn = (kind, folder = root) =>
  readdirSync(join(folder, 'lua', kind))
    .filter((name) => name.endsWith('.lua'))
    .map((name) => name.slice(0, -'.lua'.length));

/** One script as a whole. @param {string} verb @param {string} [folder] of the product */
export function assembledScript(verb, folder = root) {
  const text = (/** @type {string} */ path) => readFileSync(join(folder, 'lua', `${path}.lua`), 'utf8');
  return assembled(text(`verbs/${verb}`), (name) => text(`lib/${name}`));
}

/** Writes all of them, those that changed, each at once; and removes those whose source is gone. */
export function assemble() {
  const verbs = namesIn('verbs');
  for (const verb of verbs) write(join(root, 'lua', `${verb}.lua`), assembledScript(verb));
  for (const name of readdirSync(join(root, 'lua'))) {
    if (name.endsWith('.lua') && !verbs.includes(name.slice(0, -'.lua'.length))) rmSync(join(root, 'lua', name));
  }
  gather();
}

/**
 * Writes `lua/scripts.mjs` of the scripts that are there. What several of them have is in it once, and a script is put together
 * when it is asked for: whoever imports the module pays for what is used.
 *
 * @param {string} [folder] of the product
 */
export function gather(folder = root) {
  const scripts = readdirSync(join(folder, 'lua'))
    .filter((name) => name.endsWith('.lua'))
    .sort()
    .map((name) => ({ name: name.slice(0, -'.lua'.length), text: readFileSync(join(folder, 'lua', name), 'utf8') }));
  /** @type {Map<string, number>} */
  const numbers = new Map();
  const getters = scripts.map(({ name, text }) => {
    const parts = text.split('\n\n').map((part) => {
      const number = numbers.get(part) ?? numbers.size;
      numbers.set(part, number);
      return number;
    });
    return `  get ${JSON.stringify(name)}() {\n    return textOf(${parts});\n  },\n`;
  });
  const parts = [...numbers.keys()].map((part) => `  ${JSON.stringify(part)},\n`);
  const textOf = "const textOf = (...numbers) => numbers.map((number) => parts[number]).join('\\n\\n');";
  const lines = [`const parts = [\n${parts.join('')}];`, textOf, `export const texts = {\n${getters.join('')}};`];
  write(join(folder, 'lua', 'scripts.mjs'), `${lines.join('\n')}\n`);
}

/** @param {string} path @param {string} text */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  // Renamed into place: somebody else may be reading it.
  writeFileSync(`${path}.${process.pid}`, text);
  renameSync(`${path}.${process.pid}`, path);
}

/** What vitest calls before a run, and before another one when a file has changed. @param {Project} project */
export function setup(project) {
  assemble();
  project.onTestsRerun(() => assemble());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) assemble();
