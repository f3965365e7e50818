/** The options of one queue, below `queues.<name>`: what a definition in code leaves out or the file overrides. */
import { z } from 'zod';
import type { Backoff } from '../job/backoff.ts';
import {
  parseSettings,
  type QueueSetting,
  type QueueSettingName,
  type QueueSettingOptions,
  type queueSettings,
  settingOf,
  settingWords,
} from '../job/queue-settings.ts';
import type { PartKind } from '../job/setting-kinds.ts';
import { queueRanges, type Range } from '../kernel/checks.ts';
import { duration, type Ms, milliseconds, number, option } from './table.ts';

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

const inRange = ({ min, max }: Range) => z.int().min(min).max(max);

/** Whether the table of settings takes it. */
const isTaken = (word: QueueSettingName) => (given: unknown) => {
  try {
    parseSettings({ [word]: given });
    return true;
  } catch {
    return false;
  }
};

/** Parts of what is on or off. */
function partShape(part: PartKind): z.ZodType {
  switch (part.kind) {
    case 'duration':
      return milliseconds(part.range);
    case 'count':
      return inRange(part.range);
    case 'flag':
      return z.boolean();
  }
}

function shapeOf(word: QueueSettingName, setting: QueueSetting): z.ZodType {
  switch (setting.kind) {
    case 'limit':
      return z.union([inRange(setting.range), z.literal(false)]);
    case 'duration':
      return milliseconds(setting.range);
    case 'bounds': {
      const parts = Object.entries(setting.parts).map(([name, part]) => [name, partShape(part).exactOptional()]);
      return z.union([z.boolean(), z.strictObject(Object.fromEntries(parts))]);
    }
    case 'paths':
      return z.array(z.string()).refine(isTaken(word));
    case 'yes':
      return z.literal(true);
    default:
      return z.custom(isTaken(word));
  }
}

const KINDS: { readonly [Kind in QueueSetting['kind']]?: 'number' | 'duration' | 'list' } = {
  limit: 'number',
  duration: 'duration',
  paths: 'list',
};

/** The rows of `queueSettings`. */
const settings = Object.fromEntries(
  settingWords.map((word) => {
    const setting = settingOf(word);
    const { kind, doc, allowed } = setting;
    const schema = option(shapeOf(word, setting), { kind: KINDS[kind] ?? 'text', doc: `${doc}.`, allowed });
    return [word, schema.exactOptional()];
  }),
) as unknown as SettingShapes;

type Shape<Word extends QueueSettingName> = z.ZodExactOptional<
  z.ZodType<
    (typeof queueSettings)[Word]['kind'] extends 'duration' ? Ms : NonNullable<QueueSettingOptions[Word]>,
    NonNullable<QueueSettingOptions[Word]>
  >
>;
type SettingShapes = { readonly [Word in QueueSettingName]: Shape<Word> };

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
  ...settings,
});
