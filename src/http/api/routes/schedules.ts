/** Schedules: listed, shown, put, removed, paused and resumed. A token of some queues sees those of its queues. */
import { z } from '@hono/zod-openapi';
import type { Scope } from '../../../access/tokens.ts';
import { isMatch } from '../../../client/calls/etag.ts';
import type { ScheduleChange, ScheduleInput, ScheduleView } from '../../../client/schedules/schedules.ts';
import { redactedSchedules } from '../../../inspect/redacted.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { declareQueue } from '../../../redis/scripts/queues.ts';
import { parseSchedule } from '../../../schedule/input.ts';
import type { Backend } from '../backend.ts';
import { type Caller, checkQueue, mayUse } from '../caller.ts';
import { etagHeader } from '../if-match.ts';
import { Problem } from '../problem.ts';
import { ofSchedule, queueName, reason, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, type Versioned, verb } from '../verb.ts';
import { seenDigest } from './hidden.ts';
import { changed, definition, schedule } from './schedule-shapes.ts';

const LIST_MAX = 10_000;

/** The schedule of a name, if the caller may see it. @throws Problem `not-found` */
export async function visibleSchedule(backend: Backend, caller: Caller, name: string): Promise<ScheduleView> {
  const view = await backend.client.schedules.get(name);
  if (view && mayUse(caller, view.queue)) return view;
  throw new Problem('not-found', { detail: `there is no schedule ${name}, or it is not of a queue of this token` });
}

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
  queues: 'own',
  query: strict({
    queue: queueName.optional(),
    tag: z.string().max(64).optional(),
    limit: wholeText(1, LIST_MAX, 1000),
  }),
  answers: {
    200: {
      schema: z
        .object({
          namespace: z.string(),
          schedules: z.array(schedule),
          more: z.int().openapi({ description: 'How many there are besides.' }),
          unreadable: z.array(z.object({ name: z.string(), why: z.string() })),
        })
        .openapi('SchedulesPage'),
      doc: 'The first of them, by name.',
    },
  },
  async run({ query, caller, backend }) {
    if (query.queue !== undefined) checkQueue(caller, query.queue);
    const unreadable: { readonly name: string; readonly why: string }[] = [];
    let more = 0;
    const all = await backend.client.schedules.list({
      ...query,
      limit: caller.queues === undefined ? query.limit : undefined,
      onUnreadable: (name, { message }) => unreadable.push({ name, why: message }),
      onMore: (count) => {
        more = count;
      },
    });
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
  queues: 'own',
  path: ofSchedule,
  answers: { 200: { schema: schedule, doc: 'Its definition, how far it was fired, and what comes next.' } },
  async run({ path: { name }, caller, backend }) {
    const [seen] = await seenSchedules(backend, [await visibleSchedule(backend, caller, name)], caller.scopes);
    return { status: 200, body: seen, headers: etagHeader(seen?.etag) };
  },
});

const putSchedule = verb({
  name: 'schedules.put',
  method: 'put',
  at: '/schedules/{name}',
  summary: 'Create a schedule or change it',
  doc: 'The same definition again changes nothing. With `If-Match` none is created. Without the scope `data`, headers that are left out are kept.',
  scope: 'write',
  queues: 'own',
  path: ofSchedule,
  body: definition,
  versioned: theSchedule,
  answers: {
    200: { schema: changed, doc: 'It was there, and is as asked now.' },
    201: { schema: changed, doc: 'It is new.' },
  },
  audited: true,
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
    return {
      status: isNew ? 201 : 200,
      body: told,
      headers,
      changed: status === 'unchanged' ? 0 : 1,
      target: name,
      queue,
    };
  },
});

const removeSchedule = verb({
  name: 'schedules.rm',
  method: 'delete',
  at: '/schedules/{name}',
  summary: 'Remove a schedule',
  doc: 'Its jobs stay.',
  scope: 'write',
  queues: 'own',
  path: ofSchedule,
  versioned: theSchedule,
  answers: { 204: { doc: 'It is removed.' } },
  audited: true,
  async run({ path: { name }, ifMatch, caller, backend }) {
    // One that cannot be read can be removed by who may use all queues.
    const queue = caller.queues === undefined ? undefined : (await visibleSchedule(backend, caller, name)).queue;
    if (!(await backend.client.schedules.remove(name, { ifMatch }))) {
      throw new Problem('not-found', { detail: `there is no schedule ${name}` });
    }
    return { status: 204, changed: 1, target: name, queue };
  },
});

const pauseSchedule = verb({
  name: 'schedules.pause',
  method: 'post',
  at: '/schedules/{name}/pause',
  summary: 'Pause a schedule',
  doc: 'It makes no jobs until it is resumed; its jobs go on.',
  scope: 'write',
  queues: 'own',
  path: ofSchedule,
  body: strict({ reason: reason.optional() }).openapi('SchedulePauseRequest'),
  bodyRequired: false,
  versioned: theSchedule,
  answers: { 200: { schema: changed, doc: 'It is paused.' } },
  audited: true,
  async run({ path: { name }, body, ifMatch, caller, backend }) {
    const { queue } = await visibleSchedule(backend, caller, name);
    return afterwards(backend, queue, await backend.client.schedules.pause(name, body.reason ?? '', { ifMatch }));
  },
});

const resumeSchedule = verb({
  name: 'schedules.resume',
  method: 'post',
  at: '/schedules/{name}/resume',
  summary: 'Resume a schedule from now on',
  scope: 'write',
  queues: 'own',
  path: ofSchedule,
  versioned: theSchedule,
  answers: { 200: { schema: changed, doc: 'It fires again.' } },
  audited: true,
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
  return {
    status: 200 as const,
    body,
    headers: etagHeader(etag),
    changed: status === 'unchanged' ? 0 : 1,
    target: name,
    queue,
  };
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
    input: mayRead ? view.input : input,
    hidden: !mayRead,
    etag: seenDigest(view.etag, scopes, isRedacted),
  };
}

export const scheduleVerbs: readonly AnyVerb[] = [
  ...[listSchedules, getSchedule, putSchedule, removeSchedule, pauseSchedule, resumeSchedule],
];
