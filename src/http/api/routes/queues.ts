/** Queues: what they hold, pause and resume, and their settings. */
import { z } from '@hono/zod-openapi';
import { operations } from '../../../client/operations.ts';
import { layoutOfQueue } from '../../../client/queues/refs.ts';
import { settingsView } from '../../../client/queues/settings.ts';
import { type QueueSettingName, settingOf, settingWords } from '../../../job/queue-settings.ts';
import { answers } from '../answer.ts';
import { checkScope } from '../caller.ts';
import { flagText, ofQueue, queueName, reason, strict } from '../schemas.ts';
import { settingShapes } from '../setting-shapes.ts';
import { type AnyVerb, change, verb } from '../verb.ts';
import { asking } from './asks.ts';

const listQueues = verb({
  name: 'queues.list',
  method: 'get',
  at: '/queues',
  summary: 'List the queues with their counts',
  scope: 'read',
  tool: 'look',
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
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  answers: { 200: { type: answers.QueueStats, doc: 'The queue as it is now.' } },
  run: async ({ path: { queue }, backend }) => ({ status: 200, body: await backend.client.queues.get(queue) }),
});

const pauseVerb = asking(operations.queues.pause, {
  tool: { look: 'queues.get', same: ['paused', 'pause'] },
  summary: 'Pause a queue',
  doc: 'No job of it starts until it is resumed; jobs that run go on.',
  type: answers.QueuePaused,
  answer: 'It is paused; `changed` says whether it was not before.',
});

const resumeVerb = asking(operations.queues.resume, {
  tool: { look: 'queues.get', same: ['paused', 'pause'] },
  summary: 'Resume a queue',
  type: answers.QueuePaused,
  answer: 'It goes on; `changed` says whether it was paused.',
});

const closeVerb = asking(operations.queues.close, {
  tool: { look: 'queues.get', same: ['limits'] },
  summary: 'Close a queue with limits for some time',
  doc: 'No job of it is let through until then; what was let through before starts all the same. The longest closing wins.',
  type: answers.QueueClosed,
  answer: 'It is closed; `changed`: for longer than before.',
  problems: ['bad-input'],
});

const openVerb = asking(operations.queues.open, {
  tool: { look: 'queues.get', same: ['limits'] },
  summary: 'Open a closed queue',
  type: answers.QueueClosed,
  answer: 'It is open; `changed`: it was closed.',
  problems: ['bad-input'],
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
  tool: 'look',
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
  ...change(operations.queues.set),
  tool: { look: 'queues.settings', same: ['settings', 'overrides'] },
  method: 'patch',
  at: '/queues/{queue}/settings',
  summary: 'Change settings of a queue',
  doc: 'What is said holds until it is taken back, whatever definitions in code say. What is left out stays; `false` means no limit. Limits hold when the answer comes, and what runs goes on; all processes follow the rest within half a minute. To change `redact` or `target` a token needs the scope `admin`.',
  queues: 'path',
  path: ofQueue,
  body: strict({ ...settingShapes, reason: reason.optional() }).openapi('QueueSettingsRequest'),
  answers: {
    200: {
      type: answers.SettingsChanged,
      doc: 'The settings that hold now.',
    },
  },
  async run({ path: { queue }, body: { reason: why, ...said }, caller, backend }) {
    for (const word of settingWords) if (said[word] !== undefined) checkScope(caller, scopeOf(word));
    const done = await backend.client.queues.set(queue, said, { reason: why, by: caller.name });
    return { status: 200, body: { queue, ...done } };
  },
});

const unsetVerb = verb({
  ...change(operations.queues.unset),
  tool: { look: 'queues.settings', same: ['settings', 'overrides'] },
  method: 'delete',
  at: '/queues/{queue}/settings/{setting}',
  summary: 'Take a setting of a queue back',
  doc: 'What was set by command goes, and what the definition in code says holds again. To take `redact` or `target` back a token needs the scope `admin`.',
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
  async run({ path: { queue, setting }, query: { stored }, caller, backend }) {
    checkScope(caller, scopeOf(setting));
    const done = await backend.client.queues.unset(queue, setting, { stored, by: caller.name });
    return { status: 200, body: { queue, ...done } };
  },
});

export const queueVerbs: readonly AnyVerb[] = [
  ...[listQueues, showQueue, pauseVerb, resumeVerb, closeVerb, openVerb, getSettings, setVerb, unsetVerb],
];
