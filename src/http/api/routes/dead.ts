/** Dead letters: listed, shown, replayed, purged. */
import { z } from '@hono/zod-openapi';
import type { ScheduleOptions } from '../../../client/producer.ts';
import { durationMs } from '../../../core/duration.ts';
import { addressOf, contentOf, findDeadLetter, type Placed } from '../../../operations/dead-letters.ts';
import { deadPage } from '../../../operations/dead-page.ts';
import { purgeDead } from '../../../operations/dead-purge.ts';
import { replayDead } from '../../../operations/dead-replay.ts';
import { refsOfQueue } from '../../../operations/refs.ts';
import type { Scope } from '../../../operations/tokens.ts';
import { replayDue } from '../job-options.ts';
import { cursorOf, readTexts } from '../paging.ts';
import { Problem } from '../problem.ts';
import {
  count,
  cursor,
  deadLetterId,
  duration,
  epochMs,
  next,
  ofDeadLetter,
  ofQueue,
  strict,
  whole,
  wholeText,
} from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { seenHistory, seenReason } from './hidden.ts';
import { attempted } from './job-shapes.ts';

const inList = {
  deadLetter: z.string().openapi({ description: 'Its address.' }),
  partition: count,
  id: z.string().openapi({ description: 'Of its job.' }),
  bare: z.boolean(),
  name: z.string().optional(),
  reason: z.string().optional().openapi({ description: 'A reason of a handler only with the scope `data`.' }),
  attempts: count,
  generation: count,
  atMs: epochMs,
  history: z.array(attempted),
};
const listed = z.object(inList).openapi('ListedDeadLetter');
const shown = z
  .object({
    queue: z.string(),
    ...inList,
    hidden: z.boolean(),
    readable: z.boolean(),
    data: z.unknown().optional().openapi({ description: 'Only with the scope `data`.' }),
    askedDueMs: epochMs.optional(),
  })
  .openapi('DeadLetter');
const replayed = z
  .object({
    deadLetter: z.string().optional(),
    id: z.string().optional(),
    status: z.enum(['scheduled', 'live', 'empty', 'gone', 'moved']),
    dueMs: epochMs.optional(),
  })
  .openapi('Replayed');

const ENTRY = /^\d{1,16}-\d{1,16}$/;
const REPLAY_MAX = 10_000;
const PURGE_MAX = 100_000;

const listDead = verb({
  name: 'dead.list',
  method: 'get',
  at: '/queues/{queue}/dead',
  summary: 'List dead letters, newest first',
  scope: 'read',
  queues: 'path',
  path: ofQueue,
  query: strict({ limit: wholeText(1, 1000, 50), cursor }),
  answers: {
    200: {
      schema: z.object({ queue: z.string(), deadLetters: z.array(listed), next }).openapi('DeadLettersPage'),
      doc: 'A page of dead letters.',
    },
  },
  async run({ path: { queue }, query: { limit, cursor: from }, caller, backend }) {
    const place = await backend.place();
    const refs = await refsOfQueue(place, queue);
    const keep = (placed: Placed) => seenLetter(placed, refs.length, caller.scopes);
    const page = await deadPage(place.redis, refs, { limit, after: readTexts(from, ENTRY), keep });
    const deadLetters = page.kept;
    return { status: 200, body: { queue, deadLetters, next: page.next && cursorOf(page.next) } };
  },
});

const showDead = verb({
  name: 'dead.get',
  method: 'get',
  at: '/queues/{queue}/dead/{deadLetter}',
  summary: 'Look at a dead letter',
  scope: 'read',
  queues: 'path',
  path: ofDeadLetter,
  answers: { 200: { schema: shown, doc: 'The dead letter with its history.' } },
  async run({ path, caller: { scopes }, backend }) {
    const place = await backend.place();
    const refs = await refsOfQueue(place, path.queue);
    const placed = await findDeadLetter(place.redis, refs, path.deadLetter);
    const { readable, data, askedDueMs } = contentOf(placed.deadLetter.record, placed.ref.redact);
    const mayRead = scopes.has('data');
    const seen = seenLetter(placed, refs.length, scopes);
    const body = { queue: path.queue, ...seen, readable, askedDueMs, hidden: !mayRead };
    return { status: 200, body: { ...body, data: mayRead ? data : undefined } };
  },
});

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
  answers: { 200: { schema: replayed, doc: 'It is scheduled again.' } },
  problems: ['live', 'unreadable'],
  audited: true,
  async run({ path: { queue, deadLetter }, body, backend }) {
    const place = await backend.place();
    const refs = await refsOfQueue(place, queue);
    const { ref, deadLetter: found } = await findDeadLetter(place.redis, refs, deadLetter);
    const due = body as Pick<ScheduleOptions, 'delay' | 'at'>;
    const done = await backend.producer.replay(backend.queueOf(queue), found.entry, {
      ...due,
      partition: ref.partition,
    });
    if (done.status === 'gone')
      throw new Problem('not-found', { detail: 'the dead letter is gone: it was replayed or removed' });
    if (done.status === 'live')
      throw new Problem('live', { detail: 'a job of this id lives; cancel it, or wait until it ends' });
    if (done.status === 'empty') throw new Problem('unreadable', { detail: 'the dead letter holds no record to run' });
    return { status: 200, body: { ...done, deadLetter }, changed: 1, target: done.id };
  },
});

const replayMany = verb({
  name: 'dead.replayMany',
  method: 'post',
  at: '/queues/{queue}/dead/replay',
  summary: 'Replay many dead letters',
  doc: 'Named by their addresses, or all of a job, or all there are, newest first. Repeat the request for the rest.',
  scope: 'write',
  queues: 'path',
  path: ofQueue,
  body: strict({
    deadLetters: z.array(deadLetterId).min(1).max(REPLAY_MAX).optional(),
    id: z.string().min(1).max(1024).optional().openapi({ description: 'Only those of this job.' }),
    all: z.literal(true, { error: 'true' }).optional(),
    limit: whole(1, REPLAY_MAX).optional().openapi({ description: 'At most so many; default 1000.' }),
    delay: duration.optional().openapi({ description: 'Due this long from now instead of at once.' }),
  }).openapi('ReplayRequest'),
  answers: {
    200: {
      schema: z.object({ queue: z.string(), replayed: count, deadLetters: z.array(replayed) }).openapi('ReplayedMany'),
      doc: 'What became of each.',
    },
  },
  audited: true,
  async run({ path: { queue }, body, backend }) {
    const { deadLetters, id, all, limit = 1000, delay } = body;
    const ways = [deadLetters, id, all].filter((one) => one !== undefined).length;
    if (ways !== 1) {
      throw new Problem('bad-input', { detail: 'name the dead letters in one way; allowed: deadLetters, id, or all' });
    }
    const which = deadLetters === undefined ? { id, limit } : { deadLetters };
    const due = delay === undefined ? undefined : { given: delay, what: 'delay' };
    const done = await replayDead(await backend.place(), queue, which, { delay: due });
    const told = done.map((one) => ({ ...one, status: one.status === 'ok' ? 'scheduled' : one.status }));
    const replayedCount = done.filter(({ status }) => status === 'ok').length;
    return { status: 200, body: { queue, replayed: replayedCount, deadLetters: told }, changed: replayedCount };
  },
});

const purge = verb({
  name: 'dead.purge',
  method: 'post',
  at: '/queues/{queue}/dead/purge',
  summary: 'Remove dead letters for ever',
  doc: 'Oldest first. It only counts them unless `dryRun` is false.',
  scope: 'admin',
  queues: 'path',
  path: ofQueue,
  body: strict({
    dryRun: z.boolean().openapi({ description: 'True only counts them.' }),
    olderThan: duration.optional().openapi({ description: 'Only those that are at least this old.' }),
    reason: z.string().max(200).optional().openapi({ description: 'Only those with exactly this reason.' }),
    limit: whole(1, PURGE_MAX).optional().openapi({ description: 'At most so many; default 10,000.' }),
  }).openapi('PurgeRequest'),
  answers: {
    200: {
      schema: z
        .object({
          queue: z.string(),
          dryRun: z.boolean(),
          matched: count,
          looked: count,
          more: z.boolean().openapi({ description: 'The limit was reached: repeat the request for the rest.' }),
        })
        .openapi('Purged'),
      doc: 'How many were removed, or would be.',
    },
  },
  audited: true,
  async run({ path: { queue }, body: { dryRun, olderThan, reason, limit = 10_000 }, backend }) {
    const ageMs = olderThan === undefined ? 0 : durationMs(olderThan, 'olderThan');
    const done = await purgeDead(await backend.place(), queue, { ageMs, reason, limit, dryRun });
    return { status: 200, body: { queue, dryRun, ...done }, changed: dryRun ? 0 : done.matched };
  },
});

/** Without its record. */
function seenLetter(placed: Placed, partitions: number, scopes: ReadonlySet<Scope>) {
  const { record, entry: _, history, reason, ...rest } = placed.deadLetter;
  const { name } = contentOf(record);
  const deadLetter = addressOf(placed, partitions);
  const seen = { history: seenHistory(history, scopes), reason: seenReason(reason, scopes) };
  return { deadLetter, partition: placed.ref.partition, name, ...rest, ...seen };
}

export const deadVerbs: readonly AnyVerb[] = [listDead, showDead, replayOne, replayMany, purge];
