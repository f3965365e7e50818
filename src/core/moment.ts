/** Instants that people write as local times: one rule for single jobs, and for the bounds of schedules. */
import { beyondMs, type InstantInput, instantMs, show } from './duration.ts';
import { DuestreamError } from './errors.ts';
import { type DstPolicy, instantsOf, type Zone } from './zone.ts';

/**
 * Epoch ms of an instant, or of a local time: a text without offset, which is meant in the zone.
 *
 * @throws DuestreamError `bad-input`, also for a local time that the policy `skip` loses in a clock change
 * @example momentOf('2026-03-08T02:30', { what: 'at', zone: parseZone('America/New_York'), dst: DEFAULT_DST }) // 03:30 EDT
 */
export function momentOf(
  input: InstantInput | undefined,
  { what, zone, dst }: { readonly what: string; readonly zone: Zone; readonly dst: DstPolicy },
): number | undefined {
  if (input === undefined) return undefined;
  const local = typeof input === 'string' && /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?$/.test(input);
  if (!local) return instantMs(input, what);
  const wallMs = isDate(input.slice(0, 10))
    ? Date.parse(`${input.includes('T') ? input : `${input}T00:00`}Z`)
    : Number.NaN;
  const [atMs] = Number.isFinite(wallMs) ? instantsOf(zone, wallMs, dst) : [];
  if (atMs === undefined) {
    throw new DuestreamError(
      'bad-input',
      `${what} is ${show(input)}; allowed: a local time that exists in ${zone.name}`,
    );
  }
  return atMs + beyondMs(input);
}

/** Date.parse takes 30 February for 2 March. */
function isDate(text: string): boolean {
  const dayMs = Date.parse(`${text}T00:00Z`);
  return Number.isFinite(dayMs) && new Date(dayMs).toISOString().startsWith(text);
}
