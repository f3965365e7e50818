/** One job: scheduled, looked at, changed, cancelled. */

import { hash } from 'node:crypto';
import type { JobChange, NewDue, ScheduleOptions } from '../../../client/client.ts';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { whyJobWaits } from '../../../client/queues/why.ts';
import { startEstimateOf } from '../../../inspect/estimate.ts';
import { shownReport } from '../../../inspect/redacted.ts';
import { dataJson } from '../../../job/data-json.ts';
import { parseJobId } from '../../../job/job.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { writePart } from '../../../kernel/path-part.ts';
import { controlKeys, IDEMPOTENCY_MS } from '../../../redis/keys.ts';
import { answers } from '../answer.ts';
import type { Answers } from '../answers.ts';
import type { Backend } from '../backend.ts';
import { seenReport } from '../caller.ts';
import { etagAfter, etagHeader } from '../if-match.ts';
import { Problem } from '../problem.ts';
import { flagText, ofJob, ofQueue, strict } from '../schemas.ts';
import { TRACE_HEADERS, traced } from '../trace-context.ts';
import { change, type DryRun, type Versioned, verb } from '../verb.ts';
import { untilOver, waitText } from './ends.ts';
import { jobChange, newDue, newJob } from './job-shapes.ts';

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

/** How an agent is shown the job that it is about to change. */
const SEEN: DryRun = { look: 'jobs.get', same: ['etag'] };

const scheduleJob = verb({
  name: 'jobs.schedule',
  tool: { look: 'jobs.preview', same: ['there', 'refusal'] },
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
    ...TRACE_HEADERS,
  ],
  answers: {
    201: { type: answers.Scheduled, doc: 'It is scheduled. `Location` says where it is.' },
    200: {
      type: answers.Scheduled,
      doc: 'A job of this id is there already; `status` says what became of the request.',
    },
  },
  problems: ['exists', 'reused', 'queue-full', 'group-full', 'no-set', 'out-of-memory', 'refused'],
  async run({ path: { queue }, body, header, backend }) {
    const { data, ...given } = body;
    // Each value is of the form of its option, and the library checks the rest.
    const options = traced(header, given as ScheduleOptions);
    const key = checkedIdempotency(header('idempotency-key'), options);
    const call = { data, options, isRepeat: false };
    const asked = key === undefined ? call : await sameCall(backend, { queue, key, ...call });
    const ended = asked.isRepeat ? await cancelledBefore(backend, queue, key ?? '') : undefined;
    if (ended) return { status: 200, body: ended };
    const done = await backend.client.schedule(backend.queueOf(queue), asked.data, asked.options);
    const isNew = done.status === 'scheduled' || done.status === 'replaced';
    const location = `/v1/queues/${queue}/jobs/${writePart(done.id)}`;
    return { status: isNew ? 201 : 200, body: done, headers: isNew ? { Location: location } : {} };
  },
});

const previewJob = verb({
  name: 'jobs.preview',
  method: 'post',
  at: '/queues/{queue}/preview',
  summary: 'See what would become of a job',
  doc: 'Takes what scheduling a job takes, and writes nothing: when the job would be due, which jobs come due beside it, when it would be tried again, and what would refuse it now.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  body: newJob,
  answers: { 200: { type: answers.JobPreview, doc: 'What would become of it.' } },
  async run({ path: { queue }, body: { data, ...options }, backend }) {
    const body = await backend.client.preview(backend.queueOf(queue), data, options as ScheduleOptions);
    return { status: 200, body };
  },
});

const getJob = verb({
  name: 'jobs.get',
  method: 'get',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Look at a job',
  doc: 'With its story: what happened to it in order of time, and how it ended. With `wait` the answer comes when the job is over, or when the time is up: its `state` says which. After its end it is known within the done window, and as long as its queue keeps a history. With the scope `data` or `write` there is an `ETag` of a job that is not over, for `If-Match`: another content, start or due time is another one.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofJob,
  query: bare.extend({ wait: waitText }),
  answers: { 200: { type: answers.Job, doc: 'The job as it is now.' } },
  problems: ['stopped'],
  async run({ path: { queue, id }, query: { wait, ...query }, caller, backend, signal }) {
    const place = await backend.place();
    const refs = await refsOfQueue(place, queue);
    if (wait !== undefined) await untilOver(backend, { queue, id, isBare: query.bare, wait, signal: signal() });
    const found = await backend.client.get(backend.queueOf(queue), id, query);
    if (!found) {
      throw new Problem('not-found', {
        detail: `queue ${queue} has no job of this id: it never existed, it was over long ago, or it is in another queue`,
      });
    }
    const isRedacted = refs[found.partition]?.redact !== undefined;
    const body = seenReport(shownReport(found, refs), caller.scopes, isRedacted);
    return {
      status: 200,
      body: { ...body, waitsFor: await whyJobWaits(place, body), starts: await startEstimateOf(place, found) },
      headers: etagHeader(body.etag),
    };
  },
});

const editJob = verb({
  ...change(operations.edit),
  tool: SEEN,
  method: 'patch',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Change the content of a job that waits, and with it its due time',
  doc: 'Data, name and options, and with `delay` or `at` another due time in the same step. What is left out stays, also the due time, and null takes an option back to its queue. Id, attempts and history stay.',
  queues: 'path',
  path: ofJob,
  body: jobChange,
  versioned: theJob,
  answers: { 200: { type: answers.Edited, doc: 'It is changed, or was so already.' } },
  problems: ['running', 'over', 'unreadable'],
  async run({ path: { queue, id }, body, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.edit(backend.queueOf(queue), id, body as JobChange, { ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done, headers: etagHeader(done.etag) };
  },
});

const rescheduleJob = verb({
  ...change(operations.reschedule),
  tool: SEEN,
  method: 'post',
  at: '/queues/{queue}/jobs/{id}/reschedule',
  summary: 'Give a job that waits another due time',
  queues: 'path',
  path: ofJob,
  body: newDue,
  versioned: theJob,
  answers: {
    200: { type: answers.Rescheduled, doc: 'Its due time is as asked, or it was kept, or it is due already.' },
  },
  problems: ['running', 'over'],
  async run({ path: { queue, id }, body, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await rescheduleAsSeen(backend, { queue, id, due: body as NewDue, ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done, headers: etagHeader(done.etag) };
  },
});

interface Rescheduling {
  readonly queue: string;
  readonly id: string;
  readonly due: NewDue;
  readonly ifMatch: string | undefined;
}

/**
 * The ETag of a job after it has another due time follows from what it was, so the job is changed only if it still is what
 * was seen. Where somebody was faster and the caller did not ask for that, it is changed all the same, and has no ETag here.
 */
async function rescheduleAsSeen({ client, queueOf }: Backend, { queue: name, id, due, ifMatch }: Rescheduling) {
  const queue = queueOf(name);
  const isNamed = ifMatch !== undefined && ifMatch !== '*';
  const seen = isNamed ? ifMatch : (await client.get(queue, id))?.etag;
  const done = await client.reschedule(queue, id, due, { ifMatch: seen ?? ifMatch });
  if (done.status === 'changed' && !isNamed) {
    return { ...(await client.reschedule(queue, id, due, { ifMatch })), etag: undefined };
  }
  return { ...done, etag: etagAfter(done, seen) };
}

const runJob = verb({
  ...change(operations.runNow),
  tool: SEEN,
  method: 'post',
  at: '/queues/{queue}/jobs/{id}/run',
  summary: 'Run a job that waits now',
  doc: 'Also before the end of its backoff.',
  queues: 'path',
  path: ofJob,
  versioned: theJob,
  answers: { 200: { type: answers.RanNow, doc: 'It is due now.' } },
  problems: ['running', 'over'],
  async run({ path: { queue, id }, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.runNow(backend.queueOf(queue), id, { ifMatch });
    refuseUnchanged(queue, done);
    return { status: 200, body: done };
  },
});

const cancelJob = verb({
  ...change(operations.cancel),
  tool: SEEN,
  method: 'delete',
  at: '/queues/{queue}/jobs/{id}',
  summary: 'Cancel a job',
  doc: 'One that waits is over at once; one that runs is asked to stop.',
  queues: 'path',
  path: ofJob,
  query: bare,
  versioned: theJob,
  answers: {
    200: { type: answers.Cancelled, doc: 'It is cancelled, or was before.' },
    202: { type: answers.Cancelled, doc: 'It runs, and its signal aborts soon.' },
  },
  problems: ['over'],
  async run({ path: { queue, id }, query, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const done = await backend.client.cancel(backend.queueOf(queue), id, { ...query, ifMatch });
    if (done.over !== 'cancelled') refuseUnchanged(queue, done);
    return { status: done.status === 'requested' ? 202 : 200, body: done };
  },
});

export const jobVerbs = [scheduleJob, previewJob, getJob, editJob, cancelJob, rescheduleJob, runJob];

// What became of one job, where it is no success → the problem that says so. A batch tells it for each job instead.

interface Became {
  readonly id: string;
  readonly status: string;
  readonly over?: string | undefined;
}

/** @throws Problem unless the status is a success */
function refuseUnchanged(queue: string, { id, status, over }: Became): void {
  const job = `job ${id} of queue ${queue}`;
  const also = { job: { id, status, over } };
  switch (status) {
    case 'unknown':
      throw new Problem('not-found', { detail: `${job}: nothing is known of it`, also });
    case 'running':
      throw new Problem('running', { detail: `${job} runs; nothing was changed`, also });
    case 'over':
      throw new Problem('over', { detail: `${job} is over (${over ?? 'ended'}); nothing was changed`, also });
    case 'unreadable':
      throw new Problem('unreadable', { detail: `${job}: its record cannot be read; nothing was changed`, also });
    case 'changed':
      throw new Problem('changed', {
        detail: `${job}: somebody else changes it; nothing was changed, look at it again`,
        also,
      });
    case 'indeterminate':
      throw new Problem('indeterminate', { detail: `${job}: the reply of Redis was lost; look at it again`, also });
    default:
  }
}

// An `Idempotency-Key` becomes the id of the job. That alone would not be enough: a delay counts from now, so the same
// request later would be another call, and a second job once the first is over. So Redis keeps, for a day, which due
// time the key was first answered with, and a digest of what was asked; who comes again makes the very same call.
//
// Two requests with one key at one moment: the first to write decides, the other reads. A crash between the key and the
// job leaves a key whose job is scheduled by the next request, at the due time of the first.

interface Asked {
  readonly queue: string;
  readonly key: string;
  readonly data: unknown;
  readonly options: ScheduleOptions;
}

/**
 * The order of keys means nothing in JSON: another program, or the same one later, may write another. The record has them
 * sorted too, because what a job is known by is its text. How deep a body may be
 * was checked when it was read.
 */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, one]) => [name, sorted(one)]));
}

/** The key, if there is one. @throws DuestreamError `bad-input`, Problem `bad-input` for a key beside another id */
function checkedIdempotency(key: string | undefined, options: ScheduleOptions): string | undefined {
  const { id, debounce, ifExists } = options;
  if (key === undefined) return undefined;
  if (debounce !== undefined || ifExists === 'update') {
    throw new Problem('bad-input', {
      detail:
        'Idempotency-Key is given with debounce or ifExists update, of which each request is a newer call; allowed: body.id',
    });
  }
  if (id !== undefined && id !== key) {
    throw new Problem('bad-input', { detail: 'Idempotency-Key and body.id differ; allowed: one of them, or the same' });
  }
  return parseJobId(key);
}

/**
 * The data and the options with which the request is the same call as the first one with its key.
 *
 * @throws Problem `reused`
 */
async function sameCall(
  backend: Backend,
  { queue, key, data: given, options }: Asked,
): Promise<Pick<Asked, 'data' | 'options'> & { readonly isRepeat: boolean }> {
  const { delay, ...rest } = options;
  // Headers do not count when calls are compared.
  const { headers: _, ...compared } = options;
  const { redis, namespace, server } = await backend.place();
  await server.settle();
  const data = sorted(given ?? null);
  const dueMs = options.at === undefined ? server.latestMs() + durationMs(delay ?? 0, 'delay') : undefined;
  const digest = hash('sha256', `${dataJson(data)}${JSON.stringify(sorted([queue, compared]))}`).slice(0, 32);
  const name = controlKeys(namespace).idempotency(hash('sha256', `${queue} ${key}`).slice(0, 32));
  const mine = `${dueMs === undefined ? '-' : Math.ceil(dueMs)} ${digest}`;
  const before = await redis.set(name, mine, 'PX', IDEMPOTENCY_MS, 'NX', 'GET');
  const [due = '-', known = ''] = (before ?? mine).split(' ');
  if (known !== digest) {
    throw new Problem('reused', {
      detail: 'this Idempotency-Key was used for another request; allowed: the same request, or another key',
    });
  }
  const at = due === '-' ? options.at : new Date(Number(due));
  return { data, options: { ...rest, at, id: key }, isRepeat: before !== null };
}

/** The library takes the same call after a cancel for a new one. A request that comes again with its key is none. */
async function cancelledBefore(backend: Backend, queue: string, id: string): Promise<Answers['Scheduled'] | undefined> {
  const found = await backend.client.get(backend.queueOf(queue), id);
  if (found?.state !== 'cancelled') return undefined;
  const { askedDueMs, overMs = 0 } = found;
  return { id, queue, status: 'already', dueMs: askedDueMs ?? overMs, over: 'cancelled' };
}
