/** Numbers as people write them: `10M` jobs, `4KiB` of data; and the way back. */

const COUNT_UNITS: Readonly<Record<string, number>> = { '': 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9 };
const BYTE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  k: 2 ** 10,
  K: 2 ** 10,
  M: 2 ** 20,
};

/** A whole number in a range, also with a unit; undefined for anything else. */
function whole(
  text: string,
  { units, min, max }: { readonly units: Readonly<Record<string, number>>; readonly min: number; readonly max: number },
): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)$/.exec(text) ?? [];
  const times = digits === '' ? undefined : units[unit];
  if (times === undefined) return undefined;
  const value = Math.round(Number(digits) * times * 1e6) / 1e6;
  return Number.isInteger(value) && value >= min && value <= max ? value : undefined;
}

/** `10M`, `2.5k`, `1000`. */
export const countOf = (text: string, range: { readonly min: number; readonly max: number }): number | undefined =>
  whole(text, { units: COUNT_UNITS, ...range });

/** `200`, `4KiB`, `1.5kB`. */
export const bytesOf = (text: string, range: { readonly min: number; readonly max: number }): number | undefined =>
  whole(text, { units: BYTE_UNITS, ...range });

/** `4.07 GiB` */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${short(bytes / 1024 ** power)} ${units[power]}`;
}

/** Three digits that count: `0.187`, `4.07`, `437`, `10,000`. */
export function short(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
