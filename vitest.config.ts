import { defineConfig } from 'vitest/config';
import { filesOf, tier } from './test/tiers.mjs';

/** Far above need: a machine that does something else as well must not make a test red. */
const LONG_MS = 120_000;

const { include, exclude } = filesOf(tier);
/** Files that leave nothing behind in their process; each still has a Redis of its own. */
const SHARING = /^test\/(unit\/|redis\/|house)/;
const some = (sharing: boolean) => ({
  include: include.filter((path) => SHARING.test(path) === sharing),
  exclude: [...exclude],
});

export default defineConfig({
  test: {
    // The scripts that the repository keeps in parts, as Redis gets them.
    globalSetup: ['lua/assemble.mjs'],
    pool: 'forks',
    // For 2 cores: files wait for processes and clocks half of their time, and no verdict depends on speed.
    maxWorkers: 3,
    testTimeout: LONG_MS,
    hookTimeout: LONG_MS,
    expect: { poll: { timeout: LONG_MS / 2, interval: 10 } },
    projects: [
      // One process after the other would import the same sources again: that took longer than the tests themselves.
      { extends: true, test: { name: 'parts', ...some(true), isolate: false } },
      // Files start servers and processes of their own; a process each keeps their handles apart.
      { extends: true, test: { name: 'whole', ...some(false) } },
    ],
  },
});
