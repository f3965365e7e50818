/** What every step of a run works with. */
import type { ReadMode } from '../job/worker-options.ts';
import type { Redis, RedisInput } from '../redis/connection/connect.ts';
import type { Actor, Cast } from './cast.ts';
import type { Orders } from './said.ts';

export interface Stage {
  /** A connection that nothing stands in the way of. */
  readonly redis: Redis;
  /** Where that leads to, for processes and proxies. */
  readonly address: RedisInput;
  readonly namespace: string;
  /** How workers wait for jobs. */
  readonly read: ReadMode;
  readonly jobs: number;
  /** Aborts when the time is up or somebody interrupts. */
  readonly signal: AbortSignal;
  readonly cast: Cast;
}

/** Starts a daemon or a worker for the time of a step. */
export const enter = (
  { cast, address, namespace, read }: Stage,
  orders: Pick<Orders, 'role' | 'queue'> & Partial<Orders>,
): Actor => cast.begin({ redis: address, fingerprints: [], namespace, read, hangs: false, ...orders });

/** Resolves when all are up. @throws DuestreamError `failed`; the signal's reason */
export const up = async ({ signal }: Stage, ...actors: readonly Actor[]): Promise<void> =>
  void (await Promise.all(actors.map((actor) => actor.ready(signal))));
