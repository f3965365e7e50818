/**
 * A schedule as it is stored: a definition, from which every process computes the same instants. Its jobs are named
 * after it and after their instant, so that one instant can make one job only, whoever fires it and however often.
 *
 * Texts in the store are written by any client, so what is read is checked like any other input.
 */

import { memberOf } from '../job/codec.ts';
import type { HeaderOptions } from '../job/fields.ts';
import type { Carry } from '../job/labels.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { spreadMs } from '../kernel/spread.ts';
import { type CalendarInput, parseCalendar } from '../time/calendar.ts';
import { parseCron } from '../time/cron.ts';
import type { Recurrence } from '../time/recurrence.ts';
import { type DstPolicy, zoneNamed } from '../time/zone.ts';

/**
 * What happens when an instant comes while the job of an earlier one is not over: `allow` both, `skip` the new one,
 * `queue` lets one wait until the other is over, `replace` cancels the other first.
 */
export type OverlapPolicy = 'allow' | 'skip' | 'queue' | 'replace';

/** What happens to instants that passed while nobody was there to fire them. */
export interface CatchUp {
  /** `skip` forgets them, `once` fires the last one, `all` fires each, up to `limit`. */
  readonly policy: 'skip' | 'once' | 'all';
  /** Older instants are forgotten. */
  readonly windowMs: number;
  /** Most instants that `all` fires; of more, the last ones. */
  readonly limit: number;
}

export interface Schedule {
  readonly name: string;
  readonly queue: string;
  /** The JSON part of its jobs' records. */
  readonly body: string;
  /** The options in the header of its jobs' records. */
  readonly header: HeaderOptions;
  readonly rule: { readonly cron: string } | { readonly everyMs: number; readonly anchorMs: number };
  readonly zone: string;
  readonly dst: DstPolicy;
  readonly calendar?: CalendarInput | undefined;
  readonly startMs?: number | undefined;
  readonly endMs?: number | undefined;
  readonly maxRuns?: number | undefined;
  /** Its jobs are due up to this much later, each always by the same. */
  readonly jitterMs: number;
  readonly overlap: OverlapPolicy;
  readonly catchUp: CatchUp;
  readonly tags: readonly string[];
  /** Instants before it do not count: when its rule was last changed, or it was resumed. */
  readonly sinceMs: number;
  /** Before `sinceMs` it was fired up to here, by a clock that was ahead; undefined for nearly all. */
  readonly aheadMs?: number | undefined;
  /** Why it does not fire; undefined while it does. */
  readonly paused?: string | undefined;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;

/** A schedule's name, checked. @throws DuestreamError `bad-input` */
export function parseScheduleName(input: unknown): string {
  if (typeof input === 'string' && NAME.test(input)) return input;
  throw new DuestreamError(
    'bad-input',
    `schedule name is ${show(input)}; allowed: 1 to 64 of A-Z a-z 0-9 . _ : - beginning with a letter or digit`,
  );
}

/** What decides the partition of all jobs of a schedule. */
export const routingOf = (name: string): string => `schedule:${name}`;

/**
 * The id of the job of one instant.
 *
 * @example fireId('nightly', Date.UTC(2026, 2, 8, 1, 30)) // '{schedule:nightly}2026-03-08T01:30:00Z'
 */
export function fireId(name: string, atMs: number): string {
  // Thousands of schedules fire at the same instant.
  if (atMs !== written.atMs) written = { atMs, text: new Date(atMs).toISOString().replace('.000Z', 'Z') };
  return `{${routingOf(name)}}${written.text}`;
}

let written = { atMs: 0, text: '1970-01-01T00:00:00Z' };

/** The schedule and the instant that an id names; undefined for any other job. */
export function firedBy(id: string): { readonly schedule: string; readonly atMs: number } | undefined {
  const [, schedule, at] = /^\{schedule:([^}]+)\}(.+)$/.exec(id) ?? [];
  const atMs = Date.parse(at ?? '');
  return schedule !== undefined && Number.isFinite(atMs) ? { schedule, atMs } : undefined;
}

export const fireMember = (name: string, atMs: number): string => memberOf(fireId(name, atMs));

/** The rule with its zone, calendar and bounds, ready to be asked for instants. @throws DuestreamError `bad-input` */
export function recurrenceOf(schedule: Schedule): Recurrence {
  const { rule, name, zone, dst, calendar, startMs, endMs } = schedule;
  return {
    rule: 'cron' in rule ? { cron: parseCron(rule.cron, name) } : rule,
    zone: zoneNamed(zone),
    dst,
    startMs,
    endMs,
    calendar: calendar === undefined ? undefined : parseCalendar(calendar),
  };
}

/** The same schedule, whose jobs carry the trace of whoever makes them now. */
export function carriedBy(schedule: Schedule, carry: Carry | undefined): Schedule {
  const { header } = schedule;
  const headers = carry?.(header.headers);
  return headers ? { ...schedule, header: { ...header, headers } } : schedule;
}

/** When the job of an instant is due: the instant, later by a jitter that follows from name and instant. */
export function dueOfFire({ name, jitterMs }: Pick<Schedule, 'name' | 'jitterMs'>, atMs: number): number {
  return jitterMs === 0 ? atMs : atMs + spreadMs(`${name} ${atMs}`, jitterMs);
}
