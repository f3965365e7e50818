/** How commands of schedules show rules, wall-clock times and states. */

import type { ScheduleView } from '../../../client/schedules/schedules.ts';
import { redactedSchedules } from '../../../inspect/redacted.ts';
import { span } from '../../../kernel/humanize.ts';
import type { Schedule } from '../../../schedule/schedule.ts';
import { parseZone } from '../../../time/zone.ts';
import { type Session, withRedis } from '../../session.ts';

/** `30 2 * * *`, or `every 15 min`. */
export function ruleText({ rule }: Schedule): string {
  return 'cron' in rule ? rule.cron : `every ${span(rule.everyMs)}`;
}

/** The wall-clock time of a zone at an instant, such as `2026-03-08 03:30:00`. */
export function wallText(atMs: number, zone: string): string {
  const wallMs = atMs + parseZone(zone).offsetMs(atMs);
  return new Date(wallMs)
    .toISOString()
    .replace('T', ' ')
    .replace(/(\.000)?Z$/, '');
}

/** `on`, `over`, that it is paused and why, or that nobody can read how far it is. */
export function stateText({
  paused,
  nextMs,
  unreadable,
}: Pick<ScheduleView, 'paused' | 'nextMs' | 'unreadable'>): string {
  if (unreadable !== undefined) return `does not fire: ${unreadable}`;
  if (paused !== undefined) return paused === '' ? 'paused' : `paused: ${paused}`;
  return nextMs === undefined ? 'over' : 'on';
}

/** As people may see their data. */
export async function shownSchedules(
  session: Session,
  views: readonly ScheduleView[],
): Promise<readonly ScheduleView[]> {
  if (views.every(({ input }) => input.data === undefined)) return views;
  const { namespace } = session.config;
  return withRedis(session, (redis) => redactedSchedules(views, async () => ({ redis, namespace })));
}

/** Without the parsed form: the input says the same as people wrote it. */
export function shownView({ schedule: _, ...view }: ScheduleView) {
  return view;
}
