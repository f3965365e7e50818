/** Dead letters by the HTTP API: listed, grouped by error, shown, replayed and removed. */
import { z } from '@hono/zod-openapi';
import type { Scope } from '../../../access/tokens.ts';
import type { ScheduleOptions } from '../../../client/client.ts';
import type {
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterRow,
  Replayed,
  ReplayFilterOptions,
} from '../../../client/dead/dead-letters.ts';
import { retold } from '../../../client/dead/overview.ts';
import { operations } from '../../../client/operations.ts';
import { refsOfQueue } from '../../../client/queues/refs.ts';
import { parseAddress, writtenAs } from '../../../inspect/dead-letters.ts';
import { redactedJob } from '../../../job/redaction.ts';
import { answers } from '../answer.ts';
import type { Backend } from '../backend.ts';
import { type Caller, checkQueue, checkScope, isOurs, seenDeferred, seenHistory, seenReason } from '../caller.ts';
import { etagHeader } from '../if-match.ts';
import { Problem } from '../problem.ts';
import {
  cursor,
  deadLetterId,
  duration,
  ofDeadLetter,
  ofQueue,
  queuesText,
  strict,
  whole,
  wholeText,
} from '../schemas.ts';
import { type AnyVerb, change, type Versioned, verb } from '../verb.ts';
import { replayDue } from './job-shapes.ts';

// What is asked about dead letters.

const text = (doc: string, example: string) =>
  z
    .string({ error: '1 to 1024 characters' })
    .min(1, { error: '1 to 1024 characters' })
    .max(1024, { error: '1 to 1024 characters' })
    .optional()
    .openapi({ description: doc, example });
const age = (doc: string) => duration.optional().openapi({ description: doc });

/** Which dead letters: those for which all of it holds. */
const deadFilter = {
  reason: text('Exactly this reason. One that a handler gave needs the scope `data`.', 'attempts-exhausted'),
  name: text('Of jobs of this name.', 'welcome'),
  tag: text('Of jobs that have this tag.', 'user:42'),
  set: text('Of members of this set.', 'import-7'),
  id: text('Of the job of this id.', 'welcome:42'),
  error: text(
    'The last error as `group=error` tells it, without numbers and ids; needs the scope `data`.',
    'timed out',
  ),
  olderThan: age('Dead for at least this long.'),
  newerThan: age('Dead for at most this long.'),
};

/** A filter lets somebody test a guess, so it may only name what the caller may see. @throws Problem `forbidden` */
function seenFilter<T extends DeadLetterFilter>(filter: T, caller: Caller): DeadLetterFilter {
  const { reason, name, tag, set, id, error, olderThan, newerThan } = filter;
  if (error !== undefined || (reason !== undefined && !isOurs(reason))) checkScope(caller, 'data');
  return { reason, name, tag, set, id, error, olderThan, newerThan };
}

/** A duration in a query, where all is text. */
const durationText = (doc: string) =>
  z
    .string()
    .regex(/^(\d+(\.\d+)?\s*(ms|s|m|h|d|w)?|P.*\d.*)$/, { error: 'a text such as "90s", "5m", "3d"' })
    .transform((given) => (/^\d+$/.test(given) ? Number(given) : given))
    .optional()
    .openapi({ type: 'string', description: doc, example: '5m' });

type Scopes = ReadonlySet<Scope>;

/** Dead letters that one request looks at. */
const SCAN_MAX = 10_000;
const GROUPS_SCAN_MAX = 20_000;

const listDead = verb({
  name: 'dead.list',
  method: 'get',
  at: '/queues/{queue}/dead',
  summary: 'List dead letters, newest first, or count those that died alike',
  doc: 'With `group=error` they are counted by reason, last error (without numbers and ids, but with codes of answers such as 503), and name. A reason that a handler gave is told in the same way. A filter may leave little of what was looked at: a page may be empty and still have a `cursor`.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofQueue,
  query: strict({
    group: z.enum(['error'], { error: 'error' }).optional(),
    ...deadFilter,
    olderThan: durationText('Dead for at least this long.'),
    newerThan: durationText('Dead for at most this long.'),
    limit: wholeText(1, 1000, 50),
    cursor,
  }),
  answers: { 200: { type: answers.DeadLettersPage, doc: 'A page of dead letters, or groups of them.' } },
  async run({ path: { queue }, query: { group, limit, cursor: from, ...given }, caller, backend }) {
    const filter = seenFilter(given, caller);
    const { length: partitions } = await refsOfQueue(await backend.place(), queue);
    const to = backend.queueOf(queue);
    if (group === undefined) {
      const bounds = { limit, scanMax: SCAN_MAX, cursor: from };
      const page = await backend.client.deadLetters.list(to, filter, bounds);
      const deadLetters = page.deadLetters.map((row) => seenRow(row, { partitions, scopes: caller.scopes }));
      return { status: 200, body: { queue, deadLetters, scanned: page.scanned, cursor: page.cursor } };
    }
    const bounds = { scanMax: GROUPS_SCAN_MAX, cursor: from };
    const found = await backend.client.deadLetters.groups(to, filter, bounds);
    const groups = seenGroups(found.groups, { partitions, scopes: caller.scopes });
    const { others, scanned } = found;
    return { status: 200, body: { queue, groups, others, scanned, cursor: found.cursor } };
  },
});

const overviewDead = verb({
  name: 'dead.overview',
  method: 'get',
  at: '/dead',
  summary: 'What jobs of all queues died of',
  doc: 'By reason and last error (without numbers and ids, but with codes of answers such as 503), the kind that died last first, with how many died when, and what they share. The newest 10,000 dead letters are looked at; ask for older ones with `olderThan`. One reading serves all who ask the same within three seconds. A queue that could not be looked through is named in `unread`. A token of some queues sees those.',
  scope: 'read',
  tool: 'look',
  queues: 'own',
  query: strict({
    queue: queuesText.optional(),
    ...deadFilter,
    olderThan: durationText('Dead for at least this long.'),
    newerThan: durationText('Dead for at most this long.'),
  }),
  answers: { 200: { type: answers.DeadLetterOverview, doc: 'The kinds of dead letters.' } },
  async run({ query: { queue, ...given }, caller, backend }) {
    const filter = seenFilter(given, caller);
    const { scopes } = caller;
    const asked = queue?.split(',');
    const place = await backend.place();
    for (const name of asked ?? []) {
      checkQueue(caller, name);
      await refsOfQueue(place, name);
    }
    const wanted = { ...filter, queues: asked ?? caller.queues };
    const found = await backend.readings.died.get(JSON.stringify(wanted), () =>
      backend.client.deadLetters.overview(wanted),
    );
    const kinds = retold(found.kinds, ({ reason, error }) => ({
      reason: seenReason(reason, scopes),
      error: seenError(error, scopes),
    }));
    const addressed = await Promise.all(
      kinds.map(async ({ example, ...kind }) => {
        const { length: partitions } = await refsOfQueue(place, example.queue);
        return { ...kind, example: { ...example, deadLetter: writtenAs(example, partitions) } };
      }),
    );
    return { status: 200, body: { ...found, kinds: addressed } };
  },
});

const showDead = verb({
  name: 'dead.get',
  method: 'get',
  at: '/queues/{queue}/dead/{deadLetter}',
  summary: 'Look at a dead letter',
  doc: 'Its `ETag` tells this death from any other, for `If-Match`.',
  scope: 'read',
  tool: 'look',
  queues: 'path',
  path: ofDeadLetter,
  answers: { 200: { type: answers.DeadLetter, doc: 'The dead letter with its history.' } },
  async run({ path: { queue, deadLetter: address }, caller: { scopes }, backend }) {
    const refs = await refsOfQueue(await backend.place(), queue);
    const { deadLetter, partition } = parseAddress(address);
    const found = await backend.client.deadLetters.get(backend.queueOf(queue), deadLetter, { partition });
    if (!found) throw goneLetter();
    const mayRead = scopes.has('data');
    const { readable, askedDueMs, codec, options, data, headers, log } = found;
    const shown = mayRead ? redactedJob({ name: found.name, data }, refs[found.partition]?.redact) : undefined;
    const body = {
      ...seenRow(found, { partitions: refs.length, scopes }),
      queue,
      readable,
      askedDueMs,
      codec,
      options,
    };
    const told = {
      ...body,
      hidden: !mayRead,
      data: shown,
      headers: mayRead ? headers : undefined,
      log: mayRead ? log : undefined,
    };
    return { status: 200, body: told, headers: etagHeader(found.etag) };
  },
});

const goneLetter = () =>
  new Problem('not-found', {
    detail:
      'there is no such dead letter: it was replayed, removed or has passed its retention, or is in another queue',
  });

interface Seen {
  readonly partitions: number;
  readonly scopes: Scopes;
}

function seenRow(
  { overMs: atMs, history, deferred, reason, error, ...row }: DeadLetterRow,
  { partitions, scopes }: Seen,
) {
  const told = {
    reason: seenReason(reason, scopes),
    error: seenError(error, scopes),
    history: seenHistory(history, scopes),
    deferred: seenDeferred(deferred, scopes),
  };
  return { ...row, ...told, atMs, deadLetter: writtenAs(row, partitions) };
}

/** Whoever may not see by what groups differ sees them as one. */
function seenGroups(groups: readonly DeadLetterGroup[], { partitions, scopes }: Seen) {
  const merged = new Map<string, Omit<DeadLetterGroup, 'reason' | 'error'> & SeenWords>();
  for (const { reason: given, error: said, ...group } of groups) {
    const [reason, error] = [seenReason(given, scopes), seenError(said, scopes)];
    const key = JSON.stringify([reason, error, group.name]);
    const known = merged.get(key);
    const newest = known && known.lastMs >= group.lastMs ? known : group;
    merged.set(key, {
      reason,
      error,
      name: group.name,
      example: newest.example,
      lastMs: newest.lastMs,
      firstMs: Math.min(known?.firstMs ?? group.firstMs, group.firstMs),
      count: (known?.count ?? 0) + group.count,
    });
  }
  const all = [...merged.values()].sort((a, b) => b.count - a.count || b.lastMs - a.lastMs);
  return all.map(({ example, ...group }) => ({
    ...group,
    example: { id: example.id, deadLetter: writtenAs(example, partitions) },
  }));
}

interface SeenWords {
  readonly reason: string | undefined;
  readonly error: string | undefined;
}

const seenError = (error: string, scopes: Scopes): string | undefined => (scopes.has('data') ? error : undefined);

export const deadVerbs: readonly AnyVerb[] = [overviewDead, listDead, showDead];

// Dead letters are replayed, one or many, at once or spread over a time; and removed for ever.

const REPLAY_MAX = 10_000;
const REPLAY_DEFAULT = 1000;
const PURGE_MAX = 100_000;
const PURGE_DEFAULT = 10_000;
/** Dead letters that one request looks at. */
const WORK_SCAN_MAX = 50_000;

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
  ...change(operations.deadLetters.replay),
  tool: { look: 'dead.get', same: ['etag'] },
  method: 'post',
  at: '/queues/{queue}/dead/{deadLetter}/replay',
  summary: 'Replay a dead letter',
  doc: 'Its job is scheduled again, with fresh budgets; due now unless `delay` or `at` says otherwise.',
  queues: 'path',
  path: ofDeadLetter,
  body: replayDue,
  bodyRequired: false,
  versioned: theDeadLetter,
  answers: { 200: { type: answers.Replayed, doc: 'It is scheduled again.' } },
  problems: ['live', 'closed', 'unreadable'],
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
    if (done.status === 'closed')
      throw new Problem('closed', { detail: 'a tag of the job is closed; open it first, see /closed of the queue' });
    if (done.status === 'empty') throw new Problem('unreadable', { detail: 'the dead letter holds no record to run' });
    return { status: 200, body: { ...done, deadLetter: address } };
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
  ...change(operations.deadLetters.replay),
  name: 'dead.replayMany',
  tool: { look: 'dead.list', same: ['deadLetter', 'etag'], names: 'deadLetters' },
  method: 'post',
  at: '/queues/{queue}/dead/replay',
  summary: 'Replay many dead letters, at once or spread over a time',
  doc: 'Named by their addresses, or by a filter, or all there are, newest first. With a `cursor` in the answer there are more: send the same request with it. `delay`, `spread` and ages count from the first request.',
  queues: 'path',
  path: ofQueue,
  body: replayBody,
  answers: { 200: { type: answers.ReplayedMany, doc: 'What became of them.' } },
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
      const bounds = { all: isAll, limit, scanMax: WORK_SCAN_MAX, cursor: from, dryRun, delay, over };
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
    closed: skipped.closed ?? 0,
    empty: skipped.empty ?? 0,
    gone: skipped.gone ?? 0,
    deadLetters,
    scanned,
    cursor: at,
  };
  return { status: 200 as const, body };
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
  const counts = {
    replayed: of('scheduled'),
    live: of('live'),
    closed: of('closed'),
    empty: of('empty'),
    gone: of('gone'),
  };
  const matched = results.length;
  const body = { queue, dryRun: false, matched, ...counts, deadLetters: results, scanned: matched };
  return { status: 200 as const, body };
}

const purge = verb({
  ...change(operations.deadLetters.remove),
  method: 'post',
  at: '/queues/{queue}/dead/purge',
  summary: 'Remove dead letters for ever',
  doc: 'Oldest first, those that a filter names, or all. It only counts them unless `dryRun` is false. With a `cursor` in the answer there are more: send the same request with it. Ages count from the first request, and jobs that die meanwhile are not met.',
  queues: 'path',
  path: ofQueue,
  body: strict({
    dryRun: z.boolean().openapi({ description: 'True only counts them.' }),
    all,
    ...deadFilter,
    limit: whole(1, PURGE_MAX).optional().openapi({ description: 'At most so many; default 10,000.' }),
    cursor,
  }).openapi('PurgeRequest'),
  answers: { 200: { type: answers.Purged, doc: 'How many were removed, or would be.' } },
  async run({ path: { queue }, body, caller, backend }) {
    const { dryRun, all: isAll, limit = PURGE_DEFAULT, cursor: from, ...fields } = body;
    const filter = seenFilter(fields, caller);
    await refsOfQueue(await backend.place(), queue);
    const bounds = { dryRun, all: isAll, limit, scanMax: PURGE_MAX, cursor: from };
    const done = await backend.client.deadLetters.remove(backend.queueOf(queue), filter, bounds);
    const { matched, changed: removed, scanned, cursor: at } = done;
    return { status: 200, body: { queue, dryRun, matched, removed, scanned, cursor: at } };
  },
});

export const deadWorkVerbs: readonly AnyVerb[] = [replayOne, replayMany, purge];
