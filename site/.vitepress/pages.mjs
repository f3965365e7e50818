/**
 * Which Markdown of the repository is a page of the site, where it stands, and what its links lead to. The menu is read from
 * `docs/README.md`, the list of all pages, so that a page has one name and one place.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../..', import.meta.url));

const CALLS_FILE = 'docs/reference/openapi.json';

/**
 * @typedef {{ operation: string, method: string, path: string, summary: string, subject: string }} Call
 * @type {readonly Call[]}
 */
export const calls = Object.entries(JSON.parse(readFileSync(join(repository, CALLS_FILE), 'utf8')).paths).flatMap(
  ([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId: operation, summary, tags }]) =>
      operation === undefined ? [] : [{ operation, method: method.toUpperCase(), path, summary, subject: tags[0] }],
    ),
);

/** @param {Call} call @returns {string} `jobs-schedule`: a dot in it would look like the ending of a file */
export const pageOfCall = ({ operation }) => operation.replaceAll('.', '-');

/** @param {Call} call */
const linkOfCall = (call) => `/reference/calls/${pageOfCall(call)}`;

/** Pages that stand elsewhere than in `docs`: path in the repository → path on the site. @type {Readonly<Record<string, string>>} */
const ELSEWHERE = {
  'site/index.md': 'index.md',
  'README.md': 'introduction.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
  'docs/README.md': 'pages.md',
};

/**
 * @param {string} path in the repository, as `docs/how-to/limits.md`
 * @returns {string | undefined} its path on the site, as `how-to/limits.md`; undefined if it is no page of it
 */
export function placeOf(path) {
  const moved = ELSEWHERE[path];
  if (moved !== undefined) return moved;
  if (path.startsWith('site/calls/')) return path.replace(/^site/, 'reference');
  if (path.startsWith('docs/')) return path.slice('docs/'.length).replace(/\bREADME\.md$/, 'index.md');
  return /^examples\/[^/]+\/README\.md$/.test(path) ? `${dirname(path)}.md` : undefined;
}

/**
 * The address of what a link leads to. A page leads to its place on the site; anything else of the repository is copied
 * below `source/`, as text that each browser shows.
 *
 * @param {string} from the page, as a path in the repository
 * @param {string} href as it stands there, relative
 * @returns {{ address: string, source?: string }} source: what has to be copied, as a path in the repository
 */
export function targetOf(from, href) {
  const [path = '', hash] = href.split('#');
  const to = normalize(join(dirname(from), path)).replace(/\/$/, '');
  const place = placeOf(to) ?? placeOf(`${to}/README.md`);
  const behind = hash === undefined ? '' : `#${hash}`;
  if (place !== undefined && to.endsWith('.md')) return { address: `/${place}${behind}` };
  if (to === CALLS_FILE) return { address: calls.map(linkOfCall)[0] ?? '' };
  if (to === 'docs/decisions') return { address: `/${pagesIn(to)[0]}` };
  if (!existsSync(join(repository, to))) throw new Error(`${from} leads to ${href}, and there is no ${to}.`);
  return { address: `/source/${to}.txt`, source: to };
}

/** What is copied below `source/`: a file as it is, a folder as the list of what is in it. @param {string} path */
export function textOf(path) {
  const whole = join(repository, path);
  return statSync(whole).isDirectory() ? `${readdirSync(whole).sort().join('\n')}\n` : readFileSync(whole, 'utf8');
}

/** A page for each call, as a file: the search of the site knows no others. */
export function writeCallPages() {
  const folder = join(repository, 'site', 'calls');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const call of calls) {
    const heading = `# ${call.summary}\n\n\`${call.method} /v1${call.path}\``;
    const text = `---\naside: false\noutline: false\n---\n\n${heading}\n\n<OAOperation operation-id="${call.operation}" hide-branding />\n`;
    writeFileSync(join(folder, `${pageOfCall(call)}.md`), text);
  }
}

/** The menu beside the calls of the HTTP API, by what they are about, in the order of the file that describes them. */
export function callMenu() {
  const subjects = [...new Set(calls.map(({ subject }) => subject))];
  return subjects.map((subject) => ({
    text: subject.charAt(0).toUpperCase() + subject.slice(1),
    items: calls
      .filter((call) => call.subject === subject)
      .map((call) => ({ text: call.summary, link: linkOfCall(call) })),
  }));
}

/** The menu beside each page: the headings of the list of all pages, with the links below each, in its order. */
export function menu() {
  const list = readFileSync(join(repository, 'docs', 'README.md'), 'utf8');
  const [begin = '', ...parts] = list.split(/^## /m);
  return [
    { text: 'Begin', items: [{ text: 'Introduction', link: '/introduction' }, ...linksIn(begin)] },
    ...parts.map((part) => ({ text: part.slice(0, part.indexOf('\n')), collapsed: true, items: linksIn(part) })),
    { text: 'Decisions', collapsed: true, items: pagesIn('docs/decisions').map(titled) },
    { text: 'Changes', link: '/changelog' },
  ];
}

/** Each page that a part of the list names, once, by its first name there. @param {string} part */
function linksIn(part) {
  const byLink = new Map();
  for (const [, text = '', href = ''] of part.matchAll(/\[([^\]]+)\]\(([^)#\s]+\.(?:md|json))(?:#[^)]*)?\)/g)) {
    const link = targetOf('docs/README.md', href).address.replace(/\.md$/, '');
    if (!byLink.has(link))
      byLink.set(link, { text: text.charAt(0).toUpperCase() + text.slice(1).replace(/\s+/g, ' '), link });
  }
  return [...byLink.values()];
}

/** The places of all pages of a folder, by name. @param {string} folder */
function pagesIn(folder) {
  const names = readdirSync(join(repository, folder)).filter((name) => name.endsWith('.md'));
  return names.sort().flatMap((name) => placeOf(`${folder}/${name}`) ?? []);
}

/** @param {string} place of a decision */
function titled(place) {
  const heading = /^# (.+)$/m.exec(readFileSync(join(repository, 'docs', place), 'utf8'))?.[1];
  return { text: heading ?? basename(place, '.md'), link: `/${place.replace(/\.md$/, '')}` };
}
