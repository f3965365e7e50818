/** What happened in a queue by the minute, and why nothing moves there, if nothing does. */
import { z } from '@hono/zod-openapi';
import { lastHour, queueMinutes } from '../../../inspect/minutes.ts';
import { answers } from '../answer.ts';
import { nowOf } from '../backend.ts';
import { mayUse } from '../caller.ts';
import { ofQueue, strict } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

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
  answers: { 200: { type: answers.QueueMinutes, doc: 'Steps of equal length.' } },
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
  answers: { 200: { type: answers.LastHour, doc: 'Lateness and run times, by bounds.' } },
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
  answers: { 200: { type: answers.WhyNothingMoves, doc: 'Each reason as a code, a sentence and the next step.' } },
  async run({ path: { queue }, backend }) {
    const found = await backend.client.queues.why(queue, { readyMax: backend.readyMax });
    return { status: 200, body: { queue, ...found } };
  },
});

export const minuteVerbs: readonly AnyVerb[] = [minutes, hour, why];
