/** Schemas of zod, valibot and arktype: each checks data of a queue, and the compiler knows the types of all three. */
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineQueue } from '../../src/job/queue.ts';
import type { JobData } from '../../src/job/types.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';

const queues = {
  zod: defineQueue('mail', { jobs: { welcome: z.object({ to: z.string(), at: z.coerce.date<string>() }) } }),
  valibot: defineQueue('mail', {
    jobs: {
      welcome: v.object({
        to: v.string(),
        at: v.pipe(
          v.string(),
          v.isoTimestamp(),
          v.transform((text) => new Date(text)),
        ),
      }),
    },
  }),
  arktype: defineQueue('mail', { jobs: { welcome: type({ to: 'string', at: 'string.date.iso.parse' }) } }),
} as const;

test('the compiler knows what goes in and what a handler gets', () => {
  type Out = { readonly to: string; readonly at: Date };
  expectTypeOf<JobData<typeof queues.zod, 'welcome'>>().toExtend<Out>();
  expectTypeOf<JobData<typeof queues.valibot, 'welcome'>>().toExtend<Out>();
  expectTypeOf<JobData<typeof queues.arktype, 'welcome'>>().toExtend<Out>();
});

/** What the compiler lets through; it is never called. */
async function typed() {
  const { client: producer } = createTestKit({ handlers: { mail: () => undefined } });
  const at = '2026-03-01T10:00:00Z';
  await producer.schedule(queues.zod, { to: 'a@b.org', at }, { name: 'welcome' });
  await producer.schedule(queues.valibot, { to: 'a@b.org', at }, { name: 'welcome' });
  await producer.schedule(queues.arktype, { to: 'a@b.org', at }, { name: 'welcome' });
  // @ts-expect-error to is a text
  await producer.schedule(queues.valibot, { to: 5, at }, { name: 'welcome' });
  // @ts-expect-error to is a text
  await producer.schedule(queues.arktype, { to: 5, at }, { name: 'welcome' });
  // @ts-expect-error there is no such name
  await producer.schedule(queues.arktype, { to: 'a@b.org', at }, { name: 'welcom' });
}
expectTypeOf(typed).toBeFunction();

describe.each(Object.entries(queues))('a schema of %s', (_, queue) => {
  test('refuses data when it is scheduled, and gives the handler what it makes of it', async () => {
    const seen: unknown[] = [];
    const handlers = defineHandlers({ mail: (job: { readonly data: unknown }) => void seen.push(job.data) });
    const kit = createTestKit({ handlers, queues: [queue] });
    const put = (data: object) => kit.client.schedule(queue, data as never, { name: 'welcome' });
    await put({ to: 'a@b.org', at: '2026-03-01T10:00:00.000Z' });
    await expect(put({ to: 5, at: '2026-03-01T10:00:00.000Z' })).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringMatching(/^data of welcome in queue mail does not fit: to: /),
    });
    await kit.advance('1s');
    expect(seen).toEqual([{ to: 'a@b.org', at: new Date('2026-03-01T10:00:00Z') }]);
  });
});
