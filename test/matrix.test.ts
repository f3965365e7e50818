/** The slice of `npm run matrix` that `npm run test:all` runs: every test of every script, on the newest Valkey there is. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCell } from '../scripts/matrix/cells.mjs';
import { offersOfMirror } from '../scripts/matrix/suites.mjs';
import { root } from './support/repository.ts';

/** Packages are downloaded the first time, and hundreds of tests are run. */
const LONG_MS = 15 * 60_000;

test(
  'the scripts do the same on the newest Valkey that the Debian mirror of this system holds',
  async (context) => {
    const said: string[] = [];
    const cacheDir = join(root, '.cache', 'servers');
    const { offers, missing } = await offersOfMirror({ cacheDir, env: process.env, say: (line) => said.push(line) });
    const [newest] = offers
      .filter(({ product }) => product === 'valkey')
      .toSorted((a, b) => b.id.localeCompare(a.id, 'en', { numeric: true }));
    if (newest === undefined) {
      const why = missing.map(({ id, why }) => `${id}: ${why}`).join('; ');
      return context.skip(`not run, no Valkey can be had here: ${why || 'no suite holds one'}`);
    }
    const { id, version, suite } = newest;
    const binary = await newest.obtain();
    const task = { server: id, version, from: suite, topology: 'standalone', tier: 'scripts', few: false, binary };
    const { failures, passed } = await runCell(task);
    expect(failures).toEqual([]);
    expect(passed).toBeGreaterThan(600);
  },
  LONG_MS,
);
