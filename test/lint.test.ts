/**
 * Proof that the rules of `.oxlintrc.jsonc` bite: each planted line must be reported, and the same code written well must not
 * be. What is planted stands in a temporary folder that is laid out as the repository is and has its settings.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { root } from './support/repository.ts';

const project = mkdtempSync(join(tmpdir(), 'due-lint-'));
for (const file of ['.oxlintrc.jsonc', 'tsconfig.json', 'package.json'])
  copyFileSync(join(root, file), join(project, file));
symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'));
afterAll(() => rmSync(project, { recursive: true, force: true }));

interface Found {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
}

/** What the linter finds in these texts, by path. */
async function lint(texts: Readonly<Record<string, string>>): Promise<readonly Found[]> {
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  }
  const said = await new Promise<string>((resolve, reject) => {
    const args = ['--format', 'json', ...Object.keys(texts)];
    // It exits with 1 when it has found something, and says so; otherwise it could not be run.
    execFile(join(root, 'node_modules', '.bin', 'oxlint'), args, { cwd: project }, (error, stdout, stderr) =>
      stdout.startsWith('{') ? resolve(stdout) : reject(new Error(`${stdout}${stderr}`, { cause: error })),
    );
  });
  const { diagnostics, number_of_files: read } = JSON.parse(said);
  expect(read).toBe(Object.keys(texts).length);
  return diagnostics
    .map(({ code, filename, labels }: { code: string; filename: string; labels: { span: { line: number } }[] }) => {
      return { file: filename, line: labels[0]?.span.line, rule: /\((.+)\)$/.exec(code)?.[1] };
    })
    .toSorted((a: Found, b: Found) => a.file.localeCompare(b.file) || a.line - b.line);
}

const CAREFUL = `
import { Redis } from 'ioredis';
const redis = new Redis({ lazyConnect: true });
export async function careful(queue: 'a' | 'b'): Promise<string> {
  await redis.set('key', 'value');
  await redis.pipeline().zadd('key', 1, 'member').exec();
  redis.once('ready', () => void redis.get('key'));
  switch (queue) {
    case 'a':
      return 'first';
    case 'b':
      return 'second';
  }
}
`;

const PLANTED = [
  { bug: 'a command that is not awaited', line: "redis.set('key', 'value');", rule: 'no-floating-promises' },
  { bug: 'a script call that is not awaited', line: "redis.evalsha('sha', 1, 'key');", rule: 'no-floating-promises' },
  { bug: 'a pipeline that is not awaited', line: "redis.pipeline().set('a', 1).exec();", rule: 'no-floating-promises' },
  {
    bug: 'an async function given to setInterval',
    line: "setInterval(async () => { await redis.get('key'); }, 1000);",
    rule: 'no-misused-promises',
  },
  {
    bug: 'an async listener',
    line: "redis.on('ready', async () => { await redis.get('key'); });",
    rule: 'no-misused-promises',
  },
  { bug: 'a promise used as a condition', line: "if (redis.exists('key')) void 0;", rule: 'no-misused-promises' },
  { bug: 'an await of what is no promise', line: 'await redis.status;', rule: 'await-thenable' },
  {
    bug: 'a switch that forgets a member of a closed union',
    line: "switch (queue) { case 'a': break; }",
    rule: 'switch-exhaustiveness-check',
  },
];

describe('the promise rules', () => {
  test('accept code that waits for what it starts', async () => {
    expect(await lint({ 'test/careful.ts': CAREFUL })).toEqual([]);
  });

  test('report every planted bug, each on its own line, wherever it stands', async () => {
    const [head = '', tail = ''] = CAREFUL.split(/(?= {2}switch)/);
    const text = head + PLANTED.map(({ line }) => `${line}\n`).join('') + tail;
    const untyped = text.replace("queue: 'a' | 'b'): Promise<string>", "queue = /** @type {'a' | 'b'} */ ('a'))");
    const places = { 'scripts/up.mjs': untyped, ...all(['src/main.ts', 'src/worker/a.ts', 'test/support/a.ts'], text) };
    const first = head.split('\n').length;
    const expected = Object.keys(places).flatMap((file) =>
      PLANTED.map(({ rule }, index) => ({ file, line: first + index, rule })),
    );
    expect(await lint(places)).toEqual(expected);
  });
});

describe('a function fits a screen', () => {
  const LONG = `export function long() {\n${'void 0;\n'.repeat(60)}}\n`;

  test('60 lines with its first and last pass, 61 do not; blanks and comments are not counted', async () => {
    const files = ['src/client/a.ts', 'src/main.ts', 'src/mover/a.ts'];
    const found = await lint(all(files, LONG));
    expect(found.map(({ file, rule }) => `${file} ${rule}`)).toEqual(
      files.map((file) => `${file} max-lines-per-function`),
    );
    expect(await lint(all(files, LONG.replace('void 0;\nvoid 0;\n', '// Why.\n\n')))).toEqual([]);
  });

  test('a test may be longer', async () => {
    expect(await lint({ 'test/long.ts': LONG })).toEqual([]);
  });
});

const all = (files: readonly string[], text: string) => Object.fromEntries(files.map((file) => [file, text]));
