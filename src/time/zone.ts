/**
 * Time zones: which offset from UTC holds when, and what a wall-clock time means. The rules are those of the running
 * Node (IANA, through luxon). Nothing here is stored, so a new release of the rules takes effect with the next start.
 *
 * A clock change makes a *gap* (times that no clock shows) or an *overlap* (times that it shows twice). There is one
 * policy for both, the same for schedules and for single local times.
 */
import { IANAZone } from 'luxon';
import { nearest } from '../kernel/checks.ts';
import { beyondMs, type InstantInput, instantMs, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** What becomes of wall-clock times that a clock change takes away or doubles. */
export interface DstPolicy {
  /** A time in the gap: `shift` moves it by the length of the gap (02:30 becomes 03:30), `skip` drops it. */
  readonly gap: 'shift' | 'skip';
  /** A time that comes twice: at its `first` coming, its `second`, or `both`. */
  readonly overlap: 'first' | 'second' | 'both';
}

export const DEFAULT_DST: DstPolicy = Object.freeze({ gap: 'shift', overlap: 'first' });

/** A stretch of time with one offset. Wall-clock ms = epoch ms + offset. */
export interface Stretch {
  readonly fromMs: number;
  /** Where the next begins. */
  readonly toMs: number;
  readonly offsetMs: number;
  /** The offset before and after it; its own where nothing changes there. */
  readonly beforeMs: number;
  readonly afterMs: number;
}

export interface Zone {
  readonly name: string;
  readonly offsetMs: (atMs: number) => number;
  /** The stretch that an instant lies in, cut at the ends of the neighbouring years. */
  readonly stretchAt: (atMs: number) => Stretch;
}

const DAY_MS = 86_400_000;
/** No two clock changes of one place are nearer to each other than this. */
const STEP_MS = 5 * DAY_MS;
const zones = new Map<string, Zone>();

/**
 * A zone as somebody says it: UTC, or a name with a slash. An abbreviation is of several places: Node takes BST for
 * Bangladesh, and another Node may not know it.
 *
 * @throws DuestreamError `bad-input`
 * @example parseZone('Europe/Berlin').offsetMs(Date.UTC(2026, 6, 1)) // 7200000
 */
export function parseZone(input: unknown): Zone {
  if (typeof input === 'string' && (input.includes('/') || /^utc$/i.test(input))) return zoneNamed(input);
  throw notAZone(input);
}

/**
 * A zone that was accepted before, perhaps under a name that is not accepted any more.
 *
 * @throws DuestreamError `bad-input` for a name that this Node does not know
 */
export function zoneNamed(input: unknown): Zone {
  if (typeof input === 'string') {
    const known = zones.get(input) ?? (input.length <= 64 && IANAZone.isValidZone(input) ? zoneOf(input) : undefined);
    if (known) {
      zones.set(input, known);
      return known;
    }
  }
  throw notAZone(input);
}

const notAZone = (input: unknown): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `zone is ${show(input)};${hintFor(input)} allowed: UTC or an IANA name with a slash such as Europe/Berlin (a fixed offset is Etc/GMT-2 for +02:00)`,
  );

/** Where most who write such an abbreviation are, or mean. */
const PLACES: Readonly<Record<string, string>> = {
  ...{ GMT: 'UTC', Z: 'UTC', BST: 'Europe/London', WET: 'Europe/Lisbon', WEST: 'Europe/Lisbon' },
  ...{ CET: 'Europe/Berlin', CEST: 'Europe/Berlin', MET: 'Europe/Berlin', EET: 'Europe/Athens', EEST: 'Europe/Athens' },
  ...{ MSK: 'Europe/Moscow', EST: 'America/New_York', EDT: 'America/New_York', CST: 'America/Chicago' },
  ...{ CDT: 'America/Chicago', MST: 'America/Denver', MDT: 'America/Denver', PST: 'America/Los_Angeles' },
  ...{ PDT: 'America/Los_Angeles', AST: 'America/Halifax', ADT: 'America/Halifax', NST: 'America/St_Johns' },
  ...{ AKST: 'America/Anchorage', HST: 'Pacific/Honolulu', SST: 'Pacific/Pago_Pago', BRT: 'America/Sao_Paulo' },
  ...{ ART: 'America/Argentina/Buenos_Aires', IST: 'Asia/Kolkata', JST: 'Asia/Tokyo', KST: 'Asia/Seoul' },
  ...{ HKT: 'Asia/Hong_Kong', SGT: 'Asia/Singapore', CAT: 'Africa/Maputo', EAT: 'Africa/Nairobi', WAT: 'Africa/Lagos' },
  ...{ SAST: 'Africa/Johannesburg', AEST: 'Australia/Sydney', AEDT: 'Australia/Sydney', ACST: 'Australia/Adelaide' },
  ...{ ACT: 'Australia/Sydney', AWST: 'Australia/Perth', NZST: 'Pacific/Auckland', NZDT: 'Pacific/Auckland' },
};

/** The name that ends as this one does, as Europe/Berlin for Berlin, or the nearest one. */
function hintFor(input: unknown): string {
  if (typeof input !== 'string' || input.length > 64) return '';
  const known = Intl.supportedValuesOf('timeZone');
  const place = PLACES[input.trim().toUpperCase()];
  if (place !== undefined) return ` it names no single place; did you mean ${place}?`;
  const city = `/${input.trim().replace(/ /g, '_').toLowerCase()}`;
  const near = known.find((name) => name.toLowerCase().endsWith(city)) ?? nearest(input, known);
  return near === undefined ? '' : ` did you mean ${near}?`;
}

/**
 * The instants that a wall-clock time means: none, one, or two.
 *
 * @example instantsOf(parseZone('America/New_York'), Date.UTC(2026, 2, 8, 2, 30), DEFAULT_DST) // 03:30 EDT
 */
export function instantsOf(zone: Zone, wallMs: number, dst: DstPolicy): readonly number[] {
  // Offsets lie between -12 h and +14 h, so the one before a change is seen 15 h back, the one after it 13 h ahead.
  const before = zone.offsetMs(wallMs - 15 * 3_600_000);
  const after = zone.offsetMs(wallMs + 13 * 3_600_000);
  const meant = [wallMs - before, wallMs - after].filter((atMs) => zone.offsetMs(atMs) === wallMs - atMs);
  const [first, second] = [...new Set(meant)].sort((a, b) => a - b);
  if (first === undefined) return dst.gap === 'shift' ? [wallMs - before] : [];
  if (second === undefined) return [first];
  return dst.overlap === 'both' ? [first, second] : [dst.overlap === 'first' ? first : second];
}

function zoneOf(name: string): Zone {
  const iana = IANAZone.create(name);
  // Asking the tables of Node takes microseconds, and a walk asks for each instant.
  const askedMs = (atMs: number) => Math.round(iana.offset(atMs) * 60_000);
  const offsetMs = (atMs: number) => (last && atMs >= last.fromMs && atMs < last.toMs ? last.offsetMs : askedMs(atMs));
  const changes = new Map<number, readonly number[]>();
  let last: Stretch | undefined;

  /** The instants at which the offset changes in a year of UTC. */
  function changesOf(year: number): readonly number[] {
    const known = changes.get(year) ?? findChanges(Date.UTC(year, 0), Date.UTC(year + 1, 0), offsetMs);
    changes.set(year, known);
    return known;
  }

  return Object.freeze({
    name,
    offsetMs,
    stretchAt(atMs: number): Stretch {
      if (last && atMs >= last.fromMs && atMs < last.toMs) return last;
      const year = new Date(atMs).getUTCFullYear();
      const near = [year - 1, year, year + 1].flatMap(changesOf);
      const fromMs = near.findLast((changeMs) => changeMs <= atMs) ?? Date.UTC(year - 1, 0);
      const toMs = near.find((changeMs) => changeMs > atMs) ?? Date.UTC(year + 2, 0);
      const offsets = { offsetMs: offsetMs(atMs), beforeMs: offsetMs(fromMs - 1), afterMs: offsetMs(toMs) };
      last = { fromMs, toMs, ...offsets };
      return last;
    },
  });
}

function findChanges(fromMs: number, toMs: number, offsetMs: (atMs: number) => number): readonly number[] {
  const found: number[] = [];
  for (let low = fromMs; low < toMs; low += STEP_MS) {
    const high = Math.min(low + STEP_MS, toMs);
    if (offsetMs(low) !== offsetMs(high)) found.push(changeBetween(low, high, offsetMs));
  }
  return found;
}

/** By halves, to the millisecond. */
function changeBetween(fromMs: number, toMs: number, offsetMs: (atMs: number) => number): number {
  let [low, high] = [fromMs, toMs];
  const before = offsetMs(low);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetMs(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

// Instants that people write as local times: one rule for single jobs, for the bounds of schedules and for ranges.

const LOCAL = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?$/;
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
  const wallMs = Date.parse(`${text}Z`);
  // Such as second 60, which the form allows.
  if (Number.isNaN(wallMs)) return undefined;
  const [atMs] = instantsOf(zone, wallMs, dst);
  return atMs === undefined ? undefined : atMs + beyondMs(text);
}

/** Date.parse takes 30 February for 2 March. */
function isDate(text: string): boolean {
  const dayMs = Date.parse(`${text}T00:00Z`);
  return Number.isFinite(dayMs) && new Date(dayMs).toISOString().startsWith(text);
}
