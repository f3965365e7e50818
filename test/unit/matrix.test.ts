/** The matrix of servers: which packages one needs, what becomes of results, and what the table says of them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Cell, judged, openKept, TIERS, TOPOLOGIES, testsOf, tiersOn } from '../../scripts/matrix/cells.mjs';
import { merged, tablesOf, withTables } from '../../scripts/matrix/page.mjs';
import { closureOf } from '../../scripts/matrix/suites.mjs';
import { read, walk } from '../support/repository.ts';
import { filesOf } from '../tiers.mjs';

const made = { duestream: '1.0.0', node: '20.0.0', system: 'linux x64' };

function cell(changes: Partial<Cell> = {}): Cell {
  return {
    server: 'valkey-9.1',
    version: '9.1.2',
    from: 'Debian unstable',
    topology: 'standalone',
    tier: 'scripts',
    few: false,
    files: 46,
    passed: 680,
    failed: 0,
    skipped: 0,
    seconds: 60,
    date: '2026-11-22',
    failures: [],
    ...changes,
  };
}

test('a server needs its own packages and all libraries behind them, and nothing that makes users or starts services', () => {
  const of = (section: string, ...depends: readonly string[]) => ({ version: `1-${section}`, section, depends });
  const packages = new Map([
    ['valkey-tools', of('database', 'adduser', 'libssl3')],
    ['libssl3', of('libs', 'libc6', 'zlib1g')],
    ['libc6', of('libs', 'libgcc-s1')],
    ['libgcc-s1', of('libs', 'libc6')],
    ['zlib1g', of('libs')],
    ['adduser', of('admin', 'libperl')],
    ['libperl', of('libs')],
  ]);
  expect(closureOf(['valkey-tools', 'valkey-server'], packages)).toEqual([
    'valkey-tools=1-database',
    ...['libssl3', 'libc6', 'zlib1g', 'libgcc-s1'].map((name) => `${name}=1-libs`),
  ]);
});

describe('what a cell runs', () => {
  const cells = Object.keys(TOPOLOGIES).flatMap((topology) =>
    tiersOn(topology).flatMap((tier) => [false, true].map((few) => ({ topology, tier, few }))),
  );
  const tests = walk('test').filter((path) => path.endsWith('.test.ts'));

  test.each(cells)('is there, and is not left out by the tier of $topology $tier (few: $few)', (cell) => {
    const { paths, tier } = testsOf(cell);
    const { exclude } = filesOf(tier);
    const run = (path: string) => tests.filter((file) => file.includes(path) && !exclude.includes(file));
    expect(paths.filter((path) => run(path).length === 0)).toEqual([]);
    expect(paths.length).toBeGreaterThan(0);
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

describe('the table', () => {
  test('says what passed, what failed and where, and what was not run', () => {
    const failed = cell({ tier: 'proofs', passed: 4, failed: 1, failures: ['test/proof/model.test.ts: holds'] });
    const few = cell({ tier: 'flow', few: true, files: 12, passed: 90 });
    const missing = [{ id: 'testing', why: 'the mirror is away' }];
    const text = tablesOf({ made, cells: [cell(), failed, few], missing });
    expect(text).toContain(
      '| Valkey 9.1.2 | Debian unstable | 680 passed, 2026-11-22 | **1 failed**, 4 passed, 2026-11-22 | not run | 90 passed (12 files of them), 2026-11-22 |',
    );
    expect(text).toContain('| testing | not run: the mirror is away | not run | not run | not run | not run |');
    expect(text).toContain('* valkey-9.1 (9.1.2) standalone proofs: test/proof/model.test.ts: holds');
  });

  test('is put between its markers alone', () => {
    const page = read('docs/reference/servers.md');
    const changed = withTables(page, { made, cells: [cell()], missing: [] });
    expect(withTables(changed, JSON.parse(read('docs/servers.json')))).toBe(page);
    expect(() => withTables('no markers', { made, cells: [], missing: [] })).toThrow(/servers\.md has no/);
  });
});

describe('results', () => {
  const before = { made, cells: [cell(), cell({ tier: 'flow' }), cell({ server: 'redis-8.0', version: '8.0.6' })] };

  test('take the place of those of the same cell', () => {
    const now = { made, cells: [cell({ passed: 700 })], missing: [] };
    const { cells } = merged({ ...before, missing: [] }, now);
    expect(cells.map(({ server, tier, passed }) => [server, tier, passed])).toEqual([
      ['redis-8.0', 'scripts', 680],
      ['valkey-9.1', 'scripts', 700],
      ['valkey-9.1', 'flow', 680],
    ]);
  });

  test('of a newer version of a server end what is said of the older one', () => {
    const now = { made, cells: [cell({ version: '9.1.3' })], missing: [] };
    const { cells } = merged({ ...before, missing: [] }, now);
    expect(cells.map(({ server, version }) => `${server} ${version}`)).toEqual(['redis-8.0 8.0.6', 'valkey-9.1 9.1.3']);
  });
});

describe('a run that was interrupted', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'due-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const task = { ...cell(), binary: 'redis-server' };

  test('goes on after the last whole line', () => {
    const file = join(folder, 'cells.jsonl');
    openKept(file, { code: 'a', fresh: false }).keep(cell());
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"server":"half`);
    const again = openKept(file, { code: 'a', fresh: false });
    expect(again.get(task)).toEqual(cell());
    expect(again.get({ ...task, version: '9.1.3' })).toBeUndefined();
    expect(again.get({ ...task, few: true })).toBeUndefined();
  });

  test('starts over with other code, or when it is told to', () => {
    const file = join(folder, 'cells.jsonl');
    for (const other of [
      { code: 'b', fresh: false },
      { code: 'a', fresh: true },
    ]) {
      openKept(file, { code: 'a', fresh: true }).keep(cell());
      expect(openKept(file, other).get(task)).toBeUndefined();
    }
  });
});
