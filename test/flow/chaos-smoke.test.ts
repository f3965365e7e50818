/** A few rows of the chaos matrix with a small workload, so that every run of the tests breaks something. */
import { beforeAll, describe, expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { rows } from '../chaos/rows.mjs';
import { runRow } from '../chaos/run.mjs';
import { testBinary } from '../support/redis-binary.ts';
import { root } from '../support/repository.ts';

const SMOKE = ['F2', 'F4', 'F26', 'F33'];
/** The same moments every time; `npm run chaos` takes another seed each time. */
const SEED = 7;

beforeAll(async () => {
  await build();
}, 120_000);

describe('nothing is lost, early, twice or stuck when', () => {
  const smoke = rows.filter(({ id }) => SMOKE.includes(id));

  test('the smoke set is complete', () => {
    expect(smoke.map(({ id }) => id)).toEqual(SMOKE);
  });

  test.each(smoke)('$id $title', { timeout: 60_000 }, async (row) => {
    const binary = await testBinary();
    const verdict = await runRow(row, { binary, product: root, seed: SEED, mode: 'everysec', quick: true });
    expect({ complaints: verdict.complaints, kept: verdict.kept }).toEqual({ complaints: [], kept: undefined });
    expect(verdict.asked).toBeGreaterThanOrEqual(500);
  });
});
