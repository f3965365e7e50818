/**
 * What `duestream plan` counts with, as the bench measured it: CPU in µs per job, by jobs per second.
 *
 * Made from bench/results by `npm run generate`; edit scripts/plan-figures.mjs instead.
 */
export interface BenchFigures {
  /** Where and when. */
  readonly from: string;
  /** Of Redis, for one call with one job. */
  readonly scheduleMicros: number;
  /** From promotion to settlement; the worker has the mover inside. The last is as fast as one worker process is. */
  readonly run: readonly {
    readonly perSecond: number;
    readonly redisMicros: number;
    readonly workerMicros: number;
  }[];
}

export const benchFigures: BenchFigures = {
  from: '2 × AMD EPYC, 24 GiB, Redis 7.0.15, 2026-11-24',
  scheduleMicros: 6,
  run: [
    { perSecond: 500, redisMicros: 160, workerMicros: 329 },
    { perSecond: 2_000, redisMicros: 73, workerMicros: 108 },
    { perSecond: 42_481, redisMicros: 17, workerMicros: 19 },
  ],
};
