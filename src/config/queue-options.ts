/** The options of one queue, below `queues.<name>`: what a definition in code leaves out or the file overrides. */
import { z } from 'zod';
import { BACKOFF_FORMS, type BackoffInput, storable } from '../job/backoff.ts';
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

/** Whether the library takes it. */
const taken =
  (take: (given: never) => unknown) =>
  (given: unknown): boolean => {
    try {
      take(given as never);
      return true;
    } catch {
      return false;
    }
  };

const backoff = z.custom<BackoffInput>(taken(storable)).transform(storable);

const inRange = ({ min, max }: Range) => z.int().min(min).max(max);

const isTaken = (word: QueueSettingName) => taken((given: unknown) => parseSettings({ [word]: given }));

/** Parts of what is on or off. */
function partShape(part: PartKind): z.ZodType {
  switch (part.kind) {
    case 'duration':
      return milliseconds(part.range);
    case 'count':
      return inRange(part.range);
    case 'share':
      return z.number().min(part.range.min).max(part.range.max);
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
    case 'names':
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
  names: 'list',
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
    allowed: BACKOFF_FORMS,
  }).exactOptional(),
  ...settings,
});
