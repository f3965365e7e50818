import type { JobView } from '../../../client/client.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { JOB_STATES, LIVE_STATES } from '../../../job/state.ts';
import { answers } from '../answer.ts';
import { cursor, instant, ofQueue, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { anyStatesText, dateOf, filterFields, filterOf, statesIn, statesText } from './job-shapes.ts';

/** Pages of the library that one request counts, and the jobs of one. */
const COUNTED_PAGES = 10;
const COUNTED_JOBS = 1000;

const ended = (words: string) => instant.optional().openapi({ description: words, example: '2026-03-01T00:00:00Z' });

const listJobs = verb({
  name: 'jobs.list',
  method: 'get',
  at: '/queues/{queue}/jobs',
  summary: 'List jobs by state, tag, set, name, id and due time',
  doc: 'What stays where it is while you go from page to page is in exactly one of them. Jobs that are not over come by state, by partition and by due time, those of a tag or a set by id; behind them come jobs that are over, by their end, latest first. A page may be short, or empty, and still have a `cursor`.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({
    state: anyStatesText.default('scheduled'),
    ...filterFields,
    endedFrom: ended('Of jobs that are over, in a queue that keeps a history: ended at this instant or later.'),
    endedTo: ended('The same: ended at this instant or before.'),
    limit: wholeText(1, 1000, 50),
    cursor,
  }),
  answers: { 200: { type: answers.JobsPage, doc: 'A page of jobs.' } },
  async run({ path: { queue }, query: { state, endedFrom, endedTo, limit, cursor: from, ...fields }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const states = statesIn(state, JOB_STATES);
    const ended = { from: dateOf(endedFrom, 'endedFrom'), to: dateOf(endedTo, 'endedTo') };
    const isEnded = endedFrom !== undefined || endedTo !== undefined;
    const by = { ...filterOf(fields), state: states, ended: isEnded ? ended : undefined, limit, cursor: from };
    const page = await backend.client.list(backend.queueOf(queue), by);
    const body = { queue, states, jobs: page.jobs.map(rowOf), scanned: page.scanned, cursor: page.cursor };
    return { status: 200, body };
  },
});

const countJobs = verb({
  name: 'jobs.count',
  method: 'get',
  at: '/queues/{queue}/count',
  summary: 'Count the jobs that are not over, all or by a filter',
  doc: 'By state and due time they are counted at one moment. By tag, set, name or id jobs are looked through, a bounded number in one request: with a `cursor` in the answer, ask again with it and add.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({ state: statesText.default(LIVE_STATES.join(',')), ...filterFields, cursor }),
  answers: {
    200: {
      type: answers.JobCount,
      doc: 'How many this request has counted.',
    },
  },
  async run({ path: { queue }, query: { state, cursor: from, ...fields }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const to = backend.queueOf(queue);
    const states = statesIn(state, LIVE_STATES);
    const filter = filterOf(fields);
    const isIndexed = [fields.tag, fields.set, fields.name, fields.idPrefix].every((one) => one === undefined);
    if (isIndexed) {
      const all = await backend.client.count(to, { ...filter, state: states });
      return { status: 200, body: { queue, ...all, scanned: all.count } };
    }
    let [counted, scanned, at] = [0, 0, from];
    for (let pages = 0; pages < COUNTED_PAGES && (pages === 0 || at !== undefined); pages += 1) {
      const page = await backend.client.list(to, { ...filter, state: states, limit: COUNTED_JOBS, cursor: at });
      counted += page.jobs.length;
      scanned += page.scanned;
      at = page.cursor;
    }
    // So many could be looked through: then they are counted at one moment.
    const whole = from === undefined && at === undefined;
    const all = whole
      ? await backend.client.count(to, { ...filter, state: states })
      : { count: counted, atLeast: true };
    return { status: 200, body: { queue, ...all, scanned, cursor: at } };
  },
});

/** Of a job that is over, the due time that was asked for. */
const rowOf = (job: JobView) => ({ ...job, dueMs: job.overMs === undefined ? job.dueMs : job.askedDueMs });

export const jobListVerbs: readonly AnyVerb[] = [listJobs, countJobs];
