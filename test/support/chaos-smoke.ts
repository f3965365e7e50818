/** Rows of the fault matrix as tests, with a small workload, so that every run of the tests breaks something. */
import { expect, test } from 'vitest';
import { build } from '../../scripts/steps.mjs';
import { needsQuiet } from '../chaos/judge/predicates.mjs';
import { runRow } from '../chaos/stage/run.mjs';
import { testBinary } from './redis-binary.ts';
import { root } from './repository.ts';

// Some rows are producers themselves and import what is built.
await build();
const { rows } = await import('../chaos/rows/rows.mjs');

/** The same moments every time; `npm run chaos` takes another seed each time. */
const SEED = 7;
const ROW_TIMEOUT_MS = 330_000;

/** A test for each of these rows. One that fails says why, with which seed, and where everything it wrote is kept. */
export function smoke(ids: readonly string[]): void {
  const chosen = rows.filter(({ id }) => ids.includes(id));

  test('the rows are all there', () => {
    expect(chosen.map(({ id }) => id)).toEqual(ids);
  });

  for (const row of chosen) {
    test(`${row.id} ${row.title}`, { timeout: ROW_TIMEOUT_MS }, async () => {
      const binary = await testBinary();
      const verdict = await runRow(row, { binary, product: root, seed: SEED, mode: 'everysec', quick: true });
      const { seed, kept } = verdict;
      // How long things took is judged by `npm run chaos`, where nothing else runs: here all that happened counts.
      const complaints = verdict.complaints.filter((line) => !needsQuiet(line));
      expect({ complaints, seed, ...(complaints.length > 0 ? { kept } : {}) }).toEqual({ complaints: [], seed: SEED });
      expect(verdict.asked).toBeGreaterThanOrEqual(250);
    });
  }
}
