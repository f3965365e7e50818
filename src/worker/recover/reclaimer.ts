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
 * One that holds nothing and that Redis has not heard of for ten minutes is retired when it is first missed.
 *
 * The survivors share the entries (`shares.ts`): each begins with those that prefer it, and after three rounds anybody
 * takes anything that is left.
 *
 * Not every worker looks at a time (`WatchDuty`). One that has begun to miss somebody looks on until that is settled. One
 * that is alone looks for company alone, in one partition after the other: all of them have the same workers.
 */
import type { Emitter } from '../../job/events.ts';
import type { EntryId } from '../../job/job.ts';
import { type Clock, turn } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import { weightOf } from '../../kernel/shares.ts';
import { isCluster } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isOurs, outageOf, pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { RECLAIM_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { forget, withoutBeat } from '../../redis/scripts/presence.ts';
import {
  type ConsumerInfo,
  consumers,
  ensureGroup,
  join,
  ownPending,
  proveWritable,
  reclaim,
  retire,
  watch,
} from '../../redis/scripts/ready.ts';
import type { InFlight } from '../run/in-flight.ts';
import type { Starter } from '../run/starter.ts';
import type { Heartbeat } from './heartbeat.ts';

export interface ReclaimerParts {
  readonly commands: Redis;
  readonly namespace: string;
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  readonly inFlight: InFlight;
  readonly starter: Pick<Starter, 'takeOver'>;
  readonly graceMs: number;
  readonly beatTtlMs: number;
  readonly jobLeaseMs: number;
  /** Monotonic ms of our own last confirmed heartbeat, and since when none has failed. */
  readonly beats: Pick<Heartbeat, 'lastProgressMs' | 'steadySinceMs'>;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly random: () => number;
}

export interface Reclaimer {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  readonly pass: () => Promise<number>;
}

/**
 * A worker without others rests for so much of what a heartbeat lives for, before its rest is spread: who comes meanwhile
 * is seen before its heartbeat can be missing, so nobody's death is seen later for it.
 */
const ALONE = 0.72;

/** Ten minutes, with the usual grace. */
const LONG_GONE_GRACES = 120;

interface Reclaiming extends ReclaimerParts {
  /** Sighting (`partition consumer`) → monotonic ms of the first pass that missed its heartbeat. */
  readonly missingSince: Map<string, number>;
  /** Sighting → rounds in which it had entries to take. */
  readonly rounds: Map<string, number>;
  readonly restMs: number;
  readonly duty: WatchDuty;
  /** Nobody else was there at the last look. */
  isAlone: boolean;
  /** The partition in which company is looked for next. */
  turn: number;
}

export function createReclaimer(parts: ReclaimerParts): Reclaimer {
  // @reclaim-parts
  const { refs, graceMs, clock, events, random } = parts;
  const restMs = graceMs * 0.4;
  const reclaiming: Reclaiming = {
    ...parts,
    missingSince: new Map(),
    rounds: new Map(),
    restMs,
    duty: new WatchDuty({ ...parts, restMs }),
    isAlone: false,
    turn: 0,
  };
  const loop = createLoop({
    who: `reclaimer of ${refs[0]?.queue ?? ''}`,
    pass: () => pass(reclaiming),
    clock,
    events,
    pauseAfter,
    onError: (error) => onError(reclaiming, error),
    random,
  });
  return { start: loop.start, stop: loop.stop, pass: () => pass(reclaiming) };
}

async function pass(reclaiming: Reclaiming): Promise<number> {
  const { restMs, beatTtlMs, random } = reclaiming;
  const wasAlone = reclaiming.isAlone;
  reclaiming.isAlone = false;
  reclaiming.isAlone = (wasAlone && (await hasNoCompany(reclaiming))) || (await lookOnDuty(reclaiming));
  return (reclaiming.isAlone ? Math.max(restMs, beatTtlMs * ALONE) : restMs) * (0.75 + random() / 2);
}

/** Alone there is nobody to share the duty with, and nobody to judge. */
async function hasNoCompany(reclaiming: Reclaiming): Promise<boolean> {
  const { refs } = reclaiming;
  reclaiming.turn += 1;
  const ref = refs[reclaiming.turn % refs.length];
  return ref !== undefined && (await othersOf(reclaiming, ref)).length === 0;
}

/** @returns whether this worker looked, and there is nobody else in any partition */
async function lookOnDuty(reclaiming: Reclaiming): Promise<boolean> {
  const { missingSince, duty } = reclaiming;
  const looks = (await duty.begin(missingSince.size > 0)) || missingSince.size > 0;
  return looks && lookAtAll(reclaiming);
}

/** @returns whether there is nobody else in any partition */
async function lookAtAll(reclaiming: Reclaiming): Promise<boolean> {
  const { refs, commands } = reclaiming;
  /** In how many partitions each is a consumer, less those in which it has gone. */
  const places = new Map<string, number>();
  const gone = new Set<string>();
  forgiveOutside(reclaiming, refs.length);
  const failures: unknown[] = [];
  for (const ref of refs) {
    try {
      const others = await othersOf(reclaiming, ref);
      for (const { name } of others) places.set(name, (places.get(name) ?? 0) + 1);
      for (const name of await look(reclaiming, ref, others)) {
        places.set(name, (places.get(name) ?? 0) - 1);
        gone.add(name);
      }
    } catch (error) {
      failures.push(atOne(reclaiming, ref, error));
    }
  }
  tellOf(failures, refs.length);
  // It is listed as long as any partition has something of it, and nobody knows that of one that did not answer.
  if (failures.length > 0) return false;
  await forget(commands, reclaiming.namespace, ...[...gone].filter((name) => places.get(name) === 0));
  return places.size === 0;
}

/**
 * One partition whose node is away, or at which our own code throws, must not cost the others what dead workers left there.
 * After an outage its grace begins again.
 *
 * @throws an outage of the one server that there is
 */
function atOne(reclaiming: Reclaiming, ref: PartitionRef, error: unknown): unknown {
  if (isOurs(error)) return error;
  if (!isCluster(reclaiming.commands)) throw error;
  forgiveBut(reclaiming, ref, new Set());
  return error;
}

/** @throws what failed at all partitions, and what our own code threw */
function tellOf(failures: readonly unknown[], partitions: number): void {
  const told = failures.find(isOurs) ?? (failures.length === partitions ? failures[0] : undefined);
  if (told !== undefined) throw told;
}

/** Returns those who are no longer consumers of this partition. */
async function look(
  reclaiming: Reclaiming,
  ref: PartitionRef,
  others: readonly ConsumerInfo[],
): Promise<readonly string[]> {
  const { commands, consumer } = reclaiming;
  if (others.length > 0) await proveWritable(commands, ref.keys);
  const names = others.map(({ name }) => name);
  const missing = new Set(await withoutBeat(commands, reclaiming.namespace, names));
  // @watch-others
  const lost = others.filter(({ name }) => missing.has(name));
  if (lost.some(({ pending }) => pending > 0)) await reclaiming.duty.alarm();
  forgiveBut(reclaiming, ref, missing);
  const living = [consumer, ...names.filter((name) => !missing.has(name))];
  const gone: string[] = [];
  const faults: unknown[] = [];
  for (const dead of lost) {
    try {
      if (await takeLeavings(reclaiming, ref, { dead, living })) gone.push(dead.name);
    } catch (error) {
      // At one of the dead our own code throws: the others are looked at all the same.
      if (!isOurs(error)) throw error;
      faults.push(error);
    }
  }
  if (faults.length > 0) throw faults[0];
  return gone;
}

/** Takes a share of what a dead worker left, once it is nominated. Returns whether it is gone. */
async function takeLeavings(
  reclaiming: Reclaiming,
  ref: PartitionRef,
  { dead, living }: { readonly dead: ConsumerInfo; readonly living: readonly string[] },
): Promise<boolean> {
  const sighting = `${ref.partition} ${dead.name}`;
  if (!isNominated(reclaiming, sighting) && !isLongGone(reclaiming, dead)) return false;
  if (dead.pending === 0) return bringToRest(reclaiming, ref, dead.name);
  await takeShare(reclaiming, ref, { dead, living, sighting });
  return false;
}

/** Those who are back, and those who are no consumers of this partition any more. */
function forgiveBut(reclaiming: Reclaiming, { partition }: PartitionRef, missing: ReadonlySet<string>): void {
  const { missingSince } = reclaiming;
  const prefix = `${partition} `;
  for (const sighting of missingSince.keys()) {
    if (sighting.startsWith(prefix) && !missing.has(sighting.slice(prefix.length))) forgive(reclaiming, sighting);
  }
}

async function othersOf(reclaiming: Reclaiming, ref: PartitionRef): Promise<readonly ConsumerInfo[]> {
  const { commands, consumer } = reclaiming;
  const members = await consumers(commands, ref.keys);
  const others = members.filter(({ name }) => name !== consumer);
  // Only for the sharing: at the memory limit it is refused, and the rest must go on.
  if (others.length === members.length) await join(commands, ref.keys, consumer).catch(() => undefined);
  return others;
}

/** The queue may have fewer partitions than it had. */
function forgiveOutside(reclaiming: Reclaiming, partitions: number): void {
  const { missingSince } = reclaiming;
  for (const sighting of missingSince.keys())
    if (Number.parseInt(sighting, 10) >= partitions) forgive(reclaiming, sighting);
}

function forgive(reclaiming: Reclaiming, sighting: string): void {
  const { missingSince, rounds } = reclaiming;
  missingSince.delete(sighting);
  rounds.delete(sighting);
}

/** Missing for a grace in which none of our own heartbeats failed, and one was confirmed after the first sighting. */
function isNominated(reclaiming: Reclaiming, sighting: string): boolean {
  const { clock, missingSince, graceMs, beats } = reclaiming;
  // @proof-of-death
  const nowMs = clock.monotonicMs();
  const sinceMs = missingSince.get(sighting);
  if (sinceMs === undefined) missingSince.set(sighting, nowMs);
  if (sinceMs === undefined || beats.lastProgressMs() <= sinceMs) return false;
  return nowMs - Math.max(sinceMs, beats.steadySinceMs()) >= graceMs;
}

/**
 * It holds nothing, and Redis has not heard of it for long. Workers may come and be killed all the time, and none live for a
 * grace: they would fill the group. One that lives all the same is in the group again with its next read.
 */
function isLongGone({ clock, graceMs, beats }: Reclaiming, { pending, idleMs }: ConsumerInfo): boolean {
  return pending === 0 && idleMs >= graceMs * LONG_GONE_GRACES && beats.steadySinceMs() <= clock.monotonicMs();
}

/** Whether it is gone. Of all who retire it one is told `ok`, and tells. */
async function bringToRest(reclaiming: Reclaiming, ref: PartitionRef, dead: string): Promise<boolean> {
  const { commands, events } = reclaiming;
  const reply = await retire(commands, ref, dead);
  const { queue, partition } = ref;
  if (reply === 'ok') events.emit('consumer.retired', { queue, partition, consumer: dead });
  if (reply !== 'busy') forgive(reclaiming, `${partition} ${dead}`);
  return reply !== 'busy';
}

async function onError(reclaiming: Reclaiming, error: unknown): Promise<void> {
  const { missingSince, rounds, refs, commands } = reclaiming;
  // No outage: those who are missing are missing still.
  if (isOurs(error)) return;
  missingSince.clear();
  rounds.clear();
  if (outageOf(error) === 'no-group') for (const ref of refs) await ensureGroup(commands, ref.keys);
}

/** Most entries looked at and taken from one dead consumer per round. */
const SCAN_MAX = 1000;
const BATCH_MAX = 200;

/** Takes this worker's share of the entries of a dead worker first, and after some rounds what is left. */
async function takeShare(
  reclaiming: Reclaiming,
  ref: PartitionRef,
  found: { readonly dead: ConsumerInfo; readonly living: readonly string[]; readonly sighting: string },
): Promise<void> {
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
  reclaiming: Reclaiming,
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
  await reclaiming.starter.takeOver(ref, deliveries);
}

/** How many workers of a queue look at a time: enough that one is left when some of them die, too. */
const WATCHERS = 4;
/** After this time a seat is given to others. */
const SEATED_MS = 60_000;
/** A seat and an alarm hold for so many rests. */
const TERM_RESTS = 3;

interface WatchDutyParts extends Pick<ReclaimerParts, 'commands' | 'refs' | 'consumer' | 'clock'> {
  /** How long a pass is from the next. */
  readonly restMs: number;
}

/**
 * Who looks for dead workers. A look costs as much as there are workers, so while all live only a few of a queue look
 * (`lua/verbs/watch.lua`), in rotation; the others ask for one word per pass. A watcher that misses a worker which holds entries
 * raises the alarm: it calls all workers to look, and each proves the death for itself.
 *
 *  rest ──a seat is free──▶ seat ──a minute over, nobody missed──▶ rest
 *    └────────alarm───────▶ alarm ──it runs out──▶ rest
 */
class WatchDuty {
  readonly #parts: WatchDutyParts;
  /** Since when this worker is one of the few. */
  #seatedMs: number | undefined;

  constructor(parts: WatchDutyParts) {
    this.#parts = parts;
  }

  /** Whether this pass is to look. A watcher that misses a worker does not give its seat away. */
  async begin(misses: boolean): Promise<boolean> {
    const nowMs = this.#parts.clock.monotonicMs();
    const isTired = this.#seatedMs !== undefined && nowMs - this.#seatedMs > SEATED_MS;
    const duty = await askDuty(this.#parts, isTired && !misses ? 'rest' : 'watch');
    this.#seatedMs = duty === 'seat' ? (this.#seatedMs ?? nowMs) : undefined;
    return duty !== 'rest';
  }

  /** A worker is missing: all are called to look. */
  async alarm(): Promise<void> {
    await askDuty(this.#parts, 'alarm');
  }
}

/** All partitions of a queue have the same workers: the first that answers speaks for them. */
async function askDuty(
  { commands, refs, consumer, restMs }: WatchDutyParts,
  wish: 'watch' | 'rest' | 'alarm',
): Promise<'seat' | 'alarm' | 'rest'> {
  const failures: unknown[] = [];
  for (const ref of refs) {
    try {
      return await watch(commands, ref, { consumer, wish, seats: WATCHERS, termMs: restMs * TERM_RESTS });
    } catch (error) {
      failures.push(error);
      // On one primary the others are away as well.
      if (!isCluster(commands)) break;
    }
  }
  if (failures.length > 0) throw failures[0];
  return 'rest';
}

// Who takes which entry of a dead worker. Every survivor computes the same order of preference per entry, so that the
// entries spread over all of them instead of landing on the one that looks first. It is a preference that expires:
// views of who lives may differ, and an entry nobody prefers must not wait.
//
//  round 0      the first of the order
//  round 1, 2   the first three
//  from 3 on    anybody
//
// Two survivors may wish for the same entry; the reclaim script gives it to one of them.
//
// The whole order is never needed: an entry is somebody else's as soon as enough others come before us, which a few
// hashes show. After so many hashes the event loop goes on first, so that 1,000 entries and 1,000 survivors hold nobody
// up.

const NEAR = 3;
const OPEN_FROM_ROUND = 3;
/** About a millisecond. */
const HASHES_AT_ONCE = 500;

export interface View {
  readonly consumer: string;
  readonly living: readonly string[];
  readonly round: number;
  /** More are not wanted. */
  readonly most: number;
}

export async function sharesOf(
  entries: readonly EntryId[],
  { consumer, living, round, most }: View,
  giveWay: () => Promise<unknown> = turn,
): Promise<readonly EntryId[]> {
  if (round >= OPEN_FROM_ROUND) return entries.slice(0, most);
  const near = round === 0 ? 1 : NEAR;
  const others = living.filter((name) => name !== consumer);
  const wanted: EntryId[] = [];
  let hashes = 0;

  async function isOurs(entry: EntryId): Promise<boolean> {
    const mine = weightOf(entry, consumer);
    let before = 0;
    for (const other of others) {
      hashes += 1;
      if (hashes % HASHES_AT_ONCE === 0) await giveWay();
      if (comesBefore(weightOf(entry, other), mine, other < consumer)) before += 1;
      if (before === near) return false;
    }
    return true;
  }

  for (const entry of entries) {
    if (wanted.length >= most) break;
    if (await isOurs(entry)) wanted.push(entry);
  }
  return wanted;
}

const comesBefore = (weight: string, mine: string, first: boolean) => weight < mine || (weight === mine && first);
