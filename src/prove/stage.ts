/** What every step of a run works with. */
import type { Redis, RedisInput } from '../redis/connection/connect.ts';
import type { Cast } from './cast.ts';
import type { ClockWatch } from './clock-watch.ts';

export interface Stage {
  /** A connection that nothing stands in the way of. */
  readonly redis: Redis;
  /** Where that leads to, for processes and proxies. */
  readonly address: RedisInput;
  readonly namespace: string;
  readonly jobs: number;
  /** Aborts when the time is up or somebody interrupts. */
  readonly signal: AbortSignal;
  readonly clock: ClockWatch;
  readonly cast: Cast;
}
