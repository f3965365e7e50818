/**
 * What people install: the tarball is packed as for publishing, installed into an empty folder, and used there from
 * ES modules, CommonJS, TypeScript and the shell. Whatever works only inside the repository fails here.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { assembledScript, namesIn } from '../lua/assemble.mjs';
import packageJson from '../package.json' with { type: 'json' };
import { pack, runIn } from './support/packed.ts';
import { root } from './support/repository.ts';

const PUBLIC = ['createClient', 'createWorker', 'defineHandlers', 'defineQueue', 'exponential'];

let folder = '';
let packed: readonly string[] = [];

beforeAll(async () => {
  const made = await pack();
  folder = made.folder;
  packed = made.paths;
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const quiet = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  run('npm', ['install', ...quiet, made.tarball]);
});

/** Far above need: npm alone takes seconds on a machine that does other things as well. */
vi.setConfig({ testTimeout: 120_000 });
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the tarball holds the build, every script, docs, examples, the example configuration and the papers, and nothing else', () => {
  const lua = namesIn('verbs').map((name) => `lua/${name}.lua`);
  const wanted = ['package.json', 'LICENSE', 'CHANGELOG.md', 'README.md', 'config/production.example.yaml', ...lua];
  expect(packed).toEqual(expect.arrayContaining([...wanted, 'dist/index.js', 'dist/index.d.ts', 'dist/main.js']));
  const known =
    /^(dist|lua|config|docs|examples|deploy)\/|^[A-Z]+(\.md)?$|^Dockerfile$|^package\.json$|^test\/golden\//;
  expect(packed.filter((path) => !known.test(path))).toEqual([]);
});

test('its scripts are whole: flags first, and nothing but them', () => {
  const found = packed.filter((path) => path.startsWith('lua/')).toSorted();
  expect(found).toEqual(
    namesIn('verbs')
      .map((name) => `lua/${name}.lua`)
      .toSorted(),
  );
  const text = (name: string) => readFileSync(join(folder, 'node_modules/duestream/lua', `${name}.lua`), 'utf8');
  expect(namesIn('verbs').filter((name) => text(name) !== assembledScript(name))).toEqual([]);
  expect(namesIn('verbs').filter((name) => !text(name).startsWith('#!lua'))).toEqual([]);
});

test('it is imported by an ES module', () => {
  const script = "import * as all from 'duestream'; console.log(JSON.stringify(Object.keys(all)))";
  const names = JSON.parse(run('node', ['--input-type=module', '-e', script]));
  expect(names).toEqual(expect.arrayContaining(PUBLIC));
});

test('its other entries are imported too', () => {
  const script =
    "import * as sql from 'duestream/sql'; import * as kit from 'duestream/testing'; import * as daemon from 'duestream/daemon'; console.log(JSON.stringify([sql, kit, daemon].map(Object.keys)))";
  const [sql, kit, daemon] = JSON.parse(run('node', ['--input-type=module', '-e', script]));
  expect(sql).toEqual(
    expect.arrayContaining(['createInbox', 'createOutbox', 'defineOutbox', 'createRelay', 'inboxTable', 'outboxTable']),
  );
  expect(kit).toContain('createTestKit');
  expect(daemon).toEqual(['createDaemon', 'createDashboard']);
});

test('it is required by CommonJS', () => {
  const script = "const { defineQueue } = require('duestream'); console.log(defineQueue('emails').attempts)";
  expect(run('node', ['--no-warnings', '-e', script]).trim()).toBe('5');
});

test('its types reach the code of the user', () => {
  const good = "const emails = defineQueue<{ to: string }>('emails', { attempts: 2 });\nemails.name.length;\n";
  const wrong = "// @ts-expect-error a queue's name is a text\ndefineQueue(5);\n";
  writeFileSync(join(folder, 'use.mts'), `import { defineQueue } from 'duestream';\n${good}${wrong}`);
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2023', '--module', 'nodenext'];
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')];
  expect(run(join(root, 'node_modules/.bin/tsc'), [...options, ...types, 'use.mts'])).toBe('');
});

test('its command runs', () => {
  expect(run('npx', ['--no-install', 'duestream', '--version']).trim()).toBe(packageJson.version);
  expect(run('npx', ['--no-install', 'duestream', '--help'])).toContain('Usage: duestream');
});

test('publint finds nothing wrong with it', async () => {
  const { messages } = await publint({ pkgDir: join(folder, 'node_modules/duestream'), pack: false, strict: true });
  expect(messages).toEqual([]);
});

function run(command: string, args: readonly string[]): string {
  return runIn(folder, command, args);
}
