/** Copies of the product with some lines changed: broken on purpose, or a version that is still to come. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @typedef {{ file: string, from: string, to: string }} Patch */

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
  for (const { file, from, to } of patches) {
    const text = readFileSync(join(copy, file), 'utf8');
    // A patch that no longer fits would make the copy what it is a copy of.
    if (!text.includes(from)) throw new Error(`the patch of ${file} does not fit any more: ${from}`);
    writeFileSync(
      join(copy, file),
      text.replace(from, () => to),
    );
  }
  return copy;
}
