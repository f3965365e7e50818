/**
 * At most so many calls at once; the rest wait their turn in order, and a crowd that does not stop is refused.
 */
import { DuestreamError } from '../core/errors.ts';

export interface Slots {
  /** Runs the call when there is room. @throws DuestreamError `unavailable` when too many wait already */
  readonly run: <T>(call: () => Promise<T>) => Promise<T>;
}

export function createSlots({ max, waitingMax }: { readonly max: number; readonly waitingMax: number }): Slots {
  const waiting: (() => void)[] = [];
  // Those that run and those that wait; while anyone waits, all places are taken.
  let inside = 0;

  function leave(): void {
    inside -= 1;
    waiting.shift()?.();
  }

  return {
    async run(call) {
      if (inside >= max) {
        if (waiting.length >= waitingMax) throw tooMany(waitingMax);
        inside += 1;
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else inside += 1;
      try {
        return await call();
      } finally {
        leave();
      }
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
