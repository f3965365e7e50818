/** What is answered about jobs. What is not listed here never leaves the API, whatever the library tells. */
import { z } from '@hono/zod-openapi';
import type { JobFilter } from '../../../client/client.ts';
import { BACKOFF_FORMS } from '../../../job/backoff.ts';
import { allOptions, editFields } from '../../../job/fields.ts';
import { PRIORITIES } from '../../../job/labels.ts';
import type { JobOption, Named } from '../../../job/option-kinds.ts';
import { jobOptions } from '../../../job/options.ts';
import { JOB_STATES, type JobState, LIVE_STATES, type LiveState } from '../../../job/state.ts';
import { instantMs } from '../../../kernel/duration.ts';
import { JITTERS } from '../../../kernel/spread.ts';
import { count, duration, epochMs, instant, signedDuration, strict, textOf, whole } from '../schemas.ts';

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

const progress = z
  .object({
    fraction: z.number().openapi({ description: 'From 0 to 1.' }),
    text: z.string().optional().openapi({ description: 'Only with the scope `data`.' }),
    atMs: epochMs,
  })
  .openapi('JobProgress', { description: 'How far its handler says that it is, while it runs.' });

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
    set: z.string().optional().openapi({ description: 'The set that it was a member of.' }),
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

/** Who holds a limit. */
export const holder = z
  .object({
    id: z.string(),
    bare: z.boolean(),
    sinceMs: epochMs.openapi({ description: 'When it was let through.' }),
    owner: z.string().optional().openapi({ description: 'The worker that runs it; left out before it has started.' }),
    attempt: count.optional(),
    startedMs: epochMs.optional(),
  })
  .openapi('Holder');

const waitsFor = z
  .object({
    group: z.string().optional(),
    priority: z.enum(PRIORITIES),
    ahead: count.openapi({ description: 'Jobs of its group and priority that have their turns before it.' }),
    text: z.string().openapi({ description: 'Where it stands, as a sentence.' }),
    obstacles: z.array(
      z.object({
        kind: z.enum([
          ...['paused', 'no-worker', 'queue-full', 'queue-closed', 'rate'],
          ...['group-full', 'group-closed', 'group-rate'],
        ] as const),
        text: z.string().openapi({ description: 'As a sentence.' }),
        sinceMs: epochMs.optional().openapi({ description: 'Of a pause.' }),
        reason: z
          .string()
          .optional()
          .openapi({ description: 'Of a pause; of what is closed only with the scope `data`.' }),
        limit: count
          .optional()
          .openapi({ description: 'Of a queue or a group that is full; of several partitions the share.' }),
        running: count.optional(),
        holders: z.array(holder).optional().openapi({ description: 'Who holds it, longest first, at most 10.' }),
        untilMs: epochMs
          .optional()
          .openapi({ description: 'When the rate allows the next start, or what is closed opens.' }),
      }),
    ),
  })
  .openapi('JobWait', {
    description: 'What lets no job of its group through now. None: it waits for its turn, or for a free worker.',
  });

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
    nextLifeMs: epochMs.optional().openapi({
      description:
        'Newer data of a debounced job came while it runs. They are its `data`, and start at this time, or when the run has ended if that is later.',
    }),
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
    progress: progress.optional(),
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
    waitsFor: waitsFor.optional(),
  })
  .openapi('Job');

export const scheduled = z
  .object({
    id: z.string(),
    queue: z.string(),
    status: z
      .enum([
        ...(['scheduled', 'updated', 'replaced', 'exists', 'running', 'already', 'closed'] as const),
        ...(['merged', 'kept', 'behind', 'overtaken'] as const),
      ])
      .openapi({ description: 'The last four with `debounce` only.' }),
    dueMs: epochMs,
    over: over.optional(),
    closed: z
      .object({ tag: z.string(), untilMs: epochMs })
      .optional()
      .openapi({ description: 'With `closed`: the tag that is closed, and until when. Nothing was changed.' }),
  })
  .openapi('Scheduled');

export const cancelled = z
  .object({
    id: z.string(),
    status: z.enum(['cancelled', 'requested', 'over', 'unknown', 'indeterminate']),
    over: over.optional(),
  })
  .openapi('Cancelled');

// The options of a job as fields of a body: one for each row of the library's table, so that an option is written once.
// The schema says of which form a value is; whether it is in its range, and goes with the others, the library judges.

type Shape = Readonly<Record<string, z.ZodType>>;

const ms = whole(0, 365 * 86_400_000);
const backoff = strict({
  kind: z.enum(['fixed', 'linear', 'exponential', 'ladder']),
  delay: duration.optional(),
  delayMs: ms.optional(),
  factor: z.number().min(1).max(100).optional(),
  max: duration.optional(),
  maxMs: ms.optional(),
  steps: z.array(duration).min(1).max(100).optional(),
  stepsMs: z.array(ms).min(1).max(100).optional(),
  jitter: z.enum(JITTERS).optional(),
}).openapi('Backoff', {
  description: `${BACKOFF_FORMS}. A time in ms may be called \`delayMs\`, \`maxMs\`, \`stepsMs\`, as an answer has it.`,
});

export const data = z.unknown().openapi({
  description: 'Whatever JSON can carry; at most `limits.dataBytesMax` bytes.',
  example: { to: 'ada@example.org' },
});

/** Of one job that is scheduled: its data, and every option. */
const newJobShape: Shape = { data: data.optional(), ...shapeOf(allOptions, (schema) => schema.optional()) };
export const newJob = strict(newJobShape).openapi('NewJob');

const dueShape: Shape = {
  ...shapeOf(
    allOptions.filter(({ name }) => name === 'delay' || name === 'at' || name === 'zone'),
    (schema) => schema.optional(),
  ),
};

/** What can be different about a job that waits; null takes an option back to its queue's. */
const changeShape: Shape = {
  data: data.optional(),
  name: schemaOf(jobOptions.name).optional(),
  ...dueShape,
  ...shapeOf(editFields, (schema) => schema.nullable().optional()),
};
export const jobChange = strict(changeShape).openapi('JobChange');

const shiftShape: Shape = { shift: signedDuration.optional() };

/** When a job is to be due instead. */
export const newDue = strict({
  ...dueShape,
  ...shiftShape,
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
  ...shiftShape,
  only: z.enum(['earlier', 'later']).optional(),
}).openapi('NewDueOf');

/** Options of jobs that come later: of a schedule, or of a set. */
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
    case 'debounce':
      return strict({ wait: duration, max: duration.optional() }).openapi(about);
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

// Which jobs somebody means, as fields of a query and of a body: the filters of the library. Whether a value is in its
// range, and goes with the others, the library judges.

/** In a query: several, with commas between them. */
function statesOf(states: readonly JobState[], example: string) {
  const one = `(${states.join('|')})`;
  const form = new RegExp(`^${one}(,${one}){0,${states.length - 1}}$`);
  return textOf(form, `one or several of ${states.join(', ')}, with commas between them`, example);
}

export const statesText = statesOf(LIVE_STATES, 'scheduled,ready');
export const anyStatesText = statesOf(JOB_STATES, 'scheduled');

const text = (doc: string, example: string) =>
  z
    .string({ error: '1 to 192 characters' })
    .min(1, { error: '1 to 192 characters' })
    .max(192, { error: '1 to 192 characters' })
    .optional()
    .openapi({ description: doc, example });

/** All but the state. */
export const filterFields = {
  tag: text('Jobs that have this tag.', 'user:42'),
  set: text('The members of this set of the queue.', 'import-7'),
  name: text('Jobs of this name.', 'welcome'),
  idPrefix: text('Jobs whose ids begin with this.', 'welcome:'),
  dueFrom: instant
    .optional()
    .openapi({ description: 'Due at this instant or later.', example: '2026-03-01T00:00:00Z' }),
  dueTo: instant.optional().openapi({ description: 'Due before this instant.', example: '2036-03-01T00:00:00Z' }),
};

const filterState = z.enum(LIVE_STATES, { error: LIVE_STATES.join(', ') });

/** In a body. */
export const filterShape = strict({
  state: z
    .union([filterState, z.array(filterState).min(1).max(LIVE_STATES.length)], {
      error: `one of ${LIVE_STATES.join(', ')}, or a list of them`,
    })
    .optional()
    .openapi({
      description: 'Jobs in this state, or in one of these. Default: every state in which the change can be made.',
    }),
  ...filterFields,
}).openapi('JobFilter', { description: 'Jobs for which all of it holds. At least one field is needed.' });

interface Fields {
  readonly state?: LiveState | readonly LiveState[] | undefined;
  readonly tag?: string | undefined;
  readonly set?: string | undefined;
  readonly name?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
}

/** @throws DuestreamError `bad-input` for what is no instant */
export function filterOf({ dueFrom, dueTo, ...plain }: Fields): JobFilter {
  const [from, to] = [dateOf(dueFrom, 'dueFrom'), dateOf(dueTo, 'dueTo')];
  return from === undefined && to === undefined ? plain : { ...plain, due: { from, to } };
}

/** @param states as they stand in a query */
export const statesIn = <State extends JobState>(states: string, all: readonly State[]): readonly State[] =>
  all.filter((one) => states.split(',').includes(one));

export const dateOf = (given: string | undefined, what: string): Date | undefined =>
  given === undefined ? undefined : new Date(instantMs(given, what));
