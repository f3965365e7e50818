/** What is stored of a person is removed, by tag. */
import { z } from '@hono/zod-openapi';
import type { ErasedQueue } from '../../../client/erase/erasure.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { checkEverywhere, checkQueue } from '../caller.ts';
import { count, queueName, strict, textOf } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { unreadQueue } from './queues.ts';

/** Looked at by one request, so that none runs long. */
const SCAN_MAX = 10_000;

const tag = textOf(
  /^[!-+\--:<-{}~]{1,64}$/,
  '1 to 64 printable ASCII characters without space, comma, semicolon and bar, not beginning with =',
  'user:42',
);
const erased = z
  .object({
    queue: z.string(),
    jobs: count.openapi({ description: 'Jobs that waited and are cancelled; of a dry run, all that are not over.' }),
    running: count.openapi({ description: 'Jobs that run and were asked to stop: repeat it when they have ended.' }),
    deadLetters: count,
    history: count.openapi({ description: 'Records of jobs that are over.' }),
    left: count.openapi({ description: 'Jobs with the tag that are there still.' }),
    scanned: count,
  })
  .openapi('ErasedQueue');

const eraseTag = verb({
  name: 'erase',
  method: 'post',
  at: '/erase',
  summary: 'Remove what is stored of a person',
  doc: 'Jobs, dead letters and history that have a tag, of one queue or all. The audit says how many went, and not which tag. Repeat the request with `cursor` until there is none.',
  scope: 'admin',
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
      schema: z
        .object({
          dryRun: z.boolean(),
          queues: z.array(erased).openapi({ description: 'Those that this request has looked at.' }),
          left: count.openapi({ description: 'With 0, no `cursor` and nothing in `failed`, nothing is left.' }),
          failed: z.array(unreadQueue).openapi({
            description: 'Queues that this request has not looked through to their end: repeat it when they answer.',
          }),
          cursor: z.string().optional().openapi({ description: 'Where to go on; left out at the end.' }),
        })
        .openapi('Erased'),
      doc: 'How much was removed, or would be.',
    },
  },
  audited: 'erase',
  async run({ body: { tag: given, queue, dryRun, cursor }, caller, backend }) {
    if (queue === undefined) checkEverywhere(caller);
    else {
      checkQueue(caller, queue);
      await refsOfQueue(await backend.place(), queue);
    }
    const queues = queue === undefined ? undefined : [queue];
    const done = await backend.client.erase({ tag: given }, { queues, dryRun, cursor, scanMax: SCAN_MAX });
    return {
      status: 200,
      body: done,
      changes: dryRun ? [] : done.queues.map((one) => ({ queue: one.queue, count: goneOf(one) })),
    };
  },
});

const goneOf = ({ jobs, running, deadLetters, history }: ErasedQueue): number => jobs + running + deadLetters + history;

export const eraseVerbs: readonly AnyVerb[] = [eraseTag];
