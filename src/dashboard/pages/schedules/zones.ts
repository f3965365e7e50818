/** Clock changes, as the browser knows them: when a zone goes forward or back next, and which hour is then not there, or twice. */

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
/** A year has them all. */
const DAYS_MAX = 400;

export interface ClockChange {
  readonly atMs: number;
  /** How much the clock goes forward; less than 0: back. */
  readonly byMs: number;
  /** Undefined: the zone of whoever looks. */
  readonly zone: string | undefined;
}

/** The first one after a moment, in the zone of whoever looks (`mine`; left out: that of the browser) or, where that has none, in one of these. */
export function nextClockChange(zones: readonly string[], afterMs: number, mine?: string): ClockChange | undefined {
  const own = changeIn(mine, afterMs);
  if (own !== undefined) return { ...own, zone: undefined };
  return zones.map((zone) => changeIn(zone, afterMs)).find((change) => change !== undefined);
}

function changeIn(zone: string | undefined, afterMs: number): ClockChange | undefined {
  const offset = offsetsOf(zone);
  if (offset === undefined) return undefined;
  for (let day = 0; day < DAYS_MAX; day += 1) {
    const [fromMs, toMs] = [afterMs + day * DAY_MS, afterMs + (day + 1) * DAY_MS];
    const byMs = offset(toMs) - offset(fromMs);
    if (byMs !== 0) return { atMs: momentOf(offset, fromMs, toMs), byMs, zone };
  }
  return undefined;
}

/** To the minute: no clock changes between two. */
function momentOf(offset: (ms: number) => number, fromMs: number, toMs: number): number {
  let [low, high] = [fromMs, toMs];
  while (high - low > 1000) {
    const middle = (low + high) / 2;
    if (offset(middle) === offset(fromMs)) low = middle;
    else high = middle;
  }
  return Math.round(high / MINUTE_MS) * MINUTE_MS;
}

/** Undefined for a zone that the browser does not know. */
function offsetsOf(zone: string | undefined): ((ms: number) => number) | undefined {
  try {
    const parts = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    return (ms) => {
      const name = parts.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? '';
      const [, sign, hours = '0', minutes = '0'] = /([+-])(\d{2}):(\d{2})/.exec(name) ?? [];
      return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * MINUTE_MS;
    };
  } catch {
    return undefined;
  }
}
