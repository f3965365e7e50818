/** Dead letters are replayed, one or many, at once or spread over a time; and removed for ever. */
import { z } from '@hono/zod-openapi';
import type { ScheduleOptions } from '../../../client/client.ts';
import type { DeadLetterFilter, Replayed, ReplayFilterOptions } from '../../../client/dead/dead-letters.ts';
import { parseAddress, writtenAs } from '../../../inspect/dead-letters.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import type { Backend } from '../backend.ts';
import { replayDue } from '../job-options.ts';
import { Problem } from '../problem.ts';
import { cursor, deadLetterId, duration, ofDeadLetter, ofQueue, strict, whole } from '../schemas.ts';
import { type AnyVerb, type Versioned, verb } from '../verb.ts';
import { goneLetter } from './dead.ts';
import { deadFilter, purged, replayed, replayedMany, seenFilter } from './dead-shapes.ts';

const REPLAY_MAX = 10_000;
const REPLAY_DEFAULT = 1000;
const PURGE_MAX = 100_000;
const PURGE_DEFAULT = 10_000;
/** Dead letters that one request looks at. */
const SCAN_MAX = 50_000;

const all = z.literal(true, { error: 'true' }).optional().openapi({ description: 'Every dead letter that there is.' });

/** What a request about one dead letter changes. */
const theDeadLetter: Versioned<{ readonly queue: string; readonly deadLetter: string }> = {
  what: 'the dead letter',
  async etag({ path: { queue, deadLetter: address }, backend }) {
    const { deadLetter, partition } = parseAddress(address);
    return (await backend.client.deadLetters.get(backend.queueOf(queue), deadLetter, { partition }))?.etag;
  },
};

const replayOne = verb({
  name: 'dead.replay',
  method: 'post',
  at: '/queues/{queue}/dead/{deadLetter}/replay',
  summary: 'Replay a dead letter',
  doc: 'Its job is scheduled again, with fresh budgets; due now unless `delay` or `at` says otherwise.',
  scope: 'write',
  queues: 'path',
  path: ofDeadLetter,
  body: replayDue,
  bodyRequired: false,
  versioned: theDeadLetter,
  answers: { 200: { schema: replayed, doc: 'It is scheduled again.' } },
  problems: ['live', 'unreadable'],
  audited: true,
  async run({ path: { queue, deadLetter: address }, body, ifMatch, backend }) {
    await refsOfQueue(await backend.place(), queue);
    const { deadLetter, partition } = parseAddress(address);
    const due = body as Pick<ScheduleOptions, 'delay' | 'at'>;
    const done = await backend.client.deadLetters.replay(backend.queueOf(queue), deadLetter, {
      ...due,
      partition,
      ifMatch,
    });
    if (done.status === 'gone') throw goneLetter();
    if (done.status === 'indeterminate')
      throw new Problem('indeterminate', {
        detail: 'the reply of Redis was lost, and nothing is known of the job now',
      });
    if (done.status === 'changed') throw new Problem('changed', { detail: 'it is another dead letter' });
    if (done.status === 'live')
      throw new Problem('live', { detail: 'a job of this id lives; cancel it, or wait until it ends' });
    if (done.status === 'empty') throw new Problem('unreadable', { detail: 'the dead letter holds no record to run' });
    return { status: 200, body: { ...done, deadLetter: address }, changed: 1, target: done.id };
  },
});

const replayBody = strict({
  deadLetters: z.array(deadLetterId).min(1).max(REPLAY_MAX).optional(),
  all,
  ...deadFilter,
  limit: whole(1, REPLAY_MAX)
    .optional()
    .openapi({ description: `At most so many; default ${REPLAY_DEFAULT}.` }),
  delay: duration.optional().openapi({ description: 'Due this long from now instead of at once.' }),
  spread: duration
    .optional()
    .openapi({ description: 'They become due over this time, at most 30 days, and not all at once.', example: '1h' }),
  dryRun: z.boolean().optional().openapi({ description: 'True only counts them; default false.' }),
  cursor,
}).openapi('ReplayRequest');

const replayMany = verb({
  name: 'dead.replayMany',
  method: 'post',
  at: '/queues/{queue}/dead/replay',
  summary: 'Replay many dead letters, at once or spread over a time',
  doc: 'Named by their addresses, or by a filter, or all there are, newest first. With a `next` in the answer there are more: send the same request with it as `cursor`. `delay`, `spread` and ages count from the first request.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: replayBody,
  answers: { 200: { schema: replayedMany, doc: 'What became of them.' } },
  audited: true,
  async run({ path: { queue }, body, caller, backend }) {
    const { deadLetters, all: isAll, limit = REPLAY_DEFAULT, delay, spread: over, dryRun = false, ...given } = body;
    const { cursor: from, ...fields } = given;
    const filter = seenFilter(fields, caller);
    const { length: partitions } = await refsOfQueue(await backend.place(), queue);
    const isFilter = Object.values(filter).some((one) => one !== undefined);
    if ((deadLetters !== undefined) === (isAll === true || isFilter)) {
      throw new Problem('bad-input', {
        detail: 'name the dead letters in one way; allowed: deadLetters, or a filter, or all: true',
      });
    }
    if (deadLetters === undefined) {
      const bounds = { all: isAll, limit, scanMax: SCAN_MAX, cursor: from, dryRun, delay, over };
      return replayWhere(backend, { queue, partitions }, filter, bounds);
    }
    if (dryRun || over !== undefined || from !== undefined) {
      throw new Problem('bad-input', {
        detail: 'dryRun, spread and cursor go with a filter or all; deadLetters are given',
      });
    }
    return replayNamed(backend, queue, { deadLetters, delay });
  },
});

async function replayWhere(
  backend: Backend,
  { queue, partitions }: { readonly queue: string; readonly partitions: number },
  filter: DeadLetterFilter,
  options: ReplayFilterOptions,
) {
  const done = await backend.client.deadLetters.replay(backend.queueOf(queue), filter, options);
  const { changed, refused, skipped, matched, scanned, cursor: at } = done;
  const deadLetters = refused.map((one) => ({ ...one, deadLetter: writtenAs(one, partitions) }));
  const body = {
    queue,
    dryRun: options.dryRun === true,
    matched,
    replayed: changed,
    live: skipped.live ?? 0,
    empty: skipped.empty ?? 0,
    gone: skipped.gone ?? 0,
    deadLetters,
    scanned,
    next: at,
  };
  return { status: 200 as const, body, changed };
}

async function replayNamed(
  backend: Backend,
  queue: string,
  { deadLetters, delay }: { readonly deadLetters: readonly string[]; readonly delay: ScheduleOptions['delay'] },
) {
  const to = backend.queueOf(queue);
  const named = deadLetters.map(parseAddress);
  const replies = await backend.client.deadLetters.replay(to, named, { delay });
  const results = replies.map((reply, at) => ({ ...reply, deadLetter: deadLetters[at] }));
  const of = (wanted: Replayed['status']) => results.filter(({ status }) => status === wanted).length;
  const counts = { replayed: of('scheduled'), live: of('live'), empty: of('empty'), gone: of('gone') };
  const matched = results.length;
  const body = { queue, dryRun: false, matched, ...counts, deadLetters: results, scanned: matched };
  return { status: 200 as const, body, changed: counts.replayed };
}

const purge = verb({
  name: 'dead.purge',
  method: 'post',
  at: '/queues/{queue}/dead/purge',
  summary: 'Remove dead letters for ever',
  doc: 'Oldest first, those that a filter names, or all. It only counts them unless `dryRun` is false. With a `next` in the answer there are more: send the same request with it as `cursor`. Ages count from the first request, and jobs that die meanwhile are not met.',
  scope: 'admin',
  queues: 'path',
  path: ofQueue,
  body: strict({
    dryRun: z.boolean().openapi({ description: 'True only counts them.' }),
    all,
    ...deadFilter,
    limit: whole(1, PURGE_MAX).optional().openapi({ description: 'At most so many; default 10,000.' }),
    cursor,
  }).openapi('PurgeRequest'),
  answers: { 200: { schema: purged, doc: 'How many were removed, or would be.' } },
  audited: true,
  async run({ path: { queue }, body, caller, backend }) {
    const { dryRun, all: isAll, limit = PURGE_DEFAULT, cursor: from, ...fields } = body;
    const filter = seenFilter(fields, caller);
    await refsOfQueue(await backend.place(), queue);
    const bounds = { dryRun, all: isAll, limit, scanMax: PURGE_MAX, cursor: from };
    const done = await backend.client.deadLetters.remove(backend.queueOf(queue), filter, bounds);
    const { matched, changed: removed, scanned, cursor: at } = done;
    return { status: 200, body: { queue, dryRun, matched, removed, scanned, next: at }, changed: removed };
  },
});

export const deadWorkVerbs: readonly AnyVerb[] = [replayOne, replayMany, purge];
