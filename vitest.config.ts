import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { BEGUN_FIRST, filesOf, tier } from './test/tiers.mjs';

/** Far above need: a machine that does something else as well must not make a test red. */
const LONG_MS = 120_000;

const { include, exclude } = filesOf(tier);
/** Files that leave nothing behind in their process; each still has a Redis of its own. */
const SHARING = /^test\/(unit\/|redis\/|browser\/(?!draining)|flow\/(?!chaos|deploy)|house)/;
/** Of those, what counts the timers, handles and memory of its process, or breaks what all of it uses. */
const ALONE = [
  'test/flow/client/client.test.ts',
  'test/flow/daemon/liveness.test.ts',
  'test/flow/http/http-routes.test.ts',
  'test/flow/worker/faults.test.ts',
  'test/flow/worker/worker-stop.test.ts',
  'test/redis/garbage.test.ts',
  // A suspect of another file would close the quarantine, of which a process has one.
  'test/unit/round-trips.test.ts',
];
const shared = include.filter((path) => SHARING.test(path) && !ALONE.includes(path));
const lone = tier === 'verify' ? ALONE.filter((path) => include.includes(path)) : ALONE;
const alone = [...include.filter((path) => !SHARING.test(path)), ...lone];

/** The order of vitest, but what takes minutes is first among the files of its project. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const names = [...new Set(sorted.map(({ project }) => project.name))];
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = BEGUN_FIRST.findIndex((path) => moduleId.endsWith(`/${path}`));
      return place === -1 ? BEGUN_FIRST.length : place;
    };
    return names.flatMap((name) =>
      sorted.filter(({ project }) => project.name === name).toSorted((a, b) => rank(a) - rank(b)),
    );
  }
}

export default defineConfig({
  test: {
    // The scripts that the repository keeps in parts, as Redis gets them.
    globalSetup: ['lua/assemble.mjs', 'test/support/titles.mjs'],
    // A title that a table makes is not cut at 40 characters: `-t` finds the test.
    chaiConfig: { truncateThreshold: 200 },
    setupFiles: ['test/support/arguments.ts', 'test/support/lua-errors.ts'],
    // Scripts as text: nothing in it is to be transformed.
    server: { deps: { external: [/\/lua\/scripts\.mjs$/] } },
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // What was transformed is kept in node_modules, for the next `npm test`.
    experimental: { fsModuleCache: true },
    // For 2 cores: files wait for processes and clocks half of their time, and no verdict depends on speed.
    maxWorkers: 4,
    testTimeout: LONG_MS,
    hookTimeout: LONG_MS,
    expect: { poll: { timeout: LONG_MS / 2, interval: 10 } },
    projects: [
      // One process after the other would import the same sources again: that took longer than the tests themselves.
      { extends: true, test: { name: 'parts', include: shared, exclude: [...exclude, ...ALONE], isolate: false } },
      { extends: true, test: { name: 'whole', include: alone, exclude: [...exclude] } },
    ],
  },
});
