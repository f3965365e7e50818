/** `docs/reference/measured.md`: each measurement writes its section anew, between two marks that name its command. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../scripts/steps.mjs';
import { between } from './peers/page.mjs';

const PAGE = join(root, 'docs', 'reference', 'measured.md');

/** @param {string} name of the section, which is that of its command: `npm run bench:<name>` @param {string} body Markdown */
export function writeMeasured(name, body) {
  writeFileSync(PAGE, withMeasured(readFileSync(PAGE, 'utf8'), name, body));
}

/** @param {string} page @param {string} name @param {string} body */
export function withMeasured(page, name, body) {
  const begin = `<!-- made by npm run bench:${name} -->`;
  return between(page, { begin, end: `<!-- end of bench:${name} -->`, body: `\n${body.trim()}\n` });
}
