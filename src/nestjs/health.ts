/** Whether this process can do its work, in the form of a health indicator of Terminus, which is not needed for it. */
import type { Parts } from './parts.ts';

/** What an indicator says of one thing. */
export interface HealthStatus {
  readonly status: 'up' | 'down';
  /** Redis answers the client. */
  readonly redis: boolean;
  /** The worker is connected and reads; left out where this process has none. */
  readonly worker?: boolean;
  /** The daemon does its work; left out where this process has none. */
  readonly daemon?: boolean;
}

/**
 * A health indicator. With Terminus: `health.check([() => duestream.isHealthy()])`. Without it, in a route of your own.
 *
 * @example
 * const { duestream } = await health.isHealthy();
 * console.log(duestream.status === 'up' ? 200 : 503);
 */
export class DuestreamHealth {
  readonly #parts: Parts;

  /** Nest makes it. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Whether Redis answers, and worker and daemon of this process do their work. It never rejects.
   *
   * @param key by which Terminus shows it. Default `duestream`
   */
  async isHealthy<Key extends string = 'duestream'>(key?: Key): Promise<Record<Key, HealthStatus>> {
    const { redis = false, worker, daemon } = await this.#parts.health();
    const isUp = redis && worker !== false && daemon !== false;
    const status: HealthStatus = {
      status: isUp ? 'up' : 'down',
      redis,
      ...(worker !== undefined && { worker }),
      ...(daemon !== undefined && { daemon }),
    };
    return { [key ?? 'duestream']: status } as Record<Key, HealthStatus>;
  }
}
