/** What a queue would do with other limits, workers or run times. */
import { z } from '@hono/zod-openapi';
import { simulatedWords, simulateRanges } from '../../../inspect/simulate/ask.ts';
import { simulate } from '../../../inspect/simulate/simulate.ts';
import type { QueueSettingOptions } from '../../../job/queue-settings.ts';
import { answers } from '../answer.ts';
import { Problem } from '../problem.ts';
import { duration, ofQueue, strict, whole } from '../schemas.ts';
import { settingShapes } from '../setting-shapes.ts';
import { type AnyVerb, verb } from '../verb.ts';

/** So many are read and played in a few seconds. The command line plays more, in a process of its own. */
const JOBS_MAX = 200_000;

/** Limits by their words. */
const limits = Object.fromEntries(simulatedWords.map((word) => [word, settingShapes[word]]));
const { workers, slots, seed } = simulateRanges;

/** One at a time in a daemon: it promotes jobs meanwhile. */
let isPlaying = false;

const simulateQueue = verb({
  name: 'queues.simulate',
  method: 'post',
  at: '/queues/{queue}/simulate',
  summary: 'Show what a queue would do',
  doc: `With other limits, workers or run times, beside what it does as it is. Nothing is changed. At most ${JOBS_MAX} jobs are read, and a daemon plays one simulation at a time: another one is refused with \`too-many\`.`,
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  body: strict({
    limits: strict(limits)
      .optional()
      .openapi({ description: 'Settings of the queue that decide how much runs at once.' }),
    workers: whole(workers.min, workers.max).optional().openapi({ description: 'Default: those that live.' }),
    slots: whole(slots.min, slots.max).optional().openapi({
      description: 'How many jobs of the queue each worker runs at a time. Default: as now.',
    }),
    runTime: duration
      .optional()
      .openapi({ description: 'Each job runs for so long. Default: as measured in the last day.' }),
    until: z.string().min(1).max(64).optional().openapi({
      description: 'Jobs that become due up to then are played: a duration from now, or ISO 8601. Default 24h.',
      example: '6h',
    }),
    seed: whole(seed.min, seed.max)
      .optional()
      .openapi({ description: 'Another number, other random times. Default 1.' }),
  }).openapi('SimulateRequest'),
  bodyRequired: false,
  answers: { 200: { type: answers.Simulation, doc: 'What became of the jobs, as it is and as asked.' } },
  problems: ['bad-input', 'too-many', 'moved'],
  async run({ path: { queue }, body, backend, signal }) {
    const { limits: settings, ...ask } = body ?? {};
    if (isPlaying)
      throw new Problem('too-many', { detail: 'this daemon plays another simulation; ask again when it has ended' });
    isPlaying = true;
    try {
      const place = await backend.place();
      const asked = { ...ask, settings: settings as QueueSettingOptions | undefined };
      return { status: 200, body: await simulate(place, queue, asked, { most: JOBS_MAX, signal: signal() }) };
    } finally {
      isPlaying = false;
    }
  },
});

export const simulateVerbs: readonly AnyVerb[] = [simulateQueue];
