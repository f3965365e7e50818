/**
 * The reference lists all there is: every option, metric and command. Names are read from where they are made, so that
 * a new one without a line in `docs/reference` fails here, and so does a line for one that went.
 */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { options } from '../src/config/options.ts';
import { SIGNS } from '../src/redis/connection/outage.ts';
import { scripts, scriptsByVerb } from '../src/redis/scripts/script-table.ts';
import { read, root, walk } from './support/repository.ts';
import { BEGUN_FIRST, ONLY_IN_ALL, ONLY_IN_VERIFY, SLICED } from './tiers.mjs';

test('every option is in the reference', () => {
  const reference = read('docs/reference/configuration.md');
  const missing = options.filter(({ key }) => !reference.includes(`\`${key.replace('*', '<name>')}\``));
  expect(missing.map(({ key }) => key)).toEqual([]);
});

describe('metrics', () => {
  // `name: 'duestream_jobs_promoted_total'`, or without the prefix where a registry adds it.
  const made = found('src/metrics', /\bname: ['`](?:\$\{\w+\}|duestream_)?([a-z_]+)['`]/g);

  test('are found in the code', () => expect(made.length).toBeGreaterThanOrEqual(20));

  test('are in the reference, each with its whole name', () => {
    const reference = read('docs/reference/metrics.md');
    expect(made.filter((name) => !reference.includes(`\`duestream_${name}\``))).toEqual([]);
  });

  test('that are in the reference exist', () => {
    const listed = [...read('docs/reference/metrics.md').matchAll(/^\|? *`duestream_([a-z_]+)`/gm)].map(
      ([, name]) => name,
    );
    expect(listed.filter((name) => name !== undefined && !made.includes(name))).toEqual([]);
  });
});

describe('commands', () => {
  const made = found('src/cli', /\.command\(\s*'([a-z-]+)/g);

  test('are found in the code', () => expect(made.length).toBeGreaterThanOrEqual(10));

  test('are in the reference with a line that shows their use', () => {
    const reference = read('docs/reference/cli.md');
    expect(made.filter((name) => !new RegExp(`duestream( [a-z]+)? ${name}\\b`).test(reference))).toEqual([]);
  });
});

describe('the architecture', () => {
  const text = `${read('docs/architecture.md')}\n${read('docs/how-to/extend.md')}`;

  test('names files that there are', () => {
    const files = ['src', 'lua', 'test'].flatMap(walk).map((path) => `/${path}`);
    const named = [...text.matchAll(/`([\w./-]+\.(?:ts|mjs|lua|md|json|yaml))`/g)].map(([, path = '']) => path);
    expect(named.length).toBeGreaterThanOrEqual(100);
    const isThere = (path: string) => existsSync(join(root, path)) || files.some((file) => file.endsWith(`/${path}`));
    expect(named.filter((path) => !isThere(path))).toEqual([]);
  });

  const nameOf = (verb: string) => Object.entries(scripts).find(([, script]) => script.verb === verb)?.[0];

  test('says of every script in which file it is called', () => {
    const rows = [...text.matchAll(/^ {3}\| (`[\w/.-]+`.*) \| (.+) \|$/gm)].map(([, files = '', verbs = '']) => ({
      source: namesIn(files)
        .map((file) => read(`src/redis/${file}`))
        .join('\n'),
      verbs: namesIn(verbs),
    }));
    expect(rows.flatMap(({ verbs }) => verbs).sort()).toEqual([...scriptsByVerb.keys()].sort());
    const wrong = rows.flatMap(({ source, verbs }) =>
      verbs.filter((verb) => !source.includes(`, scripts.${nameOf(verb)}, {`)),
    );
    expect(wrong).toEqual([]);
  });
});

describe('a reader finds every page', () => {
  const pages = walk('docs').filter(
    (path) => path.endsWith('.md') && !/^docs\/(decisions|reference\/api)\//.test(path),
  );
  const linksOf = (path: string) =>
    [...read(path).matchAll(/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/g)]
      .filter(([, to = '']) => !/^[a-z]+:/.test(to))
      .map(([, to = '', heading]) => ({ to: to === '' ? path : normalize(join(dirname(path), to)), heading }));

  test('the list of all pages names each', () => {
    const listed = linksOf('docs/README.md').map(({ to }) => to);
    expect(pages.filter((path) => path !== 'docs/README.md' && !listed.includes(path))).toEqual([]);
  });

  test('a link to a heading finds it', () => {
    const headings = new Map(
      pages.concat('README.md', 'CONTRIBUTING.md').map((path) => [path, headingsOf(read(path))]),
    );
    const broken = ['CHANGELOG.md', ...headings.keys()].flatMap((path) =>
      linksOf(path)
        .filter(({ to, heading }) => heading !== undefined && headings.get(to)?.includes(heading) === false)
        .map(({ to, heading }) => `${path} -> ${to}#${heading}`),
    );
    expect(broken).toEqual([]);
  });

  test('the README stays short', () => {
    expect(read('README.md').split('\n').length).toBeLessThanOrEqual(201);
  });
});

describe('the page of proofs says what shows each promise', () => {
  const text = read('docs/explanation/proof.md');
  const table = text.slice(text.indexOf('<!-- what shows it'), text.indexOf('<!-- end of what shows it'));
  const rows = [...table.matchAll(/^\| (.+) \|$/gm)].slice(2).map(([, row = '']) => row.split('|'));
  const namedIn = (column: number) =>
    rows.flatMap((row) => [...(row[column] ?? '').matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path));

  test('by tests that there are', () => {
    expect(namedIn(1).length).toBeGreaterThanOrEqual(8);
    expect([...namedIn(1), ...namedIn(2)].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('each in the command that runs it', () => {
    expect(namedIn(1).filter((path) => path in ONLY_IN_ALL)).toEqual([]);
    expect(namedIn(2).filter((path) => !(path in ONLY_IN_ALL) && !(path in SLICED))).toEqual([]);
  });

  test('by rows of the fault matrix that there are', () => {
    const smoke = read('test/flow/chaos/chaos-smoke.test.ts');
    const rowsIn = (column: number) => rows.flatMap((row) => (row[column] ?? '').match(/\bF\d+\b/g) ?? []);
    expect(rowsIn(2).filter((id) => !smoke.includes(`'${id}'`))).toEqual([]);
    expect(rowsIn(3).filter((id) => !read('docs/reliability.md').includes(`| ${id} |`))).toEqual([]);
  });
});

test('every test that has a tier or a place of its own is there', () => {
  const paths = [...BEGUN_FIRST, ...Object.keys(ONLY_IN_ALL), ...Object.keys(ONLY_IN_VERIFY), ...Object.keys(SLICED)];
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

/** What a pattern finds in the files of a folder, each once. */
function found(folder: string, pattern: RegExp): readonly string[] {
  const texts = walk(folder).map(read);
  return [...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name)))];
}

describe('errors of Redis', () => {
  const listed = [...read('docs/reference/redis-errors.md').matchAll(/^\| ([^|`]+?) \| `([a-z-]+)` \|/gm)];

  test('are in the reference, each with its kind', () => {
    const told = listed.map(([, sign, outage]) => ({ sign, outage }));
    expect(told).toEqual(SIGNS.map(({ sign, outage }) => ({ sign, outage })));
  });
});

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

/** What a link writes for each heading of a page. */
function headingsOf(text: string): readonly string[] {
  return [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}
