/** What one job has of its own where others take their queue's. */
import { type Backoff, exponential, fixed, ladder, linear } from './backoff.ts';
import type { JobOverrides } from './codec.ts';
import { type DurationInput, show } from './duration.ts';
import { DuestreamError } from './errors.ts';
import { wholeNumber } from './queue.ts';
import { durationIn, queueRanges } from './ranges.ts';

export interface OverrideOptions {
  /** How often handlers may fail before the job is dead, 1 to 1000. Default: the queue's. */
  readonly attempts?: number | undefined;
  /** How long a handler may run, 1 ms to 365 d. Default: the queue's. */
  readonly timeout?: DurationInput | undefined;
  /** `fixed(…)`, `linear(…)`, `exponential(…)` or `ladder(…)`; a function cannot be stored. Default: the queue's. */
  readonly backoff?: Backoff | undefined;
}

/** @throws DuestreamError `bad-input` that says what was given and what is allowed. */
export function overridesOf({ attempts, timeout, backoff }: OverrideOptions): JobOverrides {
  return {
    ...(attempts === undefined
      ? {}
      : { attempts: wholeNumber(attempts, { what: 'attempts', ...queueRanges.attempts }) }),
    ...(timeout === undefined ? {} : { timeoutMs: durationIn(timeout, 'timeout', queueRanges.timeoutMs) }),
    ...(backoff === undefined ? {} : { backoff: storable(backoff) }),
  };
}

/** Made anew by its own function, which checks it: it may come from a place without types. */
function storable(backoff: Backoff): Backoff {
  switch (backoff?.kind) {
    case 'fixed':
      return fixed(backoff.delayMs, backoff);
    case 'linear':
      return linear(backoff.delayMs, { max: backoff.maxMs, jitter: backoff.jitter });
    case 'exponential':
      return exponential(backoff.delayMs, { factor: backoff.factor, max: backoff.maxMs, jitter: backoff.jitter });
    case 'ladder':
      return ladder(backoff.stepsMs, backoff);
    default:
      throw new DuestreamError(
        'bad-input',
        `backoff is ${show(backoff)}; allowed for one job: fixed(…), linear(…), exponential(…), ladder(…); a function belongs to the queue, because it cannot be stored`,
      );
  }
}
