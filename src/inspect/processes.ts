/**
 * The processes of a namespace, as their heartbeats name them, and which of them leads a partition: its lease holds the
 * term, the term holds the id of the process, and the heartbeat of that id says on which host it runs.
 */
import { counted } from '../kernel/humanize.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionStats } from '../redis/read/inspect.ts';
import { epochOf } from '../redis/scripts/lease.ts';
import { type Identity, presence } from '../redis/scripts/presence.ts';

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

/** `0.2.0 (3 processes), an older version (1 process)` */
export const versionsText = (versions: readonly VersionCount[]): string =>
  versions
    .map(({ version = 'an older version', processes }) => `${version} (${counted(processes, 'process', 'processes')})`)
    .join(', ');

/** How many living workers serve a queue. */
export function workersOf(queue: string, processes: ProcessesById): number {
  return [...processes.values()].filter((one) => one?.role === 'worker' && one.queues.includes(queue)).length;
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
export function lagOf({ headDueMs, nowMs }: PartitionStats): number | undefined {
  return headDueMs === undefined ? undefined : Math.max(0, nowMs - headDueMs);
}
