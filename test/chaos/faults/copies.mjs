/** Copies of the product: with some lines changed, broken on purpose or a version that is still to come; or one that was published. */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gather } from '../../../lua/assemble.mjs';
import { edited } from '../marks.mjs';

/**
 * @typedef {object} Patch
 * @property {string} file
 * @property {string} mark of the line that is changed: see marks.mjs
 * @property {(line: string) => string} edit
 */

/** The actors of a row, and what they import beside the product. */
const ACTORS = ['test/chaos', 'test/support/streams.mjs', 'src/embedded', 'scripts'];
/** @type {Set<string>} */
const copies = new Set();
process.once('exit', () => {
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});

/**
 * Gone when this process ends, at the latest.
 *
 * @param {string} product
 * @param {readonly Patch[]} patches
 */
export function patchedCopy(product, patches) {
  const copy = newFolder();
  mkdirSync(join(copy, 'dist'), { recursive: true });
  // No links: the copy is written to.
  for (const part of ['dist', 'lua', 'package.json', ...ACTORS])
    cpSync(join(product, part), join(copy, part), { recursive: true, dereference: true });
  symlinkSync(join(product, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, mark, edit } of patches) {
    writeFileSync(join(copy, file), edited(readFileSync(join(copy, file), 'utf8'), mark, edit));
  }
  gather(copy);
  return copy;
}

/**
 * The newest version whose package is among the fixtures of the tests, as it was published, with the actors of this
 * checkout; undefined while there is none. Gone when this process ends, at the latest.
 *
 * @param {string} product
 */
export function publishedCopy(product) {
  const fixtures = join(product, 'test/fixtures');
  const versions = readdirSync(fixtures).filter((name) => /^\d+\.\d+\.\d+$/.test(name));
  const newest = versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  const tarball = newest === undefined ? undefined : join(fixtures, newest, `duestream-${newest}.tgz`);
  if (tarball === undefined || !existsSync(tarball)) return undefined;
  const copy = newFolder();
  execFileSync('tar', ['xzf', tarball, '-C', copy, '--strip-components=1']);
  for (const part of ACTORS) {
    cpSync(join(product, part), join(copy, part), { recursive: true, dereference: true });
  }
  symlinkSync(join(product, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

function newFolder() {
  const copy = mkdtempSync(join(tmpdir(), 'due-copy-'));
  copies.add(copy);
  return copy;
}
