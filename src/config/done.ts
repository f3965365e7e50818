/** How long and how many ends of jobs Redis keeps, by the configuration; `sweep` and `doctor` use the numbers. */
import { doneFloorMs } from '../job/tombstone-age.ts';
import type { Config } from './options.ts';

export interface DoneLimits {
  /** 0 = nothing is remembered. */
  readonly windowMs: number;
  readonly tombstonesMax: number;
  /** No tombstone younger than this goes because of the count. */
  readonly floorMs: number;
}

export function doneLimits({ done, redis }: Pick<Config, 'done' | 'redis'>): DoneLimits {
  const { windowMs, max, retryBudgetMs } = done;
  const isOff = windowMs === 0 || max === 0;
  const floorMs = isOff ? 0 : doneFloorMs({ retryBudgetMs, commandTimeoutMs: redis.commandTimeoutMs });
  return { windowMs: isOff ? 0 : windowMs, tombstonesMax: max, floorMs };
}
