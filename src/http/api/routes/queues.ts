/** Queues: what they hold, pause and resume, and their settings. */
import { z } from '@hono/zod-openapi';
import { type QueueSettingName, settingOf, settingWords } from '../../../job/queue-settings.ts';
import { checkScope } from '../caller.ts';
import { closingBody, count, epochMs, flagText, ofQueue, queueName, reason, strict } from '../schemas.ts';
import { settingShapes } from '../setting-shapes.ts';
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
  oldestInLine: z.boolean().openapi({ description: 'That job is in line: its queue has limits.' }),
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
export const limitsShape = z
  .object({
    text: z.string().openapi({ description: 'All of them in short.', example: '10/s · 5 at once · 1 per group' }),
    rate: z.object({ limit: count, perMs: z.number(), burst: count }).optional(),
    concurrency: count.optional(),
    perGroup: count.optional(),
    fair: z.literal(true).optional(),
  })
  .openapi('QueueLimits');
const limits = limitsShape
  .optional()
  .openapi({ description: 'How much may run at once; left out where the queue is not gated.' });
const overrides = z
  .array(
    z
      .object({
        setting: z.string(),
        group: z.string().optional().openapi({ description: 'Where the limits of one group are meant.' }),
        value: z.unknown(),
        code: z.unknown().optional().openapi({ description: 'What the definition says; left out: nothing.' }),
        by: z.string().openapi({ description: 'The name of a token, or the user of a machine.' }),
        reason: z.string(),
        atMs: epochMs,
      })
      .openapi('SettingOverride'),
  )
  .openapi({ description: 'Settings that somebody set by command. Each holds until it is taken back.' });
const more = { over: count, counters: z.record(z.string(), z.number()) };

/** The other queues are answered all the same. */
export const unreadQueue = z.object({ queue: z.string(), why: z.string() }).openapi('UnreadQueue', {
  description: 'A queue that could not be read: its node does not answer, or a key of it is damaged.',
});

const queueInList = z
  .object({
    queue: z.string(),
    partitions: count,
    ...counts,
    quota,
    limits,
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
    limits,
    overrides,
    lingerMs: count.openapi({ description: 'How long due jobs wait for company at most; 0: each is on time.' }),
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
      z.object({
        partition: count,
        ...counts,
        ...more,
        quota,
        concurrency: count
          .optional()
          .openapi({ description: 'Its share of the concurrency of a gated queue; 0: no limit.' }),
        paused: z.boolean(),
        leader: leader.optional(),
      }),
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
    200: {
      schema: z.object({ namespace: z.string(), queues: z.array(queueInList), unread: z.array(unreadQueue) }),
      doc: 'Every queue, by name.',
    },
  },
  async run({ backend, caller }) {
    const { queues: all, unread } = await backend.client.queues.list({ queues: caller.queues });
    const queues = all.map((one) => ({ ...one, leaders: one.leaders.map((name) => name ?? null) }));
    return { status: 200, body: { namespace: backend.namespace, queues, unread } };
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
  run: async ({ path: { queue }, backend }) => ({ status: 200, body: await backend.client.queues.get(queue) }),
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
  audited: 'queues.pause',
  async run({ path: { queue }, body, backend }) {
    const { status, ...held } = await backend.client.queues.pause(queue, body);
    const changed = status === 'changed';
    const told = { queue, paused: true, changed, ...held };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue, reason: body.reason };
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
  audited: 'queues.resume',
  async run({ path: { queue }, backend }) {
    const { status, ...held } = await backend.client.queues.resume(queue);
    const changed = status === 'changed';
    const told = { queue, paused: false, changed, ...held };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue };
  },
});

const closedQueue = z.object({ queue: z.string(), closed: z.boolean(), changed: z.boolean() }).openapi('QueueClosed');

const closeVerb = verb({
  name: 'queues.close',
  method: 'post',
  at: '/queues/{queue}/close',
  summary: 'Close a queue with limits for some time',
  doc: 'No job of it is let through until then; what was let through before starts all the same. The longest closing wins.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: closingBody,
  answers: { 200: { schema: closedQueue, doc: 'It is closed; `changed`: for longer than before.' } },
  problems: ['bad-input'],
  audited: 'queues.close',
  async run({ path: { queue }, body, backend }) {
    const { status } = await backend.client.queues.close(queue, body);
    const changed = status === 'changed';
    const told = { queue, closed: true, changed };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue, reason: body.reason };
  },
});

const openVerb = verb({
  name: 'queues.open',
  method: 'post',
  at: '/queues/{queue}/open',
  summary: 'Open a closed queue',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  answers: { 200: { schema: closedQueue, doc: 'It is open; `changed`: it was closed.' } },
  problems: ['bad-input'],
  audited: 'queues.open',
  async run({ path: { queue }, backend }) {
    const { status } = await backend.client.queues.open(queue);
    const changed = status === 'changed';
    return { status: 200, body: { queue, closed: false, changed }, changed: changed ? 1 : 0, target: queue };
  },
});

// Settings of a queue: stored with it, for every process. What is taken back is `false`; what nobody ever said is left out.

const scopeOf = (word: QueueSettingName) => settingOf(word).scope ?? 'write';
const settingsShape = z.object(settingShapes).openapi('QueueSettings');
const settingsAnswer = { queue: z.string(), settings: settingsShape, overrides };
const changedSettings = z.array(z.string()).openapi({ description: 'The settings that were others before.' });

const getSettings = verb({
  name: 'queues.settings',
  method: 'get',
  at: '/queues/{queue}/settings',
  summary: 'Look at the settings of a queue',
  doc: 'What is stored with the queue in Redis, in the words in which it is changed. What nobody ever said is left out.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  answers: {
    200: { schema: z.object(settingsAnswer), doc: 'The settings that hold.' },
  },
  run: async ({ path: { queue }, backend }) => ({
    status: 200,
    body: await backend.client.queues.get(queue),
  }),
});

const setVerb = verb({
  name: 'queues.set',
  method: 'patch',
  at: '/queues/{queue}/settings',
  summary: 'Change settings of a queue',
  doc: 'What is said holds until it is taken back, whatever definitions in code say. What is left out stays; `false` means no limit. Limits hold when the answer comes, and what runs goes on; all processes follow the rest within half a minute. To change `redact` a token needs the scope `admin`.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({ ...settingShapes, reason: reason.optional() }).openapi('QueueSettingsRequest'),
  answers: {
    200: {
      schema: z.object({ ...settingsAnswer, changed: changedSettings }),
      doc: 'The settings that hold now.',
    },
  },
  audited: 'queues.set',
  async run({ path: { queue }, body: { reason: why, ...said }, caller, backend }) {
    for (const word of settingWords) if (said[word] !== undefined) checkScope(caller, scopeOf(word));
    const done = await backend.client.queues.set(queue, said, { reason: why, by: caller.name });
    return { status: 200, body: { queue, ...done }, changed: done.changed.length, target: queue, reason: why };
  },
});

const unsetVerb = verb({
  name: 'queues.unset',
  method: 'delete',
  at: '/queues/{queue}/settings/{setting}',
  summary: 'Take a setting of a queue back',
  doc: 'What was set by command goes, and what the definition in code says holds again. To take `redact` back a token needs the scope `admin`.',
  scope: 'write',
  queues: 'path',
  path: z.object({
    queue: queueName,
    setting: z.enum(settingWords).openapi({ example: 'rate' }),
  }),
  query: z.object({
    stored: flagText
      .optional()
      .openapi({ description: 'Forget also what definitions have said, until a process says it again.' }),
  }),
  answers: {
    200: { schema: z.object({ ...settingsAnswer, changed: changedSettings }), doc: 'The settings that hold now.' },
  },
  problems: ['bad-input'],
  audited: 'queues.unset',
  async run({ path: { queue, setting }, query: { stored }, caller, backend }) {
    checkScope(caller, scopeOf(setting));
    const done = await backend.client.queues.unset(queue, setting, { stored });
    return { status: 200, body: { queue, ...done }, changed: done.changed.length, target: queue };
  },
});

export const leaderShape = leader;
export const queueVerbs: readonly AnyVerb[] = [
  ...[listQueues, showQueue, pauseVerb, resumeVerb, closeVerb, openVerb, getSettings, setVerb, unsetVerb],
];
