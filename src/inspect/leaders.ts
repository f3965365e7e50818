/**
 * Who leads each partition, since when, when it last passed, and how late its work is. Every pass prolongs the lease to
 * its full length, so what has gone of the lease is the time since the last one.
 */
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { stats } from '../redis/read/inspect.ts';
import { type Leader, lagOf, leaderOf, type ProcessesById, processesOf } from './processes.ts';
import { type Namespaced, refsOf } from './refs.ts';

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
export async function leadersOf(place: Namespaced, queue: string | undefined): Promise<readonly Led[]> {
  const refs = await refsOf(place, queue);
  const processes = await processesOf(place.redis, place.namespace);
  const all: Led[] = [];
  for (const ref of refs) all.push(await look(place.redis, ref, processes));
  return all;
}

async function look(redis: Redis, ref: PartitionRef, processes: ProcessesById): Promise<Led> {
  const found = await stats(redis, ref);
  const { ready, paused, nowMs } = found;
  const { queue, partition } = ref;
  return { queue, partition, leader: leaderOf(found, processes), lagMs: lagOf(found), backlog: ready, paused, nowMs };
}
