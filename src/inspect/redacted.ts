/** What people are shown of queues that redact fields of their data: results of ended jobs, and definitions of schedules. */
import type { ScheduleView } from '../client/schedules/schedules.ts';
import type { PastJob } from '../job/past.ts';
import { type Redaction, redactedData } from '../job/redaction.ts';
import { listQueues } from '../redis/scripts/queues.ts';
import type { Namespaced } from './refs.ts';

/** What a handler returned may say the same as its data, under the same names. */
export function redactedPast<Past extends Pick<PastJob, 'result'>>(past: Past, redact: Redaction | undefined): Past {
  const { result } = past;
  if (redact === undefined || result.kind !== 'kept') return past;
  return { ...past, result: { ...result, value: redactedData(result.value, redact) } };
}

/** Schedules with the data of their jobs as people see it. Asks nothing where none has data. */
export async function redactedSchedules<View extends Pick<ScheduleView, 'queue' | 'input'>>(
  views: readonly View[],
  place: () => Promise<Namespaced>,
): Promise<readonly View[]> {
  if (views.every(({ input }) => input.data === undefined)) return views;
  const { redis, namespace } = await place();
  const queues = new Map((await listQueues(redis, namespace)).map(({ queue, redact }) => [queue, redact]));
  return views.map((view) => {
    const redact = queues.get(view.queue);
    const { data } = view.input;
    return redact && data !== undefined
      ? { ...view, input: { ...view.input, data: redactedData(data, redact) } }
      : view;
  });
}
