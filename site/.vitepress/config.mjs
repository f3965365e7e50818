/**
 * The site is the Markdown of the repository, as it is: nothing is written twice. `npm run site` builds it; VitePress fails on a
 * link that leads nowhere.
 */
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { defineConfig } from 'vitepress';
import { callMenu, menu, placeOf, repository, targetOf, textOf, writeCallPages } from './pages.mjs';

/** What pages lead to that is no page, found while they are rendered. @type {Set<string>} */
const sources = new Set();

writeCallPages();

/** Pages lie outside of this folder. What a page becomes on the server runs here, where Vue is installed. */
const packagesOfSite = {
  name: 'packages-of-site',
  /** @type {import('vite').Plugin['enforce']} */
  enforce: 'pre',
  /** @type {Extract<import('vite').Plugin['resolveId'], Function>} */
  resolveId: (id, _importer, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null),
};

export default defineConfig({
  title: 'duestream',
  description: 'Delayed jobs for the Redis you already have: on time, never lost, cheap, and visible.',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: '..',
  srcExclude: ['src/**', 'test/**', 'bench/**', 'site/node_modules/**', 'examples/**/node_modules/**'],
  outDir: process.env.SITE_OUT ?? './dist',
  cacheDir: './.cache',
  rewrites: (path) => placeOf(path) ?? path,
  markdown: {
    config: (md) => md.use(repositoryLinks),
    anchor: { slugify: headingId },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    languageAlias: { caddy: 'nginx', promql: 'sql' },
  },
  vite: { plugins: [packagesOfSite] },
  themeConfig: {
    nav: [
      { text: 'Introduction', link: '/introduction' },
      { text: 'Twelve tasks', link: '/how-to/twelve-tasks' },
      { text: 'All pages', link: '/pages' },
      { text: 'HTTP API', link: '/reference/http-api' },
    ],
    sidebar: { '/reference/calls/': callMenu(), '/': menu() },
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: { searchOptions: { boost: { title: 4, titles: 2, text: 1 } } },
      },
    },
  },
  buildEnd: ({ outDir, pages }) => {
    for (const path of sources) write(join(outDir, 'source', `${path}.txt`), textOf(path));
    // Each page stands beside itself as the Markdown that it was made of.
    for (const path of pages.filter((page) => existsSync(join(repository, page))))
      cpSync(join(repository, path), join(outDir, placeOf(path) ?? path));
    const index = join(repository, 'llms.txt');
    if (existsSync(index)) cpSync(index, join(outDir, 'llms.txt'));
  },
});

/** The id of a heading as GitHub makes it, where the same pages are read. @param {string} heading */
function headingId(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/**
 * Leads each relative link to the place of its page, and marks text that a template would read as code of its own.
 *
 * @param {import('vitepress').MarkdownRenderer} md
 */
function repositoryLinks(md) {
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    const from = relative(repository, env.realPath ?? env.path);
    for (const { children } of tokens) for (const token of children ?? []) lead(token, from);
  });
  const { render } = md;
  md.render = (...args) => render.apply(md, args).replaceAll('{{', '&#123;&#123;');
}

/**
 * @param {{ type: string, attrGet(name: string): string | null, attrSet(name: string, value: string): void }} token
 * @param {string} from
 */
function lead(token, from) {
  const href = token.type === 'link_open' ? token.attrGet('href') : null;
  if (href === null || /^(#|\/|[a-z]+:)/.test(href)) return;
  const { address, source } = targetOf(from, decodeURI(href));
  if (source !== undefined) sources.add(source);
  token.attrSet('href', address);
}

/**
 * @param {string} path
 * @param {string} text
 */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
