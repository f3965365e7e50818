/** Queues: what they hold, why nothing moves, pause and resume. */
import { z } from '@hono/zod-openapi';
import { pauseQueue, queueCounts, queueStats, resumeQueue } from '../../../inspect/queues.ts';
import { mayUse } from '../caller.ts';
import { count, epochMs, ofQueue, reason, strict } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const pause = z.object({ sinceMs: epochMs.optional(), reason: z.string() }).openapi('Pause');
const leader = z
  .object({
    process: z.string(),
    host: z.string().optional(),
    pid: z.int().optional(),
    version: z.string().optional().openapi({ description: 'Of duestream; missing where the process does not say it.' }),
    epoch: z.number(),
    sinceMs: epochMs,
    leaseLeftMs: z.number(),
    lastPassAgoMs: z.number().optional(),
  })
  .openapi('Leader');

const counts = {
  scheduled: count,
  waiting: count.openapi({ description: 'Jobs that are due and in line: their queue has limits.' }),
  waitMs: z.number().openapi({ description: 'For how long the first of these has waited; 0 when none does.' }),
  ready: count,
  running: count,
  dead: count,
  oldestDueAgeMs: z
    .number()
    .openapi({ description: 'For how long the oldest job that is due has waited for its start; 0 when none waits.' }),
};
const quota = z
  .object({
    pending: count,
    pendingMax: count.openapi({ description: 'Jobs that may wait or run; 0: no limit.' }),
    bytes: count.openapi({ description: 'Bytes of their records, as all scripts keep their sum.' }),
    bytesMax: count.openapi({ description: 'Bytes that these may take; 0: no limit.' }),
  })
  .optional()
  .openapi({ description: 'How much it may hold, and does; left out where there is no limit.' });
const more = { over: count, counters: z.record(z.string(), z.number()) };

const queueInList = z
  .object({
    queue: z.string(),
    partitions: count,
    ...counts,
    quota,
    paused: z.boolean(),
    workers: count,
    leaders: z
      .array(z.string().nullable())
      .openapi({ description: 'Per partition: the process that leads it, or null.' }),
  })
  .openapi('QueueCounts');

const queueWhole = z
  .object({
    queue: z.string(),
    ...counts,
    ...more,
    quota,
    workers: count,
    broadcast: z
      .object({
        kept: count,
        max: count,
        bytes: count,
        ageMs: z.number(),
        subscribers: z.array(z.object({ id: z.string(), host: z.string(), pid: z.int(), lag: count })),
      })
      .optional()
      .openapi({
        description: 'Of a broadcast queue: what is kept for subscribers, and how far behind each of them is.',
      }),
    paused: z.boolean(),
    pause: pause.optional(),
    dueNext: z.array(
      z.object({
        fromMs: z.number().optional().openapi({ description: 'From now; left out: all that is due by now.' }),
        toMs: z.number().optional().openapi({ description: 'Left out: all that comes later.' }),
        count,
      }),
    ),
    partitions: z.array(
      z.object({ partition: count, ...counts, ...more, quota, paused: z.boolean(), leader: leader.optional() }),
    ),
    nowMs: epochMs,
  })
  .openapi('QueueStats');

const paused = z
  .object({
    queue: z.string(),
    paused: z.boolean(),
    changed: z.boolean(),
    pause: pause.optional().openapi({ description: 'The pause that holds, or the one that has ended.' }),
    running: count.optional().openapi({ description: 'Jobs that go on to their end.' }),
  })
  .openapi('QueuePaused');

const listQueues = verb({
  name: 'queues.list',
  method: 'get',
  at: '/queues',
  summary: 'List the queues with their counts',
  scope: 'read',
  queues: 'own',
  answers: {
    200: { schema: z.object({ namespace: z.string(), queues: z.array(queueInList) }), doc: 'Every queue, by name.' },
  },
  async run({ backend, caller }) {
    const all = await queueCounts(await backend.place(), (queue) => mayUse(caller, queue));
    const queues = all.map((one) => ({ ...one, leaders: one.leaders.map((name) => name ?? null) }));
    return { status: 200, body: { namespace: backend.namespace, queues } };
  },
});

const showQueue = verb({
  name: 'queues.get',
  method: 'get',
  at: '/queues/{queue}',
  summary: 'Look at a queue',
  doc: 'Counts per state and partition, what happened so far, who leads, and what comes due when.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  answers: { 200: { schema: queueWhole, doc: 'The queue as it is now.' } },
  async run({ path: { queue }, backend }) {
    const { totals, pause: held, ...rest } = await queueStats(await backend.place(), queue);
    return { status: 200, body: { queue, ...totals, ...rest, paused: held !== undefined, pause: held } };
  },
});

const pauseVerb = verb({
  name: 'queues.pause',
  method: 'post',
  at: '/queues/{queue}/pause',
  summary: 'Pause a queue',
  doc: 'No job of it starts until it is resumed; jobs that run go on.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({ reason: reason.optional() }).openapi('PauseRequest'),
  bodyRequired: false,
  answers: { 200: { schema: paused, doc: 'It is paused; `changed` says whether it was not before.' } },
  audited: true,
  async run({ path: { queue }, body, backend }) {
    const { changed, held, running } = await pauseQueue(await backend.place(), queue, body.reason ?? '');
    const told = { queue, paused: true, changed, pause: held, running };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue };
  },
});

const resumeVerb = verb({
  name: 'queues.resume',
  method: 'post',
  at: '/queues/{queue}/resume',
  summary: 'Resume a queue',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  answers: { 200: { schema: paused, doc: 'It goes on; `changed` says whether it was paused.' } },
  audited: true,
  async run({ path: { queue }, backend }) {
    const { changed, held } = await resumeQueue(await backend.place(), queue);
    const told = { queue, paused: false, changed, pause: held };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue };
  },
});

export const leaderShape = leader;
export const queueVerbs: readonly AnyVerb[] = [listQueues, showQueue, pauseVerb, resumeVerb];
