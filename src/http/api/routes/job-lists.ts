import { z } from '@hono/zod-openapi';
import type { JobListFilter, JobView } from '../../../client/client.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { redactedJob } from '../../../job/redaction.ts';
import { JOB_STATES, LIVE_STATES } from '../../../job/state.ts';
import { listQueues } from '../../../redis/scripts/queues.ts';
import { answers } from '../answer.ts';
import type { Backend } from '../backend.ts';
import { type Caller, checkQueue, seenReason } from '../caller.ts';
import { cursor, instant, ofQueue, queuesText, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { anyStatesText, dateOf, filterFields, filterOf, idField, statesIn, statesText } from './job-shapes.ts';

/** Pages of the library that one request counts, and the jobs of one. */
const COUNTED_PAGES = 10;
const COUNTED_JOBS = 1000;

const at = (words: string) => instant.optional().openapi({ description: words, example: '2026-03-01T00:00:00Z' });

/** Of the data of a job in a list. */
const PREVIEW_CHARS = 200;

const previewed = z
  .enum(['data'], { error: 'data' })
  .optional()
  .openapi({
    description: `\`data\`: each job with the first ${PREVIEW_CHARS} characters of its data, as JSON; with the scope \`data\`.`,
  });
const sortByDue = z.enum(['due'], { error: 'due' });
const endedFields = {
  endedFrom: at('Of jobs that are over, in a queue that keeps a history: ended at this instant or later.'),
  endedTo: at('The same: ended at this instant or before.'),
};

/** Two fields of a query, from and to. Undefined: neither is given. @throws DuestreamError `bad-input` for what is no instant */
function rangeOf(given: Readonly<Record<string, string | undefined>>): JobListFilter['ended'] {
  const [from, to] = Object.entries(given).map(([name, value]) => dateOf(value, name));
  return from === undefined && to === undefined ? undefined : { from, to };
}

const listJobs = verb({
  name: 'jobs.list',
  method: 'get',
  at: '/queues/{queue}/jobs',
  summary: 'List jobs by state, tag, set, name, id, failures and due time',
  doc: 'What stays where it is while you go from page to page is in exactly one of them. Jobs that are not over come by state, by partition and by due time, those of a tag or a set by id; behind them come jobs that are over, by their end, latest first. A page may be short, or empty, and still have a `cursor`.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  query: strict({
    state: anyStatesText.default('scheduled'),
    ...filterFields,
    ...endedFields,
    sort: sortByDue
      .optional()
      .openapi({ description: '`due`: by due time, also jobs of a tag, and over all partitions.' }),
    preview: previewed,
    limit: wholeText(1, 1000, 50),
    cursor,
  }),
  answers: { 200: { type: answers.JobsPage, doc: 'A page of jobs.' } },
  async run({ path: { queue }, query, caller, backend }) {
    const { state, endedFrom, endedTo, sort, preview, limit, cursor: from, ...fields } = query;
    await refsOfQueue(await backend.place(), queue);
    const states = statesIn(state, JOB_STATES);
    const ended = rangeOf({ endedFrom, endedTo });
    const by = { ...filterOf(fields), state: states, ended, sort, limit, cursor: from };
    const page = await backend.client.list(backend.queueOf(queue), by);
    const jobs = await rowsOf(page.jobs, { caller, backend, preview });
    return { status: 200, body: { queue, states, jobs, scanned: page.scanned, cursor: page.cursor } };
  },
});

const findJobs = verb({
  name: 'jobs.find',
  method: 'get',
  at: '/jobs',
  summary: 'Find jobs in all queues, by due time',
  doc: 'Jobs that are not over come by their due time, and behind them those that are over, the latest end first. What stays where it is while you go from page to page is in exactly one of them. A page may be short, or empty, and still have a `cursor`. A queue that could not be looked through is named in `unread`. A token of some queues finds the jobs of those.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  query: strict({
    queue: queuesText.optional(),
    id: idField,
    state: anyStatesText.optional().openapi({
      description: `One or several of ${JOB_STATES.join(', ')}, with commas between them. Left out: those in which a job is not over; with \`id\` all; with \`endedFrom\` those that are over; with \`ranFrom\` also \`running\`.`,
    }),
    ...filterFields,
    ...endedFields,
    ranFrom: at(
      'Jobs whose last run was not over at this instant: those that run, and those that are over in a history.',
    ),
    ranTo: at('Jobs whose last run had begun at this instant.'),
    sort: sortByDue.default('due'),
    preview: previewed,
    limit: wholeText(1, 1000, 50),
    cursor,
  }),
  answers: { 200: { type: answers.FoundJobs, doc: 'A page of jobs.' } },
  async run({ query, caller, backend }) {
    const { queue, state, endedFrom, endedTo, ranFrom, ranTo, sort: _, preview, id, ...others } = query;
    const { limit, cursor: from, ...fields } = others;
    const asked = queue?.split(',');
    for (const name of asked ?? []) {
      checkQueue(caller, name);
      await refsOfQueue(await backend.place(), name);
    }
    const page = await backend.client.find({
      ...filterOf(fields),
      id,
      queues: asked ?? caller.queues,
      ended: rangeOf({ endedFrom, endedTo }),
      ran: rangeOf({ ranFrom, ranTo }),
      state: state === undefined ? undefined : statesIn(state, JOB_STATES),
      limit,
      cursor: from,
    });
    return { status: 200, body: { ...page, jobs: await rowsOf(page.jobs, { caller, backend, preview }) } };
  },
});

const countJobs = verb({
  name: 'jobs.count',
  method: 'get',
  at: '/queues/{queue}/count',
  summary: 'Count the jobs that are not over, all or by a filter',
  doc: 'By state and due time they are counted at one moment. By tag, set, name, id or failures jobs are looked through, a bounded number in one request: with a `cursor` in the answer, ask again with it and add.',
  scope: 'read',
  tool: 'look',
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
    const { tag, set, name, idPrefix, failed } = fields;
    const isIndexed = [tag, set, name, idPrefix, failed].every((one) => one === undefined);
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

interface Seeing {
  readonly caller: Caller;
  readonly backend: Backend;
  readonly preview: 'data' | undefined;
}

/** Jobs as this caller may see them. The data are looked into where somebody asks for them. */
async function rowsOf(jobs: readonly JobView[], { caller: { scopes }, backend, preview }: Seeing) {
  const isShown = preview !== undefined && scopes.has('data') && jobs.length > 0;
  const { redis, namespace } = await backend.place();
  const layouts = isShown ? await listQueues(redis, namespace) : [];
  const redacts = new Map(layouts.map(({ queue, redact }) => [queue, redact]));
  return jobs.map((job) => ({
    ...job,
    // Of a job that is over, the due time that was asked for.
    dueMs: job.overMs === undefined ? job.dueMs : job.askedDueMs,
    error: seenReason(job.reason ?? job.history.at(-1)?.message, scopes),
    etag: scopes.has('write') ? job.etag : undefined,
    preview: isShown ? previewOf(redactedJob(job, redacts.get(job.queue))) : undefined,
  }));
}

function previewOf(data: unknown): string | undefined {
  if (data === undefined) return undefined;
  const chars = [...JSON.stringify(data).slice(0, 2 * PREVIEW_CHARS)];
  return chars.length > PREVIEW_CHARS ? `${chars.slice(0, PREVIEW_CHARS).join('')}…` : chars.join('');
}

export const jobListVerbs: readonly AnyVerb[] = [findJobs, listJobs, countJobs];
