/**
 * Places of a concurrency that a partition has which does not name the limit any more. Its leader gives them back, unless another one
 * took over just then, or nobody leads it: then the ledger keeps them for nobody. Whoever checks takes back what nobody uses there.
 */
import { kindOf, type SharedLimit } from '../../job/shared-limit.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { limitKeys, partitionRef } from '../../redis/keys.ts';
import { namesIn } from '../../redis/scripts/gates.ts';
import { freeRow, type LedgerRow, ledgerRows, rowOf } from '../../redis/scripts/lending.ts';
import { listQueues, partitionsOf, sharedLimitsIn } from '../../redis/scripts/queues.ts';
import type { Namespaced } from '../queues/refs.ts';

/** What became of places that a partition has of a limit that it does not name. */
export interface LimitStray {
  readonly limit: string;
  readonly queue: string;
  readonly partition: number;
  /** How many places it had. */
  readonly share: number;
  /** How many are free again. */
  readonly freed: number;
  /**
   * `freed`: all of them. `in-use`: so many jobs of the partition run or are let through, and may be from before. `asking`: its leader
   * asked within a minute, and gives them back itself.
   */
  readonly status: 'freed' | 'in-use' | 'asking';
}

/** A leader that has heard of it gives back within seconds, and what it was lent has arrived by then. */
const SILENT_MS = 60_000;

export async function freeStrays(
  { redis, namespace, nowMs }: Namespaced & { readonly nowMs: number },
  only: string | undefined,
): Promise<readonly LimitStray[]> {
  const [{ all }, layouts] = await Promise.all([sharedLimitsIn(redis, namespace), listQueues(redis, namespace)]);
  if (only !== undefined && all.every(({ name }) => name !== only)) {
    throw new DuestreamError('not-found', `there is no limit ${only}; "duestream limits ls" names all of them`);
  }
  const limits = all.filter((limit) => kindOf(limit) === 'concurrency' && (only ?? limit.name) === limit.name);
  const found = await Promise.all(
    limits.map(async (limit) => {
      const naming = layouts.filter((layout) => layout.limits?.includes(limit.name));
      const known = new Set(naming.flatMap((layout) => partitionsOf(namespace, layout).map(rowOf)));
      const rows = await ledgerRows(redis, limitKeys(namespace, limit.name));
      const strays = rows.filter(({ row, share }) => share > 0 && !known.has(row));
      return Promise.all(strays.map((row) => freeStray(redis, { namespace, limit, row, nowMs })));
    }),
  );
  return found.flat();
}

interface Stray {
  readonly namespace: string;
  readonly limit: SharedLimit;
  readonly row: LedgerRow;
  readonly nowMs: number;
}

async function freeStray(redis: Redis, { namespace, limit, row, nowMs }: Stray): Promise<LimitStray> {
  const [queue = '', partition = ''] = row.row.split(':');
  const ref = partitionRef(namespace, { queue, partition: Number(partition), layoutGeneration: 0 });
  const [gates, entries] = await Promise.all([redis.hget(ref.keys.meta, 'gates'), redis.xlen(ref.keys.ready)]);
  const about = { limit: limit.name, queue, partition: Number(partition), share: row.share };
  if (namesIn(gates).includes(limit.name) || nowMs - row.beatMs < SILENT_MS) {
    return { ...about, freed: 0, status: 'asking' };
  }
  const left = Math.min(row.share, entries);
  const isFreed = await freeRow(redis, limitKeys(namespace, limit.name), { limit, row: row.row, left, seen: row });
  if (!isFreed && left < row.share) return { ...about, freed: 0, status: 'asking' };
  return { ...about, freed: row.share - left, status: left === 0 ? 'freed' : 'in-use' };
}
