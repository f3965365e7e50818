/**
 * Writes a file in one step: who reads it sees the old content or the new, and a link that lies in its place is replaced
 * and not written through. The draft beside it is made new, never opened.
 */
import { randomBytes } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * @param {string} path
 * @param {string} text
 */
export async function replaceFile(path, text) {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(draft, text, { flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
