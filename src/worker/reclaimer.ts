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
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { createLoop } from '../core/loop.ts';
import type { Redis } from '../redis/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { forget, withoutBeat } from '../redis/presence.ts';
import { type ConsumerInfo, consumers, ensureGroup, proveWritable, reclaim, retire } from '../redis/ready.ts';
import { weatherOf } from '../redis/weather.ts';
import type { Consumer } from './consumer.ts';
import type { Inflight } from './inflight.ts';

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

/** Most entries taken from one dead consumer per round, so that a herd of them does not land on one worker. */
const BATCH_MAX = 100;

export function createReclaimer(parts: ReclaimerParts): Reclaimer {
  const { commands, refs, consumer, inflight, concurrency, graceMs, clock, events, random } = parts;
  const missingSince = new Map<string, number>();
  const restMs = graceMs * 0.4;

  async function pass(): Promise<number> {
    for (const ref of refs) await watch(ref);
    return restMs * (0.75 + random() / 2);
  }

  async function watch(ref: PartitionRef): Promise<void> {
    const others = (await consumers(commands, ref.keys)).filter(({ name }) => name !== consumer);
    await proveWritable(commands, ref.keys);
    const missing = new Set(
      await withoutBeat(
        commands,
        parts.namespace,
        others.map(({ name }) => name),
      ),
    );
    for (const other of others) {
      const sighting = `${ref.partition} ${other.name}`;
      if (!missing.has(other.name)) missingSince.delete(sighting);
      else if (isNominated(sighting)) await takeOver(ref, other);
    }
    const known = new Set(others.map(({ name }) => `${ref.partition} ${name}`));
    for (const sighting of missingSince.keys()) {
      if (sighting.startsWith(`${ref.partition} `) && !known.has(sighting)) missingSince.delete(sighting);
    }
  }

  /** Missing for a grace, and our own heartbeat was confirmed after the first sighting. */
  function isNominated(sighting: string): boolean {
    const nowMs = clock.monotonicMs();
    const sinceMs = missingSince.get(sighting);
    if (sinceMs === undefined) missingSince.set(sighting, nowMs);
    return sinceMs !== undefined && nowMs - sinceMs >= graceMs && parts.beatenMs() > sinceMs;
  }

  async function takeOver(ref: PartitionRef, dead: ConsumerInfo): Promise<void> {
    const { queue, partition } = ref;
    if (dead.pending === 0) {
      if ((await retire(commands, ref, dead.name)) !== 'ok') return;
      await forget(commands, parts.namespace, dead.name);
      events.emit('consumer.retired', { queue, partition, consumer: dead.name });
      return;
    }
    const limit = Math.min(BATCH_MAX, concurrency - inflight.busy());
    if (limit <= 0) return;
    const take = { owner: dead.name, consumer, idleMs: parts.jobLeaseMs, limit };
    const { deliveries } = await reclaim(commands, ref, take);
    if (deliveries.length === 0) return;
    events.emit('entries.reclaimed', { queue, partition, from: dead.name, count: deliveries.length });
    await parts.take(ref, deliveries);
  }

  async function onError(error: unknown): Promise<void> {
    missingSince.clear();
    if (weatherOf(error) === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
  }

  const loop = createLoop({ who: `reclaimer of ${refs[0]?.queue ?? ''}`, pass, clock, events, onError, random });
  return { start: loop.start, stop: loop.stop, pass };
}
