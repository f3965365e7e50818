/** What a run tells a process that it started, and what that one tells of itself. */
import type { ReadMode } from '../job/worker-options.ts';
import type { RedisInput } from '../redis/connection/connect.ts';

export interface Orders {
  readonly role: 'daemon' | 'worker';
  readonly redis: RedisInput;
  /** Of certificates, where a lossy line stands before the server; empty elsewhere. */
  readonly fingerprints: readonly string[];
  readonly namespace: string;
  /** Of a worker: the queue that it serves. */
  readonly queue: string;
  /** Of a worker: how it waits for jobs. */
  readonly read: ReadMode;
  /** Of a worker: its handlers never end. */
  readonly hangs: boolean;
}

export type Said =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly why: string }
  /** A handler was called. */
  | { readonly kind: 'ran'; readonly id: string }
  | { readonly kind: 'done'; readonly id: string }
  | { readonly kind: 'leads'; readonly queue: string };

/** How long a leader keeps its lease, and a worker its jobs: short, so that a run is. */
export const LEADER_LEASE = '2s';
export const JOB_LEASE = '3s';
export const BEAT_TTL = '2s';
export const GRACE = '1s';
