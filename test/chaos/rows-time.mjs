/**
 * Faults of clocks. Only the clock of Redis decides when a job is due; what handlers did is written down in true time and
 * judged by the clock of Redis, however wrong it is.
 */
import { exactly, lateBy } from './predicates.mjs';

/** @typedef {import('./run.mjs').Row} Row */

const HARMLESS = { crashes: 0, poison: 0 };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** One per process: none is right, and no two agree. */
const OFFSETS_MS = [HOUR_MS, -HOUR_MS, 30 * DAY_MS, -30 * DAY_MS];

/** @type {readonly Row[]} */
export const timeRows = [
  {
    id: 'F62',
    title: 'the clocks of daemons and workers are wrong by an hour or by 30 days, either way',
    how: 'a clock shim under every daemon and worker: +1 h, -1 h, +30 d, -30 d',
    wanted: 'nothing early, late <= 1 s, no term ends',
    workload: HARMLESS,
    clocks: (role, nth) =>
      role === 'daemon' || role === 'worker' ? { offsetMs: OFFSETS_MS[nth % OFFSETS_MS.length] ?? 0 } : undefined,
    watch: true,
    inject: async ({ sleep }) => sleep(5000),
    pass: (outcome) => [...lateBy(outcome, 1000), ...exactly('crashes', outcome.crashed, 0)],
  },
];
