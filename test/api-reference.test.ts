/** The reference of the library is what the comments of its exports say. `npm run generate` makes it anew. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeApiReference } from '../scripts/generate/api.mjs';
import { root } from './support/repository.ts';

const kept = join(root, 'docs', 'reference', 'api');
const made = mkdtempSync(join(tmpdir(), 'due-api-'));
const pages = readdirSync(kept);

// It compiles the whole library, on a machine that may be busy.
beforeAll(() => writeApiReference(made), 300_000);
afterAll(() => rmSync(made, { recursive: true, force: true }));

it('has the pages of all entries of the package', () => {
  expect(readdirSync(made).sort()).toEqual(pages.toSorted());
});

it.each(pages)('%s is what the comments say', (page) => {
  expect(readFileSync(join(kept, page), 'utf8')).toBe(readFileSync(join(made, page), 'utf8'));
});

/** The parts of a page under a heading of this level: title → text. */
const partsOf = (text: string, level: string) =>
  text
    .split(new RegExp(`^${level} (?!#)`, 'm'))
    .slice(1)
    .map((part) => [part.slice(0, part.indexOf('\n')).trim(), part] as const);

it('shows every function and every class with an example', () => {
  const without = pages.flatMap((page) =>
    partsOf(readFileSync(join(kept, page), 'utf8'), '##')
      .filter(([group]) => group === 'Functions' || group === 'Classes')
      .flatMap(([, group]) => partsOf(group, '###'))
      .filter(([, text]) => !text.includes('Example'))
      .map(([name]) => name),
  );
  expect(without).toEqual([]);
});
