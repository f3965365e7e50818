/** What a run says of one thing that it tried, and how its figures are made. */
import type { Finding } from '../inspect/doctor/check.ts';
import { systemClock } from '../kernel/clock.ts';

/** `not tried`: nothing is known, and `saw` says why. */
export interface Row {
  readonly row: string;
  readonly status: 'held' | 'failed' | 'not tried';
  readonly saw: string;
  readonly tookMs: number;
  /** What to do; undefined when all is well. */
  readonly advice?: string;
  /** By name, with the unit at its end. */
  readonly figures?: Readonly<Record<string, number>>;
}

export type Outcome = Omit<Row, 'row' | 'tookMs'>;

/** A warning of `doctor` holds, with its advice. */
export function outcomeOf({ status, saw, advice }: Finding): Outcome {
  const told = { saw, ...(advice === undefined ? {} : { advice }) };
  if (status === 'warn' && saw === 'not visible') return { status: 'not tried', ...told };
  return { status: status === 'fail' ? 'failed' : 'held', ...told };
}

const LOOK_MS = 20;

/** Waits until something is so. False: it was not within this time. @throws the signal's reason */
export async function until(
  isSo: () => boolean,
  { boundMs, signal }: { readonly boundMs: number; readonly signal: AbortSignal },
) {
  const endMs = systemClock.monotonicMs() + boundMs;
  while (!isSo()) {
    if (systemClock.monotonicMs() > endMs) return false;
    await systemClock.sleep(LOOK_MS, signal);
    signal.throwIfAborted();
  }
  return true;
}
