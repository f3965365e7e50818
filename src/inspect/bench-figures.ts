/**
 * What `duestream plan` counts with, as the bench measured it: CPU in µs and commands of Redis per job, by jobs
 * per second, and commands per second of what waits.
 *
 * Made from bench/results by `npm run generate`; edit scripts/plan-figures.mjs instead.
 */
import type { Profile } from '../kernel/rhythm.ts';

export interface BenchFigures {
  /** Where and when. */
  readonly from: string;
  /** Of Redis, for one call with one job. */
  readonly scheduleMicros: number;
  readonly scheduleCommands: number;
  /** From promotion to settlement; the worker has the mover inside. The last is as fast as one worker process is. */
  readonly run: readonly {
    readonly perSecond: number;
    readonly redisMicros: number;
    readonly workerMicros: number;
    readonly commands: number;
  }[];
  /** A daemon and a worker, each a process, that have nothing to do. */
  readonly idle: readonly {
    readonly profile: Profile;
    readonly partitions: number;
    readonly commandsPerSecond: number;
  }[];
}

export const benchFigures: BenchFigures = {
  from: '2 × AMD EPYC, 24 GiB, Redis 7.0.15, 2026-11-24',
  scheduleMicros: 6,
  scheduleCommands: 1.28,
  run: [
    {
      perSecond: 500,
      redisMicros: 160,
      workerMicros: 329,
      commands: 14.26,
    },
    {
      perSecond: 2_000,
      redisMicros: 73,
      workerMicros: 108,
      commands: 6.84,
    },
    {
      perSecond: 42_481,
      redisMicros: 17,
      workerMicros: 19,
      commands: 1.75,
    },
  ],
  idle: [
    { profile: 'default', partitions: 1, commandsPerSecond: 2.95 },
    { profile: 'default', partitions: 8, commandsPerSecond: 8.01 },
    { profile: 'quiet', partitions: 1, commandsPerSecond: 0.24 },
    { profile: 'quiet', partitions: 8, commandsPerSecond: 0.75 },
  ],
};
