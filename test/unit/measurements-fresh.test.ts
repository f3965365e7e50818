/** A measurement can be started on a fresh clone: what it imports is installed before it is read. */
import { execFile } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { root } from '../support/repository.ts';

const PRELOAD = 'node --import ./scripts/dependencies.mjs ';
const clone = mkdtempSync(join(tmpdir(), 'due-fresh-'));
afterAll(() => rmSync(clone, { recursive: true, force: true }));

const scripts: Readonly<Record<string, string>> = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;

test('each measurement of package.json has its dependencies installed first', () => {
  const measurements = Object.entries(scripts).filter(([, command]) => /\bbench\/\S+\.mjs/.test(command));
  expect(measurements.length).toBeGreaterThan(10);
  expect(measurements.filter(([, command]) => !command.startsWith(PRELOAD))).toEqual([]);
});

test('the bench starts where nothing is installed', async () => {
  for (const folder of ['bench', 'lua', 'scripts', 'src', 'test/chaos'])
    cpSync(join(root, folder), join(clone, folder), {
      recursive: true,
      filter: (path) => basename(path) !== 'node_modules',
    });
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(root, file), join(clone, file));
  // Instead of npm: it tells what it was asked for, and puts there what this repository has.
  mkdirSync(join(clone, 'bin'));
  const npm = join(clone, 'bin', 'npm');
  writeFileSync(npm, `#!/bin/sh\necho "$@" >> asked\nln -s '${join(root, 'node_modules')}' node_modules\n`);
  chmodSync(npm, 0o755);
  const { npm_execpath: _ours, ...env } = process.env;
  const options = { cwd: clone, env: { ...env, PATH: `${join(clone, 'bin')}:${process.env.PATH}` } };
  const [node = '', ...args] = scripts.bench?.split(' ') ?? [];
  expect(node).toBe('node');
  const { stdout } = await promisify(execFile)(process.execPath, [...args, '--help'], options);
  expect(stdout).toContain('--quick');
  expect(readFileSync(join(clone, 'asked'), 'utf8')).toBe('ci --no-audit --no-fund\n');
});
