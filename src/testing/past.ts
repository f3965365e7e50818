/** How jobs ended in virtual time, as the history of a queue keeps it: the last end of an id, and those of its earlier lives. */
import { ENDS_MAX } from '../client/query/report.ts';
import type { PastJob } from '../job/past.ts';
import { decodeHeader, tagsOfRecord } from '../job/record-header.ts';
import { type Kept, nameOf, OWNER, overOf } from './kept.ts';

/** The latest first; none where the queue keeps no history. */
export function endsOf(job: Kept): readonly PastJob[] {
  if (!job.queue.history?.isOn) return [];
  const outcome = overOf(job.state);
  return outcome ? [endOf(job, outcome), ...job.past].slice(0, ENDS_MAX) : job.past;
}

function endOf(job: Kept, outcome: PastJob['outcome']): PastJob {
  const {
    id,
    record,
    token,
    attempts,
    failures,
    generation,
    startedMs,
    overMs = 0,
    history,
    deferred,
    result,
    deadLetter,
  } = job;
  const isStarted = token !== '0';
  return {
    id,
    bare: false,
    outcome,
    name: nameOf(job),
    tags: tagsOfRecord(record),
    attempts,
    failures,
    crashes: 0,
    askedDueMs: decodeHeader(record)?.askedDueMs ?? 0,
    generation: generation ?? 0,
    overMs,
    history,
    deferred,
    result,
    token: isStarted ? token : undefined,
    owner: isStarted ? OWNER : undefined,
    startedMs,
    deadLetter,
    tookMs: startedMs === undefined ? undefined : overMs - startedMs,
  };
}
