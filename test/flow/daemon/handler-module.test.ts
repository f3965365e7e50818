/** What is said of a handler module that cannot be used: by Node itself, so that its own errors are the ones that are read. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build } from '../../../scripts/steps.mjs';
import { whyUnloadable } from '../../../src/daemon/handler-module.ts';
import { root } from '../../support/repository.ts';

const index = JSON.stringify(join(root, 'dist/index.js'));
const FILES: Readonly<Record<string, string>> = {
  'good.mjs': `import { defineHandlers } from ${index};\nexport default defineHandlers({ emails: () => 1 });\n`,
  'compiled.cjs': `exports.default = { kind: 'duestream.handlers', map: { emails: () => 1 }, queues: [], onAbandoned: {} };\n`,
  'syntax.mjs': 'const a = 1;\nexport default {\n  emails: (job => 1,\n};\n',
  'imports-syntax.mjs': "import './syntax.mjs';\n",
  'binding.mjs': "\nimport { nothing } from 'node:fs';\n",
  'throws.mjs': 'const a = 1;\nfunction boom() {\n  null.foo();\n}\nboom();\n',
  'throws-text.mjs': "throw 'a text';\n",
  'imports-missing.mjs': "import './nowhere.mjs';\n",
  'types.ts': 'const n: number = 1;\nexport default n;\n',
  'plain.mjs': 'export default { emails: () => 1 };\n',
  'named.mjs': 'export const handlers = 1;\n',
  'empty.mjs': '',
};
let folder = '';
const said = new Map<string, string>();

beforeAll(async () => {
  await build();
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'duestream-module-')));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, 'folder'));
  const script = `
    const { loadHandlers } = await import(${JSON.stringify(join(root, 'dist/daemon/handler-module.js'))});
    for (const name of process.argv.slice(1)) {
      const text = await loadHandlers(name).then(({ map }) => Object.keys(map).join(), (error) => error.code + ': ' + error.message);
      console.log(JSON.stringify([name, text]));
    }`;
  const names = [...Object.keys(FILES), 'folder', 'god.mjs', 'nowhere.mjs'];
  const args = ['--input-type=module', '-e', script, '--', ...names];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder });
  for (const line of stdout.trim().split('\n')) said.set(...(JSON.parse(line) as [string, string]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['good.mjs', 'emails'],
  ['compiled.cjs', 'emails'],
  ['syntax.mjs', "cannot be loaded: SyntaxError at {}/syntax.mjs:4: Unexpected token '}'"],
  ['imports-syntax.mjs', "cannot be loaded: SyntaxError at {}/syntax.mjs:4: Unexpected token '}'"],
  ['binding.mjs', "cannot be loaded: SyntaxError at {}/binding.mjs:2: The requested module 'node:fs' does not provide"],
  ['throws.mjs', 'cannot be loaded: TypeError at {}/throws.mjs:3:8: Cannot read properties of null'],
  ['throws-text.mjs', 'cannot be loaded: a text'],
  ['imports-missing.mjs', "cannot be loaded: Cannot find module '{}/nowhere.mjs' imported from {}/imports-missing.mjs"],
  ['folder', 'cannot be loaded: it is a folder; name the file in it'],
  ['god.mjs', 'cannot be loaded: there is no such file; did you mean good.mjs?'],
  ['nowhere.mjs', 'cannot be loaded: there is no such file'],
  [
    'plain.mjs',
    'has no handlers: its default export is of type object and not what defineHandlers returns; allowed: export',
  ],
  ['named.mjs', 'has no handlers: it has no default export, only handlers; allowed: export default defineHandlers('],
  ['empty.mjs', 'has no handlers: it exports nothing; allowed: export default defineHandlers('],
])('%s', (name, expected) => {
  const text = said.get(name) ?? 'nothing';
  const refused = expected === 'emails' ? expected : `bad-input: handler module ${name} ${expected}`;
  expect(text).toContain(refused.replaceAll('{}', folder));
});

/** Node 22.18 and 23.6 were the first that strip types without being asked. */
const strips = 'typescript' in process.features && process.features.typescript !== false;

test('a TypeScript module is run where Node strips types, and is refused with what to do where it does not', () => {
  expect(said.get('types.ts')).toContain(
    strips
      ? 'has no handlers: its default export is of type number'
      : `cannot be loaded: Node ${process.version} does not run TypeScript; take Node 22.18 or later, which strips the types, or build it to JavaScript and name that file, or install tsx and set NODE_OPTIONS="--import tsx"`,
  );
});

test('TypeScript that needs more than its types stripped is refused with file, line and what to do', () => {
  const error = Object.assign(new Error('TypeScript enum is not supported in strip-only mode'), {
    name: 'SyntaxError',
    code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
    stack: '/app/handlers.ts:7\n enum A {}\n ^^^^\n\nSyntaxError: x',
  });
  expect(whyUnloadable(error, { path: '/app/handlers.ts' })).toBe(
    'SyntaxError at /app/handlers.ts:7: TypeScript enum is not supported in strip-only mode (ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX); Node strips types and compiles nothing: write it without enum, namespace and parameter properties, or build it to JavaScript',
  );
});
