/**
 * Times of a day, weekdays and dates of whoever looks, in the language that is chosen: each notation is made here once. A due
 * time may be any number, so what no calendar has is written as that number.
 */
import { language } from '../words/words.ts';

/** What a calendar has. */
export const isInstant = (ms: number): boolean => Math.abs(ms) <= 8.64e15;

function textIn(tag: string, parts: Intl.DateTimeFormatOptions): (ms: number) => string {
  const format = new Intl.DateTimeFormat(tag, parts);
  return (ms) => (isInstant(ms) ? format.format(ms) : String(ms));
}

/** `09:00` */
export const timeText = textIn(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

/** `09:00:05` */
export const secondText = textIn(language, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** `Fri` */
export const weekdayText = textIn(language, { weekday: 'short' });

/** `Fri 09:00` */
export const weekTimeText = (ms: number): string => `${weekdayText(ms)} ${timeText(ms)}`;

/** `Fri 09:00:05` */
export const weekSecondText = (ms: number): string => `${weekdayText(ms)} ${secondText(ms)}`;

// Dates. English has two orders: here the day comes first, everywhere.

const DAY_FIRST = language === 'en' ? 'en-GB' : language;

/** `27 Nov` */
export const dateText = textIn(DAY_FIRST, { day: 'numeric', month: 'short' });

/** `Fri 27 Nov` */
export const dayMonthText = textIn(DAY_FIRST, { weekday: 'short', day: 'numeric', month: 'short' });

/** `Friday 27 November` */
export const longDayMonthText = textIn(DAY_FIRST, { weekday: 'long', day: 'numeric', month: 'long' });

/** `27 November 2026` */
export const longDateText = textIn(DAY_FIRST, { day: 'numeric', month: 'long', year: 'numeric' });

/** `27 Nov 2026` */
export const dayMonthYearText = textIn(DAY_FIRST, { day: 'numeric', month: 'short', year: 'numeric' });

/** `Fri 27 Nov 2026` */
export const weekDayMonthYearText = textIn(DAY_FIRST, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
});

// Names of days and months that belong to no zone: the instants are those of UTC.

/** `Fri` */
export const utcWeekdayText = textIn(language, { weekday: 'short', timeZone: 'UTC' });

/** `27 November` */
export const utcDateText = textIn(DAY_FIRST, { day: 'numeric', month: 'long', timeZone: 'UTC' });

/** `November 2026` */
export const utcMonthText = textIn(language, { month: 'long', year: 'numeric', timeZone: 'UTC' });

/** `Europe/Berlin`: of whoever looks. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** `New York`: what people call `America/New_York`. */
export const cityText = (zone: string): string => zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ');

// In no language: as a machine writes it, with its zone.

const LOCAL = textIn('en-CA', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
});

/** `2026-11-22 23:14:05 GMT+1`: in the zone of whoever looks. */
export const localText = (ms: number): string => LOCAL(ms).replace(', ', ' ');

/** `2026-11-22T22:14:05.000Z` */
export const utcText = (ms: number): string => (isInstant(ms) ? new Date(ms).toISOString() : String(ms));

/** `22:14:05 UTC`, with its date where that is another; empty where the local time is the same. @param local as `localText` */
export function utcBeside(ms: number, local: string): string {
  const [day = '', time = ''] = utcText(ms)
    .replace(/\.\d+Z$/, '')
    .split('T');
  if (time === '' || local.startsWith(`${day} ${time}`)) return '';
  return local.startsWith(day) ? `${time} UTC` : `${day} ${time} UTC`;
}
