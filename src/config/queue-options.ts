/** The options of one queue, below `queues.<name>`: what a definition in code leaves out or the file overrides. */
import { z } from 'zod';
import { queueRanges } from '../core/ranges.ts';
import { number, option } from './table.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const jitter = z.enum(['none', 'full', 'equal']);
const delayMs = z.int().min(0).max(YEAR);

/** The shapes and defaults of the library's `Backoff`. */
const backoff = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), delayMs, jitter: jitter.default('none') }),
  z.strictObject({ kind: z.literal('linear'), delayMs, maxMs: delayMs.default(HOUR), jitter: jitter.default('none') }),
  z.strictObject({
    kind: z.literal('exponential'),
    delayMs,
    factor: z.number().min(1).max(100).default(2),
    maxMs: delayMs.default(HOUR),
    jitter: jitter.default('full'),
  }),
  z.strictObject({
    kind: z.literal('ladder'),
    stepsMs: z.array(delayMs).min(1).max(100),
    jitter: jitter.default('none'),
  }),
]);

const DELIVERIES = ['at-least-once', 'at-most-once', 'effectively-once'] as const;

export const queue = z.strictObject({
  partitions: number({
    ...queueRanges.partitions,
    doc: 'Over how many partitions a new queue is split.',
  }).exactOptional(),
  attempts: number({
    ...queueRanges.attempts,
    doc: 'How often handlers may fail before a job is dead.',
  }).exactOptional(),
  crashes: number({
    ...queueRanges.crashes,
    doc: 'How often workers may die under a job before it is dead.',
  }).exactOptional(),
  timeoutMs: number({
    ...queueRanges.timeoutMs,
    unit: 'ms',
    doc: 'How long a handler may run before its signal aborts.',
  }).exactOptional(),
  delivery: option(z.enum(DELIVERIES), {
    kind: 'text',
    doc: 'The delivery mode: what a crash of a worker does to a job.',
    allowed: DELIVERIES.join(', '),
  }).exactOptional(),
  backoff: option(backoff, {
    kind: 'backoff',
    doc: 'How long a job waits after a failure.',
    allowed:
      'kind: fixed (delayMs), linear (delayMs, maxMs), exponential (delayMs, factor, maxMs) or ladder (stepsMs), each with jitter: none, full or equal',
  }).exactOptional(),
});
