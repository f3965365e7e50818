/**
 * The only place that reads a clock or sets a timer for waiting. Two clocks, two names: `wallMs` is for people and
 * stored stamps, `monotonicMs` for durations and trust. Due times are decided by Redis, never by either of them.
 */
import { performance } from 'node:perf_hooks';

export interface Clock {
  /** Epoch milliseconds of this machine. It can jump. */
  readonly wallMs: () => number;
  /** Milliseconds since an arbitrary moment. It never jumps. */
  readonly monotonicMs: () => number;
  /** Resolves after `ms`, or at once when the signal aborts: `true` when the time has passed, `false` when cut short. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<boolean>;
  /** Calls back after `ms`; the returned function calls it off. */
  readonly timer: (ms: number, callback: () => void) => () => void;
  /** The rest of a loop between two passes, by its name. Default: a timer of Node, or a turn of the event loop for 0. */
  readonly rest?: (who: string, ms: number, callback: () => void) => () => void;
}

/**
 * A turn of the event loop: what lies in the sockets has been read then. Nobody waits for time there, so a test that puts
 * timers of its own in the place of Node's does not stop it.
 */
export const { setImmediate, clearImmediate } = globalThis;

/** Resolves in the next turn. */
export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Node fires a timer above this at once (setTimeout(2**31) after 1 ms), so a longer wait is made of several. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve(false);
      const onAbort = () => {
        callOff();
        resolve(false);
      };
      const callOff = timer(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve(true);
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
  timer,
};

function timer(ms: number, callback: () => void): () => void {
  const wait = (leftMs: number): NodeJS.Timeout =>
    leftMs > TIMER_MAX_MS
      ? setTimeout(() => {
          leg = wait(leftMs - TIMER_MAX_MS);
        }, TIMER_MAX_MS)
      : setTimeout(callback, Math.max(leftMs, 0));
  let leg = wait(ms);
  return () => clearTimeout(leg);
}
