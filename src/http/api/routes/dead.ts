/** Dead letters: listed, grouped by error, and shown. */
import { z } from '@hono/zod-openapi';
import type { Scope } from '../../../access/tokens.ts';
import type { DeadLetterGroup, DeadLetterRow } from '../../../client/dead/dead-letters.ts';
import { parseAddress, writtenAs } from '../../../inspect/dead-letters.ts';
import { refsOfQueue } from '../../../inspect/refs.ts';
import { redactedJob } from '../../../job/redaction.ts';
import { etagHeader } from '../if-match.ts';
import { Problem } from '../problem.ts';
import { cursor, ofDeadLetter, ofQueue, strict, wholeText } from '../schemas.ts';
import { type AnyVerb, verb } from '../verb.ts';
import { deadFilter, deadPage, durationText, seenFilter, shown } from './dead-shapes.ts';
import { seenDeferred, seenHistory, seenReason } from './hidden.ts';

type Scopes = ReadonlySet<Scope>;

/** Dead letters that one request looks at. */
const SCAN_MAX = 10_000;
const GROUPS_SCAN_MAX = 20_000;

const listDead = verb({
  name: 'dead.list',
  method: 'get',
  at: '/queues/{queue}/dead',
  summary: 'List dead letters, newest first, or count those that died alike',
  doc: 'With `group=error` they are counted by reason, last error (without numbers and ids) and name. A filter may leave little of what was looked at: a page may be empty and still have a `next`.',
  scope: 'read',
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
  answers: { 200: { schema: deadPage, doc: 'A page of dead letters, or groups of them.' } },
  async run({ path: { queue }, query: { group, limit, cursor: from, ...given }, caller, backend }) {
    const filter = seenFilter(given, caller);
    const { length: partitions } = await refsOfQueue(await backend.place(), queue);
    const to = backend.queueOf(queue);
    if (group === undefined) {
      const bounds = { limit, scanMax: SCAN_MAX, cursor: from };
      const page = await backend.client.deadLetters.list(to, filter, bounds);
      const deadLetters = page.deadLetters.map((row) => seenRow(row, { partitions, scopes: caller.scopes }));
      return { status: 200, body: { queue, deadLetters, scanned: page.scanned, next: page.cursor } };
    }
    const bounds = { scanMax: GROUPS_SCAN_MAX, cursor: from };
    const found = await backend.client.deadLetters.groups(to, filter, bounds);
    const groups = seenGroups(found.groups, { partitions, scopes: caller.scopes });
    const { others, scanned } = found;
    return { status: 200, body: { queue, groups, others, scanned, next: found.cursor } };
  },
});

const showDead = verb({
  name: 'dead.get',
  method: 'get',
  at: '/queues/{queue}/dead/{deadLetter}',
  summary: 'Look at a dead letter',
  doc: 'Its `ETag` tells this death from any other, for `If-Match`.',
  scope: 'read',
  queues: 'path',
  path: ofDeadLetter,
  answers: { 200: { schema: shown, doc: 'The dead letter with its history.' } },
  async run({ path: { queue, deadLetter: address }, caller: { scopes }, backend }) {
    const refs = await refsOfQueue(await backend.place(), queue);
    const { deadLetter, partition } = parseAddress(address);
    const found = await backend.client.deadLetters.get(backend.queueOf(queue), deadLetter, { partition });
    if (!found) throw goneLetter();
    const mayRead = scopes.has('data');
    const { readable, askedDueMs, codec, options, data, headers } = found;
    const shown = mayRead ? redactedJob({ name: found.name, data }, refs[found.partition]?.redact) : undefined;
    const body = {
      ...seenRow(found, { partitions: refs.length, scopes }),
      queue,
      readable,
      askedDueMs,
      codec,
      options,
    };
    const told = { ...body, hidden: !mayRead, data: shown, headers: mayRead ? headers : undefined };
    return { status: 200, body: told, headers: etagHeader(found.etag) };
  },
});

export const goneLetter = () =>
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

export const deadVerbs: readonly AnyVerb[] = [listDead, showDead];
