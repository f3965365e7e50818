/**
 * What people are shown of queues that redact fields of their data: reports and results of jobs, and definitions of
 * schedules.
 */

import type { JobReport } from '../client/query/report.ts';
import type { Namespaced } from '../client/queues/refs.ts';
import type { ScheduleView } from '../client/schedules/schedules.ts';
import type { PastJob } from '../job/past.ts';
import { REDACTED, type Redaction, redactedData, redactedJob } from '../job/redaction.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { listQueues } from '../redis/scripts/queues.ts';
import { writtenAs } from './dead-letters.ts';

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

// The report of a job as people see it: without the fields that its queue redacts, and with dead letters written as the
// command line and the HTTP API address them. Every window shows this one object.

/** @param refs the partitions of its queue */
export function shownReport(report: JobReport, refs: readonly PartitionRef[]): JobReport {
  const { partition, result } = report;
  const redact = refs[partition]?.redact;
  const written = (deadLetter: string | undefined) =>
    deadLetter === undefined ? undefined : writtenAs({ deadLetter, partition }, refs.length);
  return {
    ...report,
    data: redactedJob(report, redact),
    // Nobody can tell where in it the fields are.
    unreadable: redact === undefined || report.unreadable === undefined ? report.unreadable : REDACTED,
    result: result && redactedPast({ result }, redact).result,
    deadLetter: written(report.deadLetter),
    past: report.past.map((end) => ({ ...redactedPast(end, redact), deadLetter: written(end.deadLetter) })),
  };
}
