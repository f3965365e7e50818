/** The calls of a producer, between its first use and its stop. */
import { DuestreamError } from '../core/errors.ts';
import { openCommands } from '../redis/connection/connect.ts';
import { createOpening } from '../redis/connection/opening.ts';
import { furnish, type Parts } from './producer-parts.ts';
import type { ProducerSettings } from './settings.ts';

/** The calls of a producer: each is counted, so that a stop waits for it, and finds the connection or makes it. */
export interface Calls {
  /** @throws DuestreamError `stopped` */
  readonly check: () => void;
  /** What stands on the connection, if it was made. */
  readonly opened: () => Parts | undefined;
  readonly connected: () => Promise<Parts>;
  readonly run: <T>(work: (parts: Parts) => Promise<T>) => Promise<T>;
  /** Its input is read before anything else: what is wrong with it is said also while Redis is away. */
  readonly runChecked: <Input, T>(read: () => Input, work: (parts: Parts, input: Input) => Promise<T>) => Promise<T>;
  readonly stop: () => Promise<void>;
}

export function createCalls(settings: ProducerSettings): Calls {
  const stopAsked = new AbortController();
  /** Ends what goes on beside the calls, once they have settled. */
  const ending = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  let stopping: Promise<void> | undefined;
  const opening = createOpening({
    waitMs: settings.waitMs,
    open: () => [openCommands(settings)] as const,
    furnish: ([redis]) => furnish(settings, redis, ending.signal),
  });

  function check(): void {
    if (stopping) throw stopped();
  }

  function run<T>(work: (parts: Parts) => Promise<T>): Promise<T> {
    if (stopping) return Promise.reject(stopped());
    const parts = opening.opened();
    const working = parts ? work(parts) : opening.use().then(work);
    underWay.add(working);
    const done = () => underWay.delete(working);
    working.then(done, done);
    return working;
  }

  async function end(): Promise<void> {
    stopAsked.abort(stopped());
    await Promise.allSettled(underWay);
    await opening.opened()?.batch.quiet();
    ending.abort(stopped());
    opening.close();
  }

  return {
    ...{ check, run, opened: opening.opened },
    async connected() {
      check();
      return opening.connected(stopAsked.signal);
    },
    runChecked(read, work) {
      try {
        const input = read();
        return run((parts) => work(parts, input));
      } catch (error) {
        return Promise.reject(error);
      }
    },
    stop: () => (stopping ??= end()),
  };
}

const stopped = () => new DuestreamError('stopped', 'the producer was stopped; nothing was sent');
