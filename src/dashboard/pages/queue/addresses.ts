/** Where the pages of a queue are. */
import { queryOf } from '../../call.ts';

/** @example addressOf('groups', 'mails') // '#/groups/mails' */
export const addressOf = (part: string, queue: string): string => `#/${part}/${encodeURIComponent(queue)}`;

export const groupAddress = (queue: string, group: string): string =>
  `${addressOf('groups', queue)}/${encodeURIComponent(group)}`;

const NIGHT = { fromHour: 22, toHour: 6 };

interface Times {
  readonly fromMs: number;
  readonly toMs: number;
}

/** From the evening to the morning of whoever looks; in the night that of now, so far. */
function lastNight(): Times {
  const now = new Date();
  const to = new Date(now);
  to.setHours(NIGHT.toHour, 0, 0, 0);
  const from = new Date(to);
  from.setDate(from.getDate() - 1);
  from.setHours(NIGHT.fromHour);
  return { fromMs: from.getTime(), toMs: Math.min(to.getTime(), now.getTime()) };
}

export const lateAddress = (queue: string, { fromMs, toMs }: Times): string =>
  `${addressOf('late', queue)}${queryOf({ from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() })}`;

export const nightAddress = (queue: string): string => lateAddress(queue, lastNight());
