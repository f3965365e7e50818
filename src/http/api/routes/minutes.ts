/** What happened in a queue by the minute, and why nothing moves there, if nothing does. */
import { z } from '@hono/zod-openapi';
import { OBSTACLES } from '../../../client/queues/why.ts';
import { lastHour, queueMinutes } from '../../../inspect/minutes.ts';
import { HELD_BY } from '../../../job/gate.ts';
import { nowOf } from '../backend.ts';
import { mayUse } from '../caller.ts';
import { count, epochMs, ofQueue, strict } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { unreadQueue } from './queues.ts';

const counts = z.array(count);
const PERCENTILE =
  'To within 5 %. Where an older version has counted, as if the times of a bucket lay evenly between its bounds, and 300,000 means: longer than that. Null: there were none.';
const LONGEST = 'The longest. Null: there were none, or only older versions have counted.';
const time = z.number().nullable();
const times = z.array(time).openapi({ description: PERCENTILE });
const steps = z
  .object({ count: counts, p50Ms: times, p99Ms: times, maxMs: z.array(time).openapi({ description: LONGEST }) })
  .openapi('SpreadSteps', {
    description: 'How many there were in each step, and within which time half and 99 % of them were, and the longest.',
  });
const total = z
  .object({
    boundsMs: z.array(z.number()),
    counts: counts.openapi({ description: 'One more than there are bounds: the last has what is above all.' }),
    count,
    p50Ms: time.openapi({ description: PERCENTILE }),
    p99Ms: time.openapi({ description: PERCENTILE }),
    maxMs: time.openapi({ description: LONGEST }),
  })
  .openapi('SpreadTotal');

const minutesShape = z
  .object({
    queue: z.string(),
    on: z.boolean().openapi({ description: 'Whether leaders keep them now: see `http.minutes`.' }),
    nowMs: epochMs,
    startMs: epochMs.openapi({ description: 'When the first step began.' }),
    stepMs: z.number(),
    counts: z.object({
      scheduled: counts,
      promoted: counts,
      done: counts,
      retried: counts,
      deferred: counts,
      dead: counts,
      cancelled: counts,
      expired: counts,
    }),
    known: z
      .array(z.boolean())
      .openapi({ description: 'Whether a leader has kept the whole step. What happened in a gap is told at its end.' }),
    promotion: steps.openapi({ description: 'From the due time to the promotion.' }),
    start: steps.openapi({ description: 'From the due time to the start of the handler.' }),
    run: steps.openapi({ description: 'How long handlers ran.' }),
    total: z.object({ promotion: total, start: total, run: total }).openapi({ description: 'Over the whole time.' }),
  })
  .openapi('QueueMinutes');

const hourShape = z
  .object({
    on: z.boolean().openapi({ description: 'Whether leaders keep them now, in any queue: see `http.minutes`.' }),
    nowMs: epochMs,
    promotion: total.openapi({ description: 'From the due time to the promotion.' }),
    start: total.openapi({ description: 'From the due time to the start of the handler.' }),
    run: total.openapi({ description: 'How long handlers ran.' }),
    queues: z.array(z.object({ queue: z.string(), promotion: total, start: total, run: total })),
    unread: z.array(unreadQueue),
  })
  .openapi('LastHour');

const whyShape = z
  .object({
    queue: z.string(),
    moves: z.boolean().openapi({ description: 'Jobs move, or would if there were any that are due.' }),
    reasons: z.array(
      z.object({
        code: z.enum(OBSTACLES),
        text: z.string(),
        advice: z.string().openapi({ description: 'What to do about it.' }),
        partitions: z.array(count).optional().openapi({ description: 'Left out: all of them.' }),
        heldBy: z.enum(HELD_BY).optional().openapi({ description: 'With `waiting`: the limit that holds the jobs.' }),
        nextMs: epochMs.optional().openapi({
          description: 'With `not-due`: when the next job is due. With `waiting`: when the rate allows the next start.',
        }),
      }),
    ),
    nowMs: epochMs,
  })
  .openapi('WhyNothingMoves');

const minutes = verb({
  name: 'queues.minutes',
  method: 'get',
  at: '/queues/{queue}/minutes',
  summary: 'What happened in a queue by the minute',
  doc: 'Counts, lateness and run times of the last hour by the minute, or of the last day by ten minutes, as lists of the same length, the oldest step first.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({ hours: z.enum(['1', '24'], { error: '1, 24' }).default('1').openapi({ example: '1' }) }),
  answers: { 200: { schema: minutesShape, doc: 'Steps of equal length.' } },
  async run({ path: { queue }, query: { hours }, backend }) {
    const place = await backend.place();
    const found = await queueMinutes(place, queue, { hours: hours === '24' ? 24 : 1, nowMs: nowOf(place) });
    return { status: 200, body: { queue, ...found } };
  },
});

const hour = verb({
  name: 'lateness',
  method: 'get',
  at: '/lateness',
  summary: 'How late jobs were in the last hour, all queues together and each',
  doc: 'A token of some queues gets those of its queues.',
  scope: 'read',
  queues: 'own',
  answers: { 200: { schema: hourShape, doc: 'Lateness and run times, by bounds.' } },
  async run({ caller, backend }) {
    const place = await backend.place();
    const may = (queue: string) => mayUse(caller, queue);
    return { status: 200, body: await lastHour(place, { may, nowMs: nowOf(place) }) };
  },
});

const why = verb({
  name: 'queues.why',
  method: 'get',
  at: '/queues/{queue}/why',
  summary: 'Why jobs of a queue wait, if any do',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  answers: { 200: { schema: whyShape, doc: 'Each reason as a code, a sentence and the next step.' } },
  async run({ path: { queue }, backend }) {
    const found = await backend.client.queues.why(queue, { readyMax: backend.readyMax });
    return { status: 200, body: { queue, ...found } };
  },
});

export const minuteVerbs: readonly AnyVerb[] = [minutes, hour, why];
