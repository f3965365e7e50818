/** Schedules by the HTTP API: what is said of them, and what may be done to them. */
import { z } from '@hono/zod-openapi';
import type { Scope } from '../../../access/tokens.ts';
import { isMatch } from '../../../client/calls/etag.ts';
import { operations } from '../../../client/operations.ts';
import type { ScheduleChange, ScheduleInput, ScheduleView } from '../../../client/schedules/schedules.ts';
import { redactedSchedules } from '../../../inspect/redacted.ts';
import { optionsOfFires } from '../../../job/fields.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { declareQueue } from '../../../redis/scripts/queues.ts';
import { parseSchedule } from '../../../schedule/input.ts';
import { answers } from '../answer.ts';
import type { Backend } from '../backend.ts';
import { type Caller, checkQueue, mayUse, seenDigest } from '../caller.ts';
import { etagHeader } from '../if-match.ts';
import { Problem } from '../problem.ts';
import { duration, ofSchedule, queueName, reason, strict, whole, wholeText } from '../schemas.ts';
import { type AnyVerb, change, type DryRun, type Versioned, verb } from '../verb.ts';
import { data, shapeOfFires } from './job-shapes.ts';

// Schedules: listed, shown, put, removed, paused and resumed. A token of some queues sees those of its queues.

// What is said of schedules, by callers and to them.

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

const LIST_MAX = 10_000;

/** The schedule of a name, if the caller may see it. @throws Problem `not-found` */
export async function visibleSchedule(backend: Backend, caller: Caller, name: string): Promise<ScheduleView> {
  const view = await backend.client.schedules.get(name);
  if (view && mayUse(caller, view.queue)) return view;
  throw new Problem('not-found', { detail: `there is no schedule ${name}, or it is not of a queue of this token` });
}

/** How an agent is shown the schedule that it is about to change. */
export const SEEN: DryRun = { look: 'schedules.get', same: ['etag', 'paused'] };

/** What a request about one schedule changes. */
export const theSchedule: Versioned<{ readonly name: string }> = {
  what: 'the schedule',
  etag: async ({ path: { name }, backend }) => (await backend.client.schedules.get(name))?.etag,
};

const listSchedules = verb({
  name: 'schedules.list',
  method: 'get',
  at: '/schedules',
  summary: 'List schedules by name',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  query: strict({
    queue: queueName.optional(),
    tag: z.string().max(64).optional(),
    limit: wholeText(1, LIST_MAX, 1000),
  }),
  answers: {
    200: {
      type: answers.SchedulesPage,
      doc: 'The first of them, by name.',
    },
  },
  async run({ query, caller, backend }) {
    if (query.queue !== undefined) checkQueue(caller, query.queue);
    const limit = caller.queues === undefined ? query.limit : undefined;
    const { schedules: all, unreadable, more } = await backend.client.schedules.list({ ...query, limit });
    const mine = all.filter(({ queue }) => mayUse(caller, queue));
    const schedules = await seenSchedules(backend, mine.slice(0, query.limit), caller.scopes);
    const whole = caller.queues === undefined ? unreadable : [];
    const body = { namespace: backend.namespace, schedules, more: more + mine.length - schedules.length };
    // What nobody can read may hold anything.
    return {
      status: 200,
      body: { ...body, unreadable: whole.map(({ name }) => ({ name, why: 'it cannot be read' })) },
    };
  },
});

const getSchedule = verb({
  name: 'schedules.get',
  method: 'get',
  at: '/schedules/{name}',
  summary: 'Look at a schedule',
  doc: 'With the scope `data` or `write` the `ETag` is the digest of its definition, for `If-Match`. How far it was fired is no part of it.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  path: ofSchedule,
  answers: { 200: { type: answers.Schedule, doc: 'Its definition, how far it was fired, and what comes next.' } },
  async run({ path: { name }, caller, backend }) {
    const [seen] = await seenSchedules(backend, [await visibleSchedule(backend, caller, name)], caller.scopes);
    return { status: 200, body: seen, headers: etagHeader(seen?.etag) };
  },
});

const putSchedule = verb({
  ...change(operations.schedules.put),
  tool: SEEN,
  method: 'put',
  at: '/schedules/{name}',
  summary: 'Create a schedule or change it',
  doc: 'The same definition again changes nothing. With `If-Match` none is created. Without the scope `data`, headers that are left out are kept.',
  queues: 'own',
  path: ofSchedule,
  body: definition,
  versioned: theSchedule,
  answers: {
    200: { type: answers.ScheduleChanged, doc: 'It was there, and is as asked now.' },
    201: { type: answers.ScheduleChanged, doc: 'It is new.' },
  },
  async run({ path: { name }, body, ifMatch, caller, backend }) {
    const input = body as ScheduleInput;
    checkQueue(caller, input.queue);
    // Refused before anything is declared for it.
    const { queue } = parseSchedule(name, input, { sinceMs: systemClock.wallMs() });
    const before = await backend.client.schedules.get(name).catch(() => undefined);
    if (before && !mayUse(caller, before.queue))
      throw new Problem('forbidden', { detail: `schedule ${name} is of another queue` });
    if (before?.input.data !== undefined && input.data === undefined && !caller.scopes.has('data')) throw unseen(name);
    const { redis, namespace } = await backend.place();
    const { partitions } = backend.queueOf(queue);
    // What is refused declares nothing either.
    if (isMatch(ifMatch, before?.etag)) await declareQueue(redis, { namespace, queue, partitions });
    const kept = withUnseen(input, before, caller.scopes);
    // What is kept is that of the definition that was read, so another one must not have taken its place.
    const seen = kept === input ? ifMatch : (ifMatch ?? before?.etag);
    const { status, etag } = await backend.client.schedules.put(name, kept, { ifMatch: seen });
    const view = await backend.client.schedules.get(name);
    const told = { name, status, queue, nextMs: view?.nextMs, paused: view?.paused };
    const isNew = status === 'created';
    const headers = { ...etagHeader(etag), ...(isNew ? { Location: `/v1/schedules/${name}` } : {}) };
    return { status: isNew ? 201 : 200, body: told, headers };
  },
});

const removeSchedule = verb({
  ...change(operations.schedules.remove),
  tool: SEEN,
  method: 'delete',
  at: '/schedules/{name}',
  summary: 'Remove a schedule',
  doc: 'Its jobs stay.',
  queues: 'own',
  path: ofSchedule,
  versioned: theSchedule,
  answers: { 204: { doc: 'It is removed.' } },
  async run({ path: { name }, ifMatch, caller, backend }) {
    // One that cannot be read can be removed by who may use all queues.
    if (caller.queues !== undefined) await visibleSchedule(backend, caller, name);
    if (!(await backend.client.schedules.remove(name, { ifMatch }))) {
      throw new Problem('not-found', { detail: `there is no schedule ${name}` });
    }
    return { status: 204 };
  },
});

const pauseSchedule = verb({
  ...change(operations.schedules.pause),
  tool: SEEN,
  method: 'post',
  at: '/schedules/{name}/pause',
  summary: 'Pause a schedule',
  doc: 'It makes no jobs until it is resumed; its jobs go on.',
  queues: 'own',
  path: ofSchedule,
  body: strict({ reason: reason.optional() }).openapi('SchedulePauseRequest'),
  bodyRequired: false,
  versioned: theSchedule,
  answers: { 200: { type: answers.ScheduleChanged, doc: 'It is paused.' } },
  async run({ path: { name }, body, ifMatch, caller, backend }) {
    const { queue } = await visibleSchedule(backend, caller, name);
    const done = await backend.client.schedules.pause(name, body.reason ?? '', { ifMatch, by: caller.name });
    return afterwards(backend, queue, done);
  },
});

const resumeSchedule = verb({
  ...change(operations.schedules.resume),
  tool: SEEN,
  method: 'post',
  at: '/schedules/{name}/resume',
  summary: 'Resume a schedule from now on',
  queues: 'own',
  path: ofSchedule,
  versioned: theSchedule,
  answers: { 200: { type: answers.ScheduleChanged, doc: 'It fires again.' } },
  async run({ path: { name }, ifMatch, caller, backend }) {
    const { queue } = await visibleSchedule(backend, caller, name);
    return afterwards(backend, queue, await backend.client.schedules.resume(name, { ifMatch }));
  },
});

/** Put back without what was not shown, the schedule would lose it. */
const unseen = (name: string): Problem =>
  new Problem('bad-input', {
    detail: `data is left out, and schedule ${name} has data that this token may not see; allowed: body.data, or a token with the scope data`,
  });

/** A caller that was not shown the headers, and names none, keeps them; `headers: {}` takes them away. */
function withUnseen(input: ScheduleInput, before: ScheduleView | undefined, scopes: ReadonlySet<Scope>): ScheduleInput {
  const headers = scopes.has('data') ? undefined : before?.input.headers;
  return headers === undefined || input.headers !== undefined ? input : { ...input, headers };
}

async function afterwards({ client: { schedules } }: Backend, queue: string, { name, status, etag }: ScheduleChange) {
  const view = await schedules.get(name);
  const body = { name, status, queue, nextMs: view?.nextMs, paused: view?.paused };
  return { status: 200 as const, body, headers: etagHeader(etag) };
}

async function seenSchedules(backend: Backend, views: readonly ScheduleView[], scopes: ReadonlySet<Scope>) {
  const shown = scopes.has('data') ? await redactedSchedules(views, backend.place) : views;
  return shown.map((view, at) => seenSchedule(view, { scopes, isRedacted: view !== views[at] }));
}

function seenSchedule(
  { schedule: _, ...view }: ScheduleView,
  { scopes, isRedacted }: { readonly scopes: ReadonlySet<Scope>; readonly isRedacted: boolean },
) {
  const mayRead = scopes.has('data');
  const { data: _data, headers: _headers, ...input } = view.input;
  return {
    ...view,
    input: mayRead ? { ...view.input } : input,
    hidden: !mayRead,
    etag: seenDigest(view.etag, scopes, isRedacted),
  };
}

export const scheduleVerbs: readonly AnyVerb[] = [
  ...[listSchedules, getSchedule, putSchedule, removeSchedule, pauseSchedule, resumeSchedule],
];
