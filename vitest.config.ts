import { defineConfig } from 'vitest/config';
import { filesOf, tier } from './test/tiers.mjs';

/** Far above need: a machine that does something else as well must not make a test red. */
const LONG_MS = 120_000;

export default defineConfig({
  test: {
    ...filesOf(tier),
    // Files start servers and processes of their own; a process each keeps their handles apart.
    pool: 'forks',
    // Made for 2 cores: more files at once would only make each other late.
    maxWorkers: 2,
    testTimeout: LONG_MS,
    hookTimeout: LONG_MS,
    expect: { poll: { timeout: LONG_MS / 2, interval: 10 } },
  },
});
