/**
 * A job that a worker holds until it is due, and that a call wants to change. The script has told the worker to let it go, and the
 * call is made again: a worker that lives lets it go in a round trip or two. Where the worker has died the job is held until it is
 * due, for up to 100 ms; where the clock of Redis was set back since, for up to ten seconds.
 */
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError, Indeterminate } from '../../kernel/errors.ts';

/** So soon Redis is asked again. */
const PAUSE_MS = 1;
/** However small the budget of a call is: it is one for outages, and Redis has answered. */
const LEAST_MS = 1000;

/** Monotonic ms at which a call that begins now gives up. */
export const letGoByMs = ({ clock, budgetMs }: { readonly clock: Clock; readonly budgetMs: number }): number =>
  clock.monotonicMs() + Math.max(budgetMs, LEAST_MS);

/** A pause before the call is made again. @returns false: it has no time for that */
export async function pausedForHeld(clock: Clock, untilMs: number): Promise<boolean> {
  if (clock.monotonicMs() >= untilMs) return false;
  await clock.sleep(PAUSE_MS);
  return true;
}

/** @param isDoubtful an earlier try may have been carried out */
export function stillHeld(id: string, isDoubtful: boolean): DuestreamError {
  const said = `a worker holds job ${id} until it is due, and has not let it go`;
  return isDoubtful
    ? new Indeterminate(`${said}; the reply of Redis to an earlier try was lost: repeat the same call`)
    : new DuestreamError('unavailable', `${said}; the job was not changed: repeat the same call`);
}
