/**
 * Many jobs in one request: a list, and each has a status of its own; or all that a filter means, and then one request is one
 * bounded slice, of jobs and of time. With a `cursor` in its answer there are more; the same request with it as `cursor` goes
 * on, and one that was cut off can be sent again. Neither is one transaction.
 */
import { z } from '@hono/zod-openapi';
import type {
  BulkJob,
  CancelledJobs,
  ChangedJobs,
  Client,
  FilterOptions,
  JobChange,
  JobDue,
  JobEdit,
  JobFilter,
  NewDue,
} from '../../../client/client.ts';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import type { Queue } from '../../../job/queue.ts';
import { LIVE_STATES, type LiveState } from '../../../job/state.ts';
import { createAbort } from '../../../kernel/abort.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { answers, type Told } from '../answer.ts';
import type { Backend } from '../backend.ts';
import { etagAfter } from '../if-match.ts';
import { Problem } from '../problem.ts';
import { cursor, ofQueue, strict, whole } from '../schemas.ts';
import { TRACE_HEADERS, traced } from '../trace-context.ts';
import { type AnyVerb, change, type DryRun, verb } from '../verb.ts';
import { filterOf, filterShape, jobChange, jobChanges, newDue, newDues, newJob } from './job-shapes.ts';

const LIST_MAX = 10_000;
const JOBS_MAX = 10_000;
const JOBS_DEFAULT = 1000;
const IDS_SHOWN = 20;
/** After so long a request by filter ends behind the page that is under way, far within the time of an answer. */
const SLICE_MS = 5000;

const listOf = <Schema extends z.ZodType>(one: Schema) =>
  z
    .array(one, { error: 'a list' })
    .min(1, { error: 'at least one' })
    .max(LIST_MAX, { error: `at most ${LIST_MAX}` });

const anyId = z.string().min(1).max(192);
/** A job by its id, or as it was seen. */
const jobRef = z.union(
  [
    anyId,
    strict({
      id: anyId,
      ifMatch: z
        .string()
        .min(1)
        .max(200)
        .openapi({ description: 'Only if the job still has this `etag`, as a list or a look at it shows it.' }),
    }),
  ],
  { error: 'an id, or { id, ifMatch }' },
);

/** Which jobs: a list of ids, or a filter with its bounds. */
const target = {
  ids: listOf(jobRef)
    .optional()
    .openapi({ description: 'The jobs by their ids, or each with the `etag` that was seen; or give a filter.' }),
  filter: filterShape.optional(),
  dryRun: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'Needed with a filter: true changes nothing, it says how many, and which.' }),
  limit: whole(1, JOBS_MAX)
    .optional()
    .openapi({ description: `With a filter: at most so many jobs; default ${JOBS_DEFAULT}.` }),
  cursor,
};
const plain = strict(target).openapi('BatchRequest');

const DOC =
  'A list is answered with what became of each job, in its order. A filter is answered with counts, and one request changes a bounded number of jobs: with a `cursor` in the answer there are more, so send the same request with it. A job that changes meanwhile is skipped and counted.';

const answersOf = <Out>(type: Told<Out>) => ({
  200: { type, doc: 'Of a list: what became of each job. Of a filter: what became of this slice.' },
});

/** @throws Problem `bad-input` for more than the daemon takes at once */
function checkBatch({ limits: { batchMax } }: Backend, given: number): void {
  if (given <= batchMax) return;
  throw new Problem('bad-input', { detail: `the batch has ${given} jobs; allowed: ${batchMax} (http.batchMax)` });
}

type Body = z.infer<typeof plain> & { readonly jobs?: readonly unknown[] | undefined };

/** What became of one job. */
interface Became {
  readonly id: string;
  readonly status: string;
}

/** What a verb calls for a list, and for a filter. */
interface Change<Result extends Became> {
  readonly byList: (client: Client, queue: Queue) => Promise<readonly Result[]>;
  readonly byFilter: (
    client: Client,
    of: { readonly queue: Queue; readonly filter: JobFilter; readonly options: FilterOptions },
  ) => Promise<ChangedJobs | CancelledJobs>;
}

interface Request {
  readonly path: { readonly queue: string };
  readonly body: Body;
  readonly backend: Backend;
}

/** @throws Problem `bad-input` unless the jobs are named in one way, DuestreamError `not-found` */
async function changeJobs<Result extends Became>(
  { path: { queue }, body, backend }: Request,
  { byList, byFilter }: Change<Result>,
) {
  const { ids, jobs, filter, dryRun, limit, cursor: from } = body;
  if ([ids, jobs, filter].filter((one) => one !== undefined).length !== 1) {
    throw new Problem('bad-input', { detail: 'name the jobs in one way; allowed: a list, or a filter' });
  }
  checkBatch(backend, (ids ?? jobs ?? []).length);
  if (filter) {
    if (dryRun === undefined)
      throw new Problem('bad-input', { detail: 'dryRun is needed with a filter; allowed: true, false' });
    await refsOfQueue(await backend.place(), queue);
    return sliceOf({ queue, body }, (options) =>
      byFilter(backend.client, { queue: backend.queueOf(queue), filter: filterOf(filter), options }),
    );
  }
  const bound = Object.entries({ dryRun, limit, cursor: from }).find(([, value]) => value !== undefined);
  if (bound) {
    throw new Problem('bad-input', { detail: `${bound[0]} goes with a filter; a list is given` });
  }
  await refsOfQueue(await backend.place(), queue);
  const results = await byList(backend.client, backend.queueOf(queue));
  return { status: 200 as const, body: { queue, jobs: results } };
}

async function sliceOf(
  { queue, body: { dryRun, limit = JOBS_DEFAULT, cursor: from } }: { readonly queue: string; readonly body: Body },
  act: (options: FilterOptions) => Promise<ChangedJobs | CancelledJobs>,
) {
  const isLate = createAbort();
  const callOff = systemClock.timer(SLICE_MS, () => isLate.abort());
  try {
    const { cursor: at, ids, ...done } = await act({ dryRun, limit, cursor: from, signal: isLate.signal });
    return { status: 200 as const, body: { queue, ...done, ids: ids.slice(0, IDS_SHOWN), cursor: at } };
  } finally {
    callOff();
  }
}

/**
 * How an agent is shown the jobs that a filter means. It changes those that it was shown, each only if it still is what it was.
 *
 * @param state what the change is about where its filter names none
 */
const seen = (state: readonly LiveState[]): DryRun => ({
  ...{ look: 'jobs.find', defaults: { state }, same: ['id', 'etag'], names: 'ids' },
});
const WAITING: readonly LiveState[] = ['scheduled', 'ready'];

/** What all of these verbs are. */
const common = {
  method: 'post',
  doc: DOC,
  queues: 'path',
  path: ofQueue,
} as const;

const scheduleBatch = verb({
  name: 'jobs.scheduleMany',
  method: 'post',
  at: '/queues/{queue}/batch/schedule',
  summary: 'Schedule many jobs',
  doc: 'All are checked first: if one is wrong, the problem names its place and nothing is scheduled. Give ids, so that the request can be repeated.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({ jobs: listOf(newJob) }).openapi('NewJobs'),
  headers: TRACE_HEADERS,
  answers: { 200: { type: answers.ScheduledMany, doc: 'What became of each, in the order given.' } },
  problems: ['exists', 'queue-full', 'group-full', 'no-set', 'out-of-memory', 'refused'],
  async run({ path: { queue }, body, header, backend }) {
    checkBatch(backend, body.jobs.length);
    const list = body.jobs as unknown as readonly BulkJob<unknown>[];
    const own = list.map((job) => traced(header, job));
    const jobs = await backend.client.scheduleMany(backend.queueOf(queue), own);
    return { status: 200, body: { queue, jobs } };
  },
});

const cancelBatch = verb({
  ...change(operations.cancel),
  ...common,
  name: 'jobs.cancelMany',
  tool: seen(LIVE_STATES),
  at: '/queues/{queue}/batch/cancel',
  summary: 'Cancel many jobs: a list, or all that a filter means',
  body: plain,
  answers: answersOf(answers.CancelledMany),
  run: (call) =>
    changeJobs(call, {
      byList: (client, queue) => client.cancel(queue, call.body.ids ?? []),
      byFilter: (client, { queue, filter, options }) => client.cancel(queue, filter, options),
    }),
});

const runBatch = verb({
  ...change(operations.runNow),
  ...common,
  name: 'jobs.runMany',
  tool: seen(['scheduled']),
  at: '/queues/{queue}/batch/run',
  summary: 'Run many jobs now: a list, or the scheduled ones that a filter means',
  body: plain,
  answers: answersOf(answers.RanNowMany),
  run: (call) =>
    changeJobs(call, {
      byList: (client, queue) => client.runNow(queue, call.body.ids ?? []),
      byFilter: (client, { queue, filter, options }) => client.runNow(queue, filter, options),
    }),
});

const rescheduleBatch = verb({
  ...change(operations.reschedule),
  ...common,
  name: 'jobs.rescheduleMany',
  tool: seen(WAITING),
  at: '/queues/{queue}/batch/reschedule',
  summary: 'Give many jobs another due time: a list, or all that a filter means',
  doc: `${DOC} Each of \`jobs\` has a due time of its own; \`due\` is for \`ids\` or a filter. With a filter a \`delay\` counts from the first request: with its \`cursor\` the next ones give the same due time. A \`shift\` with a filter needs a \`tag\` or a \`set\`, and a request that is sent again shifts again. The \`moves\` of a dry run do not: sent as \`jobs\`, each with its \`dueMs\` as \`at\` and its \`etag\` as \`ifMatch\`, they move each job once.`,
  body: strict({ ...target, jobs: listOf(newDues).optional(), due: newDue.optional() }).openapi(
    'RescheduleBatchRequest',
  ),
  answers: answersOf(answers.RescheduledMany),
  run(call) {
    const { ids, jobs, due = {} } = call.body;
    return changeJobs(call, {
      byList: async (client, queue) => {
        const targets: readonly (string | JobDue)[] = ids ?? (jobs as readonly JobDue[] | undefined) ?? [];
        const done = await client.reschedule(queue, targets, due as NewDue);
        return done.map((one, at) => ({ ...one, etag: etagAfter(one, seenIn(targets[at])) }));
      },
      byFilter: (client, { queue, filter, options }) => client.reschedule(queue, filter, due as NewDue, options),
    });
  },
});

const seenIn = (target: string | JobDue | undefined): string | undefined =>
  typeof target === 'object' ? target.ifMatch : undefined;

const editBatch = verb({
  ...change(operations.edit),
  ...common,
  name: 'jobs.editMany',
  tool: seen(WAITING),
  at: '/queues/{queue}/batch/edit',
  summary: 'Change the content of many jobs: a list, or all that a filter means',
  doc: `${DOC} Each of \`jobs\` has a change of its own; \`change\` is for \`ids\` or a filter.`,
  body: strict({ ...target, jobs: listOf(jobChanges).optional(), change: jobChange.optional() }).openapi(
    'EditBatchRequest',
  ),
  answers: answersOf(answers.EditedMany),
  run(call) {
    const { ids, jobs, change = {} } = call.body;
    return changeJobs(call, {
      byList: (client, queue) =>
        client.edit(queue, ids ?? (jobs as readonly JobEdit<unknown>[] | undefined) ?? [], change as JobChange),
      byFilter: (client, { queue, filter, options }) => client.edit(queue, filter, change as JobChange, options),
    });
  },
});

export const batchVerbs: readonly AnyVerb[] = [scheduleBatch, cancelBatch, runBatch, rescheduleBatch, editBatch];
