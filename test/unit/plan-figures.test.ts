/** What `duestream plan` counts with is what the bench measured last. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderFigures } from '../../scripts/plan-figures.mjs';
import { benchFigures } from '../../src/inspect/sizing/figures.ts';
import { read, root } from '../support/repository.ts';

/** The first results of a whole run replace those of the layout before it. */
const RESULTS = ['bench/results/peers.json', 'bench/results/plan.json'];
const results = RESULTS.find((path) => existsSync(join(root, path)));

test('src/inspect/sizing/figures.ts is made from the results of the bench', async () => {
  if (results === undefined) throw new Error(`there is none of ${RESULTS.join(', ')}: run npm run bench`);
  const page = renderFigures(JSON.parse(read(results)));
  await expect(page).toMatchFileSnapshot(join(root, 'src/inspect/sizing/figures.ts'));
});

test('a job is cheaper the more of them come at a time, and every figure is above zero', () => {
  const { run, scheduleMicros } = benchFigures;
  expect(run.length).toBeGreaterThan(2);
  expect(scheduleMicros).toBeGreaterThan(0);
  for (const field of ['redisMicros', 'workerMicros'] as const) {
    const costs = run.map((one) => one[field]);
    expect(costs).toEqual(costs.toSorted((a, b) => b - a));
    expect(Math.min(...costs)).toBeGreaterThan(0);
  }
});

test('results without a figure that is needed are refused by its name', () => {
  expect(() => renderFigures({ host: 'h', redis: 'r', date: 'd', rows: [] })).toThrow('redisMicros of duestream in');
});
