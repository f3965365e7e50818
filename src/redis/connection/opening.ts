/**
 * Connections that are made when they are first needed, and what stands on them. Whoever needs them at the same time
 * waits for the same ones.
 *
 *  none ──first use──▶ dialling ──ready, and the parts are made──▶ open (ioredis dials again after every outage)
 *   ▲                     │
 *   └──── failed: closed ─┘
 *
 * So a first use that fails leaves nothing behind, and the next one dials anew.
 */
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { close, type Redis, whenReady } from './connect.ts';
import { type RetryPolicy, withRetry } from './outage.ts';

export interface Opening<Parts> {
  /** What stands on the connections, as soon as they can carry commands. @throws DuestreamError, or the signal's reason */
  readonly use: (signal?: AbortSignal) => Promise<Parts>;
  /** The same without waiting: undefined until they were ready once. */
  readonly opened: () => Parts | undefined;
  /** Like `use`, and waits besides until they are connected again after an outage. */
  readonly connected: (signal?: AbortSignal) => Promise<Parts>;
  /** Closes the connections. Twice is fine; a use that waits is rejected. */
  readonly close: () => void;
}

export function createOpening<Connections extends readonly Redis[], Parts>(of: {
  readonly open: () => Connections;
  /** Makes the parts, once per connections. What it rejects with is what the use is rejected with. */
  readonly furnish: (connections: Connections) => Promise<Parts>;
  /** How long a use waits for Redis. */
  readonly waitMs: number;
}): Opening<Parts> {
  const closing = createAbort();
  let connections: Connections | undefined;
  let parts: Parts | undefined;
  let attempt: Promise<Parts> | undefined;

  async function use(signal?: AbortSignal): Promise<Parts> {
    if (parts) return parts;
    const joined = attempt !== undefined;
    try {
      return await until(attempt ?? dial(), signal);
    } catch (error) {
      // Whoever came while others were dialling is owed a whole attempt as well.
      if (!joined || !isAway(error) || closing.signal.aborted) throw error;
      return parts ?? until(attempt ?? dial(), signal);
    }
  }

  function dial(): Promise<Parts> {
    const trying = connect().finally(() => {
      attempt = undefined;
    });
    attempt = trying;
    // Those who wait may have gone.
    trying.catch(() => undefined);
    return trying;
  }

  async function connect(): Promise<Parts> {
    const { signal } = closing;
    signal.throwIfAborted();
    const mine = of.open();
    connections = mine;
    try {
      await Promise.all(mine.map((one) => whenReady(one, of.waitMs, signal)));
      const made = await of.furnish(mine);
      signal.throwIfAborted();
      parts = made;
      return made;
    } catch (error) {
      hangUp();
      throw error;
    }
  }

  async function connected(signal?: AbortSignal): Promise<Parts> {
    const found = await use(signal);
    await Promise.all((connections ?? []).map((one) => whenReady(one, of.waitMs, signal)));
    return found;
  }

  function hangUp(): void {
    for (const one of connections ?? []) close(one);
    connections = undefined;
  }

  function end(): void {
    closing.abort(closed());
    hangUp();
  }

  return { use, opened: () => parts, connected, close: end };
}

const closed = () => new DuestreamError('stopped', 'the connection was closed');
const isAway = (error: unknown) => error instanceof DuestreamError && error.code === 'unavailable';

/** What a promise resolves with, unless the signal comes first. @throws the signal's reason */
function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

// What a service asks of Redis while it starts. Each call is repeated within one bound, so no lost reply ends a start.
// A start that gives up is `unavailable` and never in doubt: its service is stopped, and the same start may be made
// again.

/** How long a start waits for Redis, and how long it repeats a call. */
export const START_WITHIN_MS = 5000;

export const startPolicy = (clock: Clock, signal?: AbortSignal): RetryPolicy => ({
  clock,
  budgetMs: START_WITHIN_MS,
  ...(signal && { signal }),
});

/** @throws DuestreamError `unavailable` or `refused`, or what the call itself throws */
export const whileStarting = <T>(
  service: string,
  call: () => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<T> =>
  withRetry(`start of the ${service}`, call, {
    ...startPolicy(clock, signal),
    harmless: `the ${service} did not start`,
  });
