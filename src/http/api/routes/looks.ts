/** What comes due, who leads, who works, whether Redis can be trusted, and who changed what. */
import { z } from '@hono/zod-openapi';
import { auditEntries } from '../../../access/audit.ts';
import { operations } from '../../../client/operations.ts';
import { listCursor, parseListCursor } from '../../../client/query/cursor.ts';
import { leadersOf, workersSeen } from '../../../client/queues/processes.ts';
import { examine } from '../../../inspect/doctor/doctor.ts';
import { instantMs } from '../../../kernel/duration.ts';
import { answers } from '../answer.ts';
import { mayUse } from '../caller.ts';
import { cursor, flagText, instant, queueName, strict, wholeText, workerId } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { asking } from './asks.ts';

const forecast = verb({
  name: 'forecast',
  method: 'get',
  at: '/forecast',
  summary: 'How many jobs come due when',
  doc: 'Jobs that wait, and jobs that schedules are going to make.',
  scope: 'read',
  tool: 'look',
  queues: 'query',
  query: strict({
    until: instant.optional().openapi({ description: 'Default 24 hours from now.' }),
    by: z.enum(['minute', 'half-hour', 'hour', 'auto'], { error: 'minute, half-hour, hour, auto' }).default('auto'),
    queue: queueName.optional(),
    perQueue: flagText.openapi({ description: 'Also split by queue.' }),
  }),
  answers: { 200: { type: answers.Forecast, doc: 'Buckets of a minute or an hour.' } },
  run: async ({ query, backend }) => ({ status: 200, body: await backend.client.schedules.forecast(query) }),
});

const leaders = verb({
  name: 'leaders',
  method: 'get',
  at: '/leaders',
  summary: 'Who leads each partition',
  scope: 'read',
  tool: 'look',
  queues: 'query',
  query: strict({ queue: queueName.optional() }),
  answers: {
    200: {
      type: answers.Leaders,
      doc: 'Every partition.',
    },
  },
  async run({ query: { queue }, backend }) {
    const { found: partitions, unread } = await leadersOf(await backend.place(), queue);
    return { status: 200, body: { namespace: backend.namespace, partitions, unread } };
  },
});

const workers = verb({
  name: 'workers',
  method: 'get',
  at: '/workers',
  summary: 'The workers, and the jobs that they run',
  scope: 'read',
  tool: 'look',
  queues: 'query',
  query: strict({
    queue: queueName.optional(),
    worker: workerId.optional().openapi({ description: 'Only this worker.' }),
    limit: wholeText(0, 1000, 10).openapi({ description: 'At most so many jobs of each worker: the oldest.' }),
  }),
  answers: {
    200: {
      type: answers.Workers,
      doc: 'Every worker, by id.',
    },
  },
  async run({ query, caller, backend }) {
    const { workers: seen, ...rest } = await workersSeen(await backend.place(), query);
    const mine = (queue: string) => mayUse(caller, queue);
    const asked = seen.filter(({ id }) => query.worker === undefined || id === query.worker);
    const all = asked.map(({ slots, ...one }) => ({
      ...one,
      queues: one.queues.filter(mine),
      slots: slots && Object.fromEntries(Object.entries(slots).filter(([queue]) => mine(queue))),
    }));
    return { status: 200, body: { namespace: backend.namespace, workers: all, ...rest } };
  },
});

const doctor = verb({
  name: 'doctor',
  method: 'get',
  at: '/doctor',
  summary: 'Whether this Redis can be trusted with jobs',
  doc: 'What `duestream doctor` finds, as the daemon sees it.',
  scope: 'read',
  tool: 'look',
  queues: 'all',
  answers: {
    200: {
      type: answers.Findings,
      doc: 'Each check, with what to do.',
    },
  },
  async run({ backend }) {
    const { redis } = await backend.place();
    const checks = await examine(redis, backend.examined);
    return { status: 200, body: { ok: checks.every(({ status }) => status !== 'fail'), checks } };
  },
});

const pauseWorker = asking(operations.workers.pause, {
  tool: { look: 'workers', same: ['state', 'pause'] },
  summary: 'Pause a worker',
  doc: 'It takes no new job of any of its queues until it is resumed; jobs that it runs go on. It hears of it with its next heartbeat. The pause ends with the process. 404 where it does not live; a worker of an older version is refused.',
  type: answers.WorkerPaused,
  answer: 'It is paused; `changed` says whether it was not before.',
  problems: ['bad-input'],
});

const resumeWorker = asking(operations.workers.resume, {
  tool: { look: 'workers', same: ['state', 'pause'] },
  summary: 'Resume a worker',
  type: answers.WorkerPaused,
  answer: 'It goes on with its next heartbeat; `changed` says whether it was paused.',
  problems: ['bad-input'],
});

export const lookVerbs: readonly AnyVerb[] = [forecast, leaders, workers, pauseWorker, resumeWorker, doctor];

// Who changed what.

const said = z.string().min(1).max(1024);

const listAudit = verb({
  name: 'audit',
  method: 'get',
  at: '/audit',
  summary: 'Who changed what, newest first',
  doc: 'The newest 10,000 changes by the API, a page or the command line, or those of them that are asked for. Of settings, limits, rules and due times an entry says what they were and what they are; of a change of many jobs, which: the first 100. Scheduling a job is none of them.',
  scope: 'admin',
  tool: 'look',
  queues: 'all',
  query: strict({
    queue: queueName.optional(),
    target: said.optional().openapi({ description: 'Only changes of this job, schedule, group, tag or token.' }),
    who: said.optional().openapi({ description: 'Only changes by this token or user.', example: 'deploy' }),
    verb: said.optional().openapi({
      description: 'Only this change, such as `queues.pause`, or all of a kind: `queues`.',
      example: 'queues.pause',
    }),
    from: instant.optional().openapi({ description: 'Only changes from this instant on.' }),
    to: instant.optional().openapi({ description: 'Only changes up to this instant.' }),
    limit: wholeText(1, 1000, 100),
    cursor,
  }),
  answers: {
    200: {
      type: answers.AuditPage,
      doc: 'A page of changes.',
    },
  },
  problems: ['bad-input'],
  async run({ query: { limit, cursor: after, from, to, ...filter }, backend }) {
    const before = parseListCursor(after, 'audit', /^\d{1,16}-\d{1,16}$/);
    const time = (text: string | undefined, what: string) => (text === undefined ? undefined : instantMs(text, what));
    const range = { fromMs: time(from, 'from'), toMs: time(to, 'to') };
    const entries = await auditEntries(await backend.place(), { limit, before, ...filter, ...range });
    const last = entries.length === limit ? entries.at(-1)?.entry : undefined;
    return { status: 200, body: { entries, cursor: last === undefined ? undefined : listCursor('audit', last) } };
  },
});

export const auditVerbs: readonly AnyVerb[] = [listAudit];
