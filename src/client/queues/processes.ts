/**
 * The processes of a namespace, as their heartbeats name them, and which of them leads a partition: its lease holds the
 * term, the term holds the id of the process, and the heartbeat of that id says on which host it runs.
 */
import { counted } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { naming } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Answered, askEach, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { type Held, type Holding, holdings, type PartitionStats, stats } from '../../redis/read/inspect.ts';
import { epochOf } from '../../redis/scripts/lease.ts';
import { beatAges, type Identity, presence, type WorkerPause } from '../../redis/scripts/presence.ts';
import { type Namespaced, refsOf } from './refs.ts';

/** Id → what its heartbeat says; undefined when there is none now. */
export type ProcessesById = ReadonlyMap<string, Identity | undefined>;

export interface Leader {
  /** The id of the process. */
  readonly process: string;
  /** Where it runs; undefined when it has no heartbeat. */
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** Of duestream; undefined when it has no heartbeat, or one of a version that does not say it. */
  readonly version: string | undefined;
  readonly epoch: number;
  /** Its election: an epoch is a moment. */
  readonly sinceMs: number;
  readonly leaseLeftMs: number;
  /** Its last pass: each prolongs the lease to its full length. Undefined when the lease is void. */
  readonly lastPassAgoMs: number | undefined;
}

/** Every process that sent a heartbeat and did not leave; of those that were killed not all. */
export async function processesOf(redis: Redis, namespace: string): Promise<ProcessesById> {
  return new Map((await presence(redis, namespace)).map(({ id, identity }) => [id, identity]));
}

export function leaderOf({ term, leaseTtlMs }: PartitionStats, processes: ProcessesById): Leader | undefined {
  if (term === undefined) return undefined;
  const [process = '', , lease] = term.split(':');
  const { host, pid, version } = processes.get(process) ?? {};
  const epoch = epochOf(term);
  const agoMs = Number(lease) - leaseTtlMs;
  const lastPassAgoMs = leaseTtlMs >= 0 && agoMs >= 0 ? agoMs : undefined;
  return { process, host, pid, version, epoch, sinceMs: epoch, leaseLeftMs: leaseTtlMs, lastPassAgoMs };
}

/** How many processes live that are of one version of duestream. */
export interface VersionCount {
  /** Undefined: a version that does not say it. */
  readonly version: string | undefined;
  readonly processes: number;
}

/** The versions that run side by side, the most frequent first. */
export function versionsOf(
  processes: ReadonlyMap<string, { readonly version?: string | undefined } | undefined>,
): readonly VersionCount[] {
  const counts = new Map<string | undefined, number>();
  for (const one of processes.values()) if (one) counts.set(one.version, (counts.get(one.version) ?? 0) + 1);
  return [...counts]
    .map(([version, count]) => ({ version, processes: count }))
    .sort((a, b) => b.processes - a.processes || ((a.version ?? '~') < (b.version ?? '~') ? -1 : 1));
}

/** `0.2.0 (3 processes), an unknown version (1 process)` */
export const versionsText = (versions: readonly VersionCount[]): string =>
  versions
    .map(
      ({ version = 'an unknown version', processes }) => `${version} (${counted(processes, 'process', 'processes')})`,
    )
    .join(', ');

const servingIn = (queue: string, processes: ProcessesById): readonly Identity[] =>
  [...processes.values()].flatMap((one) => (one?.role === 'worker' && one.queues.includes(queue) ? [one] : []));

/** How many living workers serve a queue, paused ones too. */
export const workersOf = (queue: string, processes: ProcessesById): number => servingIn(queue, processes).length;

/** Those of them that are paused. */
export const pausedWorkersOf = (queue: string, processes: ProcessesById): readonly Identity[] =>
  servingIn(queue, processes).filter(({ paused }) => paused !== undefined);

/** Whether all living workers of a queue come over HTTP, and there are some. */
export function areRemote(queue: string, processes: ProcessesById): boolean {
  const serving = servingIn(queue, processes);
  return serving.length > 0 && serving.every((one) => one.via === 'http');
}

/** How many jobs of a queue its living workers run at a time, of those that are not paused; undefined: one of them does not say it. */
export function slotsOf(queue: string, processes: ProcessesById): number | undefined {
  const own = servingIn(queue, processes).filter(({ paused }) => paused === undefined);
  return own.reduce<number | undefined>((sum, one) => {
    const slots = one.slots?.[queue];
    return sum === undefined || slots === undefined ? undefined : sum + slots;
  }, 0);
}

/** A subscriber that lives. */
export interface Subscribed {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** How many jobs were sent that it had not begun at its last heartbeat. */
  readonly lag: number;
}

/** Who subscribes to a queue, the furthest behind first. */
export function subscribersOf(queue: string, processes: ProcessesById): readonly Subscribed[] {
  return [...processes]
    .flatMap(([id, one]) =>
      one?.role === 'subscriber' && one.queues.includes(queue)
        ? [{ id, host: one.host, pid: one.pid, lag: one.lag ?? 0 }]
        : [],
    )
    .sort((a, b) => b.lag - a.lag || (a.id < b.id ? -1 : 1));
}

/** `host:pid`, or the id of a process without a heartbeat. */
export function leaderName({ process, host, pid }: Leader): string {
  return host === undefined ? process : `${host}:${pid}`;
}

/** How long the oldest job has been due, ms; 0 when nothing is late, undefined when nothing is scheduled. */
function lagOf({ headDueMs, nowMs }: PartitionStats): number | undefined {
  return headDueMs === undefined ? undefined : Math.max(0, nowMs - headDueMs);
}

// Who leads each partition, since when, when it last passed, and how late its work is. Every pass prolongs the lease to
// its full length, so what has gone of the lease is the time since the last one.

export interface Led {
  readonly queue: string;
  readonly partition: number;
  readonly leader: Leader | undefined;
  /** How long the oldest job has been due. */
  readonly lagMs: number | undefined;
  /** Jobs that are ready and wait for a worker. */
  readonly backlog: number;
  readonly paused: boolean;
  readonly nowMs: number;
}

/** Of one queue, or of all. @throws DuestreamError `not-found` */
export async function leadersOf(place: Namespaced, queue: string | undefined): Promise<Answered<Led>> {
  const refs = await refsOf(place, queue);
  const processes = await processesOf(place.redis, place.namespace);
  return askEach(refs, (ref) => look(place.redis, ref, processes));
}

async function look(redis: Redis, ref: PartitionRef, processes: ProcessesById): Promise<Led> {
  const found = await stats(redis, ref);
  const { ready, paused, nowMs } = found;
  const { queue, partition } = ref;
  return { queue, partition, leader: leaderOf(found, processes), lagMs: lagOf(found), backlog: ready, paused, nowMs };
}

// Every worker that sent a heartbeat or is a consumer of a queue, whether it lives, and what it runs. One without a
// heartbeat is missing: once it has been so for a grace, the living take over what it holds.

interface Running extends Held {
  readonly queue: string;
  readonly partition: number;
}

export interface SeenWorker {
  readonly id: string;
  readonly state: 'alive' | 'missing';
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** Of a worker over HTTP: it has no process of duestream, and comes from this address. */
  readonly via: 'http' | undefined;
  readonly address: string | undefined;
  /** Of duestream; undefined where the process does not say it. */
  readonly version: string | undefined;
  readonly startedMs: number | undefined;
  /** How long ago it sent its last heartbeat. */
  readonly beatAgoMs: number | undefined;
  readonly queues: readonly string[];
  /** How many it has to Redis, all nodes together. */
  readonly connections: number | undefined;
  /** How many jobs of each queue it runs at a time; undefined where the process does not say it. */
  readonly slots: Readonly<Record<string, number>> | undefined;
  /** It starts nothing new; undefined: it is not paused. */
  readonly pause: WorkerPause | undefined;
  /** Whether it can be paused: a worker of an older version hears of no pause. */
  readonly pauses: boolean;
  /** Entries it holds: running, or about to start. */
  readonly pending: number;
  readonly jobs: readonly Running[];
}

export interface SeenWorkers {
  readonly workers: readonly SeenWorker[];
  /** Of all processes that live, daemons and subscribers too. */
  readonly versions: readonly VersionCount[];
  /** What workers hold of these is not known. */
  readonly unread: readonly UnreadQueue[];
}

/** By id. @param limit most jobs of each: the oldest @throws DuestreamError `not-found` */
export async function workersSeen(
  place: Namespaced,
  { queue, limit }: { readonly queue?: string | undefined; readonly limit: number },
): Promise<SeenWorkers> {
  const { redis, namespace } = place;
  const refs = await refsOf(place, queue);
  const known = await presence(redis, namespace);
  const drafts = new Map<string, Draft>();
  // Daemons send heartbeats too; an id without one may be either, and counts once it is a consumer.
  for (const { id, identity } of known) {
    if (identity?.role === 'worker' && (queue === undefined || identity.queues.includes(queue))) {
      drafts.set(id, { identity, queues: new Set(identity.queues), pending: 0, jobs: [] });
    }
  }
  const alive = new Map(known.map(({ id, identity }) => [id, identity]));
  const { found, unread } = await askEach(refs, async (ref) => ({ ref, held: await heldIn(redis, ref, limit) }));
  for (const one of found) addConsumers(one, { drafts, alive, limit });
  const processes = [...drafts.values()].flatMap(({ identity }) => identity ?? []);
  const ages = await beatAges(redis, namespace, processes);
  const workers = [...drafts].map(([id, draft]) => seenOf(id, draft, ages.get(id)));
  return { workers: workers.sort((a, b) => (a.id < b.id ? -1 : 1)), versions: versionsOf(alive), unread };
}

const heldIn = (redis: Redis, ref: PartitionRef, limit: number): Promise<readonly Holding[]> =>
  naming(redis, [ref.keys], holdings(redis, ref, limit));

interface Draft {
  readonly identity: Identity | undefined;
  readonly queues: Set<string>;
  pending: number;
  readonly jobs: Running[];
}

function addConsumers(
  { ref: { queue, partition }, held }: { readonly ref: PartitionRef; readonly held: readonly Holding[] },
  into: { drafts: Map<string, Draft>; alive: ReadonlyMap<string, Identity | undefined>; limit: number },
): void {
  for (const { name, pending, jobs } of held) {
    const known = into.drafts.get(name);
    const draft = known ?? { identity: into.alive.get(name), queues: new Set<string>(), pending: 0, jobs: [] };
    into.drafts.set(name, draft);
    draft.queues.add(queue);
    draft.pending += pending;
    draft.jobs.push(...jobs.slice(0, into.limit - draft.jobs.length).map((job) => ({ queue, partition, ...job })));
  }
}

function seenOf(id: string, { identity, queues, pending, jobs }: Draft, beatAgoMs: number | undefined): SeenWorker {
  const {
    host,
    pid,
    via,
    address,
    version,
    startedMs,
    connections,
    slots,
    paused: pause,
    pauses = false,
  } = identity ?? {};
  const state = identity ? 'alive' : 'missing';
  const where = { host, pid, via, address };
  const rest = { startedMs, beatAgoMs, connections, slots, pause, pauses, pending, jobs };
  return { id, state, ...where, version, queues: [...queues].sort(), ...rest };
}
