/**
 * The leader's lease of one partition: taking it, keeping it, giving it back, always by the whole term
 * `<process>:<epoch>:<leaseMs>`. A name alone is not enough: a process that lost its lease would renew the winner's.
 */
import type { History } from '../../job/queue-settings.ts';
import { isCluster } from '../connection/cluster/members.ts';
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { refuseOther, SCHEMA } from '../schema.ts';
import { scripts } from './script-table.ts';
import { list, run, text } from './scripts.ts';

export type ElectReply =
  | { readonly kind: 'elected'; readonly term: string; readonly epoch: number }
  | { readonly kind: 'held'; readonly term: string; readonly ttlMs: number };

export interface SweepLimits {
  readonly batch: number;
  readonly windowMs: number;
  readonly tombstonesMax: number;
  /** No tombstone younger than this goes because of the count. */
  readonly floorMs: number;
  readonly retentionMs: number;
  readonly deadLettersMax: number;
}

/** @throws DuestreamError `wrong-schema` when the partition says that it has another one */
export async function elect(
  redis: Redis,
  ref: PartitionRef,
  {
    processId,
    leaseMs,
    silentMs,
    over = '',
    nowMs,
  }: {
    readonly processId: string;
    readonly leaseMs: number;
    /** For how long the leader before has given no sign of life, as far as the caller knows. */
    readonly silentMs?: number | undefined;
    /** The term of an older process, which may not lead a partition that has a mark: `lua/lib/pausing.lua`. */
    readonly over?: string | undefined;
    readonly nowMs?: number;
  },
): Promise<ElectReply> {
  const silent = silentMs === undefined ? '' : Math.max(0, Math.round(silentMs));
  const args = { now: nowMs ?? '', process: processId, lease: leaseMs, schema: SCHEMA, silent, over };
  const [kind, term, detail] = list(await run(redis, scripts.elect, { keys: ref.keys, args }));
  if (kind === 'schema') refuseOther(`partition ${ref.partition} of queue ${ref.queue}`, text(term));
  if (kind === 'held') return { kind, term: text(term), ttlMs: Number(detail) };
  return { kind: 'elected', term: text(term), epoch: epochOf(text(term)) };
}

/**
 * Keeps the lease: one command, which prolongs whatever stands there and says what that is. A process that no longer leads
 * hears it so, and may not act. The lease of another it has prolonged once: should that one die just then, it is replaced
 * later by as much. A Redis at its memory limit takes the command, as it would not take SET.
 */
export async function renew(
  redis: Redis,
  { keys }: PartitionRef,
  { term, leaseMs }: { readonly term: string; readonly leaseMs: number },
): Promise<'ok' | 'lost'> {
  const holder = await naming(redis, [keys], redis.getex(keys.leader, 'PX', leaseMs));
  return holder === term ? 'ok' : 'lost';
}

/** What is left of the lease, ms, as PTTL says it. */
export function leaseTtl(redis: Redis, { keys }: PartitionRef): Promise<number> {
  return redis.pttl(keys.leader);
}

/** The partitions that nobody leads at this moment. While all are led, a hundred of one server cost one number. */
export async function withoutLeader(redis: Redis, refs: readonly PartitionRef[]): Promise<readonly PartitionRef[]> {
  const unled: PartitionRef[] = [];
  for (let from = 0; from < refs.length; from += AT_ONCE) {
    const some = refs.slice(from, from + AT_ONCE);
    // The partitions of a cluster have a slot each, and no command may name keys of two.
    const isMany = isCluster(redis);
    if (!isMany && (await redis.exists(some.map(({ keys }) => keys.leader))) === some.length) continue;
    const there = await Promise.allSettled(some.map(({ keys }) => redis.exists(keys.leader)));
    const failed = there.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    // Nobody can say who leads the partitions of a node that is down. The others are told all the same.
    if (failed.length > 0 && (!isMany || failed.length === some.length)) throw failed[0];
    unled.push(
      ...there.flatMap((one, at) => (one.status === 'fulfilled' && one.value === 0 ? some.slice(at, at + 1) : [])),
    );
  }
  return unled;
}

const AT_ONCE = 100;

export async function resign(redis: Redis, ref: PartitionRef, term: string): Promise<'ok' | 'lost'> {
  return text(await run(redis, scripts.resign, { keys: ref.keys, args: { term } })) as 'ok' | 'lost';
}

export interface Swept {
  readonly tombstones: number;
  readonly deadLetters: number;
  /** Records of the history. */
  readonly past: number;
  /** The call was ended by a bound: there may be more. */
  readonly more: boolean;
}

/**
 * The leader writes into the diary that no worker serves its partition, or that one does again.
 *
 * @param of.agoMs how long ago the last worker gave its last sign of life
 * @returns `same`: it was told already
 */
export async function observe(
  redis: Redis,
  { keys }: PartitionRef,
  of: {
    readonly term: string;
    readonly state: 'unserved' | 'served';
    readonly agoMs?: number;
    readonly nowMs?: number;
  },
): Promise<'ok' | 'same' | 'fenced'> {
  const { term, state, agoMs = 0, nowMs = '' } = of;
  const args = { now: nowMs, term, state, ago: Math.round(agoMs) };
  return text(await run(redis, scripts.observe, { keys, args })) as 'ok' | 'same' | 'fenced';
}

/** Removes what is past its window or retention. `fenced` when the term is not the leader's. */
export async function sweep(
  redis: Redis,
  ref: PartitionRef,
  {
    term,
    limits,
    history = ref.history,
    nowMs,
  }: {
    readonly term: string;
    readonly limits: SweepLimits;
    readonly history?: History | undefined;
    readonly nowMs?: number;
  },
): Promise<'fenced' | Swept> {
  const args = {
    now: nowMs ?? '',
    term,
    limit: limits.batch,
    window: limits.windowMs,
    tombstones: limits.tombstonesMax,
    floor: limits.floorMs,
    retention: limits.retentionMs,
    deadLetters: limits.deadLettersMax,
    keep: history?.keepMs ?? '',
    most: history?.max ?? '',
  };
  // What was kept goes in its time, also when nothing more is.
  const keeps = history !== undefined;
  const [tombstones, deadLetters, more, past] = list(await run(redis, scripts.sweep, { keys: ref.keys, keeps, args }));
  return tombstones === -1
    ? 'fenced'
    : { tombstones: Number(tombstones), deadLetters: Number(deadLetters), past: Number(past), more: more === 1 };
}

/** The process in a term. */
export const holderOf = (term: string): string => term.split(':')[0] ?? '';

/** The epoch in a term. */
export function epochOf(term: string): number {
  return Number(term.split(':')[1] ?? 0);
}
