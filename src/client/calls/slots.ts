/** At most so many calls at once; the rest wait their turn in order, and a crowd that does not stop is refused. */
import pLimit from 'p-limit';
import { DuestreamError } from '../../kernel/errors.ts';

export interface Slots {
  /** Runs the call when there is room. @throws DuestreamError `unavailable` when too many wait already */
  readonly run: <T>(call: () => Promise<T>) => Promise<T>;
}

export function createSlots({ max, waitingMax }: { readonly max: number; readonly waitingMax: number }): Slots {
  // It keeps the order, and lets any number wait.
  const limit = pLimit(max);
  return {
    async run(call) {
      if (limit.activeCount >= max && limit.pendingCount >= waitingMax) throw tooMany(waitingMax);
      return limit(call);
    },
  };
}

/** The refusal of a crowd. Nothing was sent. */
export function tooMany(waitingMax: number): DuestreamError {
  return new DuestreamError(
    'unavailable',
    `${waitingMax} calls already wait for Redis, the most that may; nothing was sent: wait until some of them end`,
  );
}
