/**
 * What people read, as they get it: the package is packed and unpacked as an installation would, every code block of
 * README, docs and examples is compiled against it, and every link that a reader could follow leads somewhere.
 *
 * A block stands alone, unless a comment on the line before says otherwise: `<!-- continues -->`, it goes on where the
 * block before it on that page ends; `<!-- fragment: why -->`, it is not compiled at all. The reference of the library
 * is made of the examples in comments: they import nothing, and stand in `AROUND`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as daemon from '../src/daemon/index.ts';
import * as duestream from '../src/index.ts';
import * as nestjs from '../src/nestjs/index.ts';
import * as sql from '../src/sql/index.ts';
import * as testing from '../src/testing/index.ts';
import { type Packed, pack, unpack } from './support/packed.ts';
import { root } from './support/repository.ts';

/** What the blocks import besides duestream: their readers have it. */
const BESIDE = [
  ...['@types/node', '@types/pg', 'esbuild', 'pg', 'pg-protocol', 'pg-types', 'vitest'],
  ...['@nestjs/common', '@nestjs/core', '@nestjs/testing', 'reflect-metadata', 'rxjs'],
];
/** Two of them are run by `test/flow/examples/mounted.test.ts` instead, two by `test/flow/sql/recipes.test.ts`. */
const FRAGMENTS_MAX = 9;
/** Modules of the reader, which a block imports from beside itself. */
const OF_THE_READER: Readonly<Record<string, string>> = {
  'hall.d.ts': `export function reserve(id: string, seat: string, options: { signal: AbortSignal }): Promise<void>;
export function charge(id: string, card: string, options: { signal: AbortSignal }): Promise<void>;
export function release(id: string, seat: string): Promise<void>;\n`,
};

/** Where the reference of the library is, and what its examples find around them besides what the package exports. */
const API = 'docs/reference/api/';
const AROUND = `
const client: import('duestream').Client;
const worker: import('duestream').Worker;
const kit: import('duestream/testing').TestKit;
const health: import('duestream/nestjs').DuestreamHealth;
const [emails, mail, reminders, invoices, hints, bills, reports, rows]: readonly import('duestream').Queue[];
const redis: string, password: string, id: string, to: string, template: string, order: number, user: string;
const data: { to: string };
const lines: readonly string[];
const pool: import('pg').Pool;
type Run = import('duestream/sql').Run;
const run: Run;
const outbox: import('duestream/sql').Outbox;
const inbox: import('duestream/sql').Inbox;
const relay: import('duestream/sql').Relay;
type Codec = import('duestream').Codec;
type JobData<Q, Name extends string = 'default'> = import('duestream').JobData<Q, Name>;
const z: typeof import('zod').z;
const { deflateRawSync, inflateRawSync }: typeof import('node:zlib');
const context: import('duestream').HandlerContext & { tag: string };
const job: { readonly id: string; readonly etag: string; readonly queue: string; readonly mark: string };
const invoice: string, account: string, url: string;
const request: Request, answer: Response;
const ids: readonly string[];
const users: readonly { readonly id: string; readonly mail: string }[];
const jobs: readonly { readonly data: unknown; readonly id: string; readonly delay: string }[];
const batch: import('duestream').Batch;
const customer: { readonly deleted: boolean };
const expect: typeof import('vitest').expect;
const lock: { tryAcquire(): Promise<boolean> };
interface Bill { readonly cents: number }
function send(data: unknown, signal?: AbortSignal): Promise<void>;
function remind(bill: unknown): Promise<void>;
function insert(all: readonly unknown[]): Promise<void>;
function insertAll(run: Run, all: readonly unknown[]): Promise<void>;
`;
const exportsOf = (entry: string, names: object) =>
  Object.keys(names).map((name) => `const ${name}: typeof import('${entry}').${name};\n`);

let packed: Packed;
let installed = '';

beforeAll(async () => {
  packed = await pack();
  installed = unpack(packed, BESIDE);
  writeFileSync(join(packed.folder, 'package.json'), '{ "private": true, "type": "module" }');
  for (const [name, text] of Object.entries(OF_THE_READER)) writeFileSync(join(packed.folder, name), text);
});
afterAll(() => rmSync(packed.folder, { recursive: true, force: true }));

const pages = () => packed.paths.filter((path) => path.endsWith('.md'));
const page = (path: string) => readFileSync(join(installed, path), 'utf8');

interface Block {
  /** `docs/a.md:12`, the line of the first block of it. */
  readonly at: string;
  readonly extension: 'mts' | 'mjs';
  code: string;
}

function blocksOf(path: string): { readonly blocks: readonly Block[]; readonly fragments: readonly string[] } {
  const text = page(path);
  const blocks: Block[] = [];
  const fragments: string[] = [];
  for (const match of text.matchAll(/(?:<!-- ([^>]*) -->\n)?^```(\w+)[^\n]*\n([\s\S]*?)^```/gm)) {
    const [, comment = '', language = '', code = ''] = match;
    if (!/^(ts|mts|typescript|js|mjs|cjs|javascript)$/.test(language)) continue;
    const at = `${path}:${text.slice(0, match.index).split('\n').length}`;
    const before = blocks.at(-1);
    if (/^fragment: \S/.test(comment)) fragments.push(at);
    else if (comment === 'continues' && before) before.code += code;
    else blocks.push({ at, extension: language.endsWith('s') && /ts|typescript/.test(language) ? 'mts' : 'mjs', code });
  }
  return { blocks, fragments };
}

/** Compiles all of them at once. @returns what the compiler says, with the page in place of the file */
function compile(blocks: readonly Block[], options: readonly string[] = []): string {
  const names = blocks.map(({ at, extension }) => `${at.replace(/[^\w.-]/g, '_')}.${extension}`);
  for (const [index, { code }] of blocks.entries()) writeFileSync(join(packed.folder, names[index] ?? ''), code);
  const strict = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--allowJs', '--checkJs', '--types', 'node'];
  const target = ['--target', 'es2023', '--module', 'nodenext'];
  // As in an application of Nest; no other page has decorators.
  const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata'];
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { stdout, stderr } = spawnSync(tsc, [...strict, ...target, ...decorators, ...options, ...names], {
    cwd: packed.folder,
    encoding: 'utf8',
    timeout: 200_000,
  });
  return names.reduce((said, name, index) => said.replaceAll(name, blocks[index]?.at ?? name), stdout + stderr);
}

describe('the code that people read', () => {
  test('compiles, strict and with the types of the package checked, block by block', () => {
    const blocks = pages().flatMap((path) => (path.startsWith(API) ? [] : blocksOf(path).blocks));
    expect(blocks.length).toBeGreaterThanOrEqual(8);
    expect(compile(blocks)).toBe('');
  }, 240_000);

  test('compiles in the reference of the library too, where each example stands among others', () => {
    const blocks = pages().flatMap((path) => (path.startsWith(API) ? blocksOf(path).blocks : []));
    expect(blocks.length).toBeGreaterThanOrEqual(20);
    const ours = [
      exportsOf('duestream', duestream),
      exportsOf('duestream/daemon', daemon),
      exportsOf('duestream/nestjs', nestjs),
      exportsOf('duestream/sql', sql),
      exportsOf('duestream/testing', testing),
    ];
    const around = [...ours.flat(), AROUND].join('');
    writeFileSync(join(packed.folder, 'around.d.ts'), `export {};\ndeclare global {\n${around}\n}\n`);
    const modules = blocks.map(({ code, ...block }) => ({ ...block, code: `${code}export {};\n` }));
    expect(compile(modules, ['around.d.ts'])).toBe('');
  }, 240_000);

  test('is seldom a fragment that is not compiled', () => {
    expect(pages().flatMap((path) => blocksOf(path).fragments).length).toBeLessThanOrEqual(FRAGMENTS_MAX);
  });

  test('would be refused with a mistake in it', () => {
    const code = "import { defineQueue } from 'duestream';\ndefineQueue(5);\n";
    expect(compile([{ at: 'mistake', extension: 'mts', code }])).toContain('mistake(2,13): error TS2345');
  }, 240_000);
});

test('data has the type that somebody said, and passes as anything where nobody did', () => {
  const code = `
import { createWorker, defineHandlers, defineQueue, type Job, type Queue } from 'duestream';
import { createTestKit } from 'duestream/testing';
import type { InstantInput } from 'duestream';
const redis = { url: 'redis://127.0.0.1:6379', commandTimeoutMs: 1000 };
const loose: number = await (async () => 1)();
export const anything = defineHandlers({ emails: async (job) => job.data.to, bills: { due: (job) => job.data.cents } });
export const annotated = defineHandlers({ emails: async (job: Job<{ to: string }>) => job.data.to.length });
export const said = defineHandlers<{ emails: { to: string } }>({
  emails: async (job) => {
    // @ts-expect-error jobs of this queue carry no such thing
    job.data.cents;
    return job.data.to.toUpperCase();
  },
});
// @ts-expect-error a queue that is not among those that were said
defineHandlers<{ emails: { to: string } }>({ emails: () => undefined, bills: () => undefined });
const emails = defineQueue<{ to: string }>('emails');
createWorker(emails, (job) => job.data.to.length + loose, { redis });
// @ts-expect-error the queue says what its jobs carry
createWorker(emails, (job) => job.data.cents, { redis });
createWorker('emails', (job) => job.data.anything, { redis });
createTestKit({ handlers: { emails: (job) => job.data.to }, queues: [emails as Queue] });
// @ts-expect-error nothing else is an instant
export const at: InstantInput = { toMillis: () => 0 };
`;
  expect(compile([{ at: 'types', extension: 'mts', code }])).toBe('');
}, 240_000);

test('a luxon DateTime is an instant for those who have its types', () => {
  const luxon = `
declare module 'luxon' { export class DateTime<IsValid extends boolean = boolean> {
  get isValid(): IsValid;
  get zoneName(): IsValid extends true ? string : string | null;
  toMillis(): number;
  static now(): DateTime<true>;
} }
`;
  const code = `
import { DateTime } from 'luxon';
import type { InstantInput } from 'duestream';
export const at: InstantInput = DateTime.now();
`;
  writeFileSync(join(packed.folder, 'luxon.d.ts'), luxon);
  expect(compile([{ at: 'luxon-at', extension: 'mts', code }], ['luxon.d.ts'])).toBe('');
}, 240_000);

describe('the links that people follow', () => {
  /** Sources, tests, pictures, decisions and what builds from sources are in the repository only. */
  const OUTSIDE = /^(src|test|bench|docs\/(screenshots|decisions)|\.github)(\/|$)|^Dockerfile$|^deploy\/compose\.yaml$/;
  const linksOf = (path: string) =>
    [...page(path).matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)].flatMap(([, to = '']) => {
      return /^[a-z]+:/.test(to) ? [] : [{ path, to: normalize(join(dirname(path), to)) }];
    });
  const broken = (path: string) => linksOf(path).filter(({ to }) => !existsSync(join(installed, to)));

  test('of the README work in an installed package', () => {
    expect(linksOf('README.md').length).toBeGreaterThan(20);
    expect(broken('README.md')).toEqual([]);
  });

  test('of docs and examples do too, apart from those into sources and tests', () => {
    expect(
      pages()
        .flatMap(broken)
        .filter(({ to }) => !OUTSIDE.test(to)),
    ).toEqual([]);
  });
});

describe('what is shipped', () => {
  test('has no source map, and no file that points to one', () => {
    expect(packed.paths.filter((path) => path.endsWith('.map'))).toEqual([]);
    const code = packed.paths.filter((path) => /^dist\/.*\.m?js$/.test(path));
    const pointing = code.filter((path) => page(path).includes('//# sourceMappingURL='));
    expect([code.length > 5, pointing]).toEqual([true, []]);
  });

  test('stays small, with all docs in it', () => {
    expect(packed.packedBytes).toBeLessThan(1_900_000);
  });
});
