/** Tags of a queue that are closed: no job with one of them starts until its end. */
import { z } from '@hono/zod-openapi';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { LIVE_STATES } from '../../../job/state.ts';
import { answers } from '../answer.ts';
import { cursor, ofQueue, strict, tagName, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { asking } from './asks.ts';

const listClosed = verb({
  name: 'tags.closed',
  method: 'get',
  at: '/queues/{queue}/closed',
  summary: 'List the closed tags of a queue',
  doc: 'The soonest end first. With `search` all closed tags are looked through.',
  scope: 'read',
  tool: 'look',
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

const closeTag = asking(operations.tags.close, {
  tool: { look: 'jobs.find', defaults: { state: LIVE_STATES }, same: ['id', 'etag'] },
  summary: 'Close a tag: no job with it starts until an end',
  doc: 'When the answer is there, no job with the tag gets a start until then. Jobs that wait are cancelled; those that had started before are in `running`, and were asked to stop. The longest end wins; the request may be repeated.',
  type: answers.TagClosed,
  answer: 'It is closed, unless `full` has it.',
  problems: ['bad-input'],
});

const openTag = asking(operations.tags.open, {
  tool: { look: 'tags.closed', same: ['tag', 'untilMs'] },
  summary: 'Open a closed tag before its end',
  doc: 'What was cancelled stays cancelled.',
  type: answers.TagOpened,
  answer: 'It is open; `changed`: it was closed.',
  problems: ['bad-input'],
});

export const closingVerbs: readonly AnyVerb[] = [listClosed, closeTag, openTag];
