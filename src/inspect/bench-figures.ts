/**
 * What `duestream admin plan` counts with, as the bench measured it: CPU in µs and commands of Redis per job, by jobs
 * per second, and commands per second of what waits.
 *
 * Made from bench/results by `npm run generate`; edit scripts/generate/plan-figures.mjs instead.
 */
import type { Profile } from '../kernel/rhythm.ts';

export interface BenchFigures {
  /** Where and when. */
  readonly from: string;
  /** Of Redis, for one call with one job. */
  readonly scheduleMicros: number;
  readonly scheduleCommands: number;
  /** From promotion to settlement, by a daemon and one worker process. The last is as fast as that worker is. */
  readonly run: readonly {
    readonly perSecond: number;
    readonly redisMicros: number;
    readonly workerMicros: number;
    readonly daemonMicros: number;
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
  from: '2 × AMD EPYC, 24 GiB, Redis 7.0.15, 2026-11-29',
  scheduleMicros: 7,
  scheduleCommands: 1.24,
  run: [
    {
      perSecond: 500,
      redisMicros: 90,
      workerMicros: 283,
      daemonMicros: 85,
      commands: 4.03,
    },
    {
      perSecond: 2_000,
      redisMicros: 47,
      workerMicros: 99,
      daemonMicros: 21,
      commands: 2.18,
    },
    {
      perSecond: 40_193,
      redisMicros: 19,
      workerMicros: 18,
      daemonMicros: 3,
      commands: 1.78,
    },
  ],
  idle: [
    { profile: 'default', partitions: 1, commandsPerSecond: 4.55 },
    { profile: 'default', partitions: 8, commandsPerSecond: 19.12 },
    { profile: 'quiet', partitions: 1, commandsPerSecond: 0.32 },
    { profile: 'quiet', partitions: 8, commandsPerSecond: 1.33 },
  ],
};
