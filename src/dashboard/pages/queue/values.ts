/** Values of settings: as they are typed into a field, as the API takes them, and as a person reads them. */
import { quoted } from '../../parts/shell.ts';
import { bytesText, durationText, numberText, shareText } from '../../parts/words.ts';
import { groupLimits, type SettingPart, type SettingRow } from '../../setting-rows.ts';
import { words } from '../../words/words.ts';

const { settings: said } = words.queue;
type Kind = SettingPart['kind'] | SettingRow['kind'];

/** In the language of the pages; what a newer daemon has says its name itself. */
export const settingName = (setting: string): string =>
  (said.names as Readonly<Record<string, string>>)[setting] ?? setting;

/** What takes a limit back. */
const NONE = 'none';

/** A value as one would type it. @example textOf('rate', { limit: 7, per: '90s', burst: 3 }) // '7/90s burst 3' */
export function textOf(kind: Kind, value: unknown): string {
  if (value === undefined) return '';
  if (value === false) return kind === 'flag' ? 'false' : NONE;
  if (Array.isArray(value)) return value.map((one) => textOf(kind, one)).join(', ');
  if ((kind === 'rate' || kind === 'rates') && typeof value === 'object' && value !== null) {
    const {
      limit,
      per,
      burst = 1,
    } = value as { readonly limit: number; readonly per: string; readonly burst?: number };
    return `${limit}/${per}${burst === 1 ? '' : ` burst ${burst}`}`;
  }
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** What was typed → what the API is given; it says what it refuses. Undefined: nothing was typed. */
export function typedValue(kind: Kind, text: string): unknown {
  const typed = text.trim();
  if (typed === '') return undefined;
  if (typed === NONE && ['limit', 'rate', 'rates', 'word', 'target'].includes(kind)) return false;
  if (kind === 'flag') return typed === 'true';
  if (kind === 'paths' || kind === 'names') return typed === NONE ? [] : typed.split(',').map((path) => path.trim());
  if (kind === 'rate') return typedRate(typed);
  if (kind === 'rates') return typedRates(typed);
  if (kind === 'target') return typedTarget(typed);
  return /^\d+(\.\d+)?$/.test(typed) ? Number(typed) : typed;
}

/** A URL, or JSON with more of it; what is no JSON stays a text, which the API refuses. */
function typedTarget(typed: string): unknown {
  if (!typed.startsWith('{')) return typed;
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}

const OWN_RATE = /^(\d+)\s*\/\s*(\d+\s*\w+)(?:,?\s*burst\s+(\d+))?$/;
const BURST = /^(\d+)\s*\/\s*([smhd])(?:,?\s*burst\s+(\d+))$/;

/** `10/s` is said as it is; a time of its own and a burst have parts. */
type TypedRate = string | { readonly limit: number; readonly per: string; readonly burst?: number };

function typedRate(typed: string): TypedRate {
  const [, limit, per, burst] = OWN_RATE.exec(typed) ?? BURST.exec(typed) ?? [];
  if (limit === undefined || per === undefined) return typed;
  const time = /^\d/.test(per) ? per : `1${per}`;
  return { limit: Number(limit), per: time, ...(burst !== undefined && { burst: Number(burst) }) };
}

/** One, or two with a comma between: `10/s, 500/h burst 50`; or none. */
export function typedRates(text: string): TypedRate | readonly TypedRate[] | false {
  const typed = text.trim();
  if (typed === NONE) return false;
  const rates = typed.split(/,(?!\s*burst)/).map((one) => typedRate(one.trim()));
  const [first = typed, ...others] = rates;
  return others.length === 0 ? first : rates;
}

/** What was typed, as flags say it. @example rateFlags('10/s, 500/h burst 50') // '--rate 10/s,500/h --burst 1,50' */
export function rateFlags(typed: string): string {
  const rates = [typedRates(typed.trim())].flat();
  const parts = rates.map((rate) => (typeof rate === 'object' && rate !== null ? rate : { said: rate, burst: 1 }));
  const bursts = parts.map((part) => ('burst' in part ? part.burst : 1));
  const texts = parts.map((part) => ('said' in part ? String(part.said) : textOf('rate', { ...part, burst: 1 })));
  const burst = bursts.every((one) => one === 1) ? '' : ` --burst ${bursts.join(',')}`;
  return `--rate ${quoted(texts.join(','))}${burst}`;
}

/** The parts that were typed. */
export function bodyOf(
  parts: readonly SettingPart[],
  values: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const typed = parts.map(({ name, kind }) => [name, typedValue(kind, values[name] ?? '')] as const);
  return Object.fromEntries(typed.filter(([, value]) => value !== undefined));
}

/** In one line, for people. */
export function saidText({ kind, name, parts }: SettingRow, value: unknown): string {
  if (value === undefined) return defaultText(name, kind);
  if (value === false) return kind === 'bounds' || kind === 'target' ? said.off : said.noLimit;
  if (value === true) return said.on;
  if (Array.isArray(value)) return value.length === 0 ? said.noPath : textOf(kind, value);
  if (typeof value !== 'object' || value === null) return valueText({ kind, name }, value);
  if (kind === 'groups') return said.groupsOwn(Object.keys(value).length);
  if (kind === 'rates' || kind === 'target') return textOf(kind, value);
  const given = value as Readonly<Record<string, unknown>>;
  return [...parts, ...groupLimits.filter(({ name: own }) => !parts.some((part) => part.name === own))]
    .flatMap((part) => partText(part, given[part.name]) ?? [])
    .join(' · ');
}

/** What is off is not said; what is on is a name alone. */
function partText({ name, kind }: SettingPart, value: unknown): string | undefined {
  if (value === undefined || (value === false && (kind === 'flag' || kind === 'word'))) return undefined;
  const part = said.parts[name] ?? name;
  if (kind === 'flag') return part;
  return `${part} ${value === false ? said.noLimit : valueText({ kind, name }, value)}`;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length as settings say it. @example msOf('500ms') // 500 */
export function msOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  const [, count, unit = ''] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(value)) ?? [];
  return count === undefined ? undefined : Number(count) * (UNITS_MS[unit] ?? Number.NaN);
}

/** Counts of bytes. */
const BYTES: ReadonlySet<string> = new Set(['maxBytes', 'bytes', 'resultBytesMax']);

/** One value as the pages write it everywhere else: a length of time, bytes, a share, a count. */
function valueText({ kind, name }: { readonly kind: Kind; readonly name: string }, value: unknown): string {
  const ms = kind === 'duration' ? msOf(value) : undefined;
  if (ms !== undefined) return durationText(ms);
  if (typeof value !== 'number') return textOf(kind, value);
  if (BYTES.has(name)) return bytesText(value);
  return kind === 'share' ? shareText(value) : numberText(value);
}

/** Of the leader, where nobody says another. */
const AHEAD_MS = 10;

function defaultText(name: string, kind: Kind): string {
  if (name === 'linger') return said.ofDaemon;
  if (name === 'ahead') return durationText(AHEAD_MS);
  if (kind === 'bounds' || kind === 'yes' || kind === 'target') return said.off;
  return kind === 'paths' ? said.noPath : said.noLimit;
}
