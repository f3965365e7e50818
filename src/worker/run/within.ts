/** A promise that is given so much time. */

import { timedOut } from '../../job/judge.ts';
import type { Clock } from '../../kernel/clock.ts';

/** What the promise settles to, or the error of a time-out when its time is up. */
export async function within<T>(
  promise: Promise<T>,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
): Promise<T> {
  let callOff: (() => void) | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    callOff = clock.timer(timeoutMs, () => reject(timedOut(timeoutMs)));
  });
  return Promise.race([promise, tooLate]).finally(() => callOff?.());
}
