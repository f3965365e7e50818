/** Queues: what they hold, pause and resume, and their settings. */
import { z } from '@hono/zod-openapi';
import { layoutOfQueue } from '../../../client/queues/refs.ts';
import { settingsView } from '../../../client/queues/settings.ts';
import { type QueueSettingName, settingOf, settingWords } from '../../../job/queue-settings.ts';
import { answers } from '../answer.ts';
import { checkScope } from '../caller.ts';
import { closingBody, flagText, ofQueue, queueName, reason, strict } from '../schemas.ts';
import { settingShapes } from '../setting-shapes.ts';
import { type AnyVerb, verb } from '../verb.ts';

const listQueues = verb({
  name: 'queues.list',
  method: 'get',
  at: '/queues',
  summary: 'List the queues with their counts',
  scope: 'read',
  queues: 'own',
  answers: {
    200: {
      type: answers.Queues,
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
  answers: { 200: { type: answers.QueueStats, doc: 'The queue as it is now.' } },
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
  answers: { 200: { type: answers.QueuePaused, doc: 'It is paused; `changed` says whether it was not before.' } },
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
  answers: { 200: { type: answers.QueuePaused, doc: 'It goes on; `changed` says whether it was paused.' } },
  audited: 'queues.resume',
  async run({ path: { queue }, backend }) {
    const { status, ...held } = await backend.client.queues.resume(queue);
    const changed = status === 'changed';
    const told = { queue, paused: false, changed, ...held };
    return { status: 200, body: told, changed: changed ? 1 : 0, target: queue };
  },
});

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
  answers: { 200: { type: answers.QueueClosed, doc: 'It is closed; `changed`: for longer than before.' } },
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
  answers: { 200: { type: answers.QueueClosed, doc: 'It is open; `changed`: it was closed.' } },
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
    200: { type: answers.SettingsView, doc: 'The settings that hold.' },
  },
  run: async ({ path: { queue }, backend }) => ({
    status: 200,
    // Without a look at its partitions: settings are told also where one of them cannot be read.
    body: { queue, ...settingsView(await layoutOfQueue(await backend.place(), queue)) },
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
      type: answers.SettingsChanged,
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
    200: { type: answers.SettingsChanged, doc: 'The settings that hold now.' },
  },
  problems: ['bad-input'],
  audited: 'queues.unset',
  async run({ path: { queue, setting }, query: { stored }, caller, backend }) {
    checkScope(caller, scopeOf(setting));
    const done = await backend.client.queues.unset(queue, setting, { stored });
    return { status: 200, body: { queue, ...done }, changed: done.changed.length, target: queue };
  },
});

export const queueVerbs: readonly AnyVerb[] = [
  ...[listQueues, showQueue, pauseVerb, resumeVerb, closeVerb, openVerb, getSettings, setVerb, unsetVerb],
];
