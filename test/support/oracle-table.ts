/**
 * The table that our instants are compared on: zones × expressions. Each expression is compared over whole years where it
 * fires hourly or less often, and two days around every clock change of the zone in any case.
 */
import { parseZone } from '../../src/time/zone.ts';

export interface Row {
  readonly cron: string;
  /** It counts hours as they pass: its hours are `*` or every n-th. Clock changes leave it alone. */
  readonly everyHour?: boolean;
  /** Denser than hourly: around clock changes only. */
  readonly dense?: boolean;
  /** Whole years more than those of the zone, for what comes rarely. */
  readonly years?: readonly number[];
  /** Where the others spell it differently. */
  readonly croner?: string;
  readonly croniter?: string;
}

export const ROWS: readonly Row[] = [
  { cron: '0 * * * *', everyHour: true },
  { cron: '15 */6 * * *', everyHour: true },
  { cron: '0 0 * * *' },
  { cron: '30 1 * * *' },
  { cron: '30 2 * * *' },
  { cron: '0 2,3 * * *' },
  { cron: '0 9-17 * * MON-FRI' },
  { cron: '30 0 31 * *' },
  { cron: '15 2 L * *', croniter: '15 2 l * *' },
  { cron: '45 23 29 2 *', years: [2024, 2025, 2028] },
  { cron: '0 8 1,15 * FRI' },
  { cron: '20 1 * * 0#2' },
  { cron: '30 3 * * 5L', croner: '30 3 * * 5#L', croniter: '30 3 * * L5' },
  // Weeks 52, 53 and 1.
  { cron: '0 7 * 1,12 SUN,4', years: [2020, 2021, 2027] },
  { cron: '*/15 * * * *', everyHour: true, dense: true },
  { cron: '*/20 1-3 * * *', dense: true },
  { cron: '*/30 0-23/2 * * *', dense: true },
  { cron: '5,35 0-3 * * SUN,FRI,SAT', dense: true },
  { cron: '*/5 0 */3 * * *', everyHour: true, dense: true, croniter: '0 */3 * * * */5' },
];

/** Years beside 2026 in which a zone did what few do. */
const NAMED_YEARS: Readonly<Record<string, readonly number[]>> = {
  'Africa/Cairo': [2014, 2023],
  'Africa/Casablanca': [2018, 2025],
  'Antarctica/Troll': [2025],
  'Australia/Lord_Howe': [2025],
  'Europe/Istanbul': [2016],
  'Pacific/Apia': [2011],
};

export const ZONES: readonly string[] = [
  ...['UTC', 'Africa/Cairo', 'Africa/Casablanca', 'Africa/El_Aaiun', 'Africa/Johannesburg', 'Africa/Lagos'],
  ...['America/Adak', 'America/Anchorage', 'America/Argentina/Buenos_Aires', 'America/Asuncion', 'America/Bogota'],
  ...['America/Chicago', 'America/Denver', 'America/Halifax', 'America/Havana', 'America/Los_Angeles'],
  ...['America/Mexico_City', 'America/New_York', 'America/Nuuk', 'America/Phoenix', 'America/Santiago'],
  ...['America/Sao_Paulo', 'America/Scoresbysund', 'America/St_Johns', 'America/Vancouver', 'Antarctica/Troll'],
  ...['Asia/Beirut', 'Asia/Dhaka', 'Asia/Gaza', 'Asia/Jerusalem', 'Asia/Kathmandu', 'Asia/Kolkata'],
  ...['Asia/Shanghai', 'Asia/Tehran', 'Asia/Tokyo', 'Atlantic/Azores', 'Australia/Adelaide', 'Australia/Eucla'],
  ...['Australia/Lord_Howe', 'Australia/Sydney', 'Europe/Berlin', 'Europe/Chisinau', 'Europe/Dublin'],
  ...['Europe/Istanbul', 'Europe/Lisbon', 'Europe/London', 'Pacific/Apia', 'Pacific/Auckland', 'Pacific/Chatham'],
  ...['Pacific/Easter', 'Pacific/Kiritimati', 'Pacific/Norfolk'],
];

/** Instants after the first, up to the second. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

const YEAR = 2026;
const AROUND_MS = 48 * 3_600_000;

export const yearsOf = (zone: string): readonly number[] => [...(NAMED_YEARS[zone] ?? []), YEAR];

export const spanOf = (year: number): Span => ({ fromMs: Date.UTC(year, 0), toMs: Date.UTC(year + 1, 0) });

/** Every change of a zone's offset within a span, by our reading: when, and the offset from then on. */
export function changesOf(
  name: string,
  { fromMs, toMs }: Span,
): readonly (readonly [atMs: number, offsetMs: number])[] {
  const zone = parseZone(name);
  const changes: (readonly [number, number])[] = [];
  for (let stretch = zone.stretchAt(fromMs); stretch.toMs < toMs; stretch = zone.stretchAt(stretch.toMs)) {
    if (stretch.afterMs !== stretch.offsetMs) changes.push([stretch.toMs, stretch.afterMs]);
  }
  return changes;
}

/** Whole years of an expression in a zone. */
export function wholeYears(zone: string, { dense, years = [] }: Row): readonly Span[] {
  return dense ? [] : [...new Set([...yearsOf(zone), ...years])].map(spanOf);
}

/** Two days before and after every clock change. Changes that are nearer to each other are within one. */
export function aroundChanges(zone: string): readonly Span[] {
  return yearsOf(zone)
    .flatMap((year) => changesOf(zone, spanOf(year)))
    .map(([atMs]) => ({ fromMs: atMs - AROUND_MS, toMs: atMs + AROUND_MS }));
}
