/** What `dev` leaves in a folder: written in one step, and never through a link that lies there. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeDevFolder, readDevFile, removeDevFile, writeDevFile } from '../../src/cli/dev/dev-file.ts';

const server = { url: 'redis://127.0.0.1:6379', pid: process.pid, http: undefined };
let cwd = '';
let outside = '';

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'due-'));
  outside = join(cwd, 'outside');
  writeFileSync(outside, 'theirs');
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

test('the file of a running server is read, and removed by its own process alone', () => {
  writeDevFile(cwd, server);
  expect(readDevFile(cwd)).toEqual(server);
  removeDevFile(cwd, process.pid + 1);
  expect(readDevFile(cwd)).toEqual(server);
  removeDevFile(cwd, process.pid);
  expect(readDevFile(cwd)).toBeUndefined();
  expect(readdirSync(join(cwd, '.duestream'))).toEqual(['.gitignore']);
});

test('links that lie in the folder are not written through', () => {
  mkdirSync(join(cwd, '.duestream'));
  for (const name of ['dev.json', '.gitignore']) symlinkSync(outside, join(cwd, '.duestream', name));
  makeDevFolder(cwd);
  writeDevFile(cwd, server);
  expect(readFileSync(outside, 'utf8')).toBe('theirs');
  expect(readDevFile(cwd)).toEqual(server);
});

test('the data of a folder is kept out of its repository, unless somebody wrote otherwise', () => {
  const file = join(makeDevFolder(cwd), '.gitignore');
  expect(readFileSync(file, 'utf8')).toBe('*\n');
  writeFileSync(file, 'data\n');
  makeDevFolder(cwd);
  expect(readFileSync(file, 'utf8')).toBe('data\n');
});
