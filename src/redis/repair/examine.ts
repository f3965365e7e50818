/**
 * The invariants of the design over one live partition. A small one is read in one script, at one moment; a large one
 * page by page. Whatever is found must be seen again two seconds later: what was only on its way is gone by then.
 *
 * That tokens and counts only grow (I7) takes two states to compare, below. Not judged: in a busy partition whether
 * the counters add up (I11).
 */

import { decodeRun } from '../../job/codec.ts';
import type { QuotaUse } from '../../job/quota.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Redis } from '../connection/connect.ts';
import { wrongTypes, wrongTypeText } from '../connection/wrong-type.ts';
import { controlKeys, controlTable, limitKeys, type PartitionRef, type StoredKey, storedKeys } from '../keys.ts';
import { type PartitionStats, stats } from '../read/inspect.ts';
import { otherShare } from '../scripts/gates.ts';
import { allQueues, sharedLimitsIn } from '../scripts/queues.ts';
import { weighAll } from '../scripts/quotas.ts';
import { closureFlaws } from './closures.ts';
import {
  type CheckedEntries,
  checkAllGates,
  checkEntries,
  checkMembers,
  checkTags,
  type Damage,
  damageKey,
} from './damage.ts';
import { damageFlaw, type Flaw, flawOf } from './flaws.ts';
import { ledgerFlaws } from './ledgers.ts';
import { isRepairable, notReady } from './repair.ts';
import { exhaustedStreams, hollowStreams } from './streams.ts';

export interface Examination {
  /** How many members, records, runs and entries were looked at. */
  readonly looked: number;
  /** All of it at one moment. */
  readonly atomic: boolean;
  readonly flaws: readonly Flaw[];
  /** There is more than is told. */
  readonly more: boolean;
}

export interface ExamineOptions {
  readonly clock: Clock;
  readonly atomicMax?: number;
  readonly apartMs?: number;
  /** All partitions of its queue, with which its closed tags are compared. Default: they are compared with none. */
  readonly all?: readonly PartitionRef[];
}

interface Sighting {
  readonly looked: number;
  readonly atomic: boolean;
  readonly found: ReadonlyMap<string, Flaw>;
}

/** Nothing is promoted meanwhile. `npm run bench -- stages` tells how long that is (`check-members-all`), and why no more are read at once. */
const ATOMIC_MAX = 600;
const APART_MS = 2000;
const PAGE = 300;
/** As many flaws are kept; a partition that has more is looked at again after a repair. */
const FLAWS_MAX = 10_000;
/** How late the first job may be while somebody leads. */
const OVERDUE_MS = 5000;
/** How far the noted bytes of a queue with a limit may be from those that are counted: the larger of both. */
const WEIGHT_OFF_BYTES = 65_536;
const WEIGHT_OFF_PART = 0.2;

/** Looks once, and again when something was found. */
export async function examine(redis: Redis, ref: PartitionRef, options: ExamineOptions): Promise<Examination> {
  const { clock, atomicMax = ATOMIC_MAX, apartMs = APART_MS, all = [] } = options;
  const wrong = (await wrongTypes(redis, ref.keys)).map((one) => flawOf('type', one.key, wrongTypeText(one)));
  // With one of those nothing else can be looked at.
  if (wrong.length > 0) return { looked: 0, atomic: true, flaws: wrong, more: false };
  const first = await sight(redis, ref, { atomicMax, all });
  if (first.found.size === 0) return { looked: first.looked, atomic: first.atomic, flaws: [], more: false };
  await clock.sleep(apartMs);
  const second = await sight(redis, ref, { atomicMax, all });
  const flaws = [...second.found].filter(([key]) => first.found.has(key)).map(([, flaw]) => flaw);
  const more = first.found.size >= FLAWS_MAX || second.found.size >= FLAWS_MAX;
  return { looked: second.looked, atomic: second.atomic, flaws, more };
}

/** Keys of the namespace and of shared limits that are of a wrong type or expire; places that were lent twice; queues whose entry nobody can read; heartbeats that would never end, or not soon. */
export async function examineControl(redis: Redis, namespace: string): Promise<readonly Flaw[]> {
  const control = controlKeys(namespace);
  const wrong = await wrongTypes(redis, control);
  if (wrong.length > 0) return wrong.map((one) => flawOf('type', one.key, wrongTypeText(one)));
  const { alive, beat } = control;
  const beats = (await redis.smembers(alive))
    .slice(0, FLAWS_MAX)
    .map((id) => ({ ...controlTable.beat, key: beat(id) }));
  const { unreadable } = await allQueues(redis, namespace);
  const { all } = await sharedLimitsIn(redis, namespace);
  const ledgers = all.flatMap(({ name }) => storedKeys(limitKeys(namespace, name)));
  return [
    ...unreadable.map(({ queue, text }) => flawOf('unreadable', queue, text)),
    ...(await ttlFlaws(redis, [...storedKeys(control), ...ledgers, ...beats])),
    ...(await ledgerFlaws(redis, namespace)),
  ];
}

/** Keys that expire and must not; keys that must, and live for ever or too long. */
async function ttlFlaws(redis: Redis, keys: readonly StoredKey[]): Promise<readonly Flaw[]> {
  const ttls = await Promise.all(keys.map(({ key }) => redis.pttl(key)));
  return keys.flatMap(({ key, ttl }, at) => {
    const leftMs = ttls[at] ?? GONE;
    // How long a lease may live its own value says, which was read with the state of its partition.
    if (leftMs === GONE || ttl === 'as its value says') return [];
    if (ttl === undefined) return leftMs === ENDLESS ? [] : [flawOf('expiring', key)];
    return leftMs === ENDLESS || leftMs > ttl ? [flawOf('immortal', key)] : [];
  });
}

/** What PTTL says of a key that is not there, and of one that has no TTL. */
const GONE = -2;
const ENDLESS = -1;

/** What fell between two states. */
export function growthFlaws(before: Growth | undefined, now: Growth | undefined): readonly Flaw[] {
  if (!before || !now) return [];
  return shrunk(before, now).map(({ name, what }) => flawOf('shrunk', name, what));
}

async function sight(
  redis: Redis,
  ref: PartitionRef,
  { atomicMax, all: partitions }: Required<Pick<ExamineOptions, 'atomicMax' | 'all'>>,
): Promise<Sighting> {
  const before = await stats(redis, ref);
  const all = await checkMembers(redis, ref, { part: 'all', limit: atomicMax });
  const members = all.kind === 'large' ? await paged(redis, ref) : all;
  const entries = await checked(redis, ref);
  const placed = await notReady(redis, ref.keys, members.found.filter(isRepairable));
  const tags = await tagged(redis, ref);
  const gates = await checkAllGates(redis, ref, { limit: PAGE, most: FLAWS_MAX });
  const damages = [
    ...members.found.filter((one) => !isRepairable(one)),
    ...placed.absent,
    ...entries.found,
    ...tags.found,
    ...gates.found,
  ];
  const weight = await misweighed(redis, ref, before.quota);
  const after = await stats(redis, ref);
  const settled = isSame(before, after) ? members.records : undefined;
  const found = new Map<string, Flaw>();
  for (const damage of damages.slice(0, FLAWS_MAX)) found.set(damageKey(damage), damageFlaw(damage));
  // By its name alone: on a queue in use no two looks find the same bytes.
  if (weight) found.set(weight.what, weight);
  const share = await otherShare(redis, ref);
  if (share !== undefined) found.set('misshared', flawOf('misshared', '', share));
  const closures = await closureFlaws(redis, { ref, all: partitions, nowMs: after.nowMs });
  for (const flaw of [...(await stateFlaws(redis, ref, { now: after, records: settled })), ...closures]) {
    found.set(`${flaw.what} ${flaw.name} ${flaw.means}`, flaw);
  }
  return { looked: members.looked + entries.looked + tags.looked + gates.looked, atomic: all.kind !== 'large', found };
}

/**
 * Whether the bytes that the quota counts differ from the bytes of the records. Jobs that come and go during the check, and
 * the rounding of a mean size, explain a small difference; a larger one is a flaw.
 */
async function misweighed(redis: Redis, ref: PartitionRef, quota: QuotaUse | undefined): Promise<Flaw | undefined> {
  if (!quota || quota.bytesMax === 0) return undefined;
  const counted = await weighAll(redis, ref, 'look');
  if (!counted) return undefined;
  const off = Math.abs(counted.bytes - quota.bytes);
  if (off <= Math.max(WEIGHT_OFF_BYTES, counted.bytes * WEIGHT_OFF_PART)) return undefined;
  return flawOf('misweighed', '', `${quota.bytes} bytes noted, ${counted.bytes} counted`);
}

/** A partition that is too large for one moment. */
async function paged(
  redis: Redis,
  ref: PartitionRef,
): Promise<{ looked: number; records: number | undefined; found: readonly Damage[] }> {
  const found: Damage[] = [];
  let looked = 0;
  let records = 0;
  for (const part of ['jobs', 'runs', 'scheduled'] as const) {
    for (let cursor: string | undefined = '0'; cursor !== undefined; ) {
      const page = await checkMembers(redis, ref, { part, cursor, limit: PAGE });
      if (page.kind === 'large') break;
      // What waits in a long ready looks like an orphan: it is sorted out page by page, so that little is kept.
      const { absent } = await notReady(redis, ref.keys, page.found.filter(isRepairable));
      found.push(...page.found.filter((one) => !isRepairable(one)), ...absent);
      looked += page.looked;
      records += page.records;
      cursor = found.length < FLAWS_MAX ? page.next : undefined;
    }
  }
  return { looked, records: found.length < FLAWS_MAX ? records : undefined, found };
}

async function checked(redis: Redis, ref: PartitionRef): Promise<{ looked: number; found: readonly Damage[] }> {
  const found: Damage[] = [];
  let looked = 0;
  for (const part of ['ready', 'pending'] as const) {
    for (let after: string | undefined = ''; after !== undefined; ) {
      const page = await checkEntries(redis, ref, { part, after, limit: PAGE });
      found.push(...page.found);
      looked += page.looked;
      after = found.length < FLAWS_MAX ? page.next : undefined;
    }
  }
  return { looked, found };
}

async function tagged(redis: Redis, ref: PartitionRef): Promise<{ looked: number; found: readonly Damage[] }> {
  const found: Damage[] = [];
  let looked = 0;
  for (let after: string | undefined, more = true; more; more = after !== undefined && found.length < FLAWS_MAX) {
    const page: CheckedEntries = await checkTags(redis, ref, { after, limit: PAGE });
    found.push(...page.found);
    looked += page.looked;
    after = page.next;
  }
  return { looked, found };
}

/** What stands in a key and not in the one that it belongs to. */
async function indexFlaws(redis: Redis, keys: PartitionRef['keys']): Promise<readonly Flaw[]> {
  const kept = await redis.hlen(keys.past);
  const ends = kept === 0 ? 0 : await redis.zcard(keys.ended);
  const [notes, entries] = await Promise.all([redis.zcard(keys.stale), redis.xlen(keys.ready)]);
  return [
    ...(kept > ends ? [flawOf('unswept', keys.past, `${kept} records, ${ends} ends`)] : []),
    ...(notes > entries ? [flawOf('overnoted', keys.stale, `${notes} notes, ${entries} entries`)] : []),
  ];
}

async function stateFlaws(
  redis: Redis,
  { keys }: PartitionRef,
  { now, records }: { readonly now: PartitionStats; readonly records: number | undefined },
): Promise<readonly Flaw[]> {
  const stored = storedKeys(keys);
  const flaws = [...(await ttlFlaws(redis, stored))];
  const leaseMs = Number(now.term?.split(':')[2] ?? Number.POSITIVE_INFINITY);
  if (now.term !== undefined && (now.leaseTtlMs === ENDLESS || now.leaseTtlMs > leaseMs)) flaws.push(flawOf('lease'));
  const { headDueMs = Number.POSITIVE_INFINITY } = now;
  const held = now.paused || now.wakeMs === 0 || now.term === undefined;
  if (!held && headDueMs < now.nowMs - OVERDUE_MS) flaws.push(flawOf('overdue', '', `due at ${headDueMs}`));
  flaws.push(...(await hollowStreams(redis, keys)).map((key) => flawOf('hollow', key)));
  flaws.push(...(await exhaustedStreams(redis, keys)).map((key) => flawOf('exhausted', key)));
  flaws.push(...(await indexFlaws(redis, keys)));
  if (records === undefined) return flaws;
  const sum = (...names: readonly string[]) => names.reduce((total, name) => total + (now.counters[name] ?? 0), 0);
  const into = sum('scheduled', 'replayed', 'adopted');
  const out = sum('done', 'dead', 'cancelled', 'expired');
  if (into !== records + out)
    flaws.push(flawOf('balance', '', `${into} came in, ${records} are live, ${out} went out`));
  return flaws;
}

/** Nothing was counted between the two, so what was read in between belongs to both. */
function isSame(one: PartitionStats, other: PartitionStats): boolean {
  return JSON.stringify(one.counters) === JSON.stringify(other.counters);
}

// What only ever grows (I7): the last token and epoch of a partition, and within one generation of a job its token, its
// failures and its crashes. Whether they did takes two states that somebody read some time apart.
//
// A job that is over may live again under its id and begins at nothing, so two runs are compared only when they tell of
// the same life: the same generation, asked due time and digest.

export interface Growth {
  readonly token: number;
  readonly epoch: number;
  /** Member → its run as it is stored. */
  readonly runs: ReadonlyMap<string, string>;
}

export interface Shrunk {
  /** The member; empty for the partition. */
  readonly name: string;
  readonly what: string;
}

/** As many runs are remembered per partition; more are not compared. */
const RUNS_MAX = 10_000;
/** A run with its errors may have 4 KB. */
const RUNS_PAGE = 100;

export async function growth(redis: Redis, { keys }: PartitionRef): Promise<Growth> {
  const runs = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, flat] = await redis.hscan(keys.runs, cursor, 'COUNT', RUNS_PAGE);
    for (let at = 0; at + 1 < flat.length; at += 2) runs.set(flat[at] ?? '', flat[at + 1] ?? '');
    cursor = next;
  } while (cursor !== '0' && runs.size < RUNS_MAX);
  const [token, epoch] = await redis.hmget(keys.meta, 'token', 'epoch');
  return { token: Number(token ?? 0), epoch: Number(epoch ?? 0), runs };
}

/** What fell from one state to a later one. */
export function shrunk(before: Growth, now: Growth): readonly Shrunk[] {
  const fell = (['token', 'epoch'] as const)
    .filter((name) => now[name] < before[name])
    .map((name) => ({ name: '', what: `the last ${name} fell from ${before[name]} to ${now[name]}` }));
  const runs = [...now.runs].flatMap(([name, value]) => {
    const what = fallen(before.runs.get(name), value);
    return what === undefined ? [] : [{ name, what }];
  });
  return [...fell, ...runs];
}

function fallen(earlier: string | undefined, value: string): string | undefined {
  if (earlier === undefined || lifeOf(earlier) !== lifeOf(value)) return undefined;
  const [was, is] = [decodeRun(earlier), decodeRun(value)];
  if (!was || !is || was.generation !== is.generation) return undefined;
  if (Number(is.token) < Number(was.token)) return `its token fell from ${was.token} to ${is.token}`;
  // Every start counts an attempt. A newer token without one: the same call came again after its window, a second life.
  if (is.attempts <= was.attempts && Number(is.token) > Number(was.token)) return undefined;
  const name = (['attempts', 'failures', 'crashes'] as const).find((count) => is[count] < was[count]);
  return name && `its ${name} fell from ${was[name]} to ${is[name]}`;
}

/** Asked due and digest of the record a run began with. */
function lifeOf(value: string): string {
  const [head = ''] = value.split('\n', 1);
  return head.split(' ').slice(9, 11).join(' ');
}
