/** How a job that waits is changed, on the model: see `model.ts`. */
import { expiryIn } from '../../src/job/record-header.ts';
import { outcomeLetters } from '../../src/job/state.ts';
import type {
  EditItem,
  EditReply,
  NotWaiting,
  RescheduleItem,
  RescheduleReply,
} from '../../src/redis/scripts/edits.ts';
import { count, digestOf, type Job, jobOf, type Model, markOf, noteStale, nudge, seenOf } from './model.ts';
import { freshRun, LIMITS } from './model-verbs.ts';

const isBare = (member: string): boolean => !member.startsWith('j:');

/** Why a job cannot be changed, or undefined. A bare member that was put again waits, whatever is left of its earlier life. */
function refusalOf(member: string, job: Job, seen: string | undefined): NotWaiting | undefined {
  const waitsBare = isBare(member) && job.due !== undefined;
  if (job.tombstone && !waitsBare) return { kind: 'over', over: outcomeLetters[job.tombstone.outcome] };
  if (job.record === undefined && !waitsBare) return { kind: 'unknown' };
  if (job.run?.owner !== undefined) return { kind: 'running' };
  return seen !== undefined && seen !== (job.run?.token ?? '0') ? { kind: 'started' } : undefined;
}

export function reschedule(model: Model, items: readonly RescheduleItem[]): RescheduleReply[] {
  let soonest = Number.POSITIVE_INFINITY;
  const replies = items.map((item) => {
    const reply = rescheduleOne(model, item);
    if (reply.kind === 'ok') soonest = Math.min(soonest, reply.dueMs);
    return reply;
  });
  nudge(model, soonest);
  return replies;
}

function rescheduleOne(model: Model, item: RescheduleItem): RescheduleReply {
  const { nowMs } = model;
  const { member, dueMs, mode, seen } = item;
  if (dueMs !== 0 && !(dueMs >= 1e11 && dueMs <= nowMs + LIMITS.horizonMs)) return { kind: 'bad-due', nowMs };
  const job = jobOf(model, member);
  const isAll = seen?.includes(' ') === true;
  const refusal = refusalOf(member, job, isAll ? undefined : seen);
  if (refusal) return refusal;
  const due = dueMs === 0 ? nowMs : dueMs;
  const was = job.due;
  if (was === due) return { kind: 'already', dueMs: due };
  if ((was ?? 0) <= nowMs && (due <= nowMs || mode === 'earlier')) return { kind: 'ready' };
  if (isAll && seen !== seenOf(model, member, 'nothing')) return { kind: 'changed' };
  return moved(model, { member, job, due }, mode);
}

function moved(model: Model, to: Place, mode: RescheduleItem['mode']): RescheduleReply {
  const { job, due } = to;
  const was = job.due;
  const before = was ?? due;
  if (forbids(mode, due - before)) return { kind: 'kept', dueMs: before };
  const expiresAtMs = due > model.nowMs ? expiryIn(job.record ?? '') : undefined;
  if (expiresAtMs !== undefined && due > expiresAtMs) return { kind: 'expires', expiresAtMs };
  putAt(model, to);
  return { kind: 'ok', wasMs: was, dueMs: due };
}

/** A job, and when it is to be due. */
interface Place {
  readonly member: string;
  readonly job: Job;
  readonly due: number;
}

/** @param byMs how much later it would be due */
const forbids = (mode: RescheduleItem['mode'], byMs: number): boolean =>
  (mode === 'earlier' && byMs > 0) || (mode === 'later' && byMs < 0);

function putAt(model: Model, { member, job, due }: Place): void {
  // Its entry stays in ready: it was there, or was when it was put again.
  const isAgain = isBare(member) && job.record !== undefined && job.run?.next !== job.due;
  if (job.due === undefined || isAgain) noteStale(model, member);
  if (job.record !== undefined) {
    job.run ??= freshRun({ generation: 0 });
    Object.assign(job.run, { entry: undefined, owner: undefined, next: due });
  }
  job.due = due;
  count(model, 'rescheduled');
}

/** Records of the model are small: nothing is ever `later`. The caller of an edit asks whether the job could start. */
export function edit(model: Model, items: readonly EditItem[]): EditReply[] {
  return items.map((item) => editOne(model, item));
}

function editOne(model: Model, { member, before, record, dueMs }: EditItem): EditReply {
  if (!/^1[0-9a-z]+[;|]/.test(record)) return { kind: 'bad-record' };
  if (record.length > LIMITS.bytesMax) return { kind: 'too-large' };
  const job = jobOf(model, member);
  if (job.record === record && dueMs === undefined) return { kind: 'already' };
  const refusal = refusalOf(member, job, undefined);
  if (refusal) return refusal;
  if (job.record === record && job.due === dueMs) return { kind: 'already' };
  const seen = before.includes(' ') ? seenOf(model, member, 'nothing') : digestOf(job.record ?? '');
  const isThere = dueMs !== undefined && job.due === dueMs;
  const [now, then] = isThere ? [placeless(seen), placeless(before)] : [seen, before];
  if (job.record === undefined || now !== then) return { kind: 'changed' };
  if (JSON.stringify(markOf(record)) !== JSON.stringify(markOf(job.record))) return { kind: 'bad-record' };
  job.run ??= freshRun({ generation: 0 });
  job.run.entry = undefined;
  job.record = record;
  if (dueMs !== undefined) moveTo(model, { member, job, due: dueMs });
  count(model, 'edited');
  return { kind: 'ok' };
}

/** What was seen, without the place: a call that was cut off has moved the job already. */
const placeless = (seen: string | undefined) => seen?.split(' ').slice(0, 2).join(' ');

function moveTo(model: Model, { member, job, due }: Place): void {
  if (job.due === undefined) noteStale(model, member);
  if (job.run) job.run.next = due;
  if (job.due !== due) nudge(model, due);
  job.due = due;
}
