/** Debounce calls in virtual time, by the rules of `lua/lib/debounce.lua`. There is one clock, so no call is overtaken by it. */
import { ceilingIn, sentIn, storedRecord } from '../job/debounce.ts';
import { decodeHeader, markOf } from '../job/record-header.ts';
import type { ScheduleReply } from '../redis/scripts/replies.ts';
import { dueOf, type Kept, overOf } from './kept.ts';

/** What a call is for a job. */
export interface Debounced {
  readonly reply: Exclude<ScheduleReply, { kind: 'later' }>;
  /** Undefined: nothing is changed. */
  readonly record?: string;
  /** The job moves to this due time. */
  readonly dueMs?: number;
}

interface Call {
  readonly record: string;
  readonly dueMs: number;
  readonly nowMs: number;
}

export function debouncedAs(before: Kept | undefined, call: Call): Debounced {
  const { order, restMs } = sentIn(call.record);
  const [, digest = ''] = markOf(call.record).split(' ');
  const mark = `${order.toString(36)} ${digest}`;
  const ceilingMs = call.dueMs + restMs;
  if (!before)
    return { reply: { kind: 'ok' }, record: storedRecord(call.record, { askedMs: call.dueMs, ceilingMs, mark }) };
  const over = overOf(before.state);
  const askedMs = decodeHeader(before.record)?.askedDueMs ?? before.dueMs;
  if (!over && ceilingIn(before.record) === undefined) {
    return { reply: { kind: 'exists', dueMs: dueOf(before) ?? askedMs } };
  }
  const known = markOf(before.record);
  if (known === mark) return { reply: { kind: 'already', over } };
  const last = Number.parseInt(known, 36);
  if (last >= order) return { reply: { kind: 'overtaken', order: last } };
  if (over)
    return { reply: { kind: 'ok' }, record: storedRecord(call.record, { askedMs: call.dueMs, ceilingMs, mark }) };
  return newsFor(before, { ...call, ceilingMs, mark, askedMs });
}

function newsFor(
  job: Kept,
  { record, dueMs, nowMs, ceilingMs, mark, askedMs }: Call & { ceilingMs: number; mark: string; askedMs: number },
): Debounced {
  const firstMs = ceilingIn(job.record) ?? ceilingMs;
  if (job.state === 'running') {
    const latestMs = job.hasNews ? firstMs : ceilingMs;
    const stored = { askedMs: Math.min(dueMs, latestMs), ceilingMs: latestMs, mark };
    return { reply: { kind: 'behind' }, record: storedRecord(record, stored) };
  }
  if (job.state === 'scheduled' && job.attempts === 0 && job.dueMs > nowMs) {
    const movedMs = Math.min(dueMs, firstMs);
    const stored = storedRecord(record, { askedMs: movedMs, ceilingMs: firstMs, mark });
    return { reply: { kind: 'merged', dueMs: movedMs }, record: stored, dueMs: movedMs };
  }
  const keptMs = dueOf(job) ?? job.nextDueMs ?? askedMs;
  return {
    reply: { kind: 'kept', dueMs: keptMs },
    record: storedRecord(record, { askedMs, ceilingMs: firstMs, mark }),
  };
}
