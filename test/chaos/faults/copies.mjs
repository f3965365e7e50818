/** Copies of the product with some lines changed: broken on purpose, or a version that is still to come. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { edited } from '../marks.mjs';

/**
 * @typedef {object} Patch
 * @property {string} file
 * @property {string} mark of the line that is changed: see marks.mjs
 * @property {(line: string) => string} edit
 */

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
  const copy = mkdtempSync(join(tmpdir(), 'due-copy-'));
  copies.add(copy);
  mkdirSync(join(copy, 'dist'), { recursive: true });
  // No links: the copy is written to.
  for (const part of ['dist', 'lua', 'package.json', 'test/chaos', 'src/embedded'])
    cpSync(join(product, part), join(copy, part), { recursive: true, dereference: true });
  symlinkSync(join(product, 'node_modules'), join(copy, 'node_modules'));
  for (const { file, mark, edit } of patches) {
    writeFileSync(join(copy, file), edited(readFileSync(join(copy, file), 'utf8'), mark, edit));
  }
  return copy;
}
