/** The files of the repository as text, for the tests that check the house itself. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** What is installed, built or made by running. */
const SKIPPED = [
  'node_modules',
  'dist',
  'coverage',
  '.git',
  '.cache',
  '.duestream',
  'package-lock.json',
  'scripts.mjs',
];

/** The path of every file below a folder. */
export function walk(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !SKIPPED.includes(name) && !/\.(log|tgz)$/.test(name))
    .flatMap((entry) => (entry.isDirectory() ? walk(join(folder, entry.name)) : [join(folder, entry.name)]));
}

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
