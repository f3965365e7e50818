/** One start of a job as its handler sees it. */
import { idOf, type JobRecord } from '../../job/codec.ts';
import { NO_HEADERS } from '../../job/headers.ts';
import type { Job } from '../../job/job.ts';
import type { Life } from '../../job/judge.ts';
import type { InFlightEntry } from './in-flight.ts';

export function startedJob(
  queue: string,
  { held, life, record }: { readonly held: InFlightEntry; readonly life: Life; readonly record: JobRecord },
): Job<never> {
  const { attempts, failures, crashes, history } = life.started;
  const { id, bare } = idOf(life.member);
  // No spread: this object is made for each job, and copying costs fifteen times as much.
  return {
    id,
    bare,
    queue,
    name: record.name,
    // The producer and the worker share the queue's definition; what is in the record is what JSON carried.
    data: record.data as never,
    headers: record.headers ?? NO_HEADERS,
    dueMs: held.delivery.dueMs,
    askedDueMs: record.askedDueMs,
    attempt: attempts,
    failures,
    crashes,
    history,
  };
}
