/** The slice of `npm run matrix` that `npm run verify` runs: every test of every script, on the newest Valkey there is. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { offersOfMirror } from '../scripts/matrix/suites.mjs';
import { capture } from '../scripts/run.mjs';
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
    const asked = ['--server', newest.id, '--tier', 'scripts', '--topology', 'standalone', '--fresh', '--json'];
    const { code, output } = await capture(process.execPath, ['scripts/matrix.mjs', ...asked], { cwd: root });
    const [cell] = output.split('\n').filter((line) => line.startsWith('{'));
    if (cell === undefined) throw new Error(`it told of no cell: ${output.slice(-2000)}`);
    const { failures, passed } = JSON.parse(cell);
    expect(failures).toEqual([]);
    expect(passed).toBeGreaterThan(600);
    expect(code).toBe(0);
  },
  LONG_MS,
);
