/**
 * Finds entries that Redis gave this consumer and that it never saw: a lost reply to XREADGROUP or `serve` strands them
 * with a *living* consumer, so nobody else may take them. Compares what Redis says this consumer holds with the in-flight map;
 * what is not in the map is started like a fresh delivery.
 *
 * An entry may also be on its way to us in a reply. So only those are looked at that were delivered longer ago than a
 * read can be under way, or before the newest connection was made: the old one brings nothing any more. To be wrong
 * here would cost a call and no more: the map and `start` both let an entry through once.
 */

import type { Emitter } from '../../job/events.ts';
import type { EntryId } from '../../job/job.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import { GROUP, type PartitionRef } from '../../redis/keys.ts';
import { ownPending, readEntries } from '../../redis/scripts/ready.ts';
import type { InFlight } from '../run/in-flight.ts';
import type { Starter } from '../run/starter.ts';

export interface AdopterParts {
  readonly commands: Redis;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  readonly inFlight: InFlight;
  readonly starter: Pick<Starter, 'takeOver'>;
  /** How long an entry must be idle: as long as a read can be under way. */
  readonly idleMs: number;
  /** Between two looks while every call had its reply. */
  readonly calmMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Adopter {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** A connection that brings entries is new, and what the old one was given cannot arrive any more: look at once. */
  readonly connected: () => void;
  /** A call had no reply, or an entry was left behind: what may be ours is looked for until it must have come to light. */
  readonly lost: () => void;
  readonly pass: () => Promise<number>;
}

/** After a lost reply: with the time-out of a read, its entries are found within 11 s where no connection was lost with it. */
const REST_MS = 3000;
/** Strange entries are left that had no free slot. */
const SOON_MS = 500;
const PAGE = 1000;

interface Adopting extends AdopterParts {
  /** Monotonic ms at which the newest of both connections was made, that of the reader and that of round trips. */
  connectedMs: number;
  /** Until then there may be entries of a lost reply. */
  uneasyUntilMs: number;
}

export function createAdopter(parts: AdopterParts): Adopter {
  const { refs, clock, events } = parts;
  const adopting: Adopting = { ...parts, connectedMs: Number.NEGATIVE_INFINITY, uneasyUntilMs: 0 };
  const run = () => pass(adopting);
  const loop = createLoop({ who: `adopter of ${refs[0]?.queue ?? ''}`, pass: run, clock, events, pauseAfter });
  return {
    start: loop.start,
    stop: loop.stop,
    connected() {
      adopting.connectedMs = clock.monotonicMs();
      loop.wake();
    },
    lost() {
      const nowMs = clock.monotonicMs();
      const isNews = nowMs >= adopting.uneasyUntilMs;
      adopting.uneasyUntilMs = nowMs + parts.idleMs + REST_MS;
      if (isNews) loop.wake();
    },
    pass: run,
  };
}

async function pass(adopting: Adopting): Promise<number> {
  let left = 0;
  // One partition whose node is away must not cost the others what was lost in a reply.
  const failures: unknown[] = [];
  for (const ref of adopting.refs) {
    left += await adopt(adopting, ref).catch((error: unknown) => failures.push(error) && 0);
  }
  if (failures.length > 0) throw failures[0];
  if (left > 0) return SOON_MS;
  return adopting.clock.monotonicMs() < adopting.uneasyUntilMs ? REST_MS : adopting.calmMs;
}

/** Returns how many had to wait for a free slot. */
async function adopt(adopting: Adopting, ref: PartitionRef): Promise<number> {
  const { commands, inFlight, events, starter } = adopting;
  const unseen = await unseenOf(adopting, ref);
  const strange = unseen.slice(0, inFlight.vacant());
  const left = unseen.length - strange.length;
  if (strange.length === 0) return left;
  const deliveries = await readEntries(commands, ref.keys, strange);
  const deleted = strange.filter((entry) => !deliveries.some((delivery) => delivery.entry === entry));
  // Somebody deleted the entry under us: there is nothing left to run, only a mark to remove.
  if (deleted.length > 0) await commands.xack(ref.keys.ready, GROUP, ...deleted);
  if (deliveries.length === 0) return left;
  events.emit('entries.adopted', { queue: ref.queue, partition: ref.partition, count: deliveries.length });
  await starter.takeOver(ref, deliveries);
  return left;
}

async function unseenOf(adopting: Adopting, ref: PartitionRef): Promise<readonly EntryId[]> {
  const { commands, consumer, inFlight, idleMs, clock } = adopting;
  const unseen: EntryId[] = [];
  let after: EntryId | undefined;
  do {
    const sinceMs = Math.ceil(clock.monotonicMs() - adopting.connectedMs) + 1;
    const of = { consumer, idleMs: Math.min(idleMs, sinceMs), limit: PAGE, after };
    const page = await ownPending(commands, ref.keys, of).catch(noGroup);
    // @unseen-entries
    unseen.push(...page.filter((entry) => !inFlight.has(ref, entry)));
    after = page.length < PAGE ? undefined : page.at(-1);
  } while (after !== undefined && unseen.length < PAGE);
  return unseen;
}

/** A stream without its group has no pending entries; the consumer repairs the group. */
function noGroup(error: unknown): [] {
  if (outageOf(error) === 'no-group') return [];
  throw error;
}
