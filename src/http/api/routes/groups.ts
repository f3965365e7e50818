import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { answers } from '../answer.ts';
import { seenClosed } from '../caller.ts';
import { cursor, flagText, groupName, ofQueue, queueName, strict, textOf, wholeText } from '../schemas.ts';
import { groupLimitsRequest } from '../setting-shapes.ts';
import { type AnyVerb, change, verb } from '../verb.ts';
import { asking } from './asks.ts';

const listGroups = verb({
  name: 'groups.list',
  method: 'get',
  at: '/queues/{queue}/groups',
  summary: 'List the groups of a queue with limits',
  doc: 'Those that have jobs in line or running, by name; with `top` those with most jobs in line, for which every group is looked at. A queue that is not gated is refused.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  query: strict({
    limit: wholeText(1, 1000, 100),
    cursor,
    top: flagText.openapi({ description: 'The longest first, at most `limit`.' }),
  }),
  answers: {
    200: {
      type: answers.GroupPage,
      doc: 'A page of groups.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue }, query, caller: { scopes }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { cursor: at, ...page } = await backend.client.groups.list(backend.queueOf(queue), query);
    const groups = page.groups.map((one) => ({ ...one, closed: seenClosed(one.closed, scopes) }));
    return { status: 200, body: { queue, ...page, groups, cursor: at } };
  },
});

const getGroup = verb({
  name: 'groups.get',
  method: 'get',
  at: '/queues/{queue}/groups/{group}',
  summary: 'Look at a group of a queue with limits',
  doc: 'With the jobs that hold its limit, at most 100 of each partition. A group that nobody is in has zeros.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: strict({ queue: queueName, group: groupName }),
  answers: {
    200: {
      type: answers.GroupReport,
      doc: 'The group as it is now.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue, group: name }, caller: { scopes }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const found = await backend.client.groups.get(backend.queueOf(queue), name);
    return { status: 200, body: { queue, ...found, closed: seenClosed(found.closed, scopes) } };
  },
});

/** A name, or the beginning of names and an asterisk. */
const rulePath = strict({
  queue: queueName,
  group: textOf(/^(?!schedule:)[!-+\--:<-z~]{1,65}$/, 'a group, or pro-*', 'acme'),
});

const setGroupLimits = verb({
  ...change(operations.groups.set),
  queues: 'path',
  method: 'put',
  at: '/queues/{queue}/groups/{group}/limits',
  summary: 'Give a group limits of its own',
  doc: 'By its name, or all groups whose names begin so: `pro-*`. They replace those that it had, and hold at once.',
  path: rulePath,
  body: groupLimitsRequest,
  problems: ['bad-input'],
  answers: { 200: { type: answers.GroupChange, doc: 'The limits hold.' } },
  async run({ path: { queue, group }, body: { reason = '', ...limits }, caller, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const said = { reason, by: caller.name };
    const { status } = await backend.client.groups.set(backend.queueOf(queue), group, limits, said);
    return { status: 200, body: { queue, group, changed: status === 'changed' } };
  },
});

const unsetGroupLimits = verb({
  ...change(operations.groups.unset),
  method: 'delete',
  at: '/queues/{queue}/groups/{group}/limits',
  summary: 'Give a group the limits of all groups again',
  queues: 'path',
  path: rulePath,
  answers: { 200: { type: answers.GroupChange, doc: 'It has those of all groups.' } },
  problems: ['bad-input'],
  async run({ path: { queue, group }, caller, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { status } = await backend.client.groups.unset(backend.queueOf(queue), group, { by: caller.name });
    return { status: 200, body: { queue, group, changed: status === 'changed' } };
  },
});

const closeGroup = asking(operations.groups.close, {
  tool: { look: 'groups.get', same: ['limits', 'closed'] },
  summary: 'Close a group for some time',
  doc: 'No job of it is let through until then; what was let through before starts all the same. The longest closing wins.',
  type: answers.GroupChange,
  answer: 'It is closed.',
  problems: ['bad-input'],
});

const openGroup = asking(operations.groups.open, {
  tool: { look: 'groups.get', same: ['limits', 'closed'] },
  summary: 'Open a closed group',
  type: answers.GroupChange,
  answer: 'It is open.',
  problems: ['bad-input'],
});

export const groupVerbs: readonly AnyVerb[] = [
  listGroups,
  getGroup,
  setGroupLimits,
  unsetGroupLimits,
  closeGroup,
  openGroup,
];
