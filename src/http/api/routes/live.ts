/** What is true now, once a second, as server-sent events. */
import { z } from '@hono/zod-openapi';
import { DURABILITIES } from '../../../inspect/redis-now.ts';
import { streamOf } from '../live/stream.ts';
import { count, epochMs, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { bucket, finding, versions } from './looks.ts';

const EVENTS_MAX = 1_000_000;

const rates = z
  .object({ scheduled: z.number(), promoted: z.number(), started: z.number(), ended: z.number() })
  .openapi('Rates', { description: 'Jobs per second since the event before.' });
const counts = {
  scheduled: count,
  waiting: count,
  ready: count,
  running: count,
  dead: count,
  oldestDueAgeMs: z.number(),
};

const now = z
  .object({
    nowMs: epochMs,
    everyMs: z.number(),
    queues: z.array(
      z.object({
        queue: z.string(),
        partitions: count,
        ...counts,
        waitMs: z.number(),
        paused: z.boolean(),
        workers: count,
        leaders: z.array(z.string().nullable()),
        perSecond: rates,
      }),
    ),
    total: z.object({ ...counts, perSecond: rates }),
    processes: z.object({ daemons: count, workers: count, leaders: count, partitions: count, led: count, versions }),
    redis: z
      .object({ usedBytes: count, maxBytes: count, policy: z.string(), durability: z.enum(DURABILITIES) })
      .optional()
      .openapi({ description: 'This and what follows: only for tokens of all queues, and not in the first event.' }),
    forecast: z
      .object({
        atMs: epochMs,
        nextHour: count,
        scheduled: count,
        coming: count,
        busiest: bucket.optional(),
        buckets: z.array(bucket),
      })
      .optional(),
    doctor: z
      .object({ atMs: epochMs, ok: z.boolean(), findings: z.array(finding) })
      .optional()
      .openapi({ description: 'What is not as it should be.' }),
  })
  .openapi('LiveNow');

const live = verb({
  name: 'live',
  method: 'get',
  at: '/live',
  summary: 'Watch all queues, once a second',
  doc: 'Server-sent events (`EventSource`). `now` has what is described here; its ids are numbers with the name of the daemon in front, so a gap says that something was missed. `away`: Redis does not answer. `bye`: the stream ends, because the daemon stops, the token was revoked, `events` were sent, or it has lasted five minutes (`renew`: ask again). A viewer that does not read is cut off.',
  scope: 'read',
  queues: 'own',
  query: strict({
    events: wholeText(1, EVENTS_MAX, EVENTS_MAX).openapi({ description: 'Ends after so many events.', example: '1' }),
  }),
  answers: { 200: { schema: now, media: 'text/event-stream', doc: 'Events; what `now` says.' } },
  problems: ['too-many', 'stopped'],
  async run({ query: { events }, caller, pulse, stillMay, cut }) {
    pulse.check();
    const stream = streamOf({ pulse, caller, stillMay, cut, eventsMax: events });
    // Proxies hold back what they could send in larger pieces, unless they are told. No other request follows on this
    // connection, so it may be cut when the stream has ended.
    return { status: 200, stream, headers: { 'X-Accel-Buffering': 'no', Connection: 'close' } };
  },
});

export const liveVerbs: readonly AnyVerb[] = [live];
