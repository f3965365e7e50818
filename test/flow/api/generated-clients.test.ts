/** Whoever has the OpenAPI file has a client: generated for TypeScript, and read by a program of another language. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import openapiTS, { astToString } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { documentOf } from '../../../src/http/api/api.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { root } from '../../support/repository.ts';

const run = promisify(execFile);
const file = join(root, 'docs/reference/openapi.json');
let api: ServedApi;
let dir: string;

beforeAll(async () => {
  api = await serveApi();
  // Below the repository, so that the program finds the packages.
  await mkdir(join(root, '.cache'), { recursive: true });
  dir = await mkdtemp(join(root, '.cache', 'client-'));
});
afterAll(async () => {
  await api.stop();
  await rm(dir, { recursive: true, force: true });
});

test('a TypeScript client made from the file compiles, and schedules, edits and cancels', async () => {
  await writeFile(join(dir, 'schema.ts'), astToString(await openapiTS(JSON.parse(documentOf()))));
  await copyFile(join(root, 'test/fixtures/api-client.ts.txt'), join(dir, 'program.ts'));
  await writeFile(join(dir, 'package.json'), '{"type":"module"}');
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    rootDir: '.',
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    outDir: 'out',
  };
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const compiled = await run(tsc, ['-p', dir]).catch((error: { readonly stdout: string }) => error);
  expect(compiled.stdout).toBe('');
  const { stdout } = await run(process.execPath, [join(dir, 'out', 'program.js'), `${api.url}/v1`]);
  expect(JSON.parse(stdout)).toEqual({
    status: 'scheduled',
    edited: 'edited',
    stale: 'changed',
    cancelled: 'cancelled',
    data: { to: 'new@example.org' },
    options: {},
    fates: [],
  });
});

test('a Python program that reads the file schedules, edits and cancels', async (context) => {
  const python = await run('python3', ['-c', 'print(1)']).catch(() => undefined);
  if (!python) return context.skip('there is no python3 on the PATH');
  const { stdout } = await run('python3', [join(root, 'test/fixtures/api_client.py'), `${api.url}/v1`, file]);
  expect(JSON.parse(stdout)).toEqual({
    made: 201,
    edited: 'edited',
    stale: [412, 'changed'],
    data: { to: 'new' },
    cancelled: 'cancelled',
    misspelt: 'body.dely is unknown',
  });
});
