/** What this worker takes of the entries of one dead worker: its share first, and what is left after some rounds. */
import type { Emitter } from '../../job/events.ts';
import type { EntryId } from '../../job/job.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { RECLAIM_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { type ConsumerInfo, ownPending, reclaim } from '../../redis/scripts/ready.ts';
import type { Consumer } from '../fetch/consumer.ts';
import { sharesOf } from '../fetch/shares.ts';
import type { InFlight } from '../run/in-flight.ts';

export interface TakingOver {
  readonly commands: Redis;
  readonly consumer: string;
  readonly inFlight: InFlight;
  readonly take: Consumer['take'];
  readonly jobLeaseMs: number;
  readonly events: Emitter;
  /** Sighting (`partition consumer`) → rounds in which it had entries to take. */
  readonly rounds: Map<string, number>;
}

export interface Nominated {
  readonly dead: ConsumerInfo;
  readonly living: readonly string[];
  readonly sighting: string;
}

/** Most entries looked at and taken from one dead consumer per round. */
const SCAN_MAX = 1000;
const BATCH_MAX = 200;

export async function takeShare(reclaiming: TakingOver, ref: PartitionRef, found: Nominated): Promise<void> {
  const { commands, rounds, inFlight, consumer } = reclaiming;
  const { dead, living, sighting } = found;
  const of = { consumer: dead.name, idleMs: reclaiming.jobLeaseMs };
  const entries = await ownPending(commands, ref.keys, { ...of, limit: SCAN_MAX });
  if (entries.length === 0) return;
  const round = rounds.get(sighting) ?? 0;
  rounds.set(sighting, round + 1);
  const most = Math.min(BATCH_MAX, inFlight.free());
  const wanted = await sharesOf(entries, { consumer, living, round, most });
  for (let from = 0; from < wanted.length; from += RECLAIM_JOBS_MAX) {
    await takeSome(reclaiming, ref, dead.name, wanted.slice(from, from + RECLAIM_JOBS_MAX));
  }
}

async function takeSome(
  reclaiming: TakingOver,
  ref: PartitionRef,
  owner: string,
  entries: readonly EntryId[],
): Promise<void> {
  const { consumer, commands, events } = reclaiming;
  const take = { owner, consumer, idleMs: reclaiming.jobLeaseMs, limit: entries.length, entries };
  const { deliveries } = await reclaim(commands, ref, take);
  if (deliveries.length === 0) return;
  const { queue, partition } = ref;
  events.emit('entries.reclaimed', { queue, partition, from: owner, count: deliveries.length });
  await reclaiming.take(ref, deliveries);
}
