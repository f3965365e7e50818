/** The matrix of servers runs tests that exist, is green only where a test passed, and the docs show its results. */
import { describe, expect, test } from 'vitest';
import { judged, TIERS, TOPOLOGIES, testsOf, tiersOn } from '../../scripts/matrix/cells.mjs';
import { withTables } from '../../scripts/matrix/page.mjs';
import { read, walk } from '../support/repository.ts';
import { filesOf } from '../tiers.mjs';

describe('what a cell runs', () => {
  const cells = Object.keys(TOPOLOGIES).flatMap((topology) =>
    tiersOn(topology).flatMap((tier) => [false, true].map((few) => ({ topology, tier, few }))),
  );
  const tests = walk('test').filter((path) => path.endsWith('.test.ts'));

  test('is there, and no tier leaves it out', () => {
    const missing = cells.flatMap((cell) => {
      const { paths, tier } = testsOf(cell);
      const { exclude } = filesOf(tier);
      const runs = (path: string) => tests.some((file) => file.includes(path) && !exclude.includes(file));
      const lost = paths.length === 0 ? ['no test'] : paths.filter((path) => !runs(path));
      return lost.map((path) => `${cell.topology} ${cell.tier}: ${path}`);
    });
    expect(missing).toEqual([]);
  });

  test('is every file about clusters and Sentinels, also those that take long', () => {
    const { paths, tier } = testsOf({ topology: 'standalone', tier: 'topologies', few: false });
    const left = filesOf(tier).exclude;
    const meant = tests.filter((file) => /flow\/topology\/|beyond-one/.test(file));
    expect(meant.filter((file) => left.includes(file) || !paths.some((path) => file.includes(path)))).toEqual([]);
    expect(Object.keys(TIERS)).toContain('topologies');
  });
});

describe('a cell', () => {
  const ended = { code: 0, output: 'all is well' };

  test('that ran no test is not green', () => {
    const counts = { files: 0, passed: 0, failed: 0, skipped: 7, failures: [] };
    expect(judged(counts, ended)).toMatchObject({ failed: 1, failures: ['no test was run'] });
  });

  test('whose tests passed and that ended badly all the same is not green', () => {
    const counts = { files: 3, passed: 40, failed: 0, skipped: 0, failures: [] };
    const output = 'something\nUnhandled Rejection: nobody caught it';
    expect(judged(counts, { code: 1, output })).toMatchObject({
      passed: 40,
      failed: 1,
      failures: ['the tests ended with 1: Unhandled Rejection: nobody caught it'],
    });
    expect(judged(counts, ended)).toBe(counts);
  });
});

test('the committed table is what the committed results make of it', () => {
  const page = read('docs/reference/servers.md');
  expect(withTables(page, JSON.parse(read('docs/servers.json')))).toBe(page);
});
