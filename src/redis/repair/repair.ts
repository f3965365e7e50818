/**
 * Damage → repair, where the script can prove at that moment that it is safe. An orphan must not be in ready: the
 * stream is read page by page up to an entry, and the script itself looks at what was added after that one.
 */

import type { Redis } from '../connection/connect.ts';
import type { PartitionKeys, PartitionRef } from '../keys.ts';
import { READ_BYTES_MAX } from '../scripts/bytes.ts';
import { weighAll } from '../scripts/quotas.ts';
import { scripts } from '../scripts/script-table.ts';
import { bytesOf, list, type Reply, run, text } from '../scripts/scripts.ts';
import { type Closures, mendClosures } from './closures.ts';
import { type Damage, damageKey } from './damage.ts';
import { type Flaw, type Mender, menderOf } from './flaws.ts';
import { mendExhausted, mendHollow } from './streams.ts';

/** `sound`: there was nothing to repair, or no longer. `unsure`: it cannot be proved now; look again later. */
export type RepairReply = 'repaired' | 'sound' | 'unsure';

const BATCH = 50;
const PAGE = 1000;
const BY_SCRIPT: readonly unknown[] = ['parts', 'tags', 'gates'] satisfies readonly Mender[];

export const isRepairable = ({ kind }: Damage): boolean => BY_SCRIPT.includes(menderOf(kind));

/** Repairs what can be repaired, a bounded batch at a time, and says of each what became of it. */
export async function repair(
  redis: Redis,
  ref: PartitionRef,
  damages: readonly Damage[],
  { nowMs, bytesMax = READ_BYTES_MAX }: { readonly nowMs?: number; readonly bytesMax?: number } = {},
): Promise<ReadonlyMap<Damage, RepairReply>> {
  const replies = new Map<Damage, RepairReply>();
  const { absent, seen } = await notReady(redis, ref.keys, damages.filter(isRepairable));
  const args = { now: nowMs ?? '', seen, bytes: bytesMax };
  const of = (by: Mender) => absent.filter(({ kind }) => menderOf(kind) === by);
  await inBatches(of('parts'), replies, (each) => run(redis, scripts.repair, { keys: ref.keys, args, each }));
  await inBatches(of('tags'), replies, (each) =>
    run(redis, scripts.mendTags, { keys: ref.keys, args: { bytes: bytesMax }, each }),
  );
  await inBatches(of('gates'), replies, (each) =>
    run(redis, scripts.mendGates, { keys: ref.keys, args: { now: nowMs ?? '' }, each }),
  );
  for (const damage of damages) if (!replies.has(damage)) replies.set(damage, 'sound');
  return replies;
}

/** `each`: kind and name of every damage of a batch. */
async function inBatches(
  damages: readonly Damage[],
  replies: Map<Damage, RepairReply>,
  call: (each: readonly (string | Buffer)[]) => Promise<Reply>,
): Promise<void> {
  for (let from = 0; from < damages.length; ) {
    const batch = damages.slice(from, from + BATCH);
    const reply = list(await call(batch.flatMap(({ kind, name }) => [kind, Buffer.from(name, 'latin1')]))).map(text);
    // The first is always looked at, so this comes to an end.
    const answered = Math.max(1, reply.includes('later') ? reply.indexOf('later') : batch.length);
    for (const [at, damage] of batch.slice(0, answered).entries()) replies.set(damage, reply[at] as RepairReply);
    from += answered;
  }
}

/** Leaves out the orphans and tombstones that are in ready after all; `seen` is the entry up to which that is known. */
export async function notReady(
  redis: Redis,
  keys: PartitionKeys,
  damages: readonly Damage[],
): Promise<{ readonly absent: readonly Damage[]; readonly seen: string }> {
  const suspects = new Map(damages.filter(isPlaceless).map((damage) => [damage.name, damage]));
  let seen = '-';
  for (let more = suspects.size > 0; more; ) {
    const from = seen === '-' ? '-' : `(${seen}`;
    const page = list(bytesOf(await redis.callBuffer('XRANGE', keys.ready, from, '+', 'COUNT', PAGE)));
    for (const item of page) {
      const [entry, fields] = list(item);
      seen = text(entry);
      suspects.delete(text(list(fields)[1]));
    }
    more = page.length === PAGE;
  }
  const there = new Set([...suspects.values()].map(damageKey));
  return { absent: damages.filter((damage) => !isPlaceless(damage) || there.has(damageKey(damage))), seen };
}

const isPlaceless = ({ kind }: Damage): boolean => kind === 'orphan' || kind === 'tombstone';

/** What mends a whole partition at once, in this order. Each says whether it did. */
const WHOLE: readonly (readonly [by: Mender, mend: (redis: Redis, of: Closures) => Promise<unknown>])[] = [
  ['bytes', (redis, { ref }) => weighAll(redis, ref, 'note')],
  ['closures', (redis, of) => mendClosures(redis, of).then(() => true)],
  ['exhausted', (redis, { ref, nowMs }) => mendExhausted(redis, ref.keys, nowMs).then(() => true)],
  ['hollow', (redis, { ref }) => mendHollow(redis, ref.keys).then(() => true)],
];

/** Mends the flaws of a partition that the table says may be mended. @returns those that are */
export async function mend(redis: Redis, flaws: readonly Flaw[], of: Closures): Promise<readonly Flaw[]> {
  const replies = await repair(
    redis,
    of.ref,
    flaws.flatMap(({ damage }) => damage ?? []),
  );
  const mended: Mender[] = [];
  for (const [by, act] of WHOLE) {
    if (flaws.some(({ what }) => menderOf(what) === by) && (await act(redis, of))) mended.push(by);
  }
  return flaws.filter(({ damage, what }) => {
    if (damage !== undefined) return replies.get(damage) === 'repaired';
    const by = menderOf(what);
    return by !== undefined && mended.includes(by);
  });
}
