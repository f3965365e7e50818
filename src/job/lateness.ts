/** Whether a job is too late to start: past an instant, later than a most lateness, or both. */
import type { HeaderOptions } from './fields.ts';

/**
 * Whether a job is too late to start. `start.lua` judges by the same rule; this is for whoever plays it without Redis.
 *
 * @param sinceMs the due time of a retry or a defer, else the asked due time
 */
export function isTooLate(
  { expiresAtMs = Number.POSITIVE_INFINITY, maxLatenessMs = Number.POSITIVE_INFINITY, onLate }: HeaderOptions,
  { nowMs, sinceMs }: { readonly nowMs: number; readonly sinceMs: number },
): boolean {
  return onLate !== 'run' && (nowMs > expiresAtMs || nowMs - sinceMs > maxLatenessMs);
}
