/** What is asked and answered about dead letters. */
import { z } from '@hono/zod-openapi';
import type { DeadLetterFilter } from '../../../client/dead/dead-letters.ts';
import { type Caller, checkScope } from '../caller.ts';
import { count, duration, epochMs, next } from '../schemas.ts';
import { isOurs } from './hidden.ts';
import { attempted, deferred } from './job-shapes.ts';

const text = (doc: string, example: string) =>
  z
    .string({ error: '1 to 1024 characters' })
    .min(1, { error: '1 to 1024 characters' })
    .max(1024, { error: '1 to 1024 characters' })
    .optional()
    .openapi({ description: doc, example });
const age = (doc: string) => duration.optional().openapi({ description: doc });

/** Which dead letters: those for which all of it holds. */
export const deadFilter = {
  reason: text('Exactly this reason. One that a handler gave needs the scope `data`.', 'attempts-exhausted'),
  name: text('Of jobs of this name.', 'welcome'),
  tag: text('Of jobs that have this tag.', 'user:42'),
  id: text('Of the job of this id.', 'welcome:42'),
  error: text(
    'The last error as `group=error` tells it, without numbers and ids; needs the scope `data`.',
    'timed out',
  ),
  olderThan: age('Dead for at least this long.'),
  newerThan: age('Dead for at most this long.'),
};

/** A filter lets somebody test a guess, so it may only name what the caller may see. @throws Problem `forbidden` */
export function seenFilter<T extends DeadLetterFilter>(filter: T, caller: Caller): DeadLetterFilter {
  const { reason, name, tag, id, error, olderThan, newerThan } = filter;
  if (error !== undefined || (reason !== undefined && !isOurs(reason))) checkScope(caller, 'data');
  return { reason, name, tag, id, error, olderThan, newerThan };
}

/** A duration in a query, where all is text. */
export const durationText = (doc: string) =>
  z
    .string()
    .regex(/^(\d+(\.\d+)?\s*(ms|s|m|h|d|w)?|P.*\d.*)$/, { error: 'a text such as "90s", "5m", "3d"' })
    .transform((given) => (/^\d+$/.test(given) ? Number(given) : given))
    .optional()
    .openapi({ type: 'string', description: doc, example: '5m' });

const inList = {
  deadLetter: z.string().openapi({ description: 'Its address.' }),
  partition: count,
  id: z.string().openapi({ description: 'Of its job.' }),
  bare: z.boolean(),
  name: z.string().optional(),
  tags: z.array(z.string()),
  reason: z.string().optional().openapi({ description: 'A reason of a handler only with the scope `data`.' }),
  error: z
    .string()
    .optional()
    .openapi({ description: 'The last error without numbers and ids; only with the scope `data`.' }),
  attempts: count,
  failures: count,
  crashes: count,
  generation: count,
  etag: z.string().openapi({ description: 'The `ETag` without its quotes.' }),
  atMs: epochMs,
  history: z.array(attempted),
  deferred,
};
const listed = z.object(inList).openapi('ListedDeadLetter');
export const shown = z
  .object({
    queue: z.string(),
    ...inList,
    hidden: z.boolean(),
    readable: z.boolean(),
    data: z.unknown().optional().openapi({ description: 'Only with the scope `data`.' }),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .openapi({ description: 'Texts beside the data; only with the scope `data`.' }),
    codec: z
      .string()
      .optional()
      .openapi({ description: 'The codec that encoded the data, which are shown as stored.' }),
    options: z.record(z.string(), z.unknown()),
    askedDueMs: epochMs.optional(),
  })
  .openapi('DeadLetter');

const group = z
  .object({
    reason: z.string().optional().openapi({ description: 'A reason of a handler only with the scope `data`.' }),
    error: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
    name: z.string().optional(),
    count,
    firstMs: epochMs,
    lastMs: epochMs,
    example: z.object({ deadLetter: z.string(), id: z.string() }),
  })
  .openapi('DeadLetterGroup');

export const deadPage = z
  .object({
    queue: z.string(),
    deadLetters: z.array(listed).optional().openapi({ description: 'Without `group`.' }),
    groups: z.array(group).optional().openapi({ description: 'With `group`: the largest first.' }),
    others: count
      .optional()
      .openapi({ description: 'With `group`: dead letters in none of the groups, which are 1000 at most.' }),
    scanned: count,
    next,
  })
  .openapi('DeadLettersPage');

export const replayed = z
  .object({
    deadLetter: z.string().optional(),
    id: z.string().optional(),
    status: z.enum(['scheduled', 'live', 'empty', 'gone', 'indeterminate']),
    dueMs: epochMs.optional(),
  })
  .openapi('Replayed');

export const replayedMany = z
  .object({
    queue: z.string(),
    dryRun: z.boolean(),
    matched: count,
    replayed: count,
    live: count.openapi({ description: 'They stay: a job of their id lives.' }),
    empty: count,
    gone: count,
    deadLetters: z
      .array(replayed)
      .openapi({ description: 'Of those that were named: each. Else the first 100 that were not replayed.' }),
    scanned: count,
    next,
  })
  .openapi('ReplayedMany');

export const purged = z
  .object({ queue: z.string(), dryRun: z.boolean(), matched: count, removed: count, scanned: count, next })
  .openapi('Purged');
