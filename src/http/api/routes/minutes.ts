/** What happened in a queue by the minute, hour or day, whether it keeps what it promises about lateness, and why nothing moves there, if nothing does. */
import { z } from '@hono/zod-openapi';
import { dayFor, readDay } from '../../../inspect/day.ts';
import { lastStartOf } from '../../../inspect/estimate.ts';
import { queueLate } from '../../../inspect/late.ts';
import { backOf, DAYS_ALLOWED, lastHour, queueMinutes } from '../../../inspect/minutes.ts';
import { MONTH_ALLOWED, sloOf, slos } from '../../../inspect/slo.ts';
import { HOUR_MS } from '../../../job/happened.ts';
import { instantMs } from '../../../kernel/duration.ts';
import { DAYS } from '../../../redis/read/history.ts';
import { answers } from '../answer.ts';
import { nowOf } from '../backend.ts';
import { mayUse } from '../caller.ts';
import { instant, ofQueue, strict, textOf } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';

const minutes = verb({
  name: 'queues.minutes',
  method: 'get',
  at: '/queues/{queue}/minutes',
  summary: 'What happened in a queue by the minute, hour or day',
  doc: 'Counts, lateness and run times of the last hour by the minute, or of the last day by ten minutes, as lists of the same length, the oldest step first. With `days` by the hour, at most 90 days, or by the day of UTC, at most 396; the last step goes on.',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({
    hours: z.enum(['1', '24'], { error: '1, 24' }).default('1').openapi({ example: '1' }),
    days: z
      .string({ error: DAYS_ALLOWED })
      .regex(/^\d{1,3}$/, { error: DAYS_ALLOWED })
      .transform(Number)
      .optional()
      .openapi({ type: 'integer', minimum: 1, maximum: DAYS }),
    by: z.enum(['hour', 'day'], { error: 'hour, day' }).optional(),
  }),
  answers: { 200: { type: answers.QueueMinutes, doc: 'Steps of equal length.' } },
  async run({ path: { queue }, query: { hours, days, by }, backend }) {
    const place = await backend.place();
    const back = backOf({ hours: hours === '24' ? 24 : 1, days, by });
    const found = await queueMinutes(place, queue, { ...back, nowMs: nowOf(place) });
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

const day = verb({
  name: 'day',
  method: 'get',
  at: '/day',
  summary: 'What happened in the last day, in each queue and by the hour',
  doc: 'Starts, lateness and dead letters by the hour, and the changes that diaries tell. One reading serves all who ask within ten seconds. A token of some queues gets those of its queues. Reasons only with the scope `data`: a handler may have given them.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  answers: { 200: { type: answers.Day, doc: 'Steps of an hour; the last one goes on.' } },
  async run({ caller, backend }) {
    const place = await backend.place();
    const may = (queue: string) => mayUse(caller, queue);
    const reading = await backend.readings.day.get('', () => readDay(place, nowOf(place)));
    return { status: 200, body: dayFor(reading, { may, hidesReasons: !caller.scopes.has('data') }) };
  },
});

const why = verb({
  name: 'queues.why',
  method: 'get',
  at: '/queues/{queue}/why',
  summary: 'Why jobs of a queue wait, if any do',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  answers: {
    200: {
      type: answers.WhyNothingMoves,
      doc: 'Each reason as a code, a sentence and the next step. While jobs wait and can start: when the last of them does, in the partition where most wait.',
    },
  },
  async run({ path: { queue }, backend }) {
    const found = await backend.client.queues.why(queue, { readyMax: backend.readyMax });
    const lastStart = await lastStartOf(await backend.place(), queue);
    return { status: 200, body: { queue, ...found, lastStart } };
  },
});

const inMonth = strict({
  month: textOf(/^\d{4}-(0[1-9]|1[0-2])$/, MONTH_ALLOWED, '2026-11').optional(),
});

const late = verb({
  name: 'queues.late',
  method: 'get',
  at: '/queues/{queue}/late',
  summary: 'Why a queue was late within some time',
  doc: 'A verdict in one sentence, then the causes of the lateness of jobs that were started, groups whose jobs waited longest, and what happened meanwhile. Of the last day. Default: the last hour. Reasons only with the scope `data`: a handler may have given them.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  query: strict({
    from: instant.optional().openapi({ description: 'Default: an hour before `to`.' }),
    to: instant.optional().openapi({ description: 'Default: now.' }),
  }),
  answers: { 200: { type: answers.QueueLate, doc: 'The verdict first.' } },
  problems: ['bad-input'],
  async run({ path: { queue }, query: { from, to }, caller, backend }) {
    const place = await backend.place();
    const toMs = to === undefined ? Math.floor(nowOf(place)) : instantMs(to, 'to');
    const fromMs = from === undefined ? toMs - HOUR_MS : instantMs(from, 'from');
    const body = await queueLate(place, queue, { fromMs, toMs, hidesReasons: !caller.scopes.has('data') });
    return { status: 200, body };
  },
});

const slo = verb({
  name: 'queues.slo',
  method: 'get',
  at: '/queues/{queue}/slo',
  summary: 'Whether a queue keeps what it promises about lateness',
  doc: 'Over the last while that was promised, or in a month of UTC. 404 where nothing is promised.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  query: inMonth,
  answers: { 200: { type: answers.Slo, doc: 'The promise, what it may cost, and what it did.' } },
  async run({ path: { queue }, query: { month }, backend }) {
    return { status: 200, body: await sloOf(await backend.place(), queue, month) };
  },
});

const allSlos = verb({
  name: 'slo',
  method: 'get',
  at: '/slo',
  summary: 'Whether queues keep what they promise about lateness',
  doc: 'Queues that promise nothing are left out. A token of some queues gets those of its queues.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  query: inMonth,
  answers: { 200: { type: answers.Slos, doc: 'Each promise by the name of its queue.' } },
  async run({ query: { month }, caller, backend }) {
    const may = (queue: string) => mayUse(caller, queue);
    return { status: 200, body: await slos(await backend.place(), { month, may }) };
  },
});

export const minuteVerbs: readonly AnyVerb[] = [minutes, hour, day, why, late, slo, allSlos];
