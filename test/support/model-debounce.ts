/** Debounce calls, on the model: see `model.ts`. */
import { ceilingIn, sentIn, storedRecord } from '../../src/job/debounce.ts';
import { outcomeLetters } from '../../src/job/state.ts';
import type { ScheduleItem, ScheduleReply } from '../../src/redis/scripts/replies.ts';
import { askedOf, count, digestOf, type Job, jobOf, MAX_MS, type Model, markOf, nudge } from './model.ts';
import { closedBy } from './model-closing.ts';
import { refusalOf } from './model-verbs.ts';

interface Call {
  readonly record: string;
  readonly dueMs: number;
  readonly ceilingMs: number;
  /** Its order and the digest of what was sent, as a tombstone has them. */
  readonly mark: string;
}

export function debounce(model: Model, item: ScheduleItem): ScheduleReply {
  const refusal = refusalOf(model, item);
  if (refusal) return refusal;
  const { order, restMs } = sentIn(item.record);
  const mark = `${order.toString(36)} ${digestOf(item.record)}`;
  const job = jobOf(model, item.member);
  const known = knownAs(job, { order, mark });
  if (known) return known;
  const closed = closedBy(model, item.record);
  if (closed) return closed;
  const call = { record: item.record, dueMs: item.dueMs, ceilingMs: Math.min(item.dueMs + restMs, MAX_MS), mark };
  if (job.record !== undefined) return newsFor(model, job, call);
  const record = storedRecord(item.record, { askedMs: call.dueMs, ceilingMs: call.ceilingMs, mark });
  Object.assign(job, { record, due: call.dueMs, tombstone: undefined, overMs: undefined });
  count(model, 'scheduled');
  nudge(model, call.dueMs);
  return { kind: 'ok' };
}

/** Of the newest call that a job knows. */
export function lastOrder(model: Model, member: string): number | undefined {
  const { record, tombstone } = model.jobs.get(member) ?? {};
  const { asked } = (record === undefined ? tombstone : markOf(record)) ?? {};
  return asked === undefined ? undefined : Number.parseInt(asked, 36);
}

/** What is told of a call that changes nothing. */
function knownAs({ record, tombstone, due }: Job, { order, mark }: { order: number; mark: string }) {
  if (record !== undefined && ceilingIn(record) === undefined) {
    return { kind: 'exists', dueMs: due ?? Number.parseInt(askedOf(record), 36) } as const;
  }
  const { asked, digest } = (record === undefined ? tombstone : markOf(record)) ?? { asked: '', digest: '' };
  if (`${asked} ${digest}` === mark) {
    return { kind: 'already', over: tombstone && outcomeLetters[tombstone.outcome] } as const;
  }
  const last = Number.parseInt(asked, 36);
  return last >= order ? ({ kind: 'overtaken', order: last } as const) : undefined;
}

function newsFor(model: Model, job: Job, { record, dueMs, ceilingMs, mark }: Call): ScheduleReply {
  const { run, due, record: before = '' } = job;
  const first = ceilingIn(before) ?? ceilingMs;
  const store = (askedMs: number, latestMs: number) => {
    job.record = storedRecord(record, { askedMs, ceilingMs: latestMs, mark });
  };
  if (run?.owner !== undefined) {
    const latestMs = run.again ? first : ceilingMs;
    run.again = true;
    store(Math.min(dueMs, latestMs), latestMs);
    return { kind: 'behind' };
  }
  const isNew = run === undefined || run.attempts === 0;
  if (isNew && due !== undefined && due > model.nowMs) {
    const movedMs = Math.min(dueMs, first);
    store(movedMs, first);
    job.due = movedMs;
    if (run?.next !== undefined) run.next = movedMs;
    nudge(model, movedMs);
    return { kind: 'merged', dueMs: movedMs };
  }
  const askedMs = Number.parseInt(askedOf(before), 36);
  store(askedMs, first);
  // The late end of a start whose worker is lost hides nothing; an earlier cancel was not of these data.
  if (run) Object.assign(run, { entry: undefined, owner: undefined, cancel: false, again: false });
  return { kind: 'kept', dueMs: due ?? run?.next ?? askedMs };
}
