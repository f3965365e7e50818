/**
 * I24: places of a concurrency that several queues share are lent once. A partition has no more than its row in the ledger says, and the
 * rows add up to the limit. Where the limit has fallen they add up to more until jobs end; then the ledger asks places back.
 */
import { kindOf, lentIn, mostOf, type SharedLimit } from '../../job/shared-limit.ts';
import type { Redis } from '../connection/connect.ts';
import { wrongTypes, wrongTypeText } from '../connection/wrong-type.ts';
import { limitKeys, type PartitionRef } from '../keys.ts';
import { type LedgerRow, ledgerRows, rowOf } from '../scripts/lending.ts';
import { allQueues, partitionsOf, sharedLimitsIn } from '../scripts/queues.ts';
import { type Flaw, flawOf } from './flaws.ts';

/** A leader asks for its partition each second at least while it has places. */
const SILENT_MS = 10_000;
/** Each leader has heard of another limit by then, and was asked for what is too much. */
const KNOWN_MS = 60_000;

export async function ledgerFlaws(redis: Redis, namespace: string): Promise<readonly Flaw[]> {
  const { all } = await sharedLimitsIn(redis, namespace);
  const { queues } = await allQueues(redis, namespace);
  const refs = queues.flatMap((layout) => (layout.limits ? partitionsOf(namespace, layout) : []));
  const flaws = await Promise.all(all.map((limit) => flawsOf(redis, { namespace, limit, refs })));
  return flaws.flat();
}

interface Asked {
  readonly namespace: string;
  readonly limit: SharedLimit & { readonly atMs: number };
  readonly refs: readonly PartitionRef[];
}

async function flawsOf(redis: Redis, asked: Asked): Promise<readonly Flaw[]> {
  const { namespace, limit, refs } = asked;
  const keys = limitKeys(namespace, limit.name);
  const wrong = await wrongTypes(redis, keys);
  if (wrong.length > 0) return wrong.map((one) => flawOf('type', one.key, wrongTypeText(one)));
  if (kindOf(limit) === 'rate') return [];
  const suspects = await overlentIn(redis, asked, refs);
  // A share that fell between two reads is no flaw: the partition gives up first.
  const still = await overlentIn(
    redis,
    asked,
    suspects.map(({ ref }) => ref),
  );
  return [
    ...still.map(({ ref, has, row }) =>
      flawOf('overlent', `${limit.name} ${rowOf(ref)}`, `${has} places there, ${row} in the ledger`),
    ),
    ...overdrawn(limit, await ledgerRows(redis, keys)),
  ];
}

interface Overlent {
  readonly ref: PartitionRef;
  readonly has: number;
  readonly row: number;
}

/** The partition is read first: what it gave up since, the ledger may have back. */
async function overlentIn(
  redis: Redis,
  { namespace, limit: { name } }: Asked,
  refs: readonly PartitionRef[],
): Promise<readonly Overlent[]> {
  if (refs.length === 0) return [];
  const shares = await Promise.all(
    refs.map(async (ref) => {
      const text = (await redis.hget(ref.keys.meta, 'lent')) ?? '';
      const [lent] = lentIn(text, { names: [name], nowMs: 0 });
      return { ref, has: lent?.share ?? 0 };
    }),
  );
  const rows = await ledgerRows(redis, limitKeys(namespace, name));
  const lentTo = new Map(rows.map(({ row, share }) => [row, share]));
  return shares.flatMap(({ ref, has }) => {
    const row = lentTo.get(rowOf(ref)) ?? 0;
    return has > row ? [{ ref, has, row }] : [];
  });
}

/** More is lent than there is, all leaders have asked since the limit was set, and nobody was asked to give places back. */
function overdrawn(limit: Asked['limit'], rows: readonly LedgerRow[]): readonly Flaw[] {
  const most = mostOf(limit);
  const having = rows.filter(({ share }) => share > 0);
  const lent = having.reduce((sum, { share }) => sum + share, 0);
  const kept = having.reduce((sum, { share, target }) => sum + Math.min(share, target), 0);
  const beats = having.map(({ beatMs }) => beatMs);
  const first = Math.min(...beats);
  const isKnown = Math.max(...beats) - first < SILENT_MS && first - limit.atMs > KNOWN_MS;
  return kept > most && isKnown ? [flawOf('overdrawn', limit.name, `${lent} lent of ${most}`)] : [];
}
