/**
 * The life of a service: it starts once and stops once, in whatever order and however often it is asked. A start that
 * fails stops it, so that nothing is left behind; calls at the same time share one start.
 *
 *     new ──start──▶ starting ──▶ running ──stop──▶ stopping ──▶ stopped
 *      └───────────────┴── stop, or a start that fails ──▲
 */
import { createAbort } from './abort.ts';
import { DuestreamError } from './errors.ts';
import { reasonOf } from './reason.ts';

export interface Life<How> {
  readonly start: () => Promise<void>;
  /** Also before a start, and twice. `how` of the first call counts. */
  readonly stop: (how: How) => Promise<void>;
  readonly state: () => 'new' | 'running' | 'stopping' | 'stopped';
  /** Aborted by a stop: what waits for Redis need not wait any longer. */
  readonly signal: AbortSignal;
  /** @throws DuestreamError `stopped` when it was stopped or could not start */
  readonly check: () => void;
}

export interface LifeParts<How> {
  /** For errors: `worker`. */
  readonly what: string;
  readonly begin: (signal: AbortSignal) => Promise<void>;
  /** `begun` resolves when a start that is under way has ended, however it ended. */
  readonly end: (begun: Promise<void>, how: How) => Promise<void>;
  /** How it is stopped after a start that failed. */
  readonly atFailure: How;
}

export function createLife<How>({ what, begin, end, atFailure }: LifeParts<How>): Life<How> {
  const stopAsked = createAbort();
  let state: 'new' | 'running' | 'stopping' | 'stopped' = 'new';
  let beginning: Promise<void> | undefined;
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;
  let failure: string | undefined;
  const over = () =>
    new DuestreamError(
      'stopped',
      `this ${what} ${failure === undefined ? 'was stopped' : `could not start (${failure})`}; create another one`,
    );

  async function tryToStart(): Promise<void> {
    beginning = begin(stopAsked.signal).then(() => {
      stopAsked.signal.throwIfAborted();
      state = 'running';
    });
    try {
      await beginning;
    } catch (error) {
      const cutShort = stopAsked.signal.aborted;
      if (!cutShort) failure = reasonOf(error);
      await stop(atFailure);
      throw cutShort ? new DuestreamError('stopped', `this ${what} was stopped while it started`) : error;
    }
  }

  async function shutDown(how: How): Promise<void> {
    state = 'stopping';
    stopAsked.abort(over());
    await end(beginning?.catch(() => undefined) ?? Promise.resolve(), how);
    state = 'stopped';
  }

  function stop(how: How): Promise<void> {
    stopping ??= shutDown(how);
    return stopping;
  }

  return {
    start() {
      if (stopping) return Promise.reject(over());
      starting ??= tryToStart();
      return starting;
    },
    stop,
    state: () => state,
    signal: stopAsked.signal,
    check() {
      if (stopping) throw over();
    },
  };
}
