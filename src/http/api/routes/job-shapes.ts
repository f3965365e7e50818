/** What is asked about jobs: options, due times, filters. */
import { z } from '@hono/zod-openapi';
import type { JobFilter } from '../../../client/client.ts';
import { BACKOFF_FORMS } from '../../../job/backoff.ts';
import { allOptions, editFields } from '../../../job/fields.ts';
import type { JobOption, Named } from '../../../job/option-kinds.ts';
import { jobOptions } from '../../../job/options.ts';
import { JOB_STATES, type JobState, LIVE_STATES, type LiveState } from '../../../job/state.ts';
import { instantMs } from '../../../kernel/duration.ts';
import { JITTERS } from '../../../kernel/spread.ts';
import { duration, instant, maybeText, signedDuration, strict, textOf, whole } from '../schemas.ts';
import { jobTarget } from '../setting-shapes.ts';

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
  ifMatch: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .openapi({ description: 'Only if the job still has this `etag`, such as a dry run says it.' }),
}).openapi('NewDueOf');

/** Options of jobs that come later: of a schedule, or of a set. */
export const shapeOfFires = (options: readonly Named[]): Shape => shapeOf(options, (schema) => schema.optional());

function shapeOf(options: readonly Named[], wrap: (schema: z.ZodType) => z.ZodType): Shape {
  return Object.fromEntries(options.map(({ name, option }) => [name, wrap(schemaOf(option))]));
}

function schemaOf(option: JobOption): z.ZodType {
  // What the form says itself is not said again: agents read all of it before each task. Objects of a program are not for JSON.
  const isSaid =
    option.choices !== undefined || option.range !== undefined || option.kind === 'target' || option.kind === 'instant';
  const allowed = isSaid ? '' : `. Allowed: ${option.allowed}`;
  const about = { description: `${option.doc}${allowed}`, example: option.example };
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
    case 'target':
      return jobTarget.openapi(about);
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

/** Of a search through several queues. */
export const idField = text('The job of this id in each queue, also one that is over.', 'welcome:42');

const FAILED =
  '`true`: jobs of which a run has failed or crashed; those that wait are tried again. `false`: the others.';

/** All but the state, and failures, which are a text in a query. */
const plainFields = {
  tag: text('Jobs that have this tag.', 'user:42'),
  set: text('The members of this set of the queue.', 'import-7'),
  name: text('Jobs of this name.', 'welcome'),
  idPrefix: text('Jobs whose ids begin with this.', 'welcome:'),
  dueFrom: instant
    .optional()
    .openapi({ description: 'Due at this instant or later.', example: '2026-03-01T00:00:00Z' }),
  dueTo: instant.optional().openapi({ description: 'Due before this instant.', example: '2036-03-01T00:00:00Z' }),
};

/** In a query: all but the state. */
export const filterFields = { ...plainFields, failed: maybeText.openapi({ description: FAILED, example: 'true' }) };

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
  ...plainFields,
  failed: z.boolean({ error: 'true, false' }).optional().openapi({ description: FAILED, example: true }),
}).openapi('JobFilter', { description: 'Jobs for which all of it holds. At least one field is needed.' });

interface Fields {
  readonly state?: LiveState | readonly LiveState[] | undefined;
  readonly tag?: string | undefined;
  readonly set?: string | undefined;
  readonly name?: string | undefined;
  readonly idPrefix?: string | undefined;
  readonly failed?: boolean | undefined;
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
