/** What is answered about jobs. What is not listed here never leaves the API, whatever the library tells. */
import { z } from '@hono/zod-openapi';
import { JOB_STATES } from '../../../operations/jobs-page.ts';
import { count, epochMs, next } from '../schemas.ts';

const over = z.enum(['done', 'cancelled', 'expired', 'dead']);
const state = z.enum(JOB_STATES);

export const attempted = z
  .object({
    atMs: epochMs,
    attempt: count,
    kind: z.enum(['failure', 'timeout', 'crash', 'refused']),
    message: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
  })
  .openapi('Attempted');

export const job = z
  .object({
    id: z.string(),
    queue: z.string(),
    partition: count,
    bare: z.boolean().openapi({ description: 'A foreign producer put it with a plain ZADD.' }),
    state,
    name: z.string().optional(),
    data: z.unknown().optional().openapi({ description: 'Only with the scope `data`.' }),
    hidden: z
      .boolean()
      .openapi({ description: 'Data and messages are left out, because the token has not the scope `data`.' }),
    options: z.record(z.string(), z.unknown()).openapi({ description: 'What this one job was told.' }),
    digest: z.string().optional().openapi({ description: 'Of its content; with the scope `data` or `write`.' }),
    dueMs: epochMs.optional(),
    askedDueMs: epochMs.optional(),
    attempts: count,
    failures: count,
    crashes: count,
    generation: count,
    cancelRequested: z.boolean(),
    owner: z.string().optional().openapi({ description: 'The worker that runs it.' }),
    token: z.string().optional().openapi({ description: 'The fencing token of its last start.' }),
    history: z.array(attempted),
    overMs: epochMs.optional(),
    deadLetter: z.string().optional(),
    reason: z
      .string()
      .optional()
      .openapi({ description: 'Why it is dead; a reason of a handler only with the scope `data`.' }),
    readable: z.boolean(),
  })
  .openapi('Job');

export const listed = z
  .object({
    id: z.string(),
    bare: z.boolean(),
    partition: count,
    state,
    name: z.string().optional(),
    dueMs: epochMs.optional(),
    attempts: count.optional(),
    owner: z.string().optional(),
    overMs: epochMs.optional(),
  })
  .openapi('ListedJob');

export const jobsPage = z.object({ queue: z.string(), state, jobs: z.array(listed), next }).openapi('JobsPage');

export const scheduled = z
  .object({
    id: z.string(),
    queue: z.string(),
    status: z.enum(['scheduled', 'replaced', 'exists', 'running', 'already']),
    dueMs: epochMs,
    over: over.optional(),
  })
  .openapi('Scheduled');

export const rescheduled = z
  .object({
    id: z.string(),
    status: z.enum(['rescheduled', 'already', 'kept', 'ready', 'running', 'over', 'unknown', 'indeterminate']),
    dueMs: epochMs.optional(),
    wasMs: epochMs.optional(),
    over: over.optional(),
  })
  .openapi('Rescheduled');

export const ranNow = z
  .object({
    id: z.string(),
    status: z.enum(['due', 'already-due', 'running', 'over', 'unknown', 'indeterminate']),
    over: over.optional(),
  })
  .openapi('RanNow');

export const edited = z
  .object({
    id: z.string(),
    status: z.enum(['edited', 'already', 'changed', 'running', 'over', 'unknown', 'unreadable', 'indeterminate']),
    digest: z.string().optional(),
    over: over.optional(),
  })
  .openapi('Edited');

export const cancelled = z
  .object({ id: z.string(), status: z.enum(['cancelled', 'requested', 'over', 'unknown']), over: over.optional() })
  .openapi('Cancelled');

export const ofMany = <Schema extends z.ZodType>(one: Schema) => z.object({ queue: z.string(), jobs: z.array(one) });
