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
 * the counts. Then a pass looks at a small slice, because a partition that waits should cost next to nothing.
 */

import { type Idle, idle } from '../../kernel/loop.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Counted, checkEntries, checkMembers, type Damage, damageKey } from '../../redis/repair/damage.ts';
import { isRepairable, notReady, repair } from '../../redis/repair/repair.ts';
import { ENTRIES_MAX } from '../../redis/scripts/bytes.ts';
import { type Chore, type Duty, partitionLoop } from '../partition-loop.ts';

export interface RepairerOptions {
  /** Rest while all is well: two round trips each. Less after a slice that large records cut short. */
  readonly restMs: number;
  /** How far apart the two sightings are, at least. */
  readonly apartMs: number;
  /** The same for jobs that somebody ran: within this time their worker extends, and learns that its entry is gone. */
  readonly ownedApartMs: number;
}

export interface RepairerParts extends Duty {
  readonly options?: Partial<RepairerOptions>;
}

const DEFAULTS: RepairerOptions = { restMs: 12_000, apartMs: 2000, ownedApartMs: 10_000 };
const SLICE = 500;
/** While the counts agree. */
const QUIET_SLICE = 20;
/** Of a rest, after a slice of 512 KiB that had few records: it costs Redis 2 ms a second. */
const SHARE_LEAST = 1 / 24;
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
  const { redis, ref, leading, clock, events } = parts;
  const { restMs, apartMs, ownedApartMs } = { ...DEFAULTS, ...parts.options };
  const suspects = new Map<string, Suspect>();
  let cursor: string | undefined;
  /** The entry of ready that was looked at last, until all that was delivered has been. */
  let frontAfter: string | undefined;
  /** Since the last walk, which was through and found nothing, the counts have agreed. */
  let isQuiet = false;
  /** The same of the walk under way. */
  let isClean = false;

  /** One slice. Returns milliseconds until the next. */
  async function pass(): Promise<number | Idle> {
    if (!leading()) {
      suspects.clear();
      cursor = undefined;
      frontAfter = undefined;
      isQuiet = false;
      return idle(restMs);
    }
    const limit = isQuiet ? QUIET_SLICE : SLICE;
    const slice = await checkMembers(redis, ref, { part: 'jobs', cursor: cursor ?? '0', limit });
    const front = await checkEntries(redis, ref, { part: 'front', after: frontAfter, limit: ENTRIES_MAX });
    frontAfter = front.next;
    if (slice.kind === 'large') return restMs;
    const { absent } = await notReady(redis, ref.keys, [...slice.found, ...front.found].filter(isRepairable));
    remember(suspects, absent, clock.monotonicMs());
    settle(slice);
    cursor = slice.next;
    const more = await repairRipe();
    if (more || (slice.surplus > 0 && cursor !== undefined)) return Math.min(BUSY_REST_MS, restMs);
    return suspects.size > 0 ? Math.min(apartMs, restMs) : restMs * shareOf(slice, limit);
  }

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

function remember(suspects: Map<string, Suspect>, found: readonly Damage[], sinceMs: number): void {
  for (const damage of found) {
    const key = damageKey(damage);
    if (suspects.size < SUSPECTS_MAX && !suspects.has(key)) suspects.set(key, { damage, sinceMs });
  }
}

/** Large records end a slice early: then the next follows sooner, or one walk would last for days. */
const shareOf = ({ looked, next }: Pick<Counted, 'looked' | 'next'>, limit: number) =>
  next === undefined ? 1 : Math.min(1, Math.max(looked / limit, SHARE_LEAST));

const placeOf = ({ queue, partition }: PartitionRef) => ({ queue, partition });
