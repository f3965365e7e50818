import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Files start servers and processes of their own; a process each keeps their handles apart.
    pool: 'forks',
    // Made for 2 cores: more files at once would only make each other late.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
