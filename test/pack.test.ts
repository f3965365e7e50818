/**
 * What people install: the tarball is packed as for publishing, installed into an empty folder, and used there from
 * ES modules, CommonJS, TypeScript and the shell. Whatever works only inside the repository fails here.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { publint } from 'publint';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { assembledScript } from '../lua/assemble.mjs';
import packageJson from '../package.json' with { type: 'json' };
import { sbom } from '../scripts/sbom.mjs';
import { pack, runIn } from './support/packed.ts';
import { startRedis } from './support/redis.ts';
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
  expect(packed.filter((path) => path.startsWith('lua/')).toSorted()).toEqual(lua);
  const known =
    /^(dist|lua|config|docs|examples|clients|deploy)\/|^[A-Z]+(\.md)?$|^package\.json$|^llms\.txt$|^test\/golden\//;
  expect(packed.filter((path) => !known.test(path))).toEqual([]);
  // They build from the sources, which are not there.
  expect(packed.filter((path) => /Dockerfile|compose(?!r\.json$)/.test(path))).toEqual([]);
});

test('the scripts for foreign clients are whole: flags first, and nothing but them', () => {
  for (const name of ['await', 'cancel', 'schedule']) {
    const text = readFileSync(join(folder, 'node_modules/duestream/lua', `${name}.lua`), 'utf8');
    expect(text.startsWith('#!lua')).toBe(true);
    expect(text).toBe(assembledScript(name));
  }
});

test('the list of what others have written names what is installed and what is built into the pages, and no tool', () => {
  const { components }: { components: readonly { name: string }[] } = JSON.parse(sbom());
  const names = components.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining([...Object.keys(packageJson.dependencies), 'preact', 'sonic-boom']));
  expect(names).not.toContain('vitest');
});

test('its code lies in few files, so that an import is quick', () => {
  expect(packed.filter((path) => path.endsWith('.js')).length).toBeLessThan(80);
});

const UNCAUGHT = {
  'an unknown option': "await client.schedule('q', {}, { delays: 1 })",
  'a word that is none': "await client.schedule('q', {}, { ifExists: 'never' })",
  'a name that is none': "await client.schedule('q q', {})",
  'a cron that is none': "await client.schedules.put('x', { queue: 'reports', cron: '61 * * * *' })",
  'a list of which a limit takes one': `const of = defineQueue('full', { maxPending: 1 });
    await client.scheduleMany(of, Array.from({ length: 300 }, (_, n) => ({ data: n })))`,
} as const;

test.each(Object.entries(UNCAUGHT))(
  'an error that nobody catches says in its first 2 KB what is wrong: %s',
  async (_, code) => {
    const redis = await startRedis();
    try {
      const client = `import { createClient, defineQueue } from 'duestream'; const client = createClient({ redis: '${redis.url}' });`;
      const { status, stderr } = spawnSync('node', ['--input-type=module', '-e', `${client} ${code}`], {
        cwd: folder,
        encoding: 'utf8',
      });
      expect(status).not.toBe(0);
      expect(stderr.slice(0, 2048)).toMatch(/^DuestreamError: .*(allowed: |did you mean |jobs|full)/m);
      expect(stderr.length).toBeLessThan(6000);
      expect(stderr.split('\n').length).toBeLessThan(60);
      // A frame has the name of its function, and the path of nobody's machine.
      expect(stderr).toMatch(/ {4}at (async )?[\w.]{3,} \(.*\/dist\/code\/[\w-]+\.js:\d+:\d+\)/);
    } finally {
      await redis.stop();
    }
  },
);

test('its code names no folder of the machine that has built it', () => {
  for (const path of packed.filter((one) => one.endsWith('.js'))) {
    expect(readFileSync(join(folder, 'node_modules/duestream', path), 'utf8'), path).not.toMatch(/^\/\/ .*\.\.\//m);
  }
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
/** Bundles a program into one file of a folder, and says where it is. */
const BUNDLERS: Readonly<Record<string, (program: string, format: 'esm' | 'cjs', file: string) => Promise<unknown>>> = {
  async rolldown(input, format, file) {
    const bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' });
    await bundle.write({ file, format, codeSplitting: false });
  },
  esbuild(program, format, outfile) {
    // What is CommonJS among the dependencies asks for `require`, which a module has not.
    const banner = format === 'esm' ? { js: REQUIRE } : {};
    return esbuild({
      entryPoints: [program],
      bundle: true,
      platform: 'node',
      format,
      outfile,
      banner,
      logLevel: 'error',
    });
  },
};

/** What a bundle of a producer and a worker has to find: the scripts and the version; Redis is not there. */
const PRODUCER = `import { createClient, createWorker } from 'duestream';
const redis = process.argv[2];
const worker = createWorker('emails', () => undefined, { redis });
const client = createClient({ redis });
client.schedule('emails', {}, { delay: 0 }).catch((error) => console.log(error.code)).finally(() => client.close());
void worker.stop();
`;
/** All of it: a mover promotes, a worker runs, the pages are there by both windows. */
const EVERYTHING = `import { createClient, createWorker } from 'duestream';
import { createDaemon, createDashboard } from 'duestream/daemon';
async function main(redis) {
  const daemon = createDaemon({ redis, roles: ['mover', 'http'], http: { port: 0 } });
  const dashboard = createDashboard({ redis });
  const client = createClient({ redis });
  let worker;
  const ran = new Promise((resolve) => {
    worker = createWorker('emails', ({ data }) => resolve(data.to), { redis });
  });
  await daemon.start();
  await worker.start();
  await client.schedule('emails', { to: 'ada' }, { delay: 1 });
  const page = await (await dashboard.fetch(new Request('http://localhost/'))).text();
  const [, script] = /src="\\.\\/([^"]+)"/.exec(page);
  const { port } = daemon.http();
  const statusOf = async (path) => (await fetch('http://127.0.0.1:' + port + '/' + path)).status;
  console.log(await ran, await statusOf(''), await statusOf(script), await statusOf('readyz'), await statusOf('v1/queues'));
  for (const part of [worker, dashboard, daemon]) await part.stop();
  await client.close();
}
void main(process.argv[2]);
`;

describe.each(['esm', 'cjs'] as const)('a bundle, %s, needs nothing beside it', (format) => {
  const alone = mkdtempSync(join(tmpdir(), 'duestream-bundle-'));
  const file = join(alone, format === 'esm' ? 'app.mjs' : 'app.cjs');
  afterAll(() => rmSync(alone, { recursive: true, force: true }));

  async function outputOf(program: string, bundler: string, redis: string): Promise<string> {
    writeFileSync(join(folder, 'app.mjs'), program);
    await BUNDLERS[bundler]?.(join(folder, 'app.mjs'), format, file);
    return runIn(alone, 'node', [file, redis]).trim();
  }

  test.each(Object.keys(BUNDLERS))('of a producer and a worker, by %s', async (bundler) => {
    expect(await outputOf(PRODUCER, bundler, 'redis://127.0.0.1:1')).toBe('unavailable');
  });

  test.each(Object.keys(BUNDLERS))('of a daemon with its dashboard, by %s', async (bundler) => {
    const server = await startRedis({ port: true });
    try {
      expect(await outputOf(EVERYTHING, bundler, server.url)).toBe('ada 200 200 200 200');
    } finally {
      await server.stop();
    }
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

test('its types reach code that is compiled to CommonJS with the old resolution, from every entry', () => {
  const entries = ['duestream', 'duestream/daemon', 'duestream/sql', 'duestream/testing'];
  const imports = entries.map((entry, at) => `import * as entry${at} from '${entry}';\nexport { entry${at} };\n`);
  const wrong = "// @ts-expect-error a queue's name is a text\nentry0.defineQueue(5);\n";
  writeFileSync(join(folder, 'old.ts'), [...imports, wrong].join(''));
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2023', '--module', 'commonjs'];
  const old = ['--moduleResolution', 'node10', '--ignoreDeprecations', '6.0', '--esModuleInterop'];
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')];
  // The compiler of today no longer knows it.
  expect(run(join(root, 'node_modules/.bin/tsc6'), [...options, ...old, ...types, 'old.ts'])).toBe('');
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
