/** Instants that people write as local times: one rule for single jobs, for the bounds of schedules and for ranges. */
import { beyondMs, type InstantInput, instantMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { DEFAULT_DST, type DstPolicy, instantsOf, type Zone } from './zone.ts';

const LOCAL = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;
const DAY_MS = 86_400_000;
const DAYS_ON = { before: 0, first: 0, last: 1, next: 1 } as const;

interface Meant {
  /** How the instant is called in an error. */
  readonly what: string;
  readonly zone: Zone;
  readonly dst: DstPolicy;
  /**
   * What a date without a time means. Where a range begins: the `first` millisecond of its day (default), or as a bound
   * that is left out the one `before`. Where a range ends: the `last`, or as a bound that is left out the `next`.
   */
  readonly date?: keyof typeof DAYS_ON;
}

/**
 * Epoch ms of an instant, or of a local time: a text without offset, which is meant in the zone.
 *
 * @throws DuestreamError `bad-input`, also for a local time that the policy `skip` loses in a clock change
 * @example momentOf('2026-03-08T02:30', { what: 'at', zone: parseZone('America/New_York'), dst: DEFAULT_DST }) // 03:30 EDT
 */
export function momentOf(input: InstantInput | undefined, meant: Meant): number | undefined {
  if (input === undefined) return undefined;
  if (typeof input !== 'string' || !LOCAL.test(input)) return instantMs(input, meant.what);
  const atMs = localMs(input, meant);
  if (atMs !== undefined) return atMs;
  const { what, zone } = meant;
  throw new DuestreamError('bad-input', `${what} is ${show(input)}; allowed: a local time that exists in ${zone.name}`);
}

function localMs(text: string, { zone, dst, date = 'first' }: Meant): number | undefined {
  if (!isDate(text.slice(0, 10))) return undefined;
  if (!text.includes('T')) {
    const [dayMs = Number.NaN] = instantsOf(zone, Date.parse(`${text}T00:00Z`) + DAYS_ON[date] * DAY_MS, DEFAULT_DST);
    return date === 'before' || date === 'last' ? dayMs - 1 : dayMs;
  }
  const [atMs] = instantsOf(zone, Date.parse(`${text}Z`), dst);
  return atMs === undefined ? undefined : atMs + beyondMs(text);
}

/** Date.parse takes 30 February for 2 March. */
function isDate(text: string): boolean {
  const dayMs = Date.parse(`${text}T00:00Z`);
  return Number.isFinite(dayMs) && new Date(dayMs).toISOString().startsWith(text);
}
