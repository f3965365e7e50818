/**
 * The ranges of options of a queue that can be said in two places: in the configuration, and in code. Both read them here,
 * so that what the configuration lets through is never refused by the queue that gets it. Those of a worker are in
 * `worker-options.ts`.
 */
import { type DurationInput, durationMs, show } from './duration.ts';
import { DuestreamError } from './errors.ts';

export interface Range {
  readonly min: number;
  readonly max: number;
}

const DAY_MS = 86_400_000;

/** Of a queue; attempts and timeout also of one job. */
export const queueRanges = {
  partitions: { min: 1, max: 1024 },
  attempts: { min: 1, max: 1000 },
  crashes: { min: 1, max: 100 },
  timeoutMs: { min: 1, max: 365 * DAY_MS },
} as const satisfies Readonly<Record<string, Range>>;

/** Bytes of JSON that the data of one job may take. More than the default makes each script that reads records slower. */
export const dataBytesMaxRange = { default: 262_144, min: 1, max: 64 * 1024 * 1024 } as const satisfies Range & {
  readonly default: number;
};

/** What a queue keeps of jobs that are over. */
export const historyRanges = {
  keepMs: { default: 7 * DAY_MS, min: 1000, max: 365 * DAY_MS },
  max: { default: 100_000, min: 1, max: 10_000_000 },
  resultBytesMax: { default: 16_384, min: 1, max: 262_144 },
} as const satisfies Readonly<Record<string, Range & { readonly default: number }>>;

/** What a broadcast queue keeps of what was sent, for subscribers that are behind. */
export const broadcastRanges = {
  max: { default: 10_000, min: 1, max: 1_000_000 },
  bytes: { default: 16 * 1024 * 1024, min: 1024, max: 1024 * 1024 * 1024 },
  ageMs: { default: 3_600_000, min: 1000, max: 7 * DAY_MS },
} as const satisfies Readonly<Record<string, Range & { readonly default: number }>>;

/** How much a queue may hold. */
export const quotaRanges = {
  maxPending: { min: 1, max: 1_000_000_000 },
  maxBytes: { min: 1024, max: 1024 ** 5 },
} as const satisfies Readonly<Record<string, Range>>;

/** How much of a queue runs at once. */
export const gateRanges = {
  rateLimit: { min: 1, max: 1_000_000_000 },
  ratePerMs: { min: 1, max: 365 * DAY_MS },
  burst: { min: 1, max: 1_000_000 },
  concurrency: { min: 1, max: 1_000_000 },
  perGroup: { min: 1, max: 1000 },
} as const satisfies Readonly<Record<string, Range>>;

/** @throws DuestreamError `bad-input` */
export function wholeNumberIn(value: unknown, what: string, { min, max }: Range): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  throw new DuestreamError('bad-input', `${what} is ${show(value)}; allowed: a whole number from ${min} to ${max}`);
}

/** Milliseconds of a duration within a range. @throws DuestreamError `bad-input` */
export function durationIn(input: DurationInput, what: string, { min, max }: Range): number {
  const ms = durationMs(input, what);
  if (ms >= min && ms <= max) return ms;
  throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: ${min} to ${max} ms`);
}
