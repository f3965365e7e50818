/** Schedules and their instants in words. */
import type { Schemas } from '../../api-types.ts';
import { words } from '../../words/words.ts';

const say = words.schedules;

export type Schedule = Schemas['Schedule'];

/** `30 2 * * * Europe/Berlin`, `every 15m` */
export function ruleOf({ input: { cron, every, zone } }: Schedule): string {
  const rule = cron === undefined ? `every ${String(every ?? '?')}` : String(cron);
  return zone === undefined ? rule : `${rule} ${String(zone)}`;
}

/** What a clock change did, in words. */
export const whatClocksDid = (dst: Schemas['PreviewRow']['dst']): string | undefined =>
  dst === undefined ? dst : say.dst[dst];

/** What was decided for an instant, in words; empty: nothing special. */
export function decisionOf({ dst, calendar, dropped, named, leftOut }: Schemas['PreviewRow']): string {
  const parts = [
    whatClocksDid(dst) ?? '',
    named === undefined ? '' : say.named(named),
    calendar === undefined ? '' : say.calendar(calendar),
    dropped === undefined || dropped === dst ? '' : say.makesNoJob(dropped),
    leftOut === undefined ? '' : say.andMore(leftOut),
  ];
  return parts.filter((part) => part !== '').join('; ');
}
