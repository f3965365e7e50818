/**
 * Looking for damage without touching: members that lack a part (`checkMembers`), entries nobody would deliver again
 * (`checkEntries`). Each call is one moment; what several calls saw is only believed when it is seen again later.
 */
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { checkGates, GATE_PARTS, type GateFlaw } from '../scripts/gates.ts';
import { scripts } from '../scripts/script-table.ts';
import { list, type Reply, run, text } from '../scripts/scripts.ts';

/** What can be wrong with one member or one entry; the header of each script says what it means. */
export type DamageKind =
  | 'orphan'
  | 'tombstone'
  | 'unrecorded'
  | 'idle'
  | 'ahead'
  | 'shared'
  | 'stuck'
  | 'early'
  | 'vanished'
  | 'untagged'
  | 'unordered'
  | 'astray'
  | 'unlisted'
  | 'group'
  | GateFlaw['kind'];

export interface Damage {
  readonly kind: DamageKind;
  /**
   * The member, byte by byte (`latin1`); the entry of `stuck`, `early` and `vanished`, that of the index of tags for
   * `astray`; the name of a set; an entry, a hold, a member or a lane of what is wrong with a gate; empty for the group.
   */
  readonly name: string;
  /** Owner, holder or member, as the kind has it. */
  readonly detail: string;
}

export interface Counted {
  readonly kind: 'counted';
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
  readonly looked: number;
  readonly records: number;
  /** Above 0: more members are stored than are in any index, so some must be lost. */
  readonly surplus: number;
  readonly found: readonly Damage[];
}

export interface CheckedEntries {
  readonly next: string | undefined;
  readonly looked: number;
  readonly found: readonly Damage[];
}

export async function checkMembers(
  redis: Redis,
  ref: PartitionRef,
  of: { readonly part: 'all' | 'jobs' | 'runs' | 'scheduled'; readonly cursor?: string; readonly limit: number },
): Promise<Counted | { readonly kind: 'large'; readonly size: number }> {
  const args = { part: of.part, cursor: of.cursor ?? '0', limit: of.limit };
  const [cursor, looked, records, surplus, ...found] = list(
    await run(redis, scripts.checkMembers, { keys: ref.keys, args, bytes: true }),
  );
  if (cursor === 'large') return { kind: 'large', size: Number(looked) };
  const next = cursor === '0' ? undefined : text(cursor);
  return { kind: 'counted', next, looked: Number(looked), ...counts(records, surplus), found: damages(found) };
}

export async function checkEntries(
  redis: Redis,
  ref: PartitionRef,
  of: { readonly part: 'ready' | 'front' | 'pending'; readonly after?: string | undefined; readonly limit: number },
): Promise<CheckedEntries> {
  const args = { part: of.part, after: of.after ?? '', limit: of.limit };
  const [next, looked, delivered, ...found] = list(
    await run(redis, scripts.checkEntries, { keys: ref.keys, args, bytes: true }),
  );
  const group: readonly Damage[] = delivered === '' ? [{ kind: 'group', name: '', detail: '' }] : [];
  return {
    next: next === '' ? undefined : text(next),
    looked: Number(looked),
    found: [...group, ...damages(found)],
  };
}

/** Entries of the index of tags whose job is over or has another header. `after`: as `next` said. */
export async function checkTags(
  redis: Redis,
  ref: PartitionRef,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
): Promise<CheckedEntries> {
  const each = after === undefined ? [] : [Buffer.from(after, 'latin1')];
  const reply = list(await run(redis, scripts.checkTags, { keys: ref.keys, args: { limit }, each, bytes: true }));
  const [more, looked, last, ...found] = reply;
  return {
    next: more === 1 ? text(last) : undefined,
    looked: Number(looked),
    found: found.map((name) => ({ kind: 'astray', name: text(name), detail: '' })),
  };
}

/** What line, lanes and holds do not say as scheduled and ready do. A place in which nobody waits is no damage: its turn ends it. */
export async function checkAllGates(
  redis: Redis,
  ref: PartitionRef,
  { limit, most }: { readonly limit: number; readonly most: number },
): Promise<{ readonly looked: number; readonly found: readonly Damage[] }> {
  const found: Damage[] = [];
  let looked = 0;
  for (const part of ref.gates?.isStrict ? [...GATE_PARTS, 'order' as const] : GATE_PARTS) {
    for (let cursor: string | undefined = ''; cursor !== undefined && found.length < most; ) {
      const page: Awaited<ReturnType<typeof checkGates>> = await checkGates(redis, ref, { part, cursor, slice: limit });
      const flaws = page.flaws.filter(({ kind }) => kind !== 'stale' && kind !== 'spent');
      found.push(...flaws.map(({ kind, name }) => ({ kind, name: Buffer.from(name).toString('latin1'), detail: '' })));
      looked += page.looked;
      cursor = page.cursor;
    }
  }
  return { looked, found };
}

/** The same damage, seen twice, has the same text. */
export const damageKey = ({ kind, name }: Damage): string => `${kind} ${name}`;

function counts(records: Reply | undefined, surplus: Reply | undefined) {
  return { records: Number(records), surplus: Number(surplus) };
}

function damages(flat: readonly Reply[]): readonly Damage[] {
  return Array.from({ length: Math.floor(flat.length / 3) }, (_, at) => ({
    kind: text(flat[3 * at]) as DamageKind,
    name: text(flat[3 * at + 1]),
    detail: text(flat[3 * at + 2]),
  }));
}
