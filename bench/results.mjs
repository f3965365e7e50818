/** Writes figures to `bench/results`, and the pages that are made from them between two marks. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { capture } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { sections } from './sections.mjs';

/** @typedef {Readonly<Record<string, any>>} Row */
/**
 * What a case measured, and where: `name` is that of the file.
 *
 * @typedef {{ readonly name: string, readonly what: string, readonly rows: readonly Row[] } & Readonly<Record<string, unknown>>} Result
 * @typedef {Readonly<Record<string, any>> & { readonly rows: readonly Row[] }} Kept
 */

/** What figures depend on. */
export function hostAndNode() {
  return { host: `${cpus().length} × ${cpus()[0]?.model.trim()}`, node: process.version };
}

/** @param {string} binary of redis-server @param {Result} result */
export async function keep(binary, { name, what, rows, ...more }) {
  const { output } = await capture(binary, ['--version'], { cwd: root });
  const redis = /(\S+) server v=(\S+)/.exec(output)?.slice(1).join(' ') ?? 'unknown';
  const date = new Date().toISOString().slice(0, 10);
  mkdirSync(join(root, 'bench', 'results'), { recursive: true });
  const made = { what, ...hostAndNode(), redis, date, ...more, rows };
  writeFileSync(fileOf(name), `${JSON.stringify(made, null, 2)}\n`);
}

/** @param {string} name @returns {Kept | undefined} undefined: it was never measured */
export function resultsOf(name) {
  return existsSync(fileOf(name)) ? JSON.parse(readFileSync(fileOf(name), 'utf8')) : undefined;
}

/** @param {string} name of the case */
export function writePages(name) {
  for (const [page, made] of pagesOf(name)) {
    mkdirSync(join(root, page, '..'), { recursive: true });
    writeFileSync(join(root, page), made);
  }
}

/** The pages of a case as its results make them. @param {string} name @param {ReadonlyMap<string, string>} [texts] of pages, where they are not the kept ones @returns {ReadonlyMap<string, string>} */
export function pagesOf(name, texts) {
  /** @type {Map<string, string>} */
  const pages = new Map();
  for (const { page, mark, body } of sections[name]?.(resultsOf) ?? []) {
    const before = () => pages.get(page) ?? texts?.get(page) ?? readFileSync(join(root, page), 'utf8');
    pages.set(page, mark === undefined ? body : between(before(), mark, body));
  }
  return pages;
}

/** @param {string} page @param {string} mark in words @param {string} body Markdown that stands between two comments */
export function between(page, mark, body) {
  const [begin, end] = [`<!-- made by ${mark} -->`, `<!-- end of ${mark} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no place for ${begin}`);
  return `${page.slice(0, from)}${begin}\n${body}\n${page.slice(to)}`;
}

/** @param {string} name */
const fileOf = (name) => join(root, 'bench', 'results', `${name}.json`);
