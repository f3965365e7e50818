/**
 * `K:hours` and `K:days`, of the first partition of a queue, for all of them: what happened by the hour for 90 days, and by the day
 * (in UTC) for 13 months. Both are rings: a field has the lines of a day (`job/happened.ts`), and another day takes its place. `at` of the hours is the
 * last hour that was made. Lines are packed, because those of one day are much alike. A line that is written again, by whomever, is the same one, so nothing is
 * counted twice. An hour in which nothing happened has no line. Both keys go by themselves when nobody has written for as long as they tell of.
 *
 * What held late starts is told by workers up to some minutes after they were made (`causes.ts`), when their hour has its line already: so the line of the
 * hour before gets what came since.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { sumsTogether } from '../../job/account.ts';
import {
  DAY_HOURS,
  type Happened,
  HOUR_MINUTES,
  HOUR_MS,
  isEmpty,
  lineOf,
  minutesOf,
  readLine,
  together,
  togetherUnder,
} from '../../job/happened.ts';
import { MINUTES_MAX } from '../../job/minutes.ts';
import type { Redis } from '../connection/connect.ts';
import { DAYS_TTL_MS, HOURS_TTL_MS, type PartitionRef } from '../keys.ts';
import { readCauses } from './causes.ts';
import { notedOf, readMinutes } from './minutes.ts';

/** Hours of so many days are kept, */
export const HOUR_DAYS = 90;
/** and days of 13 months. */
export const DAYS = 396;

type Lines = Map<number, Happened>;

const hourSlot = (day: number): string => String(day % HOUR_DAYS);
const daySlot = (day: number): string => String(day % DAYS);
const dayOf = (hour: number): number => Math.floor(hour / DAY_HOURS);

/** What happened in minutes of all partitions, told from their states. Of a partition whose leader was away before, the whole day is read. */
export async function minutesBetween(
  redis: Redis,
  refs: readonly PartitionRef[],
  { first, ends }: { readonly first: number; readonly ends: number },
): Promise<readonly Happened[]> {
  const lists = await Promise.all(
    refs.map(async (ref) => {
      const near = await readMinutes(redis, ref, { from: first - 1, to: ends });
      const [earliest] = near.states;
      const isWhole = earliest === undefined || earliest.minute <= first;
      const read = isWhole ? near : await readMinutes(redis, ref, { from: ends - MINUTES_MAX + 1, to: ends });
      return minutesOf(read, { first, ends });
    }),
  );
  return Array.from({ length: ends - first }, (_, at) => together(lists.map((list) => list[at])));
}

/** Makes these hours of the minutes, whose states must be there, and their days of the hours. */
export async function makeHours(
  redis: Redis,
  refs: readonly PartitionRef[],
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  const [ref] = refs;
  if (!ref) return;
  const minutes = await minutesBetween(redis, refs, { first: from * HOUR_MINUTES, ends: (to + 1) * HOUR_MINUTES });
  const promise = await notedOf(redis, ref);
  const made = Array.from({ length: to - from + 1 }, (_, nth) => {
    const own = minutes.slice(nth * HOUR_MINUTES, (nth + 1) * HOUR_MINUTES);
    const happened = togetherUnder(promise, own, (from + nth) * HOUR_MINUTES);
    return [from + nth, happened] as const;
  }).filter(([, happened]) => !isEmpty(happened));
  const late = promise ? await lateByHour(redis, ref, { from: from - 1, to }) : new Map<number, Happened['lateBy']>();
  const days = new Set([...late.keys(), ...made.map(([hour]) => hour)].sort((one, other) => one - other).map(dayOf));
  for (const day of days) {
    const hours = await readHours(redis, ref, { from: day * DAY_HOURS, to: (day + 1) * DAY_HOURS - 1 });
    for (const [hour, happened] of made) if (dayOf(hour) === day) hours.set(hour, happened);
    for (const [hour, lateBy] of late) {
      const happened = hours.get(hour);
      if (happened) hours.set(hour, { ...happened, lateBy });
    }
    if (hours.size > 0) await writeDay(redis, ref, { day, hours, at: Math.min(to, (day + 1) * DAY_HOURS - 1) });
  }
}

/** What held starts that were later than promised, of the hours of which workers have told any. */
async function lateByHour(redis: Redis, ref: PartitionRef, { from, to }: Span) {
  const minutes = await readCauses(redis, ref, { fromMs: from * HOUR_MS, toMs: (to + 1) * HOUR_MS });
  const byHour = new Map<number, NonNullable<Happened['lateBy']>>();
  for (const [minute, { lateBy }] of minutes) {
    const hour = Math.floor(minute / HOUR_MINUTES);
    if (lateBy.size > 0) byHour.set(hour, sumsTogether([byHour.get(hour), lateBy]));
  }
  return byHour;
}

/** Writes a day and its hours. The day first: where the process dies in between, the same hours are made again. */
export async function writeDay(
  redis: Redis,
  { keys }: PartitionRef,
  { day, hours, at }: { readonly day: number; readonly hours: Lines; readonly at: number },
): Promise<void> {
  const lines = [...hours].sort(([one], [other]) => one - other).map(([hour, happened]) => lineOf(hour, happened));
  await redis.hset(keys.days, daySlot(day), packed([lineOf(day, together([...hours.values()]))]));
  await redis.pexpire(keys.days, DAYS_TTL_MS);
  await redis.hset(keys.hours, hourSlot(day), packed(lines), 'at', String(at));
  await redis.pexpire(keys.hours, HOURS_TTL_MS);
}

/** The last hour that was made; undefined: none ever was. */
export async function lastHour(redis: Redis, { keys }: PartitionRef): Promise<number | undefined> {
  const at = Number((await redis.hget(keys.hours, 'at')) ?? Number.NaN);
  return Number.isSafeInteger(at) ? at : undefined;
}

/** The hours of these that have a line. */
export const readHours = (redis: Redis, { keys }: PartitionRef, span: Span): Promise<Lines> =>
  readLines(redis, { key: keys.hours, slot: hourSlot, days: HOUR_DAYS, perDay: DAY_HOURS }, span);

/** The days of these that have a line. */
export const readDays = (redis: Redis, { keys }: PartitionRef, span: Span): Promise<Lines> =>
  readLines(redis, { key: keys.days, slot: daySlot, days: DAYS, perDay: 1 }, span);

/** Both are told. */
interface Span {
  readonly from: number;
  readonly to: number;
}

async function readLines(
  redis: Redis,
  ring: {
    readonly key: string;
    readonly slot: (day: number) => string;
    readonly days: number;
    readonly perDay: number;
  },
  { from, to }: Span,
): Promise<Lines> {
  const last = Math.floor(to / ring.perDay);
  const first = Math.max(Math.floor(from / ring.perDay), last - ring.days + 1);
  if (to < from) return new Map();
  const slots = Array.from({ length: last - first + 1 }, (_, nth) => ring.slot(first + nth));
  const found = (await redis.callBuffer('HMGET', ring.key, ...slots)) as readonly unknown[];
  const lines = found.flatMap(unpacked).flatMap((line) => readLine(line) ?? []);
  return new Map(lines.flatMap(({ at, happened }) => (at >= from && at <= to ? [[at, happened]] : [])));
}

const packed = (lines: readonly string[]): Buffer => deflateRawSync(lines.join('\n'), { level: 9 });

/** Nothing of what nobody can read. */
function unpacked(value: unknown): readonly string[] {
  if (!Buffer.isBuffer(value)) return [];
  try {
    return inflateRawSync(value, { maxOutputLength: LINES_BYTES_MAX }).toString('latin1').split('\n');
  } catch {
    return [];
  }
}

/** Far more than the lines of a day can be. */
const LINES_BYTES_MAX = 1024 * 1024;
