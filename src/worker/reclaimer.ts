/**
 * Takes over what dead workers left. A missing heartbeat only *nominates*: the consumer must be missing in two
 * sightings, a grace apart on this process's monotonic clock, with writes of our own that succeeded in between, on the
 * control slot and on the partition. Any outage of ours starts the grace again, so a Redis that was away or full does
 * not make everybody look dead at once. What decides is XCLAIM's min-idle of a whole job lease: a living worker, even
 * one whose heartbeat was lost, extends what it runs well within that.
 *
 *  living ──no beat──▶ missing(since) ──grace, own writes ok, still no beat──▶ nominated ──idle ≥ lease──▶ reclaimed
 *     ▲                  │ beat, or our own writes failed                        │ owns nothing
 *     └──────────────────┘                                                      └──▶ retired
 *
 * The survivors share the entries (`shares.ts`): each begins with those that prefer it, and after three rounds anybody
 * takes anything that is left.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop } from '../core/loop.ts';
import type { Redis } from '../redis/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { forget, withoutBeat } from '../redis/presence.ts';
import {
  type ConsumerInfo,
  consumers,
  ensureGroup,
  join,
  ownPending,
  proveWritable,
  reclaim,
  retire,
} from '../redis/ready.ts';
import { pauseAfter, weatherOf } from '../redis/weather.ts';
import type { Consumer } from './consumer.ts';
import type { Inflight } from './inflight.ts';
import { sharesOf } from './shares.ts';

export interface ReclaimerParts {
  readonly commands: Redis;
  readonly namespace: string;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  readonly inflight: Inflight;
  readonly take: Consumer['take'];
  readonly concurrency: number;
  readonly graceMs: number;
  readonly jobLeaseMs: number;
  /** Monotonic ms of our own last confirmed heartbeat. */
  readonly beatenMs: () => number;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly random: () => number;
}

export interface Reclaimer {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  readonly pass: () => Promise<number>;
}

interface Nominated {
  readonly dead: ConsumerInfo;
  readonly living: readonly string[];
  readonly sighting: string;
}

/** Most entries looked at and taken from one dead consumer per round. */
const SCAN_MAX = 1000;
const BATCH_MAX = 200;

export function createReclaimer(parts: ReclaimerParts): Reclaimer {
  // @reclaim-parts
  const { commands, refs, consumer, inflight, concurrency, graceMs, clock, events, random } = parts;
  const missingSince = new Map<string, number>();
  /** Rounds in which a dead consumer had entries to take. */
  const rounds = new Map<string, number>();
  const restMs = graceMs * 0.4;

  async function pass(): Promise<number> {
    for (const ref of refs) await watch(ref);
    return restMs * (0.75 + random() / 2);
  }

  async function watch(ref: PartitionRef): Promise<void> {
    const others = await othersOf(ref);
    await proveWritable(commands, ref.keys);
    const missing = new Set(
      await withoutBeat(
        commands,
        parts.namespace,
        others.map(({ name }) => name),
      ),
    );
    const living = [consumer, ...others.map(({ name }) => name).filter((name) => !missing.has(name))];
    // @watch-others
    for (const other of others) {
      const sighting = `${ref.partition} ${other.name}`;
      if (!missing.has(other.name)) forgive(sighting);
      else if (isNominated(sighting)) await takeOver(ref, { dead: other, living, sighting });
    }
    const known = new Set(others.map(({ name }) => `${ref.partition} ${name}`));
    for (const sighting of missingSince.keys()) {
      if (sighting.startsWith(`${ref.partition} `) && !known.has(sighting)) forgive(sighting);
    }
  }

  async function othersOf(ref: PartitionRef): Promise<readonly ConsumerInfo[]> {
    const members = await consumers(commands, ref.keys);
    const others = members.filter(({ name }) => name !== consumer);
    // Only for the sharing: at the memory limit it is refused, and the rest must go on.
    if (others.length === members.length) await join(commands, ref.keys, consumer).catch(() => undefined);
    return others;
  }

  function forgive(sighting: string): void {
    missingSince.delete(sighting);
    rounds.delete(sighting);
  }

  /** Missing for a grace, and our own heartbeat was confirmed after the first sighting. */
  function isNominated(sighting: string): boolean {
    // @proof-of-death
    const nowMs = clock.monotonicMs();
    const sinceMs = missingSince.get(sighting);
    if (sinceMs === undefined) missingSince.set(sighting, nowMs);
    return sinceMs !== undefined && nowMs - sinceMs >= graceMs && parts.beatenMs() > sinceMs;
  }

  async function takeOver(ref: PartitionRef, found: Nominated): Promise<void> {
    const { dead, living, sighting } = found;
    if (dead.pending === 0) {
      await bringToRest(ref, dead.name);
      return;
    }
    const of = { consumer: dead.name, idleMs: parts.jobLeaseMs };
    const entries = await ownPending(commands, ref.keys, { ...of, limit: SCAN_MAX });
    if (entries.length === 0) return;
    const round = rounds.get(sighting) ?? 0;
    rounds.set(sighting, round + 1);
    const limit = Math.min(BATCH_MAX, inflight.free(concurrency));
    const wanted = sharesOf(entries, { consumer, living, round }).slice(0, limit);
    if (wanted.length === 0) return;
    const take = { owner: dead.name, consumer, idleMs: parts.jobLeaseMs, limit, entries: wanted };
    const { deliveries } = await reclaim(commands, ref, take);
    if (deliveries.length === 0) return;
    const { queue, partition } = ref;
    events.emit('entries.reclaimed', { queue, partition, from: dead.name, count: deliveries.length });
    await parts.take(ref, deliveries);
  }

  async function bringToRest(ref: PartitionRef, dead: string): Promise<void> {
    if ((await retire(commands, ref, dead)) !== 'ok') return;
    // It is listed as long as any partition has something of it.
    const elsewhere = await Promise.all(refs.map(({ keys }) => consumers(commands, keys)));
    if (!elsewhere.flat().some(({ name }) => name === dead)) await forget(commands, parts.namespace, dead);
    events.emit('consumer.retired', { queue: ref.queue, partition: ref.partition, consumer: dead });
  }

  async function onError(error: unknown): Promise<void> {
    missingSince.clear();
    rounds.clear();
    if (weatherOf(error) === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
  }

  const loop = createLoop({
    who: `reclaimer of ${refs[0]?.queue ?? ''}`,
    pass,
    clock,
    events,
    pauseAfter,
    onError,
    random,
  });
  return { start: loop.start, stop: loop.stop, pass };
}
