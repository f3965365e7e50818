/**
 * The options of a job as fields of a body: one for each row of the library's table, so that an option is written once. The
 * schema says of which form a value is; whether it is in its range, and goes with the others, the library judges.
 */
import { z } from '@hono/zod-openapi';
import { allOptions, bodyFields, headerFields } from '../../job/fields.ts';
import type { JobOption, Named } from '../../job/option-kinds.ts';
import { jobOptions } from '../../job/options.ts';
import { duration, instant, strict, whole } from './schemas.ts';

type Shape = Readonly<Record<string, z.ZodType>>;

const jitter = z.enum(['none', 'full', 'equal']);
const YEAR_MS = 365 * 86_400_000;
const wait = whole(0, YEAR_MS);
const BACKOFF =
  'an object whose kind is fixed (delayMs), linear (delayMs, maxMs), exponential (delayMs, factor, maxMs) or ladder (stepsMs), with jitter: none, full or equal';
const backoff = z
  .union(
    [
      z.strictObject({ kind: z.literal('fixed'), delayMs: wait, jitter }),
      z.strictObject({ kind: z.literal('linear'), delayMs: wait, maxMs: wait, jitter }),
      z.strictObject({
        kind: z.literal('exponential'),
        delayMs: wait,
        factor: z.number().min(1).max(100),
        maxMs: wait,
        jitter,
      }),
      z.strictObject({ kind: z.literal('ladder'), stepsMs: z.array(wait).min(1).max(100), jitter }),
    ],
    { error: BACKOFF },
  )
  .openapi('Backoff', { description: BACKOFF });

export const data = z.unknown().openapi({
  description: 'Whatever JSON can carry; at most `limits.dataBytesMax` bytes.',
  example: { to: 'ada@example.org' },
});

/** Of one job that is scheduled: its data, and every option. */
const newJobShape: Shape = { data: data.optional(), ...shapeOf(allOptions, (schema) => schema.optional()) };
export const newJob = strict(newJobShape).openapi('NewJob');

/** What can be different about a job that waits; null takes an option back to its queue's. */
const changeShape: Shape = {
  data: data.optional(),
  name: schemaOf(jobOptions.name).optional(),
  ...shapeOf([...bodyFields, ...headerFields], (schema) => schema.nullable().optional()),
};
export const jobChange = strict(changeShape).openapi('JobChange');

const dueShape: Shape = {
  ...shapeOf(
    allOptions.filter(({ name }) => name === 'delay' || name === 'at' || name === 'zone'),
    (schema) => schema.optional(),
  ),
};
/** When a job is to be due instead. */
export const newDue = strict({
  ...dueShape,
  only: z
    .enum(['earlier', 'later'], { error: 'earlier, later' })
    .optional()
    .openapi({ description: 'Only if that is earlier, or later, than it is due now.' }),
}).openapi('NewDue');
/** When a dead letter is to run again. */
export const replayDue = strict(dueShape).openapi('ReplayDue');

/** Each with an id, for a batch. */
export const jobChanges = strict({ id: z.string().min(1).max(192), ...changeShape }).openapi('JobChangeOf');
export const newDues = strict({
  id: z.string().min(1).max(192),
  ...dueShape,
  only: z.enum(['earlier', 'later']).optional(),
}).openapi('NewDueOf');

/** Options that a schedule can say for its jobs. */
export const shapeOfFires = (options: readonly Named[]): Shape => shapeOf(options, (schema) => schema.optional());

function shapeOf(options: readonly Named[], wrap: (schema: z.ZodType) => z.ZodType): Shape {
  return Object.fromEntries(options.map(({ name, option }) => [name, wrap(schemaOf(option))]));
}

function schemaOf(option: JobOption): z.ZodType {
  const about = { description: `${option.doc}. Allowed: ${option.allowed}`, example: option.example };
  switch (option.kind) {
    case 'duration':
      return duration.openapi(about);
    case 'instant':
      return instant.openapi(about);
    case 'count':
      return whole(option.range?.min ?? 0, option.range?.max ?? 1e9).openapi(about);
    case 'choice':
      return z.enum(option.choices ?? [], { error: (option.choices ?? []).join(', ') }).openapi(about);
    case 'backoff':
      return backoff;
    case 'pairs':
      return z.record(z.string(), z.string(), { error: option.allowed }).openapi(about);
    case 'list':
      return z.array(z.string(), { error: option.allowed }).openapi(about);
    default:
      return z
        .string({ error: option.allowed })
        .min(1, { error: option.allowed })
        .max(192, { error: option.allowed })
        .openapi(about);
  }
}
