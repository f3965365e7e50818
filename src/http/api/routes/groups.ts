/** Groups of a queue with limits: who waits, who runs, and who holds the limit of a group. */
import { z } from '@hono/zod-openapi';
import { refsOfQueue } from '../../../inspect/refs.ts';
import { GROUP_ALLOWED } from '../../../job/labels.ts';
import { count, cursor, epochMs, flagText, next, ofQueue, queueName, strict, textOf, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { holder } from './job-shapes.ts';

const group = {
  group: z.string(),
  running: count.openapi({ description: 'Jobs of it that were let through and are not over.' }),
  waiting: count.openapi({ description: 'Jobs of it that are due and in line.' }),
  priorities: z
    .object({ high: count, normal: count, low: count })
    .openapi({ description: 'Of these: how many of each priority.' }),
  waitMs: z.number().openapi({ description: 'For how long the first of them has waited; 0 when none does.' }),
  perGroup: count.optional().openapi({ description: 'How many may run at a time; left out without a limit.' }),
  isFull: z.boolean().openapi({ description: 'As many run as may.' }),
};
const groupName = textOf(/^(?!schedule:)[!-+\--:<-z~]{1,64}$/, GROUP_ALLOWED.replaceAll('`', ''), 'acme');

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
      schema: z
        .object({
          queue: z.string(),
          groups: z.array(z.object(group).openapi('Group')),
          ungrouped: count.openapi({ description: 'Jobs in line that have no group.' }),
          scanned: count.openapi({ description: 'Groups that were looked at.' }),
          nowMs: epochMs,
          next,
        })
        .openapi('GroupPage'),
      doc: 'A page of groups.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { cursor: at, ...page } = await backend.client.groups.list(backend.queueOf(queue), query);
    return { status: 200, body: { queue, ...page, next: at } };
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
      schema: z
        .object({ queue: z.string(), ...group, holders: z.array(holder), nowMs: epochMs })
        .openapi('GroupReport'),
      doc: 'The group as it is now.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue, group: name }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const found = await backend.client.groups.get(backend.queueOf(queue), name);
    return { status: 200, body: { queue, ...found } };
  },
});

export const groupVerbs: readonly AnyVerb[] = [listGroups, getGroup];
