/** What `duestream plan` counts with is what the bench measured last. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderFigures } from '../../scripts/plan-figures.mjs';
import { read, root } from '../support/repository.ts';

/** The first results of a whole run replace those of the layout before it. */
const RESULTS = ['bench/results/peers.json', 'bench/results/plan.json'];
const results = RESULTS.find((path) => existsSync(join(root, path)));

test('src/inspect/bench-figures.ts is made from the results of the bench', async () => {
  if (results === undefined) throw new Error(`there is none of ${RESULTS.join(', ')}: run npm run bench`);
  const page = renderFigures(JSON.parse(read(results)), JSON.parse(read('bench/results/idle.json')));
  await expect(page).toMatchFileSnapshot(join(root, 'src/inspect/bench-figures.ts'));
});
