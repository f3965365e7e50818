/** One job: scheduled, looked at, changed, cancelled. */

import { countOf } from '../../../access/audit.ts';
import type { JobChange, NewDue, ScheduleOptions } from '../../../client/client.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import { shownReport } from '../../../inspect/report.ts';
import { checkedIdempotency, sameCall } from '../idempotency.ts';
import { etagHeader } from '../if-match.ts';
import { jobChange, newDue, newJob } from '../job-options.ts';
import { Problem } from '../problem.ts';
import { flagText, ofJob, ofQueue, strict } from '../schemas.ts';
import { type Versioned, verb } from '../verb.ts';
import { seenReport } from './hidden.ts';
import { cancelled, edited, job, ranNow, rescheduled, scheduled } from './job-shapes.ts';
import { refuseUnchanged } from './statuses.ts';

const bare = strict({
  bare: flagText.openapi({ description: 'The id is of a job that a foreign producer put with ZADD.' }),
});

/** What a request about one job changes. */
const theJob: Versioned<{ readonly queue: string; readonly id: string }> = {
  what: 'the job',
  async etag({ path: { queue, id }, query, backend }) {
    const isBare = typeof query === 'object' && query !== null && 'bare' in query && query.bare === true;
    return (await backend.client.get(backend.queueOf(queue), id, { bare: isBare }))?.etag;
  },
};

const scheduleJob = verb({
  name: 'jobs.schedule',
  method: 'post',
  at: '/queues/{queue}/jobs',
  summary: 'Schedule a job',
  doc: 'Without `delay` and `at` it is due now. The first job of a queue makes the queue.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: newJob,
  headers: [
    {
      name: 'Idempotency-Key',
      doc: 'Becomes the id of the job. The same request with the same key is the same call, whenever it comes within a day: it makes no second job.',
    },
  ],
  answers: {
    201: { schema: scheduled, doc: 'It is scheduled. `Location` says where it is.' },
    200: { schema: scheduled, doc: 'A job of this id is there already; `status` says what became of the request.' },
  },
  problems: ['exists', 'reused', 'queue-full', 'out-of-memory', 'refused'],
  async run({ path: { queue }, body, header, backend }) {
    const { data, ...given } = body;
    // Each value is of the form of its option, and the library checks the rest.
    const options = given as ScheduleOptions;
    const key = checkedIdempotency(header('idempotency-key'), options.id);
    const call = { data, options };
    const asked = key === undefined ? call : await sameCall(backend, { queue, key, ...call });
    const done = await backend.client.schedule(backend.queueOf(queue), asked.data, asked.options);
    const isNew = done.status === 'scheduled' || done.status === 'replaced';
    const location = `/v1/queues/${queue}/jobs/${encodeURIComponent(done.id)}`;
    return { status: isNew ? 201 : 200, body: done, headers: isNew ? { Location: location } : {} };
  },
});

const getJob = verb({
  name: 'jobs.get',
  method: 'get',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Look at a job',
  doc: 'With its story: what happened to it in order of time, and how it ended. After its end it is known within the done window, and as long as its queue keeps a history. With the scope `data` or `write` there is an `ETag` of a job that is not over, for `If-Match`: another content, start or due time is another one.',
  scope: 'read',
  queues: 'path',
  path: ofJob,
  query: bare,
  answers: { 200: { schema: job, doc: 'The job as it is now.' } },
  async run({ path: { queue, id }, query, caller, backend }) {
    const found = await backend.client.get(backend.queueOf(queue), id, query);
    const refs = await refsOfQueue(await backend.place(), queue);
    if (!found) {
      throw new Problem('not-found', {
        detail: `queue ${queue} has no job of this id: it never existed, it was over long ago, or it is in another queue`,
      });
    }
    const isRedacted = refs[found.partition]?.redact !== undefined;
    const body = seenReport(shownReport(found, refs), caller.scopes, isRedacted);
    return { status: 200, body, headers: etagHeader(body.etag) };
  },
});

const editJob = verb({
  name: 'jobs.edit',
  method: 'patch',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Change the content of a job that waits',
  doc: 'Data, name and options; what is left out stays, and null takes an option back to its queue. Id, due time, attempts and history stay.',
  scope: 'write',
  queues: 'path',
  path: ofJob,
  body: jobChange,
  versioned: theJob,
  answers: { 200: { schema: edited, doc: 'It is changed, or was so already.' } },
  problems: ['running', 'over', 'unreadable'],
  audited: true,
  async run({ path: { queue, id }, body, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.edit(backend.queueOf(queue), id, body as JobChange, { ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done, headers: etagHeader(done.etag), changed: countOf([done], 'edited'), target: id };
  },
});

const rescheduleJob = verb({
  name: 'jobs.reschedule',
  method: 'post',
  at: '/queues/{queue}/jobs/{id}/reschedule',
  summary: 'Give a job that waits another due time',
  scope: 'write',
  queues: 'path',
  path: ofJob,
  body: newDue,
  versioned: theJob,
  answers: { 200: { schema: rescheduled, doc: 'Its due time is as asked, or it was kept, or it is due already.' } },
  problems: ['running', 'over'],
  audited: true,
  async run({ path: { queue, id }, body, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.reschedule(backend.queueOf(queue), id, body as NewDue, { ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done, changed: countOf([done], 'rescheduled'), target: id };
  },
});

const runJob = verb({
  name: 'jobs.run',
  method: 'post',
  at: '/queues/{queue}/jobs/{id}/run',
  summary: 'Run a job that waits now',
  doc: 'Also before the end of its backoff.',
  scope: 'write',
  queues: 'path',
  path: ofJob,
  versioned: theJob,
  answers: { 200: { schema: ranNow, doc: 'It is due now.' } },
  problems: ['running', 'over'],
  audited: true,
  async run({ path: { queue, id }, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.runNow(backend.queueOf(queue), id, { ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done, changed: countOf([done], 'due'), target: id };
  },
});

const cancelJob = verb({
  name: 'jobs.cancel',
  method: 'delete',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Cancel a job',
  doc: 'One that waits is over at once; one that runs is asked to stop.',
  scope: 'write',
  queues: 'path',
  path: ofJob,
  query: bare,
  versioned: theJob,
  answers: {
    200: { schema: cancelled, doc: 'It is cancelled, or was before.' },
    202: { schema: cancelled, doc: 'It runs, and its signal aborts soon.' },
  },
  problems: ['over'],
  audited: true,
  async run({ path: { queue, id }, query, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.cancel(backend.queueOf(queue), id, { ...query, ifMatch });
    if (done.over !== 'cancelled') refuseUnchanged(queue, done);
    const changed = countOf([done], 'cancelled', 'requested');
    return { status: done.status === 'requested' ? 202 : 200, body: done, changed, target: id };
  },
});

export const jobVerbs = [scheduleJob, getJob, editJob, cancelJob, rescheduleJob, runJob];
