/**
 * What people install: the tarball is packed as for publishing, installed into an empty folder, and used there from
 * ES modules, CommonJS, TypeScript and the shell. Whatever works only inside the repository fails here.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as esbuild } from 'esbuild';
import { publint } from 'publint';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
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

test('the tarball holds the build, the scripts, docs, examples, the example configuration and the papers, and nothing else', () => {
  const lua = ['await', 'cancel', 'schedule'].map((name) => `lua/${name}.lua`);
  const wanted = ['package.json', 'LICENSE', 'CHANGELOG.md', 'README.md', 'config/production.example.yaml', ...lua];
  expect(packed).toEqual(expect.arrayContaining([...wanted, 'dist/index.js', 'dist/index.d.ts', 'dist/main.js']));
  expect(packed.filter((path) => path.startsWith('lua/')).toSorted()).toEqual([...lua, 'lua/scripts.mjs']);
  const known =
    /^(dist|lua|config|docs|examples|deploy)\/|^[A-Z]+(\.md)?$|^Dockerfile$|^package\.json$|^test\/golden\//;
  expect(packed.filter((path) => !known.test(path))).toEqual([]);
});

test('its scripts are whole: flags first, and nothing but them', async () => {
  const at = (name: string) => join(folder, 'node_modules/duestream/lua', name);
  const { texts } = await import(pathToFileURL(at('scripts.mjs')).href);
  expect(Object.keys(texts).toSorted()).toEqual(namesIn('verbs').toSorted());
  expect(namesIn('verbs').filter((name) => texts[name] !== assembledScript(name))).toEqual([]);
  expect(namesIn('verbs').filter((name) => !texts[name].startsWith('#!lua'))).toEqual([]);
  for (const name of ['await', 'cancel', 'schedule']) expect(readFileSync(at(`${name}.lua`), 'utf8')).toBe(texts[name]);
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

const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
/** What a bundle of a producer and a worker has to find: the scripts and the version; Redis is not there. */
const BUNDLED = `import { createClient, createWorker } from 'duestream';
const redis = 'redis://127.0.0.1:1';
const worker = createWorker('emails', () => undefined, { redis });
const client = createClient({ redis });
client.schedule('emails', {}, { delay: 0 }).catch((error) => console.log(error.code)).finally(() => client.stop());
void worker.stop();
`;

describe.each(['esm', 'cjs'] as const)('a bundle, %s, needs nothing beside it', (format) => {
  const alone = mkdtempSync(join(tmpdir(), 'duestream-bundle-'));
  const file = join(alone, format === 'esm' ? 'app.mjs' : 'app.cjs');
  const entry = () => {
    writeFileSync(join(folder, 'app.mjs'), BUNDLED);
    return join(folder, 'app.mjs');
  };
  afterAll(() => rmSync(alone, { recursive: true, force: true }));

  test('of rolldown', async () => {
    const bundle = await rolldown({ input: entry(), platform: 'node', logLevel: 'silent' });
    await bundle.write({ file, format, codeSplitting: false });
    expect(runIn(alone, 'node', [file]).trim()).toBe('unavailable');
  });

  test('of esbuild', async () => {
    // What is CommonJS among the dependencies asks for `require`, which a module has not.
    const banner = format === 'esm' ? { js: REQUIRE } : {};
    await esbuild({ entryPoints: [entry()], bundle: true, platform: 'node', format, outfile: file, banner });
    expect(runIn(alone, 'node', [file]).trim()).toBe('unavailable');
  });
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
