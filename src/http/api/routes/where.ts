/**
 * Changes of every job that a filter means. One request is one bounded slice: of jobs and of time. With a `next` in its answer
 * there are more; the same request with it as `cursor` goes on, and one that was cut off can be sent again.
 */

import { z } from '@hono/zod-openapi';
import type { CancelledWhere, ChangedWhere, JobChange, NewDue, WhereOptions } from '../../../client/client.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import { createAbort } from '../../../kernel/abort.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { Backend } from '../backend.ts';
import { filterOf, filterShape, wordsOf } from '../job-filter.ts';
import { jobChange, newDue } from '../job-options.ts';
import { count, cursor, next, ofQueue, strict, whole } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const JOBS_MAX = 10_000;
const JOBS_DEFAULT = 1000;
const IDS_SHOWN = 20;
/** After so long a request ends behind the page that is under way, far within the time of an answer. */
const SLICE_MS = 5000;

const bounds = {
  filter: filterShape,
  dryRun: z
    .boolean({ error: 'true or false' })
    .openapi({ description: 'True changes nothing: it says how many, and which.' }),
  limit: whole(1, JOBS_MAX)
    .optional()
    .openapi({ description: `At most so many jobs; default ${JOBS_DEFAULT}.` }),
  cursor,
};
const plain = strict(bounds).openapi('WhereRequest');

const skipped = z
  .record(z.string(), count)
  .openapi({ description: 'How many were not changed, by reason: changed, running, over, already, …' });
const answer = z
  .object({
    queue: z.string(),
    dryRun: z.boolean(),
    matched: count.openapi({ description: 'Jobs that the filter meant.' }),
    changed: count,
    requested: count.optional().openapi({ description: 'Of a cancel: they run, and were asked to stop.' }),
    skipped,
    scanned: count,
    ids: z.array(z.string()).openapi({ description: `The first ${IDS_SHOWN} that were changed, or would be.` }),
    next,
  })
  .openapi('ChangedWhere');
const answers = { 200: { schema: answer, doc: 'What became of this slice.' } };
const DOC =
  'One request changes a bounded number of jobs: with a `next` in the answer there are more, so send the same request with it as `cursor`. A job that changes meanwhile is skipped and counted.';

interface Slice {
  readonly queue: string;
  readonly backend: Backend;
  readonly body: z.infer<typeof plain>;
}

type Act = (options: WhereOptions) => Promise<ChangedWhere | CancelledWhere>;

async function sliceOf({ queue, backend, body }: Slice, act: Act) {
  await refsOfQueue(await backend.place(), queue);
  const { dryRun, limit = JOBS_DEFAULT, cursor: from, filter } = body;
  const isLate = createAbort();
  const callOff = systemClock.timer(SLICE_MS, () => isLate.abort());
  try {
    const { cursor: at, ids, ...done } = await act({ dryRun, limit, cursor: from, signal: isLate.signal });
    const requested = 'requested' in done ? done.requested : 0;
    return {
      status: 200 as const,
      body: { queue, ...done, ids: ids.slice(0, IDS_SHOWN), next: at },
      changed: dryRun ? 0 : done.changed + requested,
      target: wordsOf(filter),
    };
  } finally {
    callOff();
  }
}

/** What all of these verbs are. */
const common = {
  method: 'post',
  doc: DOC,
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  answers,
  audited: true,
} as const;

const cancelWhere = verb({
  ...common,
  name: 'jobs.cancelWhere',
  at: '/queues/{queue}/where/cancel',
  summary: 'Cancel the jobs that a filter means',
  body: plain,
  run: ({ path: { queue }, body, backend }) =>
    sliceOf({ queue, backend, body }, (options) =>
      backend.client.cancelWhere(backend.queueOf(queue), filterOf(body.filter), options),
    ),
});

const runWhere = verb({
  ...common,
  name: 'jobs.runWhere',
  at: '/queues/{queue}/where/run',
  summary: 'Run the scheduled jobs that a filter means now',
  body: plain,
  run: ({ path: { queue }, body, backend }) =>
    sliceOf({ queue, backend, body }, (options) =>
      backend.client.runNowWhere(backend.queueOf(queue), filterOf(body.filter), options),
    ),
});

const rescheduleWhere = verb({
  ...common,
  name: 'jobs.rescheduleWhere',
  at: '/queues/{queue}/where/reschedule',
  summary: 'Give the jobs that a filter means another due time',
  doc: `${DOC} A \`delay\` counts from the first request: with its \`cursor\` the next ones give the same due time.`,
  body: strict({ ...bounds, due: newDue }).openapi('RescheduleWhereRequest'),
  run: ({ path: { queue }, body, backend }) =>
    sliceOf({ queue, backend, body }, (options) => {
      const [to, filter] = [backend.queueOf(queue), filterOf(body.filter)];
      return backend.client.rescheduleWhere(to, filter, body.due as NewDue, options);
    }),
});

const editWhere = verb({
  ...common,
  name: 'jobs.editWhere',
  at: '/queues/{queue}/where/edit',
  summary: 'Change the content of the jobs that a filter means',
  body: strict({ ...bounds, change: jobChange }).openapi('EditWhereRequest'),
  run: ({ path: { queue }, body, backend }) =>
    sliceOf({ queue, backend, body }, (options) => {
      const [to, filter] = [backend.queueOf(queue), filterOf(body.filter)];
      return backend.client.editWhere(to, filter, body.change as JobChange, options);
    }),
});

export const whereVerbs: readonly AnyVerb[] = [cancelWhere, runWhere, rescheduleWhere, editWhere];
