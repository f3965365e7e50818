/**
 * How fast the pages of the dashboard are: `npm run bench -- pages`. `test/browser/paint.test.ts` measures it in Chromium, beside 100,000
 * scheduled and 10,000 dead jobs. Writes `bench/results/pages.json` and its section of `docs/reference/measured.md`.
 */
import { join } from 'node:path';
import { Failed, show } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';

export async function run() {
  const env = { ...process.env, PAINT: 'measure' };
  const vitest = join(root, 'node_modules', '.bin', 'vitest');
  const code = await show(vitest, ['run', 'test/browser/paint.test.ts'], { cwd: root, env });
  if (code !== 0) throw new Failed(code, 'the pages were not measured');
  return [];
}
