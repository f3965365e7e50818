/** The check of `doctor` that looks at queues that promise lateness: a promise is broken, or its budget is used too fast. */
import { show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { type QueueSlo, slos } from '../slo.ts';
import { EXAMPLES_MAX, type Finding, leavingOut, type Subject } from './check.ts';

export async function lateness({ redis, namespace }: Subject): Promise<Finding> {
  const { queues, unread } = await slos({ redis, namespace });
  const bad = queues.filter(({ kept, alert }) => !kept || alert !== null);
  if (bad.length === 0) {
    const saw = queues.length === 0 ? 'no queue promises lateness' : `${counted(queues.length, 'promise')} kept`;
    return leavingOut({ status: 'ok', saw }, unread);
  }
  const more = bad.length > EXAMPLES_MAX ? [`and ${bad.length - EXAMPLES_MAX} more`] : [];
  return leavingOut(
    {
      status: bad.some(({ kept }) => !kept) ? 'fail' : 'warn',
      saw: [...bad.slice(0, EXAMPLES_MAX).map(textOf), ...more].join('; '),
      advice:
        'see "duestream slo" and "duestream queues why <queue>": more workers, a higher limit, or another promise',
    },
    unread,
  );
}

function textOf({ queue, kept, budget, late, expired, standing, withinMs, overMs, burn }: QueueSlo): string {
  const jobs = `${late} late, ${expired} expired, ${standing} standing of ${Math.floor(budget)} that may be in ${span(overMs)}`;
  const what = kept ? `burns its budget ${burn} times too fast` : `broke its promise to start within ${span(withinMs)}`;
  return `${show(queue)} ${what}: ${jobs}`;
}
