/** Many jobs in one request. Each has a status of its own; the list is not one transaction. */
import { z } from '@hono/zod-openapi';
import { countOf } from '../../../access/audit.ts';
import type { BulkJob, JobChange, NewDue } from '../../../client/client.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import { jobChanges, newDues, newJob } from '../job-options.ts';
import { Problem } from '../problem.ts';
import { ofQueue, strict } from '../schemas.ts';
import { type AnyVerb, type Call, verb } from '../verb.ts';
import { cancelled, edited, ofMany, ranNow, rescheduled, scheduled } from './job-shapes.ts';

const LIST_MAX = 10_000;
const listOf = <Schema extends z.ZodType>(one: Schema) =>
  z
    .array(one, { error: 'a list' })
    .min(1, { error: 'at least one' })
    .max(LIST_MAX, { error: `at most ${LIST_MAX}` });
const ids = strict({ ids: listOf(z.string().min(1).max(192)) }).openapi('Ids');

type Listed = Call<
  { queue: string },
  undefined,
  { readonly jobs?: readonly unknown[]; readonly ids?: readonly unknown[] }
>;

/** @throws Problem `bad-input` for more than the daemon takes at once, DuestreamError `not-found` */
async function checkBatch({ path, body, backend }: Listed): Promise<void> {
  const given = (body.jobs ?? body.ids ?? []).length;
  const { batchMax } = backend.limits;
  if (given > batchMax) {
    throw new Problem('bad-input', { detail: `the batch has ${given} jobs; allowed: ${batchMax} (http.batchMax)` });
  }
  await refsOfQueue(await backend.place(), path.queue);
}

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
  answers: { 200: { schema: ofMany(scheduled), doc: 'What became of each, in the order given.' } },
  problems: ['exists', 'queue-full', 'out-of-memory', 'refused'],
  async run({ path: { queue }, body, backend }) {
    const { batchMax } = backend.limits;
    if (body.jobs.length > batchMax) {
      throw new Problem('bad-input', {
        detail: `the batch has ${body.jobs.length} jobs; allowed: ${batchMax} (http.batchMax)`,
      });
    }
    const list = body.jobs as unknown as readonly BulkJob<unknown>[];
    const jobs = await backend.client.scheduleMany(backend.queueOf(queue), list);
    return { status: 200, body: { queue, jobs } };
  },
});

const cancelBatch = verb({
  name: 'jobs.cancelMany',
  method: 'post',
  at: '/queues/{queue}/batch/cancel',
  summary: 'Cancel many jobs',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: ids,
  answers: { 200: { schema: ofMany(cancelled), doc: 'What became of each, in the order given.' } },
  audited: true,
  async run(call) {
    await checkBatch(call);
    const { path, body, backend } = call;
    const jobs = await backend.client.cancelMany(backend.queueOf(path.queue), body.ids);
    return { status: 200, body: { queue: path.queue, jobs }, changed: countOf(jobs, 'cancelled', 'requested') };
  },
});

const runBatch = verb({
  name: 'jobs.runMany',
  method: 'post',
  at: '/queues/{queue}/batch/run',
  summary: 'Run many jobs now',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: ids,
  answers: { 200: { schema: ofMany(ranNow), doc: 'What became of each, in the order given.' } },
  audited: true,
  async run(call) {
    await checkBatch(call);
    const { path, body, backend } = call;
    const jobs = await backend.client.runNowMany(backend.queueOf(path.queue), body.ids);
    return { status: 200, body: { queue: path.queue, jobs }, changed: countOf(jobs, 'due') };
  },
});

const rescheduleBatch = verb({
  name: 'jobs.rescheduleMany',
  method: 'post',
  at: '/queues/{queue}/batch/reschedule',
  summary: 'Give many jobs another due time',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({ jobs: listOf(newDues) }).openapi('NewDues'),
  answers: { 200: { schema: ofMany(rescheduled), doc: 'What became of each, in the order given.' } },
  audited: true,
  async run(call) {
    await checkBatch(call);
    const { path, body, backend } = call;
    const list = body.jobs as readonly (NewDue & { readonly id: string })[];
    const jobs = await backend.client.rescheduleMany(backend.queueOf(path.queue), list);
    return { status: 200, body: { queue: path.queue, jobs }, changed: countOf(jobs, 'rescheduled') };
  },
});

const editBatch = verb({
  name: 'jobs.editMany',
  method: 'post',
  at: '/queues/{queue}/batch/edit',
  summary: 'Change the content of many jobs',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({ jobs: listOf(jobChanges) }).openapi('JobChanges'),
  answers: { 200: { schema: ofMany(edited), doc: 'What became of each, in the order given.' } },
  audited: true,
  async run(call) {
    await checkBatch(call);
    const { path, body, backend } = call;
    const list = body.jobs as readonly (JobChange & { readonly id: string })[];
    const jobs = await backend.client.editMany(backend.queueOf(path.queue), list);
    return { status: 200, body: { queue: path.queue, jobs }, changed: countOf(jobs, 'edited') };
  },
});

export const batchVerbs: readonly AnyVerb[] = [scheduleBatch, cancelBatch, runBatch, rescheduleBatch, editBatch];
