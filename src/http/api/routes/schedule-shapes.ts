/** What is said of schedules, by callers and to them. */
import { z } from '@hono/zod-openapi';
import { FATES } from '../../../inspect/schedule-runs.ts';
import { optionsOfFires } from '../../../job/fields.ts';
import { JOB_STATES } from '../../../job/state.ts';
import { data, shapeOfFires } from '../job-options.ts';
import { count, duration, epochMs, next, queueName, reason, strict, whole } from '../schemas.ts';

const moment = (doc: string) => z.string({ error: 'ISO 8601' }).min(1).max(64).optional().openapi({ description: doc });
const calendar = strict({
  skip: z
    .array(z.string().max(64))
    .max(1000)
    .optional()
    .openapi({ description: 'Dates without work: `12-25`, `2026-12-24/2027-01-01`.' }),
  hours: z
    .record(z.string().max(64), z.union([z.string().max(200), z.array(z.string().max(32)).max(24)]))
    .optional()
    .openapi({ description: 'Day or days → hours: `{"mon-fri":"09:00-17:00"}`.' }),
  outside: z.enum(['skip', 'next'], { error: 'skip, next' }).optional(),
}).openapi('Calendar');
const policy = z.enum(['skip', 'once', 'all'], { error: 'skip, once, all' });

/** As somebody writes it. */
export const definition = strict({
  queue: queueName.openapi({ description: 'The queue its jobs go to.' }),
  data: data.optional(),
  codec: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,31}$/, { error: 'the name of a codec' })
    .optional()
    .openapi({ description: 'The codec that has encoded `data`, which is a text then: both as a look showed them.' }),
  cron: z.string().min(1).max(256).optional().openapi({
    description: '5 fields that begin with the minute, 6 that begin with the second, or a name such as @daily.',
    example: '30 2 * * *',
  }),
  every: duration.optional().openapi({ description: 'A fixed interval of elapsed time; either this or `cron`.' }),
  align: z.enum(['epoch', 'start'], { error: 'epoch, start' }).optional(),
  zone: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .openapi({ description: 'IANA name; default UTC.', example: 'Europe/Berlin' }),
  dst: strict({
    gap: z.enum(['shift', 'skip'], { error: 'shift, skip' }).optional(),
    overlap: z.enum(['first', 'second', 'both'], { error: 'first, second, both' }).optional(),
  }).optional(),
  start: moment('No instant before it.'),
  end: moment('No instant at it or later.'),
  maxRuns: whole(1, 1_000_000_000).optional(),
  jitter: duration.optional(),
  calendar: calendar.optional(),
  overlap: z.enum(['allow', 'skip', 'queue', 'replace'], { error: 'allow, skip, queue, replace' }).optional(),
  catchUp: z
    .union([
      policy,
      strict({ policy: policy.optional(), window: duration.optional(), limit: whole(1, 1000).optional() }),
    ])
    .optional(),
  tags: z
    .array(z.string().regex(/^[!-~]{1,64}$/))
    .max(16)
    .optional(),
  paused: z.union([z.boolean(), reason]).optional(),
  ...shapeOfFires(optionsOfFires),
}).openapi('ScheduleDefinition');

export const schedule = z
  .object({
    name: z.string(),
    queue: z.string(),
    source: z.string().openapi({ description: '`file`: of the configuration; `call`: by somebody.' }),
    input: z
      .record(z.string(), z.unknown())
      .openapi({ description: 'As it was written; `data` and `headers` only with the scope `data`.' }),
    hidden: z.boolean(),
    etag: z
      .string()
      .optional()
      .openapi({ description: 'The `ETag` without its quotes; with the scope `data` or `write`.' }),
    paused: z.string().optional().openapi({ description: 'Why it is paused; left out while it fires.' }),
    nextMs: epochMs.optional(),
    reachedMs: epochMs.optional().openapi({ description: 'The instants up to it were handled.' }),
    lastMs: epochMs.optional(),
    runs: count,
    skipped: count,
    unreadable: z.string().optional(),
  })
  .openapi('Schedule');

export const changed = z
  .object({
    name: z.string(),
    status: z.enum(['created', 'changed', 'unchanged']),
    queue: z.string().optional(),
    nextMs: epochMs.optional(),
    paused: z.string().optional(),
  })
  .openapi('ScheduleChanged');

const previewRow = z
  .object({
    id: z.string().optional().openapi({ description: 'Of its job; left out where it makes none.' }),
    atMs: epochMs,
    local: z.string(),
    offset: z.string(),
    named: z.string().optional(),
    dst: z.string().optional(),
    calendar: z.string().optional(),
    dropped: z.string().optional().openapi({ description: 'Why it makes no job.' }),
    dueMs: epochMs.optional(),
    leftOut: count
      .optional()
      .openapi({ description: 'So many instants that follow are dropped for the same reason, and have no row.' }),
  })
  .openapi('PreviewRow');
const leftOut = z
  .object({
    dropped: count.openapi({ description: 'Instants between the rows that make no job.' }),
    later: count.openapi({ description: 'Instants after the last row that were asked for and make a job.' }),
    atLeast: z.boolean().openapi({ description: 'There may be more of these: counting ended early.' }),
    upToMs: epochMs.openapi({ description: 'The rows tell all up to here; a preview `from` here goes on.' }),
  })
  .openapi('PreviewLeftOut');
export const preview = z
  .object({
    name: z.string(),
    rows: z.array(previewRow),
    leftOut: leftOut.optional().openapi({ description: 'What has no row: an answer has at most a megabyte.' }),
  })
  .openapi('Preview');

const pastRun = previewRow
  .extend({
    fate: z.enum(FATES).openapi({
      description:
        '`made`: its job is known. `waits`: its job comes when the job before it is over. `due`: no leader has handled it yet. `dropped`: a clock change took it away. `missed`: it made no job, because nobody was there in time or an earlier job was not over. `unknown`: Redis remembers no ends from so long ago.',
    }),
    job: z
      .object({
        state: z.enum(JOB_STATES),
        attempts: count,
        startedMs: epochMs.optional().openapi({ description: 'Its last start.' }),
        latenessMs: z
          .number()
          .optional()
          .openapi({ description: 'From `dueMs` to its start; left out unless it was started once.' }),
        overMs: epochMs.optional(),
      })
      .optional()
      .openapi({ description: 'With `made`.' }),
  })
  .openapi('PastRun');
export const pastRunsPage = z
  .object({ name: z.string(), queue: z.string(), runs: z.array(pastRun), next })
  .openapi('PastRuns');

export const firedJob = z
  .object({
    id: z.string(),
    atMs: epochMs.optional(),
    status: z.enum(['would', 'scheduled', 'exists', 'over']),
  })
  .openapi('FiredJob');
