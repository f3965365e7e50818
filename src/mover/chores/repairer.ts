/**
 * Repairs damage that another client did to a led partition: a stream that was deleted or trimmed, a consumer that was
 * removed while it held jobs, a group that is gone. The records are the truth; the repairer makes the indexes again that
 * point to them.
 *
 *  slice of jobs ──▶ in no index? ──▶ remembered ──▶ still so, at least 2 s later ──▶ repair
 *  front of ready ─▶ held by nobody? ─┘
 *
 * Two short calls per pass. A job that a worker ran gets time, so that its worker notices that its entry is gone and
 * stops. A surplus of stored members over indexed ones proves a loss, and then the whole hash is walked without a rest.
 *
 * When a walk was through and found nothing, and stored members and indexed ones are as many ever since, a loss shows in
 * the counts. Then a pass looks at a small slice. Where nothing was promoted since the last pass, the next one comes later:
 * a partition that waits should cost next to nothing, and no job of it is due meanwhile.
 */

import { type Idle, idle } from '../../kernel/loop.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Counted, checkEntries, checkMembers, type Damage, damageKey } from '../../redis/repair/damage.ts';
import { isRepairable, notReady, repair } from '../../redis/repair/repair.ts';
import { ENTRIES_MAX } from '../../redis/scripts/bytes.ts';
import { type Chore, type Duty, partitionLoop, turnsOf } from '../partition-loop.ts';

export interface RepairerOptions {
  /** Rest while all is well: two round trips each. Less after a slice that large records cut short. */
  readonly restMs: number;
  /** The same where nothing is promoted. */
  readonly walkMs: number;
  /** The same once a walk found nothing, and the counts agree. */
  readonly walkedMs: number;
  /** How far apart the two sightings are, at least. */
  readonly apartMs: number;
  /** The same for jobs that somebody ran: within this time their worker extends, and learns that its entry is gone. */
  readonly ownedApartMs: number;
}

export interface RepairerParts extends Duty {
  readonly options?: Partial<RepairerOptions>;
  /** How many jobs this process has promoted in the partition. Default: none. */
  readonly promoted?: () => number;
}

const BUSY = { restMs: 12_000, apartMs: 2000, ownedApartMs: 10_000 };
const SLICE = 1000;
/** While the counts agree. */
const QUIET_SLICE = 20;
/** After a slice of 512 KiB that had few records: it costs Redis 2 ms a second. */
const LARGE_REST_MS = 500;
const BUSY_REST_MS = 50;
/** Most suspects that are remembered at once. A later walk finds the rest. */
const SUSPECTS_MAX = 10_000;
/** As many are repaired per pass, so that no pass lasts. */
const REPAIR_MAX = 500;

interface Suspect {
  readonly damage: Damage;
  readonly sinceMs: number;
}

export function createRepairer(parts: RepairerParts): Chore {
  const { redis, ref, leading, clock, events, promoted = () => 0, rhythm = RHYTHMS.default } = parts;
  const usual = { ...BUSY, walkMs: rhythm.walkMs, walkedMs: rhythm.walkedMs };
  const { restMs, walkMs, walkedMs, apartMs, ownedApartMs }: RepairerOptions = { ...usual, ...parts.options };
  const suspects = new Map<string, Suspect>();
  let cursor: string | undefined;
  const front = createFront(parts);
  /** Since the last walk, which was through and found nothing, the counts have agreed. */
  let isQuiet = false;
  /** The same of the walk under way. */
  let isClean = false;
  const rests = restingOf(promoted);

  /** One slice. Returns milliseconds until the next. */
  async function pass(): Promise<number | Idle> {
    if (!leading()) {
      suspects.clear();
      cursor = undefined;
      front.restart();
      isQuiet = false;
      return idle(restMs);
    }
    const limit = isQuiet ? QUIET_SLICE : SLICE;
    const slice = await checkMembers(redis, ref, { part: 'jobs', cursor: cursor ?? '0', limit });
    const isResting = rests();
    const stuck = await front.look(isResting ? walkedMs * turnsOf(parts) : 0);
    if (slice.kind === 'large') return restMs;
    const { absent } = await notReady(redis, ref.keys, [...slice.found, ...stuck].filter(isRepairable));
    remember(suspects, absent, clock.monotonicMs());
    settle(slice);
    cursor = slice.next;
    if (await hasMore(slice)) return Math.min(BUSY_REST_MS, restMs);
    if (suspects.size > 0) return Math.min(apartMs, restMs);
    return restAfter(slice, { limit, ms: isResting ? calmMs() : restMs });
  }

  const hasMore = async ({ surplus }: Counted) => (await repairRipe()) || (surplus > 0 && cursor !== undefined);
  const calmMs = () => (isQuiet ? walkedMs : walkMs) * turnsOf(parts);

  function settle({ surplus, next }: Counted): void {
    const agrees = surplus === 0 && suspects.size === 0;
    isClean = agrees && (isClean || cursor === undefined);
    isQuiet = agrees && (isQuiet || (isClean && next === undefined));
  }

  /** The script looks again before it writes: that is the second sighting. Says whether more are ripe. */
  async function repairRipe(): Promise<boolean> {
    const isRipe = ({ damage, sinceMs }: Suspect) => clock.monotonicMs() - sinceMs >= patience(damage);
    const ripe = [...suspects.values()].filter(isRipe);
    const damages = ripe.slice(0, REPAIR_MAX).map(({ damage }) => damage);
    if (damages.length === 0) return false;
    const replies = await repair(redis, ref, damages);
    const counts = new Map<string, number>();
    for (const [damage, reply] of replies) {
      if (reply !== 'unsure') suspects.delete(damageKey(damage));
      if (reply === 'repaired') counts.set(damage.kind, (counts.get(damage.kind) ?? 0) + 1);
    }
    for (const [what, count] of counts) events.emit('partition.repaired', { ...placeOf(ref), what, count });
    return ripe.length > REPAIR_MAX;
  }

  const patience = ({ kind, detail }: Damage) => (kind === 'orphan' && detail !== '-' ? ownedApartMs : apartMs);
  const { start, stop } = partitionLoop('repairer', parts, pass);
  return { start, stop, pass };
}

/** Says whether nothing was promoted since it was asked last. */
function restingOf(promoted: () => number): () => boolean {
  let before = promoted();
  return () => {
    const isResting = promoted() === before;
    before = promoted();
    return isResting;
  };
}

/** The entries of ready that were delivered, a page at a time. */
function createFront({ redis, ref, clock }: RepairerParts) {
  /** The entry that was looked at last, until all that was delivered has been. */
  let after: string | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;
  return {
    restart() {
      after = undefined;
    },
    /** Where nothing is promoted, what is delivered stays what it was: then a look is not repeated for so long. */
    async look(restMs: number): Promise<readonly Damage[]> {
      const nowMs = clock.monotonicMs();
      if (after === undefined && nowMs - lookedMs < restMs) return [];
      lookedMs = nowMs;
      const page = await checkEntries(redis, ref, { part: 'front', after, limit: ENTRIES_MAX });
      after = page.next;
      return page.found;
    },
  };
}

/** Large records end a slice early: then the next follows sooner, or one walk would last for days. */
const restAfter = ({ looked, next }: Counted, { limit, ms }: { readonly limit: number; readonly ms: number }) =>
  next === undefined ? ms : Math.min(ms, Math.max(LARGE_REST_MS, (ms * looked) / limit));

function remember(suspects: Map<string, Suspect>, found: readonly Damage[], sinceMs: number): void {
  for (const damage of found) {
    const key = damageKey(damage);
    if (suspects.size < SUSPECTS_MAX && !suspects.has(key)) suspects.set(key, { damage, sinceMs });
  }
}

const placeOf = ({ queue, partition }: PartitionRef) => ({ queue, partition });
