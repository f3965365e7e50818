/** What is answered about jobs. What is not listed here never leaves the API, whatever the library tells. */
import { z } from '@hono/zod-openapi';
import { JOB_STATES } from '../../../job/state.ts';
import { count, epochMs, next } from '../schemas.ts';

const over = z.enum(['done', 'cancelled', 'expired', 'dead']);
const state = z.enum(JOB_STATES);

export const attempted = z
  .object({
    atMs: epochMs,
    attempt: count,
    kind: z.enum(['failure', 'timeout', 'crash', 'refused']),
    message: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
    stack: z
      .string()
      .optional()
      .openapi({ description: 'Of the last failure, or of each with a history; only with the scope `data`.' }),
    worker: z
      .string()
      .optional()
      .openapi({ description: 'Which worker ran it. Not for a crash, nor for what never ran.' }),
    tookMs: z.number().optional(),
  })
  .openapi('Attempted');

export const deferred = z
  .object({
    times: count,
    lastMs: epochMs,
    reason: z.string().optional().openapi({ description: 'Of the last time; only with the scope `data`.' }),
  })
  .optional()
  .openapi('Deferred', { description: 'How often its handler put it aside.' });

const result = z
  .object({
    kind: z.enum(['kept', 'none', 'too-large', 'no-json']),
    value: z.unknown().optional().openapi({ description: 'What the handler returned; only with the scope `data`.' }),
    bytes: count.optional(),
    why: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
  })
  .openapi('KeptResult');

const end = z
  .object({
    id: z.string(),
    bare: z.boolean(),
    outcome: over,
    name: z.string().optional(),
    tags: z.array(z.string()),
    token: z.string().optional(),
    askedDueMs: epochMs,
    attempts: count,
    failures: count,
    crashes: count,
    generation: count,
    owner: z.string().optional(),
    startedMs: epochMs.optional(),
    tookMs: z.number().optional(),
    overMs: epochMs,
    history: z.array(attempted),
    deferred,
    result,
    deadLetter: z.string().optional().openapi({ description: 'It may be gone by now.' }),
  })
  .openapi('PastJob');

const moment = z
  .object({
    atMs: epochMs,
    kind: z.enum([
      ...(['asked-due', 'due', 'started', 'failure', 'timeout', 'crash', 'refused'] as const),
      ...(['done', 'cancelled', 'expired', 'dead', 'earlier-end'] as const),
    ]),
    attempt: count.optional(),
    owner: z.string().optional(),
    tookMs: z.number().optional(),
    outcome: over.optional().openapi({ description: 'Of an earlier end: how that life of the id ended.' }),
    message: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
    stack: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
  })
  .openapi('Moment');

export const job = z
  .object({
    id: z.string(),
    queue: z.string(),
    partition: count,
    bare: z.boolean().openapi({ description: 'A foreign producer put it with a plain ZADD.' }),
    state,
    name: z.string().optional(),
    data: z.unknown().optional().openapi({ description: 'Only with the scope `data`.' }),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .openapi({ description: 'Texts beside the data; only with the scope `data`.' }),
    hidden: z
      .boolean()
      .openapi({ description: 'Data, headers and messages are left out, because the token has not the scope `data`.' }),
    options: z.record(z.string(), z.unknown()).openapi({ description: 'What this one job was told.' }),
    digest: z.string().optional().openapi({ description: 'Of its content; with the scope `data` or `write`.' }),
    etag: z.string().optional().openapi({
      description: 'The `ETag` without its quotes, as long as it is not over; with the scope `data` or `write`.',
    }),
    dueMs: epochMs.optional(),
    askedDueMs: epochMs.optional(),
    attempts: count,
    failures: count,
    crashes: count,
    generation: count,
    cancelRequested: z.boolean(),
    owner: z.string().optional().openapi({ description: 'The worker that runs it.' }),
    token: z.string().optional().openapi({ description: 'The fencing token of its last start.' }),
    tags: z.array(z.string()).optional(),
    codec: z
      .string()
      .optional()
      .openapi({ description: 'The codec that encoded the data, which are shown as stored.' }),
    startedMs: epochMs.optional().openapi({ description: 'Its last start.' }),
    tookMs: z
      .number()
      .optional()
      .openapi({ description: 'How long its last handler ran, if its queue keeps a history.' }),
    history: z.array(attempted).openapi({ description: 'The last failures, oldest first, at most 5.' }),
    deferred,
    timeline: z
      .array(moment)
      .openapi({ description: 'What is known of it in the order of time, with what comes next.' }),
    result: result.optional().openapi({ description: 'Of a job that is over, if its queue keeps a history.' }),
    past: z
      .array(end)
      .openapi({ description: 'Ends that the history of the queue knows, latest first, those of earlier lives too.' }),
    nowMs: epochMs,
    overMs: epochMs.optional(),
    deadLetter: z.string().optional(),
    reason: z
      .string()
      .optional()
      .openapi({ description: 'Why it is dead; a reason of a handler only with the scope `data`.' }),
    readable: z.boolean(),
    unreadable: z.string().optional().openapi({
      description: 'The beginning of a record that cannot be read; only with the scope `data`.',
    }),
    entry: z.string().optional().openapi({ description: 'Its entry in the stream of its partition, while it runs.' }),
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
    tags: z.array(z.string()).optional(),
    attempts: count.optional(),
    owner: z.string().optional(),
    startedMs: epochMs.optional().openapi({ description: 'Of a job that is over: when its last handler began.' }),
    tookMs: z.number().optional(),
    overMs: epochMs.optional(),
  })
  .openapi('ListedJob');

export const jobsPage = z
  .object({
    queue: z.string(),
    states: z.array(state),
    jobs: z.array(listed),
    scanned: count.openapi({ description: 'How many places were looked at for them.' }),
    next,
  })
  .openapi('JobsPage');

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
    etag: z.string().optional(),
    over: over.optional(),
  })
  .openapi('Edited');

export const cancelled = z
  .object({
    id: z.string(),
    status: z.enum(['cancelled', 'requested', 'over', 'unknown', 'indeterminate']),
    over: over.optional(),
  })
  .openapi('Cancelled');

export const ofMany = <Schema extends z.ZodType>(one: Schema) => z.object({ queue: z.string(), jobs: z.array(one) });
