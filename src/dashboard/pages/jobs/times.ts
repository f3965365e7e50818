/** When a job is due, as a list says it: by the day and the clock of whoever looks. */
import {
  dayMonthText,
  dayMonthYearText,
  isInstant,
  longDayMonthText,
  secondText,
  timeText,
} from '../../parts/clock.ts';
import { words } from '../../words/words.ts';

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

/** `Fri 27 Nov 17:00`; of today and tomorrow it says that word. */
export function dayText(ms: number, nowMs: number): string {
  if (!isInstant(ms)) return String(ms);
  if (isSameDay(ms, nowMs)) return `${words.jobs.today} ${timeText(ms)}`;
  return `${dateText(ms, nowMs)} ${timeText(ms)}`;
}

/** The clock alone, of today. */
export const momentText = (ms: number, nowMs: number): string =>
  isSameDay(ms, nowMs) ? timeText(ms) : dayText(ms, nowMs);

const isSameDay = (ms: number, nowMs: number): boolean => midnight(ms) === midnight(nowMs);

const dateText = (ms: number, nowMs: number): string =>
  new Date(ms).getFullYear() === new Date(nowMs).getFullYear() ? dayMonthText(ms) : dayMonthYearText(ms);

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
  return section === 'tomorrow' ? `${name}, ${longDayMonthText(midnight(nowMs, 1))}` : name;
}

/** What a heading does not say yet of an instant below it. */
export function whenText(ms: number, section: Section, nowMs: number): string {
  if (!isInstant(ms)) return String(ms);
  if (section === 'today' || section === 'tomorrow') return timeText(ms);
  if (section === 'later') return `${dateText(ms, nowMs)} ${timeText(ms)}`;
  return isSameDay(ms, nowMs) ? secondText(ms) : `${dateText(ms, nowMs)} ${timeText(ms)}`;
}
