/**
 * Every worker that sent a heartbeat or is a consumer of a queue, whether it lives, and what it runs. One without a
 * heartbeat is missing: once it has been so for a grace, the living take over what it holds.
 */
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { type Held, holdings } from '../redis/read/holdings.ts';
import { beatAges, type Identity, presence } from '../redis/scripts/presence.ts';
import { type VersionCount, versionsOf } from './processes.ts';
import { type Namespaced, refsOf } from './refs.ts';

interface Running extends Held {
  readonly queue: string;
  readonly partition: number;
}

export interface SeenWorker {
  readonly id: string;
  readonly state: 'alive' | 'missing';
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** Of duestream; undefined where it is missing, or older than this was told. */
  readonly version: string | undefined;
  readonly startedMs: number | undefined;
  /** How long ago it sent its last heartbeat. */
  readonly beatAgoMs: number | undefined;
  readonly queues: readonly string[];
  /** How many it has to Redis, all nodes together. */
  readonly connections: number | undefined;
  /** Entries it holds: running, or about to start. */
  readonly pending: number;
  readonly jobs: readonly Running[];
}

export interface SeenWorkers {
  readonly workers: readonly SeenWorker[];
  /** Of all processes that live, daemons and subscribers too. */
  readonly versions: readonly VersionCount[];
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
  for (const ref of refs) await addConsumers(redis, ref, { drafts, alive, limit });
  const processes = [...drafts.values()].flatMap(({ identity }) => identity ?? []);
  const ages = await beatAges(redis, namespace, processes);
  const workers = [...drafts].map(([id, draft]) => seenOf(id, draft, ages.get(id)));
  return { workers: workers.sort((a, b) => (a.id < b.id ? -1 : 1)), versions: versionsOf(alive) };
}

interface Draft {
  readonly identity: Identity | undefined;
  readonly queues: Set<string>;
  pending: number;
  readonly jobs: Running[];
}

async function addConsumers(
  redis: Redis,
  ref: PartitionRef,
  into: { drafts: Map<string, Draft>; alive: ReadonlyMap<string, Identity | undefined>; limit: number },
): Promise<void> {
  const { queue, partition } = ref;
  for (const { name, pending, jobs } of await holdings(redis, ref, into.limit)) {
    const known = into.drafts.get(name);
    const draft = known ?? { identity: into.alive.get(name), queues: new Set<string>(), pending: 0, jobs: [] };
    into.drafts.set(name, draft);
    draft.queues.add(queue);
    draft.pending += pending;
    draft.jobs.push(...jobs.slice(0, into.limit - draft.jobs.length).map((job) => ({ queue, partition, ...job })));
  }
}

function seenOf(id: string, { identity, queues, pending, jobs }: Draft, beatAgoMs: number | undefined): SeenWorker {
  const { host, pid, version, startedMs, connections } = identity ?? {};
  const state = identity ? 'alive' : 'missing';
  const rest = { startedMs, beatAgoMs, connections, pending, jobs };
  return { id, state, host, pid, version, queues: [...queues].sort(), ...rest };
}
