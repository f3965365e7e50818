/** What is stored of a person is removed, by tag. */
import { z } from '@hono/zod-openapi';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { answers } from '../answer.ts';
import { checkEverywhere, checkQueue } from '../caller.ts';
import { queueName, strict, textOf } from '../schemas.ts';
import { type AnyVerb, change, verb } from '../verb.ts';

/** Looked at by one request, so that none runs long. */
const SCAN_MAX = 10_000;

const tag = textOf(
  /^[!-+\--:<-{}~]{1,64}$/,
  '1 to 64 printable ASCII characters without space, comma, semicolon and bar, not beginning with =',
  'user:42',
);

const eraseTag = verb({
  ...change(operations.erase),
  method: 'post',
  at: '/erase',
  summary: 'Remove what is stored of a person',
  doc: 'Jobs, dead letters and history that have a tag, of one queue or all. The audit says how many went, and not which tag. Repeat the request with `cursor` until there is none.',
  queues: 'own',
  body: strict({
    tag: tag.openapi({ description: 'What names the person.' }),
    queue: queueName.optional().openapi({ description: 'Only of this queue; default all.' }),
    dryRun: z.boolean({ error: 'true, false' }).default(false),
    cursor: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,2000}$/, { error: 'what the answer before said' })
      .optional()
      .openapi({ description: 'What the answer before said.' }),
  }).openapi('EraseRequest'),
  answers: {
    200: {
      type: answers.Erased,
      doc: 'How much was removed, or would be.',
    },
  },
  async run({ body: { tag: given, queue, dryRun, cursor }, caller, backend }) {
    if (queue === undefined) checkEverywhere(caller);
    else {
      checkQueue(caller, queue);
      await refsOfQueue(await backend.place(), queue);
    }
    const queues = queue === undefined ? undefined : [queue];
    const done = await backend.client.erase({ tag: given }, { queues, dryRun, cursor, scanMax: SCAN_MAX });
    return { status: 200, body: done };
  },
});

export const eraseVerbs: readonly AnyVerb[] = [eraseTag];
