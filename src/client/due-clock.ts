/**
 * What due times are counted from: the clock of the Redis primary, known here as an offset to this process's monotonic clock
 * and measured with TIME. A delay becomes an absolute due once, so that a call that is repeated is the same call.
 *
 *        sent ──────────▶ server reads S ──────────▶ received
 *        S − sent is the largest offset possible (the way there took no time), S − received the smallest.
 *
 * The largest is taken: a due time counted from a clock that is behind would be early, and early is a broken promise, while
 * one counted from a clock ahead is late by at most the way there, usually well below a millisecond. Of a few samples
 * the smallest of these upper bounds is still an upper bound, and the sharpest.
 */
import type { Clock } from '../core/clock.ts';

export interface DueClock {
  /** Epoch ms of the primary at a monotonic moment, never behind it by more than clocks drift in 30 s. */
  readonly epochMs: (monotonicMs: number) => number;
  /**
   * Undefined when `epochMs` may be used at once, which is nearly always; a measurement that is merely due runs beside.
   * After a long pause, a jump of this machine's clock (suspended, stepped) or a doubt it is a promise to wait for; it
   * resolves even if Redis does not answer, because the old offset is then the best there is.
   */
  readonly settle: () => Promise<void> | undefined;
  /** Another primary may answer now: measures again. */
  readonly doubt: () => void;
  /** Measures. @throws whatever TIME failed with */
  readonly measure: () => Promise<void>;
}

interface Timed {
  readonly time: () => Promise<readonly (number | string)[]>;
}

/** Trips per measurement: the first one after an idle time is slower than the rest. */
const TRIPS = 3;
/** Two good clocks part by about 1 ms in this time. */
const FRESH_MS = 30_000;
const STALE_MS = 120_000;
/** Wall and monotonic clock disagreeing by this much about how long ago a measurement was. */
const JUMP_MS = 100;
/** At most one try per second while Redis is away. */
const TRY_MS = 1000;

export function createDueClock(redis: Timed, clock: Clock): DueClock {
  let offsetMs = clock.wallMs() - clock.monotonicMs();
  let taken = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: 0 };
  let triedMs = Number.NEGATIVE_INFINITY;
  let measuring: Promise<void> | undefined;
  let doubted = false;

  async function measure(): Promise<void> {
    let tightest = Number.POSITIVE_INFINITY;
    for (let trip = 0; trip < TRIPS; trip += 1) {
      const sentMs = clock.monotonicMs();
      const [seconds, micros] = await redis.time();
      tightest = Math.min(tightest, Number(seconds) * 1000 + Number(micros) / 1000 - sentMs);
    }
    offsetMs = tightest;
    doubted = false;
    taken = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }

  /** One measurement at a time, however many wait for it. It fails in silence: the calls themselves report an outage. */
  function beside(): Promise<void> {
    triedMs = clock.monotonicMs();
    measuring ??= measure()
      .catch(() => undefined)
      .finally(() => {
        measuring = undefined;
      });
    return measuring;
  }

  return {
    epochMs: (monotonicMs) => monotonicMs + offsetMs,
    measure,
    doubt() {
      doubted = true;
      void beside();
    },
    settle() {
      const nowMs = clock.monotonicMs();
      const ageMs = nowMs - taken.monotonicMs;
      const jumped = Math.abs(clock.wallMs() - taken.wallMs - ageMs) > JUMP_MS;
      if (ageMs < FRESH_MS && !jumped && !doubted) return undefined;
      if (!measuring && nowMs - triedMs < TRY_MS) return undefined;
      const measured = beside();
      return jumped || doubted || ageMs > STALE_MS ? measured : undefined;
    },
  };
}
