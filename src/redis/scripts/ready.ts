/**
 * The consumer-group side of the ready stream: reading, what a consumer holds, and who the consumers are. The group is
 * always created at `0`, never at `$`: a group made again must see what arrived before it.
 */

import {
  accountOf,
  entryMs,
  type LineLook,
  type StartAccount,
  type StartFacts,
  takeOversSince,
  tokenMs,
} from '../../job/account.ts';
import type { EntryId } from '../../job/job.ts';
import { groupOf } from '../../job/labels.ts';
import type { Attempted } from '../../job/outcome.ts';
import { madeMsOf } from '../../job/record-header.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import { GROUP, type PartitionKeys, type PartitionRef } from '../keys.ts';
import { forgetClaims, isRemote } from './claims.ts';
import type { Delivery } from './replies.ts';
import { scripts } from './script-table.ts';
import { fieldsOf, list, type Reply, run, text } from './scripts.ts';

export interface ConsumerInfo {
  readonly name: string;
  readonly pending: number;
  readonly idleMs: number;
}

/** Makes the stream and its group if they are not there. Safe to call at any time. */
export async function ensureGroup(redis: Redis, keys: PartitionKeys): Promise<void> {
  await run(redis, scripts.enrol, { keys, args: { consumer: '' } });
}

/**
 * New entries of several partitions for one consumer, waiting up to `blockMs` for the first. That is never an alarm clock:
 * Redis serves such time-outs up to 100 ms late. `count` bounds each
 * stream, so a caller with n free slots asks for n in one stream or spreads them.
 */
export async function readNew(
  redis: Redis,
  refs: readonly PartitionRef[],
  { consumer, count, blockMs }: { readonly consumer: string; readonly count: number; readonly blockMs: number },
): Promise<readonly { readonly ref: PartitionRef; readonly deliveries: readonly Delivery[] }[]> {
  const block = blockMs > 0 ? ['BLOCK', blockMs] : [];
  const streams = refs.map((ref) => ref.keys.ready);
  const sent = redis.call(
    'XREADGROUP',
    ...['GROUP', GROUP, consumer, 'COUNT', count, ...block, 'STREAMS', ...streams, ...streams.map(() => '>')],
  );
  const reply = await naming(
    redis,
    refs.map(({ keys }) => keys),
    sent,
  );
  if (reply === null) return [];
  return list(reply as Reply).flatMap((stream) => {
    const [key, entries] = list(stream);
    const ref = refs.find((candidate) => candidate.keys.ready === key);
    return ref ? [{ ref, deliveries: list(entries).map(deliveryOf) }] : [];
  });
}

/** The content of entries; those that were deleted are left out. */
export async function readEntries(
  redis: Redis,
  keys: PartitionKeys,
  entries: readonly EntryId[],
): Promise<readonly Delivery[]> {
  const found = await Promise.all(entries.map((entry) => redis.call('XRANGE', keys.ready, entry, entry)));
  return found.flatMap((reply) => list(reply as Reply).map(deliveryOf));
}

/** A start as it was seen: its entry, its run and its record. */
interface SeenStart {
  readonly ref: Pick<PartitionRef, 'gates'>;
  readonly delivery: Delivery;
  readonly run: { readonly token: string; readonly history: readonly Attempted[] };
  readonly record: string;
  readonly isClockSet: boolean;
  /** What was seen of the line of its partition. */
  readonly looks?: readonly LineLook[];
}

/** The account of a start, from what its entry, its run and its record say. */
export const startAccount = (seen: SeenStart): StartAccount | undefined => accountOf(startFacts(seen));

/** What the account of a start is made of. The record, which may be large, is not among it. */
export function startFacts({ ref, delivery, run, record, isClockSet, looks }: SeenStart): StartFacts {
  const throughMs = entryMs(delivery.entry);
  const [dueMs, startedMs] = [delivery.dueMs, tokenMs(run.token)];
  const takeOvers = takeOversSince(throughMs, run.history);
  const [isGated, group] = [ref.gates !== undefined, groupOf(delivery.member)];
  const madeMs = madeMsOf(record);
  return { dueMs, startedMs, madeMs, throughMs, isGated, looks, group, takeOvers, isClockSet };
}

/**
 * Shows a consumer to the others before its first entry: Redis 7.0 does not know one that has only waited so far, and
 * the survivors of a crash would not count on it.
 */
export async function join(redis: Redis, keys: PartitionKeys, consumer: string): Promise<void> {
  await run(redis, scripts.enrol, { keys, args: { consumer } });
}

export async function consumers(redis: Redis, keys: PartitionKeys): Promise<readonly ConsumerInfo[]> {
  const reply = list((await naming(redis, [keys], redis.call('XINFO', 'CONSUMERS', keys.ready, GROUP))) as Reply);
  return reply.map((item) => {
    const fields = fieldsOf(item);
    return {
      name: fields.get('name') ?? '',
      pending: Number(fields.get('pending')),
      idleMs: Number(fields.get('idle')),
    };
  });
}

/** Entries a consumer holds for longer than `idleMs`, whether it knows of them or not; oldest first. */
export async function ownPending(
  redis: Redis,
  keys: PartitionKeys,
  of: {
    readonly consumer: string;
    readonly idleMs: number;
    readonly limit: number;
    readonly after?: EntryId | undefined;
  },
): Promise<readonly EntryId[]> {
  const from = of.after === undefined ? '-' : `(${of.after}`;
  const sent = redis.call('XPENDING', keys.ready, GROUP, 'IDLE', of.idleMs, from, '+', of.limit, of.consumer);
  const reply = await naming(redis, [keys], sent);
  return list(reply as Reply).map((item) => text(list(item)[0]) as EntryId);
}

/** Entries that are held and idle for so long, whoever holds them; oldest first. */
export async function idleEntries(
  redis: Redis,
  keys: PartitionKeys,
  { idleMs, limit }: { readonly idleMs: number; readonly limit: number },
): Promise<readonly { readonly entry: EntryId; readonly owner: string }[]> {
  const sent = redis.call('XPENDING', keys.ready, GROUP, 'IDLE', idleMs, '-', '+', limit);
  const reply = await naming(redis, [keys], sent);
  return list(reply as Reply).map((item) => {
    const [entry, owner] = list(item);
    return { entry: text(entry) as EntryId, owner: text(owner) };
  });
}

/**
 * Takes entries of a consumer that is believed dead, if they are still its own and idle for long enough: the ones
 * named, else its oldest.
 */
export async function reclaim(
  redis: Redis,
  ref: PartitionRef,
  take: {
    readonly owner: string;
    readonly consumer: string;
    readonly idleMs: number;
    readonly limit: number;
    readonly entries?: readonly EntryId[];
    readonly nowMs?: number;
  },
): Promise<{ readonly deliveries: readonly Delivery[] }> {
  const { owner, consumer, idleMs, limit } = take;
  const entries = take.entries ?? (await ownPending(redis, ref.keys, { consumer: owner, idleMs, limit }));
  const args = { now: take.nowMs ?? '', owner, consumer, idle: idleMs };
  const flat = list(await run(redis, scripts.reclaim, { keys: ref.keys, args, each: entries.slice(0, limit) }));
  const deliveries = Array.from({ length: flat.length / 3 }, (_, index) => ({
    entry: text(flat[3 * index]) as EntryId,
    member: text(flat[3 * index + 1]),
    dueMs: Number(flat[3 * index + 2]),
  }));
  return { deliveries };
}

/**
 * Asks for a seat among the few workers of a queue that look for dead ones, keeps it or gives it back, or calls all of
 * them to look. `alarm`: somebody has called.
 */
export async function watch(
  redis: Redis,
  ref: PartitionRef,
  ask: {
    readonly consumer: string;
    readonly wish: 'watch' | 'rest' | 'alarm';
    readonly seats: number;
    readonly termMs: number;
    readonly nowMs?: number;
  },
): Promise<'seat' | 'alarm' | 'rest'> {
  const { consumer, wish, seats, termMs } = ask;
  const args = { now: ask.nowMs ?? '', consumer, wish, seats, term: termMs };
  return text(await run(redis, scripts.watch, { keys: ref.keys, args })) as 'seat' | 'alarm' | 'rest';
}

/** Removes a consumer that provably owns nothing; `gone`: there is none of that name. With a worker over HTTP its claims go. */
export async function retire(
  redis: Redis,
  ref: PartitionRef,
  consumer: string,
  { keepsClaims = false }: { readonly keepsClaims?: boolean } = {},
): Promise<'ok' | 'busy' | 'gone'> {
  const args = { consumer };
  const reply = text(await run(redis, scripts.retire, { keys: ref.keys, args })) as 'ok' | 'busy' | 'gone';
  if (reply === 'ok' && !keepsClaims && isRemote(consumer)) await forgetClaims(redis, ref.keys, [consumer]);
  return reply;
}

/** A write that changes nothing and needs no memory: proof that this partition's primary takes writes. */
export async function proveWritable(redis: Redis, keys: PartitionKeys): Promise<void> {
  await naming(redis, [keys], redis.call('XACK', keys.ready, GROUP, '0-1'));
}

export function deliveryOf(reply: Reply): Delivery {
  const [entry, fields] = list(reply);
  let member = '';
  let dueMs = 0;
  // An entry of ours that was deleted is delivered from a consumer's own list without fields.
  const words = list(fields ?? []);
  for (let at = 0; at < words.length; at += 2) {
    if (words[at] === 'member') member = text(words[at + 1] ?? '');
    else if (words[at] === 'due') dueMs = Number(words[at + 1]) || 0;
  }
  return { entry: text(entry) as EntryId, member, dueMs };
}
