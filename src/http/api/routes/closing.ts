/** Tags of a queue that are closed: no job with one of them starts until its end. */
import { z } from '@hono/zod-openapi';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { answers } from '../answer.ts';
import { closingBody, cursor, ofQueue, queueName, strict, textOf, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const tagName = textOf(
  /^(?!=)[!-+\--:<-{}~]{1,64}$/,
  '1 to 64 printable ASCII characters without space, comma, semicolon and bar, not beginning with =',
  'invoice:7',
);
const ofTag = strict({ queue: queueName, tag: tagName });

const listClosed = verb({
  name: 'tags.closed',
  method: 'get',
  at: '/queues/{queue}/closed',
  summary: 'List the closed tags of a queue',
  doc: 'The soonest end first. With `search` all closed tags are looked through.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({
    search: z.string().min(1).max(64).optional().openapi({ description: 'Only tags that have this in them.' }),
    tag: tagName.optional().openapi({ description: 'Only this tag.' }),
    limit: wholeText(1, 1000, 100),
    cursor,
  }),
  answers: {
    200: {
      type: answers.ClosedTagsPage,
      doc: 'A page of closed tags.',
    },
  },
  problems: ['bad-input'],
  async run({ path: { queue }, query, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { cursor: at, ...page } = await backend.client.tags.list(backend.queueOf(queue), query);
    return { status: 200, body: { queue, ...page, cursor: at } };
  },
});

const closeTag = verb({
  name: 'tags.close',
  method: 'post',
  at: '/queues/{queue}/tags/{tag}/close',
  summary: 'Close a tag: no job with it starts until an end',
  doc: 'When the answer is there, no job with the tag gets a start until then. Jobs that wait are cancelled; those that had started before are in `running`, and were asked to stop. The longest end wins; the request may be repeated.',
  scope: 'write',
  queues: 'path',
  path: ofTag,
  body: closingBody,
  answers: {
    200: {
      type: answers.TagClosed,
      doc: 'It is closed, unless `full` has it.',
    },
  },
  problems: ['bad-input'],
  audited: 'tags.close',
  async run({ path: { queue, tag }, body, caller, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const by = caller.name.slice(0, 200);
    const done = await backend.client.tags.close(backend.queueOf(queue), tag, { ...body, by });
    const changed = done.full === undefined ? 1 : 0;
    return { status: 200, body: { queue, tag, ...done }, changed, target: tag, reason: body.reason };
  },
});

const openTag = verb({
  name: 'tags.open',
  method: 'post',
  at: '/queues/{queue}/tags/{tag}/open',
  summary: 'Open a closed tag before its end',
  doc: 'What was cancelled stays cancelled.',
  scope: 'write',
  queues: 'path',
  path: ofTag,
  answers: {
    200: {
      type: answers.TagOpened,
      doc: 'It is open; `changed`: it was closed.',
    },
  },
  problems: ['bad-input'],
  audited: 'tags.open',
  async run({ path: { queue, tag }, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { opened } = await backend.client.tags.open(backend.queueOf(queue), tag);
    const changed = opened.length > 0;
    return { status: 200, body: { queue, tag, changed }, changed: changed ? 1 : 0, target: tag };
  },
});

export const closingVerbs: readonly AnyVerb[] = [listClosed, closeTag, openTag];
