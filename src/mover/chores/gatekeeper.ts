/**
 * Keeps the gates of a queue true in a led partition: its share of the limits stands beside its jobs, and what calls that were
 * cut off or foreign clients have left in line, lanes and holds is mended. A queue that is not gated costs nothing.
 *
 *  elected ──▶ share written where it differs ──▶ slice of holds ──▶ … each second; each minute a walk through the rest,
 *                                                                    and the share is compared once more
 *
 * In strict order, with two rates and with limits that others share, the share and its mark are compared each second, as an older process may write both away:
 * until they are there again nobody is let through. In strict order it looks beside the holds at who has a group, each second as well.
 *
 * Somebody who sets limits writes the registry and then the shares; what he was cut off from, or another program wrote, is
 * mended within that minute. The registry is read before a share is written and after it: what the leader has read may be old.
 *
 * A hold without an entry keeps its group from a start, so holds are looked at all the time. The rest costs no job its turn
 * for longer than a walk and a minute.
 */
import { type Idle, idle } from '../../kernel/loop.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { checkGates, GATE_PARTS, type GatePart, isWrittenOver, limit, mendGates } from '../../redis/scripts/gates.ts';
import { giveShare } from '../../redis/scripts/queues.ts';
import { type Chore, type Duty, partitionLoop } from '../partition-loop.ts';

export interface GatekeeperParts extends Duty {
  readonly namespace: string;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
}

/** How often a process that does not lead, or a queue that is not gated, is looked at again. */
const IDLE_MS = 5000;
/** Between two slices of 200 holds. */
const REST_MS = 1000;
/** Between two slices of a walk. A place of a long line costs more than a hold. */
const WALK_REST_MS = 50;
const WALK_SLICE = 100;
/** Between two walks through everything. */
const WALK_EVERY_MS = 60_000;

const WALK: readonly GatePart[] = [...GATE_PARTS, 'groups'];

interface Spot {
  readonly part: GatePart;
  readonly cursor: string;
}

const HOLDS: Spot = { part: 'holds', cursor: '' };
const ORDER: Spot = { part: 'order', cursor: '' };

export function createGatekeeper(parts: GatekeeperParts): Chore {
  const { redis, ref, namespace, current, leading, clock } = parts;
  /** The term and the limits for which the partition has its share. */
  let shared: string | undefined;
  let sharedMs = clock.monotonicMs();
  let spot = HOLDS;
  let walkedMs = clock.monotonicMs();

  /** Writes the share, or looks at one slice. Returns milliseconds until the next. */
  async function pass(): Promise<number | Idle> {
    const leadership = leading();
    const { gates: share } = current();
    if (!leadership || share === undefined) {
      shared = undefined;
      return idle(IDLE_MS);
    }
    const { term } = leadership;
    const isDue = shared !== `${term} ${share.share}` || clock.monotonicMs() - sharedMs >= WALK_EVERY_MS;
    if (isDue || (await isWrittenOver(redis, ref, share))) {
      const reply = await giveShare(redis, { namespace, ref: current() }, ({ gates }) =>
        limit(redis, ref, { term, share: gates ?? share }),
      );
      if (reply === 'fenced') return IDLE_MS;
      shared = `${term} ${share.share}`;
      sharedMs = clock.monotonicMs();
    }
    return look();
  }

  async function look(): Promise<number> {
    const { part, cursor } = spot;
    const slice = part === 'holds' ? undefined : WALK_SLICE;
    const found = await checkGates(redis, ref, { part, cursor, slice }).catch((error: unknown) => {
      // One damaged key keeps it from no other part.
      spot = nextPart(part);
      throw error;
    });
    // @mend-flaws
    if (found.flaws.length > 0) await mendGates(redis, ref, found.flaws);
    spot = found.cursor === undefined ? nextPart(part) : { part, cursor: found.cursor };
    return spot.part === 'holds' ? REST_MS : WALK_REST_MS;
  }

  /** Holds again and again, and in strict order who has a group; when it is time for that, everything else in between. */
  function nextPart(part: GatePart): Spot {
    if (part === 'holds' && current().gates?.isStrict) return ORDER;
    const nowMs = clock.monotonicMs();
    const isRound = part === 'holds' || part === 'order';
    const isWalking = !isRound || nowMs - walkedMs >= WALK_EVERY_MS;
    if (isRound && isWalking) walkedMs = nowMs;
    const next = isWalking ? WALK[WALK.indexOf(isRound ? 'holds' : part) + 1] : undefined;
    return next === undefined ? HOLDS : { part: next, cursor: '' };
  }

  const loop = partitionLoop('gatekeeper', parts, pass);
  return { start: loop.start, stop: loop.stop, pass };
}
