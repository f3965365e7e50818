/** What the bench makes of results: rows, targets, the table of linger, and the comparison of the README. */
import { expect, test } from 'vitest';
import { pageOf, report } from '../../bench/peers/page.mjs';
import { besideOthers } from '../../bench/peers/readme.mjs';
import { between } from '../../bench/results.mjs';

const SYSTEMS = ['duestream', 'embedded', 'duestream-20', 'BullMQ'].map((name) => ({
  name,
  title: name,
  settings: `${name.toLowerCase()} 6.7.0`,
  counts: {
    server: 'redis-server',
    worker: `workers of ${name}`,
    ...(name === 'duestream' && { daemon: 'its daemon' }),
  },
  ...(name === 'duestream-20' && { lingerMs: 20 }),
}));
/** CPU per job of the server and of the workers; of the daemon, where there is one. */
const COSTS: Readonly<Record<string, readonly [number, number, number?]>> = {
  duestream: [120, 150, 140],
  embedded: [160, 300],
  'duestream-20': [60, 80, 50],
  BullMQ: [100, 100],
};
const results = [1, 2, 3].flatMap((round) =>
  SYSTEMS.map(({ name }) => {
    const [serverMicros = 0, workerMicros = 0, daemonMicros] = COSTS[name] ?? [];
    const figures = { lateP50Ms: 1, lateP99Ms: 4, lateP999Ms: 7, lateMaxMs: 9, serverMicros, workerMicros };
    const daemon = daemonMicros === undefined ? {} : { daemonMicros };
    return { workload: 'steady500', system: name, round, figures: { ...figures, ...daemon } };
  }),
);
const run = {
  rows: report({ results, workloads: [{ name: 'steady500', title: 'steady, 500 jobs/s' }] }),
  ...{ host: '2 × CPU', node: 'v20', redis: 'Redis 7', date: '2026-01-01', rounds: 3, quick: false },
  systems: SYSTEMS,
  absent: ['no Bun'],
};

test('a target is met or missed for each shape, and a shape without the process has no verdict', () => {
  const page = pageOf(run);
  expect(page).toContain('CPU of the server per job, µs | ≤ ×1.5 | ×1.2 | met | ×1.6 | **missed** |');
  expect(page).toContain('CPU of all daemons per job, µs | ≤ 150 | 140 | met |  |  |');
  expect(page).toContain('linger 20 ms | CPU of the server per job, µs | ≤ ×0.7 | ×0.6 | met |');
  expect(page).toContain('**At a low rate**');
});

test('the page says which processes a figure counts, and who is not there', () => {
  const page = pageOf(run);
  expect(page).toContain('| duestream | redis-server | workers of duestream | its daemon |');
  expect(page).toContain('| BullMQ | redis-server | workers of BullMQ | none |');
  expect(page).toContain('Not here: no Bun.');
});

test('a system that lingers is in its table, and not among the columns of a workload', () => {
  expect(pageOf(run)).toContain('\n| | duestream | embedded | BullMQ |\n');
  expect(pageOf(run)).toContain('| 500 | duestream-20 | 1 / 4 / 7 / 9 | 60, ×0.6 | 80, ×0.8 | 50 | – | – | 3 |');
});

test('the README has the best of each row in bold, also that of a peer', () => {
  const readme = besideOthers(run);
  expect(readme).toContain('| | duestream 6.7 | duestream-20 6.7 | BullMQ 6.7 |');
  expect(readme).toContain('CPU of the server per job, µs | 120 | **60** | 100 |');
  expect(readme).toContain('jobs/s | – | – | – |');
});

test('a page without the marks of a section is refused', () => {
  expect(() => between('no marks', 'bench: peers', 'a table')).toThrow('the page has no place for');
});
