/** The rule of a schedule in words, where it is one of those that people write; else undefined: then the rule speaks for itself. */
import { utcDateText, utcWeekdayText } from '../../parts/clock.ts';
import { words } from '../../words/words.ts';

const say = words.schedules.rule;

interface Rule {
  readonly cron?: unknown;
  readonly every?: unknown;
}

/** @example ruleText({ cron: '0 17 * * 1-5' }) // Mon – Fri at 17:00 */
export function ruleText({ cron, every }: Rule): string | undefined {
  if (every !== undefined) return say.every(everyText(every));
  if (typeof cron !== 'string') return undefined;
  const fields = (ALIASES[cron.trim()] ?? cron).trim().split(/\s+/);
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields;
  if (fields.length !== 5) return undefined;
  const times = timesText(minute, hour);
  const days = daysText({ day, month, weekday });
  if (times === undefined || days === undefined) return undefined;
  if (!times.isOften) return say.at(days, times.text);
  return days === '' ? times.text : `${times.text}, ${days}`;
}

const ALIASES: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

/** `15m` → `15 min`; a number is ms. */
function everyText(every: unknown): string {
  const [, count, unit] = /^(\d+)\s*(ms|s|m|h|d)$/.exec(String(every)) ?? [];
  if (count === undefined) return typeof every === 'number' ? `${every / 1000} ${words.units.s}` : String(every);
  const { ms, s, min, h, d } = words.units;
  return `${count} ${{ ms, s, m: min, h, d }[unit ?? ''] ?? unit}`;
}

interface Times {
  readonly text: string;
  /** Many on a day: the days follow, and do not lead. */
  readonly isOften: boolean;
}

function timesText(minute: string, hour: string): Times | undefined {
  const step = minute === '*' ? '1' : stepOf(minute, 60);
  const hours = /^(\d+)-(\d+)$/.exec(hour);
  if (step !== undefined) {
    const each = say.every(`${step} ${words.units.min}`);
    if (hour === '*') return { text: each, isOften: true };
    if (hours) return { text: `${each}, ${say.fromTo(clock(hours[1], '0'), clock(hours[2], '59'))}`, isOften: true };
    return undefined;
  }
  if (!/^\d+$/.test(minute)) return undefined;
  if (hour === '*') return { text: minute === '0' ? say.hourly : say.hourlyAt(minute.padStart(2, '0')), isOften: true };
  const hourStep = stepOf(hour, 24);
  if (hourStep !== undefined) {
    const each = `${hourStep} ${words.units.h}`;
    return { text: minute === '0' ? say.every(each) : say.everyAt(each, minute.padStart(2, '0')), isOften: true };
  }
  if (hours) {
    return { text: `${say.hourly}, ${say.fromTo(clock(hours[1], minute), clock(hours[2], minute))}`, isOften: true };
  }
  if (!/^\d+(,\d+)*$/.test(hour)) return undefined;
  return {
    text: hour
      .split(',')
      .map((one) => clock(one, minute))
      .join(', '),
    isOften: false,
  };
}

/** A step that does not divide the hour or the day is no distance: one of 45 minutes means :00 and :45. */
function stepOf(field: string, whole: number): string | undefined {
  const step = /^\*\/(\d+)$/.exec(field)?.[1];
  return step !== undefined && whole % Number(step) === 0 ? step : undefined;
}

const clock = (hour = '0', minute = '0'): string => `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;

interface Days {
  readonly day: string;
  readonly month: string;
  readonly weekday: string;
}

/** Empty: every day. */
function daysText({ day, month, weekday }: Days): string | undefined {
  if (day === '*' && month === '*') return weekday === '*' ? '' : weekdaysText(weekday);
  if (weekday !== '*' || !/^\d+$/.test(day)) return undefined;
  if (month === '*') return say.dayOfMonth(day);
  return /^\d+$/.test(month) ? utcDateText(Date.UTC(2024, Number(month) - 1, Number(day))) : undefined;
}

const NAMES = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** `1-5` → `Mon – Fri`, `0,6` → `Sun, Sat` */
function weekdaysText(field: string): string | undefined {
  const parts = field.split(',').map((part) => {
    const ends = part.split('-').map(weekdayName);
    return ends.length <= 2 && ends.every((one) => one !== undefined) ? ends.join(' – ') : undefined;
  });
  return parts.every((part) => part !== undefined) ? parts.join(', ') : undefined;
}

function weekdayName(text: string): string | undefined {
  const named = NAMES.indexOf(text.toLowerCase());
  const number = named >= 0 ? named : /^[0-7]$/.test(text) ? Number(text) % 7 : undefined;
  // 7 January 2024 was a Sunday.
  return number === undefined ? undefined : utcWeekdayText(Date.UTC(2024, 0, 7 + number));
}
