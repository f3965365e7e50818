/** Instants on the command line: `+30d` and `-2h` from now, `now`, or what the library takes. */
import type { InstantInput } from '../core/duration.ts';
import { durationMs } from '../core/duration.ts';

/**
 * A relative instant → a date; any other text stays as it is, for whoever knows the zone to read it.
 *
 * @throws DuestreamError `bad-input` for a sign without a duration
 * @example instantOf('+30d', 'until', Date.now())
 */
export function instantOf(text: string, what: string, nowMs: number): InstantInput {
  if (text === 'now') return new Date(nowMs);
  const [, sign, duration] = /^([+-])([^-].*)$/.exec(text) ?? [];
  if (sign === undefined || duration === undefined) return text;
  const ms = durationMs(duration, what);
  return new Date(sign === '+' ? nowMs + ms : nowMs - ms);
}
