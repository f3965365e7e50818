/**
 * Renders the figures that `duestream admin plan` counts with as `src/inspect/bench-figures.ts`, from the results of the bench.
 * Pure.  */

/** @typedef {import('../../bench/results.mjs').Kept} Kept */

/** Workloads that measure a job from promotion to settlement at a rate that is known beforehand, in jobs per second. */
const STEADY = new Map([
  ['steady500', 500],
  ['steady2000', 2000],
]);

/**
 * @param {Kept | undefined} results of `npm run bench`
 * @param {Kept | undefined} idle of `npm run bench -- idle`
 */
export function renderFigures(results, idle) {
  if (!results || !idle) throw new Error('npm run bench, and npm run bench -- idle, come first');
  const { host, redis, date, rows } = results;
  const of = (/** @type {string} */ workload, /** @type {string} */ figure) => {
    const row = rows.find((one) => one.system === 'duestream' && one.workload === workload && one.figure === figure);
    if (!row) throw new Error(`the results of the bench have no ${figure} of duestream in ${workload}`);
    return row.median;
  };
  const micros = (/** @type {string} */ workload, /** @type {string} */ figure) => Math.round(of(workload, figure));
  const at = (/** @type {string} */ workload, /** @type {number} */ perSecond) =>
    `    {
      perSecond: ${number(Math.round(perSecond))},
      redisMicros: ${micros(workload, 'serverMicros')},
      workerMicros: ${micros(workload, 'workerMicros')},
      daemonMicros: ${micros(workload, 'daemonMicros')},
      commands: ${of(workload, 'commands')},
    },`;
  const resting = idle.rows.map(
    ({ profile, partitions, commandsPerSecond }) =>
      `    { profile: '${profile}', partitions: ${partitions}, commandsPerSecond: ${commandsPerSecond} },`,
  );
  const run = [...STEADY].map(([workload, perSecond]) => at(workload, perSecond));
  return `/**
 * What \`duestream admin plan\` counts with, as the bench measured it: CPU in µs and commands of Redis per job, by jobs
 * per second, and commands per second of what waits.
 *
 * Made from bench/results by \`npm run generate\`; edit scripts/generate/plan-figures.mjs instead.
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
  from: '${host}, ${redis}, ${date}',
  scheduleMicros: ${micros('one', 'serverMicros')},
  scheduleCommands: ${of('one', 'commands')},
  run: [
${run.join('\n')}
${at('burst', of('burst', 'jobsPerSecond'))}
  ],
  idle: [
${resting.join('\n')}
  ],
};
`;
}

/** As a person writes it. @param {number} value */
const number = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '_');
