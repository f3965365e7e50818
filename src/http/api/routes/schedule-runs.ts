/** What a schedule will do and what it did, and jobs of it out of turn. */
import { z } from '@hono/zod-openapi';
import { operations } from '../../../client/operations.ts';
import { listCursor, parseListCursor } from '../../../client/query/cursor.ts';
import type { LeftOut, PreviewOptions, ScheduleInput } from '../../../client/schedules/schedules.ts';
import { pastRuns } from '../../../inspect/schedule-runs.ts';
import { answers } from '../answer.ts';
import { type Backend, nowOf } from '../backend.ts';
import { cursor, instant, jobId, ofSchedule, scheduleName, strict, whole, wholeText } from '../schemas.ts';
import { type AnyVerb, change, verb } from '../verb.ts';
import { definition, SEEN, theSchedule, visibleSchedule } from './schedules.ts';

const PREVIEW_MAX = 10_000;
const BACKFILL_MAX = 10_000;
/** Of the jobs of a backfill: an answer has at most a megabyte. */
const JOBS_SHOWN = 5000;
const RUNS_MAX = 100;
const RANGE = 'ISO 8601; without an offset it is a local time of the zone, and a date means the whole day';
const bound = instant.openapi({ description: RANGE });

const previewStored = verb({
  name: 'schedules.preview',
  method: 'get',
  at: '/schedules/{name}/preview',
  summary: 'Show the coming instants of a schedule',
  doc: 'With every decision of clock changes and calendars.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  path: ofSchedule,
  query: strict({ next: wholeText(1, PREVIEW_MAX, 10), until: bound.optional(), from: bound.optional() }),
  answers: { 200: { type: answers.Preview, doc: 'The instants in their order, dropped ones included.' } },
  async run({ path: { name }, query, caller, backend }) {
    await visibleSchedule(backend, caller, name);
    return { status: 200, body: { name, ...(await previewed(backend, name, query)) } };
  },
});

const previewNew = verb({
  name: 'schedules.previewNew',
  method: 'post',
  at: '/schedules/preview',
  summary: 'Show what a definition would do',
  doc: 'It is not stored. Ids, `H` and jitter follow from the name.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  body: strict({
    name: scheduleName.optional(),
    schedule: definition,
    next: whole(1, PREVIEW_MAX).optional(),
    until: bound.optional(),
    from: bound.optional(),
  }).openapi('PreviewRequest'),
  answers: { 200: { type: answers.Preview, doc: 'The instants in their order, dropped ones included.' } },
  async run({ body: { schedule, next = 10, name, until, from }, backend }) {
    const range = { next, name, until, from };
    const found = await previewed(backend, schedule as ScheduleInput, range);
    return { status: 200, body: { name: name ?? 'preview', ...found } };
  },
});

async function previewed({ client: { schedules } }: Backend, schedule: string | ScheduleInput, range: PreviewOptions) {
  let leftOut: LeftOut | undefined;
  const onLeftOut = (told: LeftOut) => {
    leftOut = told;
  };
  const rows = await schedules.preview(schedule, { ...range, onLeftOut });
  return { rows, leftOut };
}

const runs = verb({
  name: 'schedules.runs',
  method: 'get',
  at: '/schedules/{name}/runs',
  summary: 'What became of the past instants of a schedule, latest first',
  doc: 'Since its rule was changed, or it was paused or resumed; of those before only the ones whose job is known, up to the first hundred that have none. Nothing is written down per instant: the job of each is looked for, and it is known while it lives or its end is remembered (`done.window`, or the history of its queue).',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  path: ofSchedule,
  query: strict({ limit: wholeText(1, RUNS_MAX, 20), cursor }),
  answers: { 200: { type: answers.PastRuns, doc: 'A page of instants.' } },
  async run({ path: { name }, query, caller, backend }) {
    const before = parseListCursor(query.cursor, 'runs', /^\d{1,16}$/);
    const { schedule, queue } = await visibleSchedule(backend, caller, name);
    const place = await backend.place();
    const of = backend.queueOf(queue);
    const found = await pastRuns(place, {
      schedule,
      limit: query.limit,
      beforeMs: before === undefined ? undefined : Number(before),
      nowMs: nowOf(place),
      job: (id) => backend.client.get(of, id),
    });
    const cursor = found.beforeMs === undefined ? undefined : listCursor('runs', String(found.beforeMs));
    return { status: 200, body: { name, queue, runs: found.runs, cursor } };
  },
});

const trigger = verb({
  ...change(operations.schedules.trigger),
  tool: SEEN,
  method: 'post',
  at: '/schedules/{name}/trigger',
  summary: 'Run one extra job of a schedule now',
  doc: 'The same `id` twice makes one job. An `Idempotency-Key` is the id. With `If-Match` the job is of the very definition that has this `ETag`.',
  queues: 'own',
  path: ofSchedule,
  body: strict({ id: jobId.optional() }).openapi('TriggerRequest'),
  bodyRequired: false,
  headers: [{ name: 'Idempotency-Key', doc: 'The id of this run.' }],
  versioned: theSchedule,
  answers: { 200: { type: answers.FiredJob, doc: 'The job, and whether it is new.' } },
  async run({ path: { name }, body, header, ifMatch, caller, backend }) {
    await visibleSchedule(backend, caller, name);
    const id = body.id ?? header('idempotency-key');
    const done = await backend.client.schedules.trigger(name, { id, ifMatch });
    return { status: 200, body: done };
  },
});

const backfill = verb({
  ...change(operations.schedules.backfill),
  tool: { look: 'schedules.backfill', same: ['id', 'status', 'atMs'] },
  method: 'post',
  at: '/schedules/{name}/backfill',
  summary: 'Run the jobs of a range of past instants now',
  doc: 'Instants whose job lives, or is over and still remembered, are skipped.',
  queues: 'own',
  path: ofSchedule,
  body: strict({
    from: bound,
    to: bound,
    dryRun: z.boolean().optional().openapi({ description: 'Only tells what would be scheduled.' }),
    limit: whole(1, BACKFILL_MAX)
      .optional()
      .openapi({ description: 'A range with more instants is refused; default 1000.' }),
  }).openapi('BackfillRequest'),
  answers: {
    200: {
      type: answers.Backfilled,
      doc: 'What became of each instant.',
    },
  },
  async run({ path: { name }, body: { dryRun = false, ...range }, caller, backend }) {
    await visibleSchedule(backend, caller, name);
    const jobs = await backend.client.schedules.backfill(name, { ...range, dryRun });
    const leftOut = jobs.length > JOBS_SHOWN ? jobs.length - JOBS_SHOWN : undefined;
    const body = { name, dryRun, jobs: jobs.slice(0, JOBS_SHOWN), leftOut };
    return { status: 200, body };
  },
});

export const scheduleRunVerbs: readonly AnyVerb[] = [previewStored, previewNew, runs, trigger, backfill];
