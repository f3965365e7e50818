/** The lock between processes: one at a time, and a dead owner does not hold it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withLock } from '../../src/embedded/lock.mjs';

let dir = '';
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'due-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** The pid of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid ?? 0;
}

test('ten at once do their work one after the other', async () => {
  const lock = { path: join(dir, 'ten'), timeoutMs: 10_000 };
  let inside = 0;
  let most = 0;
  const work = async () => {
    inside += 1;
    most = Math.max(most, inside);
    await readdir(dir);
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 10 }, () => withLock(lock, work)));
  expect(most).toBe(1);
  expect(await readdir(lock.path)).toEqual([]);
});

test('the lock of a killed process is taken over', async () => {
  const path = join(dir, 'dead');
  await mkdir(path);
  await writeFile(join(path, `${await deadPid()}-abcdef`), '');
  expect(await withLock({ path, timeoutMs: 10_000 }, async () => 'done')).toBe('done');
});

test('the lock of a living process is waited for, and in the end the error names it', async () => {
  const path = join(dir, 'alive');
  await mkdir(path);
  await writeFile(join(path, `${process.pid}-abcdef`), '');
  await expect(withLock({ path, timeoutMs: 100 }, async () => 'done')).rejects.toThrow(`${path} has been locked`);
  expect(await readdir(dir)).not.toContainEqual(expect.stringMatching(/^alive\./));
});

test('work that fails gives the lock back', async () => {
  const lock = { path: join(dir, 'fails'), timeoutMs: 1000 };
  await expect(withLock(lock, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await withLock(lock, async () => 'done')).toBe('done');
});

test('a folder that is no lock of ours is refused, and nothing in it is removed', async () => {
  const path = join(dir, 'theirs');
  await mkdir(path);
  await writeFile(join(path, 'precious'), 'theirs');
  await writeFile(join(path, `${await deadPid()}-abcdef`), '');
  await expect(withLock({ path, timeoutMs: 10_000 }, async () => 'done')).rejects.toThrow(/is no lock.*precious/);
  expect(await readdir(path)).toContain('precious');
});

test('a link is refused, and nothing where it leads is touched', async () => {
  const place = join(dir, 'place');
  const name = `${await deadPid()}-abcdef`;
  await mkdir(place);
  await writeFile(join(place, name), '');
  await symlink(place, join(dir, 'link'));
  await expect(withLock({ path: join(dir, 'link'), timeoutMs: 10_000 }, async () => 'done')).rejects.toThrow();
  expect(await readdir(place)).toEqual([name]);
});
