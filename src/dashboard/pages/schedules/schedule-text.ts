/** Schedules and their instants in words. */
import type { Schemas } from '../../api-types.ts';

export type Schedule = Schemas['Schedule'];
export type PreviewRow = Schemas['PreviewRow'];

/** `30 2 * * * Europe/Berlin`, `every 15m` */
export function ruleOf({ input: { cron, every, zone } }: Schedule): string {
  const rule = cron === undefined ? `every ${String(every ?? '?')}` : String(cron);
  return zone === undefined ? rule : `${rule} ${String(zone)}`;
}

const DST: Readonly<Record<string, string>> = {
  shifted: 'moved: the clock skips the named time',
  first: 'the first of two: the clock goes back',
  second: 'the second of two: the clock goes back',
  gap: 'lost: the clock skips the named time',
};

/** What a clock change did, in words. */
export const whatClocksDid = (dst: string | undefined): string | undefined => (dst === undefined ? dst : DST[dst]);

/** What was decided for an instant, in words; empty: nothing special. */
export function decisionOf({ dst, calendar, dropped, named, leftOut }: PreviewRow): string {
  const parts = [
    dst === undefined ? '' : (DST[dst] ?? dst),
    named === undefined ? '' : `named ${named}`,
    calendar === undefined ? '' : `calendar: ${calendar}`,
    dropped === undefined || dropped === dst ? '' : `makes no job: ${dropped}`,
    leftOut === undefined ? '' : `and ${leftOut} more`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}
