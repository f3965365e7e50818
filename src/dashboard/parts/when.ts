/** Moments as people say them: today, yesterday, a weekday, a date; in the zone and the language of whoever looks. */
import { language } from '../words/words.ts';
import { dateText, longDayMonthText, timeText } from './clock.ts';

const DAY_MS = 86_400_000;
const RELATIVE = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });

/** Midnight of the day of a moment. */
export const midnightMs = (ms: number): number => new Date(ms).setHours(0, 0, 0, 0);

/** How many midnights lie between two moments; a day may have 23 or 25 hours. */
const daysBetween = (fromMs: number, toMs: number): number =>
  Math.round((midnightMs(toMs) - midnightMs(fromMs)) / DAY_MS);

/** `today`, `yesterday`, `20 Nov` */
export function dayText(ms: number, nowMs: number): string {
  const away = daysBetween(nowMs, ms);
  return Math.abs(away) <= 1 ? RELATIVE.format(away, 'day') : dateText(ms);
}

/** `Today`, `Yesterday, Wednesday 25 November`, `Tuesday 24 November` */
export function longDayText(ms: number, nowMs: number): string {
  const day = dayText(ms, nowMs);
  const away = daysBetween(nowMs, ms);
  if (away === 0) return capital(day);
  return Math.abs(away) === 1 ? `${capital(day)}, ${longDayMonthText(ms)}` : longDayMonthText(ms);
}

/** `today 16:45` */
export const momentText = (ms: number, nowMs: number): string => `${dayText(ms, nowMs)} ${timeText(ms)}`;

/** `yesterday 18:12 – 18:41`, `20 Nov – today 16:20` */
export function spanText(fromMs: number, toMs: number, nowMs: number): string {
  if (timeText(fromMs) === timeText(toMs) && toMs - fromMs < DAY_MS) return momentText(fromMs, nowMs);
  const isOneDay = daysBetween(fromMs, toMs) === 0;
  return isOneDay
    ? `${momentText(fromMs, nowMs)} – ${timeText(toMs)}`
    : `${dayText(fromMs, nowMs)} – ${momentText(toMs, nowMs)}`;
}

/** `Every day`, at the beginning of a line. */
export const capital = (text: string): string => `${text.slice(0, 1).toLocaleUpperCase(language)}${text.slice(1)}`;
