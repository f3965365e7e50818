/**
 * The options of a worker, in one table: what `createWorker` takes in code, `worker.*` in the configuration, its
 * environment variables, the flags of the command line and the reference are made from it, so that no two of them have
 * another range or another default. A duration is written as `15s` everywhere; its numbers here are milliseconds.
 */

import { type Range, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, durationMs, durationText, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { RHYTHMS } from '../kernel/rhythm.ts';

/** One option. `doc` says in one sentence what it does. */
export interface WorkerOption extends Range {
  readonly kind: 'duration' | 'number';
  readonly fallback: number;
  readonly doc: string;
  /** The flag of the command line without its dashes. */
  readonly flag?: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The order is that of the reference. `doneWindow` is `done.window` in the configuration: daemons need it as well. */
export const workerOptions = {
  /** How many handlers run at once in one process: 1 to 10,000, default 50. Each queue of a worker has its own. */
  concurrency: {
    kind: 'number',
    min: 1,
    max: 10_000,
    fallback: 50,
    flag: 'concurrency',
    doc: 'How many handlers of a queue run at once in one process.',
  },
  /** How long a started job is left alone without a sign of life: `100ms` to `1d`, default `15s`. A worker extends the leases of its running jobs after each third of this time. */
  jobLease: {
    kind: 'duration',
    min: 100,
    max: DAY_MS,
    fallback: 15_000,
    doc: 'The job lease, also called visibility timeout: how long a started job stays with its worker without an extension. Its worker extends it after each third of this time.',
  },
  /** How long a heartbeat of a worker is valid: `100ms` to `1h`, default `10s`, with the profile `quiet` `3m`. */
  beatTtl: {
    kind: 'duration',
    min: 100,
    max: HOUR_MS,
    fallback: RHYTHMS.default.beatTtlMs,
    doc: 'How long a heartbeat of a worker is valid. With the profile quiet: 3m.',
  },
  /** How long a worker must be seen dead before its jobs are taken over: `50ms` to `1h`, default `5s`, with the profile `quiet` `1m`. */
  grace: {
    kind: 'duration',
    min: 50,
    max: HOUR_MS,
    fallback: RHYTHMS.default.graceMs,
    doc: 'How long a worker must be missing before its jobs are taken over. With the profile quiet: 1m.',
  },
  /**
   * How often a worker that waits in no read looks for jobs without being told of them: `10ms` to `5s`, default `1s`. In a cluster
   * no worker waits in a read; elsewhere `read` says so.
   */
  pollEvery: {
    kind: 'duration',
    min: 10,
    max: 5000,
    fallback: 1000,
    doc: 'How often a worker looks for jobs without being told of them, where it waits in no read: in a cluster, and with read: poll.',
  },
  /** How long running handlers may take to end at shutdown: 0 to `1d`, default `25s`. */
  shutdown: {
    kind: 'duration',
    min: 0,
    max: DAY_MS,
    fallback: 25_000,
    doc: 'How long running handlers may take to end at shutdown.',
  },
  /**
   * How long a handler whose time is up may take to end: 0 to `1h`, default `5s`. Until then its job keeps its place in a limit and is
   * not tried again; after that its slot counts as lost.
   */
  abortGrace: {
    kind: 'duration',
    min: 0,
    max: HOUR_MS,
    fallback: 5000,
    doc: 'How long a handler may go on after its time-out: until then its job keeps its place in a limit; after that the place is given away, and the slot counts as lost.',
  },
  /**
   * The share of slots in percent that may be lost to handlers that ignore their signal: 0 to 100, default 50. From then
   * on the worker is not live and emits `worker.exhausted`: end its process, nothing else frees the slots. 0 = never.
   */
  recycleAtPercent: {
    kind: 'number',
    min: 0,
    max: 100,
    fallback: 50,
    doc: 'The share of lost slots, in percent, at which the process ends with exit code 1 so that a supervisor restarts it; 0 = never.',
  },
  /** How long the end of a job is remembered: 0 (not at all) to `30d`, default `10m`. */
  doneWindow: {
    kind: 'duration',
    min: 0,
    max: 30 * DAY_MS,
    fallback: 10 * MINUTE_MS,
    doc: 'How long the end of a job is remembered; 0 remembers nothing.',
  },
} as const satisfies Readonly<Record<string, WorkerOption>>;

/** How a worker waits for jobs. */
export const READS = ['block', 'poll'] as const;
export type ReadMode = (typeof READS)[number];

type Table = typeof workerOptions;
export type WorkerOptionName = keyof Table;

/** The table as options of code: all optional. */
export type WorkerOptionInputs = {
  readonly [Name in keyof Table]?: (Table[Name]['kind'] extends 'duration' ? DurationInput : number) | undefined;
};

/**
 * The value of one option, durations in milliseconds, or its default.
 *
 * @throws DuestreamError `bad-input` that says what was given and what is allowed
 */
export function workerOption(name: WorkerOptionName, given: DurationInput | undefined): number {
  const { kind, min, max, fallback } = workerOptions[name];
  if (given === undefined) return fallback;
  if (kind === 'number') return wholeNumber(given, { what: name, min, max });
  const ms = durationMs(given, name);
  if (ms >= min && ms <= max) return ms;
  throw new DuestreamError(
    'bad-input',
    `${name} is ${show(given)}; allowed: ${durationText(min)} to ${durationText(max)}`,
  );
}
