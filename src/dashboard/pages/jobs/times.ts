/** When a job is due, as a list says it: by the day and the clock of whoever looks. */
import { language, words } from '../../words/words.ts';

/** Where a day comes before its month. */
const DATES = language === 'en' ? 'en-GB' : language;
const CLOCK = new Intl.DateTimeFormat(language, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const SECONDS = new Intl.DateTimeFormat(language, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const DAY = new Intl.DateTimeFormat(DATES, { weekday: 'short', day: 'numeric', month: 'short' });
const LONG_DAY = new Intl.DateTimeFormat(DATES, { weekday: 'long', day: 'numeric', month: 'long' });
const YEAR = new Intl.DateTimeFormat(DATES, { day: 'numeric', month: 'short', year: 'numeric' });

/** What a calendar has: a due time may be any number. */
const isInstant = (ms: number): boolean => Math.abs(ms) <= 8.64e15;

/** Midnight, so many days from that of an instant. */
function midnight(ms: number, days = 0): number {
  const date = new Date(ms);
  date.setHours(0, 0, 0, 0);
  date.setDate(date.getDate() + days);
  return date.getTime();
}

/** The same hour of the clock, so many days later: also where the clock is changed between them. */
export function daysLater(ms: number, days: number): number {
  const date = new Date(ms);
  date.setDate(date.getDate() + days);
  return date.getTime();
}

/** `16:42:05`, with its ms where a list has several within one second. */
export const secondText = (ms: number): string => (isInstant(ms) ? SECONDS.format(ms) : String(ms));
export const clockText = (ms: number): string => (isInstant(ms) ? CLOCK.format(ms) : String(ms));

/** `Fri 27 Nov 17:00`; of today and tomorrow it says that word. */
export function dayText(ms: number, nowMs: number): string {
  if (!isInstant(ms)) return String(ms);
  if (isSameDay(ms, nowMs)) return `${words.jobs.today} ${CLOCK.format(ms)}`;
  return `${dateText(ms, nowMs)} ${CLOCK.format(ms)}`;
}

/** The clock alone, of today. */
export const momentText = (ms: number, nowMs: number): string =>
  isSameDay(ms, nowMs) ? clockText(ms) : dayText(ms, nowMs);

const isSameDay = (ms: number, nowMs: number): boolean => midnight(ms) === midnight(nowMs);

const dateText = (ms: number, nowMs: number): string =>
  new Date(ms).getFullYear() === new Date(nowMs).getFullYear() ? DAY.format(ms) : YEAR.format(ms);

export type Section = 'now' | 'today' | 'tomorrow' | 'later' | 'over';

/** Under which heading a job stands, and the clock beside it. */
export function sectionOf(dueMs: number, nowMs: number): Exclude<Section, 'over'> {
  if (dueMs <= nowMs) return 'now';
  if (dueMs < midnight(nowMs, 1)) return 'today';
  return dueMs < midnight(nowMs, 2) ? 'tomorrow' : 'later';
}

/** @example headingOf('tomorrow', nowMs) // Tomorrow, Friday 27 November */
export function headingOf(section: Section, nowMs: number): string {
  const name = words.jobs.sections[section];
  return section === 'tomorrow' ? `${name}, ${LONG_DAY.format(midnight(nowMs, 1))}` : name;
}

/** What a heading does not say yet of an instant below it. */
export function whenText(ms: number, section: Section, nowMs: number): string {
  if (!isInstant(ms)) return String(ms);
  if (section === 'today' || section === 'tomorrow') return clockText(ms);
  if (section === 'later') return `${dateText(ms, nowMs)} ${clockText(ms)}`;
  return isSameDay(ms, nowMs) ? secondText(ms) : `${dateText(ms, nowMs)} ${clockText(ms)}`;
}
