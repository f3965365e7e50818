/**
 * The report of a job as people see it: without the fields that its queue redacts, and with dead letters written as the
 * command line and the HTTP API address them. Every window shows this one object.
 */
import type { JobReport } from '../client/query/report.ts';
import { REDACTED, redactedJob } from '../job/redaction.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { writtenAs } from './dead-letters.ts';
import { redactedPast } from './redacted.ts';

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
