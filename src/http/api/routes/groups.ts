import type { GroupChange } from '../../../client/groups/rules.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { GROUP_ALLOWED } from '../../../job/labels.ts';
import { answers } from '../answer.ts';
import { seenClosed } from '../caller.ts';
import { closingBody, cursor, flagText, ofQueue, queueName, strict, textOf, wholeText } from '../schemas.ts';
import { groupLimitsRequest } from '../setting-shapes.ts';
import { type AnyVerb, verb } from '../verb.ts';

export const groupName = textOf(/^(?!schedule:|set:)[!-+\--:<-z~]{1,64}$/, GROUP_ALLOWED.replaceAll('`', ''), 'acme');

const listGroups = verb({
  name: 'groups.list',
  method: 'get',
  at: '/queues/{queue}/groups',
  summary: 'List the groups of a queue with limits',
  doc: 'Those that have jobs in line or running, by name; with `top` those with most jobs in line, for which every group is looked at. A queue that is not gated is refused.',
  scope: 'read',
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

const groupPath = strict({ queue: queueName, group: groupName });
/** A name, or the beginning of names and an asterisk. */
const rulePath = strict({
  queue: queueName,
  group: textOf(/^(?!schedule:)[!-+\--:<-z~]{1,65}$/, 'a group, or pro-*', 'acme'),
});

interface Changed {
  readonly queue: string;
  readonly group: string;
  readonly status: GroupChange['status'];
}

const answered = ({ queue, group, status }: Changed) => {
  const changed = status === 'changed';
  return { status: 200, body: { queue, group, changed }, changed: changed ? 1 : 0, target: group } as const;
};

const changing = { scope: 'write', queues: 'path', problems: ['bad-input'] } as const;

const setGroupLimits = verb({
  ...changing,
  name: 'groups.set',
  audited: 'groups.set',
  method: 'put',
  at: '/queues/{queue}/groups/{group}/limits',
  summary: 'Give a group limits of its own',
  doc: 'By its name, or all groups whose names begin so: `pro-*`. They replace those that it had, and hold at once.',
  path: rulePath,
  body: groupLimitsRequest,
  answers: { 200: { type: answers.GroupChange, doc: 'The limits hold.' } },
  async run({ path: { queue, group }, body: { reason = '', ...limits }, caller, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const said = { reason, by: caller.name };
    const { status } = await backend.client.groups.set(backend.queueOf(queue), group, limits, said);
    return { ...answered({ queue, group, status }), reason };
  },
});

const unsetGroupLimits = verb({
  ...changing,
  name: 'groups.unset',
  audited: 'groups.unset',
  method: 'delete',
  at: '/queues/{queue}/groups/{group}/limits',
  summary: 'Give a group the limits of all groups again',
  path: rulePath,
  answers: { 200: { type: answers.GroupChange, doc: 'It has those of all groups.' } },
  async run({ path: { queue, group }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    return answered({ queue, group, ...(await backend.client.groups.unset(backend.queueOf(queue), group)) });
  },
});

const closeGroup = verb({
  ...changing,
  name: 'groups.close',
  audited: 'groups.close',
  method: 'post',
  at: '/queues/{queue}/groups/{group}/close',
  summary: 'Close a group for some time',
  doc: 'No job of it is let through until then; what was let through before starts all the same. The longest closing wins.',
  path: groupPath,
  body: closingBody,
  answers: { 200: { type: answers.GroupChange, doc: 'It is closed.' } },
  async run({ path: { queue, group }, body, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { status } = await backend.client.groups.close(backend.queueOf(queue), group, body);
    return { ...answered({ queue, group, status }), reason: body.reason };
  },
});

const openGroup = verb({
  ...changing,
  name: 'groups.open',
  audited: 'groups.open',
  method: 'post',
  at: '/queues/{queue}/groups/{group}/open',
  summary: 'Open a closed group',
  path: groupPath,
  answers: { 200: { type: answers.GroupChange, doc: 'It is open.' } },
  async run({ path: { queue, group }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    return answered({ queue, group, ...(await backend.client.groups.open(backend.queueOf(queue), group)) });
  },
});

export const groupVerbs: readonly AnyVerb[] = [
  listGroups,
  getGroup,
  setGroupLimits,
  unsetGroupLimits,
  closeGroup,
  openGroup,
];
