/**
 * Nothing outside the repository and a temp folder is written or removed: the suite of `src/embedded` runs where every
 * other place is read-only, and where redis-tools is installed, so that the cache leads to programs of the system.
 */
import { chmod, mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { testBinary } from '../support/redis-binary.ts';
import { digestsOf, installRedisTools } from '../support/redis-tools.ts';
import { root } from '../support/repository.ts';
import { sealed, wayToSeal } from '../support/sealed.ts';

let dir = '';
beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), 'due-')));
  // The suite runs a part of itself as nobody.
  await chmod(dir, 0o755);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test('the embedded suite passes where only the repository and its temp folder can be written', {
  timeout: 900_000,
}, async (context) => {
  const way = await wayToSeal();
  if ('refused' in way) return context.skip(`this machine lets nobody seal a process off: ${way.refused}`);
  const [system, temporary] = [join(dir, 'system'), join(dir, 'tmp')];
  const bin = await installRedisTools(system);
  await mkdir(temporary);
  const before = await digestsOf(system);
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const { code, output } = await sealed(way, [process.execPath, vitest, 'run', 'test/unit/embedded-'], {
    writable: [await realpath(root), temporary],
    env: {
      ...process.env,
      // All of it, also where this is part of a slice.
      TEST_TIER: undefined,
      PATH: `${bin}:${process.env.PATH}`,
      TMPDIR: temporary,
      DUESTREAM_REDIS_SERVER_BIN: await testBinary(),
    },
  });
  expect(code, output).toBe(0);
  for (const name of ['apt', 'cache', 'lock', 'resolve', 'server']) {
    expect(output).toContain(`test/unit/embedded-${name}.test.ts`);
  }
  expect(await digestsOf(system)).toEqual(before);
  expect(await readdir(temporary)).toEqual([]);
});
