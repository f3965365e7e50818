/**
 * The scripts as Redis gets them: a script's header, the parts it names in `USES`, its own body. The repository keeps
 * `lua/verbs/` and `lua/lib/`; what is assembled lies in `lua/<verb>.lua`, is made by every build and by every test run,
 * is not committed, and is what the package, foreign clients, the simulation and planted bugs use: that very text.
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
 * script uses: Redis makes every function anew for each call, used or not (0.3 us each).
 *
 * @param {string} own the text of a script in `lua/verbs`
 * @param {(name: string) => string} part the text of a part in `lua/lib`
 */
export function assembled(own, part) {
  const lines = own.split('\n');
  const from = lines.findIndex((line) => !/^(#!|--)/.test(line));
  const body = lines.slice(from).join('\n');
  const used = new Set(wordsOf(body));
  const parts = partsNamed(own)
    .toReversed()
    .map((name) => usedOf(part(name), used))
    .toReversed();
  return [lines.slice(0, from).join('\n'), ...parts, body].join('\n\n');
}

/** @param {string} code */
const wordsOf = (code) => code.replace(/--.*$/gm, '').match(/(?<![.:\w'])[A-Za-z_]\w*/g) ?? [];

/**
 * A part without the functions and constants that nobody uses. What is used comes first in Lua, so they are looked at from
 * the last to the first.
 *
 * @param {string} text
 * @param {Set<string>} used grows by what is kept
 */
function usedOf(text, used) {
  const [header = '', ...given] = text.trim().split(/\n(?=local )/);
  const kept = given.toReversed().filter((one) => {
    const [, name = ''] = /^local (?:function )?(\w+)/.exec(one) ?? [];
    if (used.has(name)) for (const word of wordsOf(one)) used.add(word);
    return used.has(name);
  });
  return [header, ...kept.toReversed().map((one) => one.trimEnd())].join('\n\n').replace('\n\n', '\n');
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
  for (const verb of verbs) {
    const path = join(root, 'lua', `${verb}.lua`);
    const text = assembledScript(verb);
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
    // Renamed into place: somebody else may be reading it.
    writeFileSync(`${path}.${process.pid}`, text);
    renameSync(`${path}.${process.pid}`, path);
  }
  for (const name of readdirSync(join(root, 'lua'))) {
    if (name.endsWith('.lua') && !verbs.includes(name.slice(0, -'.lua'.length))) rmSync(join(root, 'lua', name));
  }
}

/** What vitest calls before a run, and before another one when a file has changed. @param {Project} project */
export function setup(project) {
  assemble();
  project.onTestsRerun(() => assemble());
}

if (process.argv[1] === fileURLToPath(import.meta.url)) assemble();
