/** The options of one queue, below `queues.<name>`: what a definition in code leaves out or the file overrides. */
import { z } from 'zod';
import type { Backoff } from '../job/backoff.ts';
import type { BroadcastOptions } from '../job/broadcast.ts';
import { type GroupLimits, type PerGroup, parseGates, parseRate, type RateInput } from '../job/gate.ts';
import type { HistoryOptions } from '../job/history.ts';
import { parseRedact, REDACT_ALLOWED } from '../job/redaction.ts';
import { broadcastRanges, gateRanges, historyRanges, queueRanges, quotaRanges } from '../kernel/checks.ts';
import { duration, milliseconds, number, option } from './table.ts';

const YEAR = 365 * 86_400_000;

const jitter = z.enum(['none', 'full', 'equal']);
const wait = milliseconds({ min: 0, max: YEAR });
const waitMax = wait.prefault('1h');
const factor = z.number().min(1).max(100).default(2);
const ladder = z.array(wait).min(1).max(100);

/** As it is written, with the defaults of the library's functions. */
const written = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('fixed'), delay: wait, jitter: jitter.default('none') }),
    z.strictObject({ kind: z.literal('linear'), delay: wait, max: waitMax, jitter: jitter.default('none') }),
    z.strictObject({
      kind: z.literal('exponential'),
      delay: wait,
      factor,
      max: waitMax,
      jitter: jitter.default('full'),
    }),
    z.strictObject({ kind: z.literal('ladder'), steps: ladder, jitter: jitter.default('none') }),
  ])
  .transform((given): Backoff => {
    const { kind, jitter } = given;
    switch (kind) {
      case 'fixed':
        return { kind, delayMs: given.delay, jitter };
      case 'linear':
        return { kind, delayMs: given.delay, maxMs: given.max, jitter };
      case 'exponential':
        return { kind, delayMs: given.delay, factor: given.factor, maxMs: given.max, jitter };
      case 'ladder':
        return { kind, stepsMs: given.steps, jitter };
    }
  });

const whole = z.int().min(0).max(YEAR);

/** As the library's functions make it. Only code can give one. */
const made = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), delayMs: whole, jitter }),
  z.strictObject({ kind: z.literal('linear'), delayMs: whole, maxMs: whole, jitter }),
  z.strictObject({ kind: z.literal('exponential'), delayMs: whole, factor: z.number(), maxMs: whole, jitter }),
  z.strictObject({ kind: z.literal('ladder'), stepsMs: z.array(whole).readonly(), jitter }),
]);

const backoff = z.union([written, made]);

const { keepMs, max, resultBytesMax } = historyRanges;
const inRange = ({ min, max }: { readonly min: number; readonly max: number }) => z.int().min(min).max(max);
const history = z.union([
  z.boolean(),
  z
    .strictObject({
      keep: milliseconds(keepMs).exactOptional(),
      max: inRange(max).exactOptional(),
      result: z.boolean().exactOptional(),
      resultBytesMax: inRange(resultBytesMax).exactOptional(),
    })
    .transform((given): HistoryOptions => given),
]);

function isRate(given: unknown): boolean {
  try {
    return parseRate(given) !== 0;
  } catch {
    return false;
  }
}

const isGate = (name: 'perGroup' | 'groups') => (given: unknown) => {
  try {
    return given !== false && parseGates({ [name]: given }) !== undefined;
  } catch {
    return false;
  }
};

function isRedact(paths: unknown): boolean {
  try {
    parseRedact(paths);
    return true;
  } catch {
    return false;
  }
}
const broadcast = z.union([
  z.boolean(),
  z
    .strictObject({
      max: inRange(broadcastRanges.max).exactOptional(),
      bytes: inRange(broadcastRanges.bytes).exactOptional(),
      age: milliseconds(broadcastRanges.ageMs).exactOptional(),
    })
    .transform((given): BroadcastOptions => given),
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
  timeout: duration({
    ...queueRanges.timeoutMs,
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
      'kind: fixed (delay), linear (delay, max), exponential (delay, factor, max) or ladder (steps), each with jitter: none, full or equal',
  }).exactOptional(),
  history: option(history, {
    kind: 'history',
    doc: 'What is kept of jobs that are over.',
    allowed:
      'true, false, or keep (1s to 365d), max (1 to 10000000), result (true or false) and resultBytesMax (1 to 262144)',
  }).exactOptional(),
  redact: option(z.array(z.string()).refine(isRedact), {
    kind: 'list',
    doc: 'Fields of the data that views, messages of errors and the log do not show.',
    allowed: REDACT_ALLOWED,
  }).exactOptional(),
  broadcast: option(broadcast, {
    kind: 'broadcast',
    doc: 'Whether every subscriber gets each job, and how much of what was sent is kept for them.',
    allowed: 'true, false, or max (1 to 1000000), bytes (1024 to 1073741824) and age (1s to 7d)',
  }).exactOptional(),
  maxPending: number({
    ...quotaRanges.maxPending,
    doc: 'New jobs are refused while this many wait or run.',
  }).exactOptional(),
  maxBytes: number({
    ...quotaRanges.maxBytes,
    doc: 'New jobs are refused while their records take this many bytes.',
  }).exactOptional(),
  linger: duration({
    ...queueRanges.lingerMs,
    doc: 'How long due jobs may wait for company, so that one pass carries several. Default: mover.linger.',
  }).exactOptional(),
  rate: option(z.custom<RateInput>(isRate), {
    kind: 'text',
    doc: 'How many jobs may start in a time; the others wait in line.',
    allowed: 'a text such as 10/s, 600/m, 100/h or 50/d, or limit, per and burst; from 1/d to 100000/s',
  }).exactOptional(),
  concurrency: number({
    ...gateRanges.concurrency,
    doc: 'How many jobs may run at a time, in all workers together; the others wait in line.',
  }).exactOptional(),
  perGroup: option(z.custom<number | PerGroup>(isGate('perGroup')), {
    kind: 'text',
    doc: 'How many jobs of each group may run at a time, or also how many may start in a time; the others wait in line. With maxPending new jobs of a group are refused while this many wait or run.',
    allowed: '1 to 1000, or concurrency (1 to 1000), rate and maxPending (1 to 1000000000)',
  }).exactOptional(),
  groups: option(z.custom<Readonly<Record<string, GroupLimits>>>(isGate('groups')), {
    kind: 'text',
    doc: 'Limits of single groups that differ from those of all: by name, or by the beginning of names and an asterisk.',
    allowed:
      'at most 1000 names, each with concurrency (1 to 1000), rate, maxPending (1 to 1000000000) or weight (1 to 100)',
  }).exactOptional(),
  fair: option(z.literal(true), {
    kind: 'text',
    doc: 'Groups and priorities start in turns, also without a limit.',
    allowed: 'true',
  }).exactOptional(),
});
