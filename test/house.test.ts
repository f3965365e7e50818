/**
 * The rules of the house, as far as a rule can be a test. Plain text is read, no tool is needed, and the tables below
 * are the rules: change a rule by changing its table, with the reason beside it. Lua has its own rules in
 * `house-lua.test.ts`, the reference in `house-docs.test.ts`.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { version } from '../src/kernel/version.ts';
import { circularImports } from './support/circles.ts';
import { read, root, walk } from './support/repository.ts';

/** Folder or file of `src` → what of ours it may import, besides itself. A job walks through stations. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  time: ['kernel'],
  job: ['kernel', 'time'],
  schedule: ['kernel', 'time', 'job'],
  redis: ['kernel', 'job', 'schedule'],
  config: ['kernel', 'time', 'job', 'schedule'],
  // Spans of calls and of starts.
  telemetry: ['kernel', 'job'],
  client: ['kernel', 'time', 'job', 'schedule', 'redis', 'telemetry'],
  mover: ['kernel', 'time', 'job', 'schedule', 'redis', 'telemetry'],
  // client: what a handler schedules goes the way of a producer, on the worker's connection.
  worker: ['kernel', 'time', 'job', 'schedule', 'redis', 'client', 'telemetry'],
  // The calls of a client as rows of a database, and the relay that makes them.
  sql: ['kernel', 'job', 'client', 'telemetry'],
  // What a daemon does for workers in other languages; the HTTP API is its only caller.
  remote: ['kernel', 'job', 'redis'],
  // Calls of URLs: how they are signed, where they may go, and the handler that makes them.
  dispatch: ['kernel', 'job', 'worker'],
  metrics: ['kernel', 'job', 'redis', 'telemetry'],
  // What people look at, by whichever window. config: for the type of what is remembered.
  inspect: ['kernel', 'time', 'job', 'schedule', 'redis', 'client', 'config'],
  // Who may do what, and who did it.
  access: ['kernel', 'job', 'redis', 'client', 'inspect'],
  http: ['kernel', 'time', 'job', 'schedule', 'redis', 'client', 'remote', 'metrics', 'inspect', 'access'],
  // Jobs of other products, read from their Redis and made here by a client.
  import: ['kernel', 'time', 'job', 'schedule', 'redis', 'client'],
  cli: ['kernel', 'time', 'job', 'schedule', 'redis', 'client', 'config', 'inspect', 'access', 'sql', 'import'],
  // Agents: one more window on the verbs of the HTTP API, which it asks over HTTP. kernel: how a part of a path is written.
  mcp: ['kernel', 'http'],
  // Tries what is promised on a Redis that somebody has, with daemons and workers of its own.
  prove: ['kernel', 'job', 'redis', 'config', 'client', 'worker', 'inspect', 'daemon'],
  // Plays faults against clients in other languages, with a Redis and daemons of its own.
  conformance: ['kernel', 'client', 'daemon', 'embedded'],
  embedded: [],
  // In a browser: it knows duestream by its HTTP API alone.
  dashboard: [],
  // Client, mover and worker in virtual time, over a model of Redis.
  testing: ['kernel', 'time', 'job', 'schedule', 'redis', 'client', 'mover', 'worker'],
  daemon: [
    'kernel',
    'time',
    'job',
    'schedule',
    'redis',
    'config',
    'client',
    'mover',
    'worker',
    'remote',
    'metrics',
    'http',
    'inspect',
    'access',
    'sql',
    'dispatch',
  ],
  // A module of NestJS: what an application makes by hand otherwise.
  nestjs: ['kernel', 'job', 'redis', 'client', 'worker', 'daemon'],
  'main.ts': ['kernel', 'cli'],
  // redis: for the type of a connection's settings only.
  'index.ts': ['kernel', 'time', 'job', 'schedule', 'client', 'worker', 'dispatch', 'config', 'daemon', 'redis'],
};

/** The commands that start daemons, workers and servers may import them. */
const MAY_ALSO_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // Its table of rules is small; what plays them is loaded when it runs.
  'cli/commands/conformance.ts': ['conformance'],
  'cli/commands/mcp.ts': ['mcp'],
  'cli/commands/outbox.ts': ['daemon'],
  'cli/commands/prove.ts': ['prove'],
  'cli/commands/start.ts': ['daemon'],
  'cli/commands/targets.ts': ['daemon'],
  'cli/dev/dev.ts': ['daemon', 'embedded'],
  'cli/dev/dev-redis.ts': ['embedded'],
  // How a part of a path is written, which the API reads.
  'dashboard/call.ts': ['kernel'],
  // What is told of a job, in `show` and here.
  'dashboard/pages/job/job.tsx': ['job'],
  'dashboard/pages/job/actions.tsx': ['job'],
  'dashboard/pages/job/facts.tsx': ['job'],
  'dashboard/pages/job/life.ts': ['job'],
  'dashboard/pages/job/said.tsx': ['job'],
  'dashboard/pages/jobs/list.tsx': ['job'],
  'dashboard/pages/workers.tsx': ['job'],
  // The pages as text, made by dashboard/build.mjs.
  'http/pages.ts': ['..'],
  // The scripts as text, made by lua/assemble.mjs.
  'redis/scripts/scripts.ts': ['..'],
};

/** Dependency → the only folders that import it, types included. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  ioredis: ['redis'],
  pino: ['daemon'],
  'close-with-grace': ['daemon'],
  'prom-client': ['metrics'],
  hono: ['http'],
  '@hono/zod-openapi': ['http'],
  '@hono/node-server': ['http'],
  commander: ['cli'],
  'cli-table3': ['cli'],
  zod: ['config'],
  yaml: ['config'],
  luxon: ['kernel', 'time', 'client'],
  'cron-parser': ['time'],
  ms: ['kernel', 'client'],
  'p-limit': ['client'],
};

/** The same of what a user installs beside the package, if at all: optional peers. */
const PEERS: Readonly<Record<string, readonly string[]>> = {
  '@modelcontextprotocol/server': ['mcp'],
  '@nestjs/common': ['nestjs'],
  '@nestjs/core': ['nestjs'],
  '@opentelemetry/api': ['kernel', 'telemetry', 'metrics'],
};

/** Of these a process finds what is there, and loads nothing. */
const TYPES_ALONE: readonly string[] = ['@opentelemetry/api'];

/** The same of what is built into the pages: nobody installs it with the package. */
const BUILT_IN: Readonly<Record<string, readonly string[]>> = {
  preact: ['dashboard'],
  vite: ['dashboard'],
};

/** Who reads the environment. */
const READS_ENVIRONMENT = [
  'config/',
  'main.ts',
  'embedded/',
  // The variables of OpenTelemetry, which applications set for all that they use.
  'telemetry/names.ts',
];

/** Who may read a clock or set a timer besides `kernel/clock.ts`. */
const READS_CLOCK: Readonly<Record<string, string>> = {
  'kernel/loop.ts': 'the wait of a service between two passes, cut short by a nudge or a stop',
  'redis/connection/connect.ts': 'gives up on a connection that does not come up; no test needs to move that time',
  'redis/connection/wire.ts':
    'one timer for all commands of a connection, which must not hold a process that has ended its work',
  'embedded/': 'runs before anything is installed, so it can import nothing of ours',
  'dashboard/': 'runs in a browser',
};

const FILE_BYTES_MAX = 300 * 1024;
/** `npm run generate` writes these pages: they grow with the product, and nobody reads them from top to bottom. */
const GENERATED = 'docs/reference/';
const GENERATED_BYTES_MAX = 768 * 1024;

interface Source {
  /** Path inside `src`. */
  readonly path: string;
  /** Folder of `src`, or the file itself. */
  readonly station: string;
  /** The text without comments, so that an example in a comment is no import. */
  readonly code: string;
}

const sources: readonly Source[] = walk('src')
  .filter((path) => /\.(tsx?|mjs)$/.test(path))
  .map((path) => {
    const text = read(path);
    const inside = path.slice('src/'.length);
    const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
    return { path: inside, station: inside.split('/')[0] ?? '', code };
  });

describe('imports', () => {
  test('every folder of src has a line in the table', () => {
    expect([...new Set(sources.map(({ station }) => station))].filter((name) => !(name in MAY_IMPORT))).toEqual([]);
  });

  test('folders import only what the table allows', () => {
    const broken = sources.flatMap(({ path, station, code }) =>
      imports(code)
        .filter((to) => to.startsWith('.'))
        .map((to) => normalize(join(dirname(path), to)).split('/')[0] ?? '')
        .filter((to) => to !== station && !MAY_IMPORT[station]?.includes(to) && !MAY_ALSO_IMPORT[path]?.includes(to))
        .map((to) => `${path} -> ${to}`),
    );
    expect(broken).toEqual([]);
  });

  // Imports of types count: what two files say about each other belongs in a third.
  test('no file of src imports itself over others', () => {
    const graph = sources.map(({ path, code }) => {
      const ours = imports(code).filter((to) => to.startsWith('.'));
      return [path, ours.map((to) => normalize(join(dirname(path), to)))] as const;
    });
    expect(circularImports(new Map(graph))).toEqual([]);
  });

  test('a circle of imports is found, and a file that two others share is none', () => {
    const graph = { a: ['b', 'e'], b: ['c', 'd'], c: ['a'], d: ['e'], e: [], f: ['f', 'a'] };
    const found = ['a -> b', 'b -> c', 'c -> a', 'f -> a', 'f -> f'];
    expect(circularImports(new Map(Object.entries(graph)))).toEqual(found);
    expect(circularImports(new Map(Object.entries({ ...graph, c: [], f: ['a'] })))).toEqual([]);
  });

  test('a dependency is imported by its owner only', () => {
    const broken = sources.flatMap(({ path, station, code }) =>
      imports(code)
        .filter((to) => !to.startsWith('.') && !to.startsWith('node:'))
        .map((to) => to.split('/', to.startsWith('@') ? 2 : 1).join('/'))
        .filter((to) => !(OWNERS[to] ?? PEERS[to] ?? BUILT_IN[to])?.includes(station))
        .map((to) => `${path} -> ${to}`),
    );
    expect(broken).toEqual([]);
  });

  test('every dependency has an owner, and no owner is left of a dependency that went', () => {
    expect(Object.keys(OWNERS).sort()).toEqual(Object.keys(packageJson.dependencies).sort());
  });

  test('of what an application has or has not while it runs only types are imported', () => {
    const statements = sources.flatMap(({ path, code }) => code.split(';').map((text) => ({ path, text })));
    const naming = statements.filter(({ text }) => imports(text).some((to) => TYPES_ALONE.includes(to)));
    expect(naming).not.toEqual([]);
    expect(naming.filter(({ text }) => !/\bimport type\b/.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test('every peer has an owner too, is optional, and is installed for the tests', () => {
    const peers = Object.keys(packageJson.peerDependencies).sort();
    expect(Object.keys(PEERS).sort()).toEqual(peers);
    const optional = Object.entries(packageJson.peerDependenciesMeta).filter(([, meta]) => meta.optional);
    expect(optional.map(([name]) => name).sort()).toEqual(peers);
    expect(peers.filter((name) => !(name in packageJson.devDependencies))).toEqual([]);
  });
});

describe('the edges', () => {
  test('only the edges read the environment', () => {
    expect(using(/\bprocess\.env\b/, READS_ENVIRONMENT)).toEqual([]);
  });

  test('the names by which OpenTelemetry knows what we do stand in one file', () => {
    const names = /['"`](messaging\.|exception\.|error\.type|duestream\.job\.)|OTEL_/;
    expect(using(names, ['telemetry/names.ts'])).toEqual([]);
  });

  test('only the clock of the server asks Redis for its time', () => {
    expect(using(/\.time\(\)|'TIME'/, ['redis/connection/server-clock.ts'])).toEqual([]);
  });

  test('no transaction of Redis is opened: a script is one, and some services refuse scripts in MULTI', () => {
    expect(using(/\bmulti\(|\bpipeline\(|\.exec\(\)|['"](MULTI|EXEC)['"]/, [])).toEqual([]);
  });

  test('no page makes markup of a text', () => {
    const pages = sources.filter(({ station }) => station === 'dashboard');
    expect(pages.length).toBeGreaterThan(20);
    const markup = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|javascript:/i;
    expect(pages.filter(({ code }) => markup.test(code)).map(({ path }) => path)).toEqual([]);
  });

  test('only the clock reads a clock or sets a timer', () => {
    const clocks = /\b(setTimeout|setInterval|Date\.now|performance\.now|hrtime)\b|new Date\(\)/;
    expect(using(clocks, ['kernel/clock.ts', ...Object.keys(READS_CLOCK)])).toEqual([]);
  });

  test('a signal of ours is made where any number of waits may listen to it', () => {
    expect(using(/new AbortController\b/, ['kernel/abort.ts', 'dashboard/'])).toEqual([]);
  });
});

describe('a fresh clone', () => {
  test('installs the dependencies of a measurement before it starts', () => {
    expect(packageJson.scripts.bench).toBe('node --import ./scripts/dependencies.mjs bench/bench.mjs');
  });
});

describe('sizes', () => {
  test(`no file is larger than ${FILE_BYTES_MAX / 1024} KiB`, () => {
    const bytesMax = (path: string) => (path.startsWith(GENERATED) ? GENERATED_BYTES_MAX : FILE_BYTES_MAX);
    expect(walk('.').filter((path) => statSync(join(root, path)).size > bytesMax(path))).toEqual([]);
  });
});

describe('texts', () => {
  test('nothing is left to be done', () => {
    expect(saying(/\b(T[O]DO|F[I]XME|HAC[K])\b/)).toEqual([]);
  });

  test('no file knows the machine it was written on', () => {
    expect(saying(/(?<![\w.}*])\/(work|root|home|Users)\/[\w.-]/)).toEqual([]);
  });

  test('every relative link leads somewhere', () => {
    const broken = walk('.')
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) =>
        [...read(path).matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
          .map(([, to = '']) => to)
          .filter((to) => !/^[a-z]+:/.test(to) && !existsSync(join(root, dirname(path), to)))
          .map((to) => `${path} -> ${to}`),
      );
    expect(broken).toEqual([]);
  });

  test('the version is written twice, and is the same; so is the one that pages tell people to install', () => {
    expect(version).toBe(packageJson.version);
    const named = saying(/\bduestream@\d|VERSION=\d/).filter((line) => line.startsWith('docs/'));
    expect(named).not.toEqual([]);
    expect(named.filter((line) => !line.includes(`@${version}`) && !line.includes(`=${version}`))).toEqual([]);
  });

  test('the changelog keeps its form', () => {
    const [title, ...lines] = read('CHANGELOG.md').trimEnd().split('\n');
    expect(title).toBe('# Changelog');
    const headings = lines.filter((line) => line.startsWith('#'));
    expect(headings[0]).toBe('## [Unreleased]');
    const form =
      /^## \[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d)\]?$|^### (Added|Changed|Deprecated|Removed|Fixed|Security)$/;
    expect(headings.filter((heading) => !form.test(heading))).toEqual([]);
  });
});

function imports(code: string): readonly string[] {
  return [...code.matchAll(/\b(?:from|import)\s*\(?\s*'([^'\s,]+)'/g)].map(([, to = '']) => to);
}

/** The files of src that use something, except where it belongs. */
function using(pattern: RegExp, allowed: readonly string[]): readonly string[] {
  return sources
    .filter(({ path, code }) => pattern.test(code) && !allowed.some((place) => path.startsWith(place)))
    .map(({ path }) => path);
}

/** `file:line` of every line in the repository that says something. */
function saying(pattern: RegExp): readonly string[] {
  return walk('.').flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 80)}`] : [])),
  );
}
