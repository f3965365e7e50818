/**
 * Another due time for jobs that wait. Where the caller names ids, the token of each job's last start is looked up first and
 * travels with the call: when a reply was lost and the job has been started since, the repeated call changes nothing. With
 * `ifMatch`, and for a job that a filter found, all that was seen of the job travels instead.
 *
 * A shift is made an instant here: the due time that was seen, and the shift. It travels with all that was seen of the job, so a
 * repeated call finds its own work and does not shift twice.
 */
import { memberOf } from '../../job/codec.ts';
import { decodeHeader } from '../../job/record-header.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Peek } from '../../redis/read/inspect.ts';
import type { Found } from '../../redis/read/look.ts';
import { RESCHEDULE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { RescheduleItem, RescheduleReply } from '../../redis/scripts/edits.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { seenOfEtag } from '../calls/etag.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { isDoubtful } from '../calls/repeats.ts';
import { withReadRetry } from '../calls/retry.ts';
import { type Act, type ActParts, type Answer, actBy, type Decision, type Prepared, type Target } from './act.ts';

/** What became of a request for another due time. */
export interface Rescheduled {
  readonly id: string;
  /**
   * `rescheduled`: due at `dueMs`, and before at `wasMs` · `already`: that was its due time · `kept`: `only` forbids it,
   * and it is due at `dueMs` · `ready`: it is due already and waits for a worker · `running`, `over`, `unknown`: it does
   * not wait, nothing was changed · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the
   * reply was lost, and the job has been started, changed or has ended since, so nobody knows whether it was changed before.
   */
  readonly status:
    | 'rescheduled'
    | 'already'
    | 'kept'
    | 'ready'
    | 'running'
    | 'over'
    | 'unknown'
    | 'changed'
    | 'indeterminate';
  /** Epoch ms, with `rescheduled`, `already` and `kept`. */
  readonly dueMs?: number;
  /** Epoch ms, with `rescheduled`; undefined for a job that was due and waited for a worker. */
  readonly wasMs?: number | undefined;
  /** With `rescheduled` to a later time, in strict order: the job has its group until it is over, and so many in line wait for it. */
  readonly waitingBehind?: number | undefined;
  readonly over?: OverState | undefined;
}

/** A job and its new due time, checked. */
export interface RescheduleTarget extends Target {
  /** 0: now. */
  readonly dueMs: number;
  readonly mode: RescheduleItem['mode'];
  readonly ifMatch?: string | undefined;
  /** Instead of the due time: how much later than it is due now. */
  readonly shift?: Shift | undefined;
}

export interface Shift {
  /** Below 0: earlier. */
  readonly byMs: number;
  /** When the call was made: no job is due before. */
  readonly nowMs: number;
}

type Parts = Pick<ActParts, 'reader' | 'jobs' | 'horizonMs'>;

export function rescheduling({ reader, jobs, horizonMs }: Parts): Act<RescheduleTarget, Rescheduled> {
  const shifts = shiftsOf({ reader, horizonMs });
  return actBy<RescheduleTarget, RescheduleItem, RescheduleReply, Rescheduled>({
    name: 'reschedule',
    jobsMax: RESCHEDULE_JOBS_MAX,
    async prepare({ ref, items }, policy) {
      const members = items.map(({ id, found }) => found?.member ?? memberOf(id));
      const isSeen = items.every(({ found, shift }) => found !== undefined || shift !== undefined);
      const look = async () => (isSeen ? [] : reader.lastTokens(ref, members));
      const tokens = await withReadRetry('reschedule', look, policy);
      const shifted = await Promise.all(items.map(async (item) => item.shift && (await shifts(ref, item, policy))));
      const moved = shifted.find(isMoved);
      if (moved) return moved;
      return items.map(({ dueMs, mode, ifMatch, found }, at) => {
        const own = shifted[at];
        if (own && !isMoved(own)) return own;
        const seen = found?.seen ?? seenOfEtag(ifMatch) ?? tokens[at] ?? '0';
        return { sent: { member: members[at] ?? '', dueMs, mode, seen } };
      });
    },
    async send(ref, items) {
      const replies = await jobs.reschedule(ref, items, { horizonMs });
      return isMoved(replies) || !ref.gates?.isStrict ? replies : Promise.all(replies.map(behind(reader, ref, items)));
    },
    decide: (answer) => (answer.item.shift ? decideShift(answer) : decideDue(answer)),
  });
}

/** Adds to a reply how many wait for a job that is put off and has its group. */
const behind =
  (reader: Pick<Parts['reader'], 'behind'>, ref: PartitionRef, items: readonly RescheduleItem[]) =>
  async (reply: RescheduleReply, at: number): Promise<RescheduleReply> => {
    if (reply.kind !== 'ok' || (reply.wasMs ?? 0) >= reply.dueMs) return reply;
    // The change is made, whoever waits.
    const waitingBehind = await reader.behind(ref, items[at]?.member ?? '').catch(() => undefined);
    return waitingBehind === undefined ? reply : { ...reply, waitingBehind };
  };

/** What is sent for a job that is to be shifted. What may have been carried out is sent again as it was. */
function shiftsOf({ reader, horizonMs }: Omit<Parts, 'jobs'>) {
  const before = new WeakMap<RescheduleTarget, Prepared<RescheduleItem, Rescheduled>>();
  return async (
    ref: PartitionRef,
    item: RescheduleTarget,
    policy: RetryPolicy,
  ): Promise<Prepared<RescheduleItem, Rescheduled> | Moved> => {
    const known = isDoubtful(item) ? before.get(item) : undefined;
    if (known) return known;
    const look = async () => item.found ?? reader.peek(ref, memberOf(item.id));
    const job = await withReadRetry('reschedule', look, policy);
    if (isMoved(job)) return job;
    const plan = shiftOf(item, job, horizonMs);
    before.set(item, plan);
    return plan;
  };
}

function shiftOf(
  { id, mode, ifMatch, shift: { byMs, nowMs } = { byMs: 0, nowMs: 0 } }: RescheduleTarget,
  job: Found | Peek | undefined,
  horizonMs: number,
): Prepared<RescheduleItem, Rescheduled> {
  const decided = (status: 'unknown' | 'over' | 'running', over?: OverState) => ({
    decision: { outcome: status, result: { id, status, ...(over && { over }) } },
  });
  if (!job) return decided('unknown');
  if ('tombstone' in job && job.tombstone) return decided('over', job.tombstone.outcome);
  if (hasBegun(job.run)) return decided('running');
  const wasMs = job.dueMs ?? nextDueOf(job, job.record ?? '');
  const dueMs = Math.max(wasMs + byMs, nowMs);
  if (dueMs > nowMs + horizonMs) {
    return { decision: { outcome: 'refused', error: beyond(id, dueMs) } };
  }
  const seen = seenOfEtag(ifMatch) ?? job.seen ?? '';
  // What was due and would be due again stays where it is: by the clock of Redis, and this one may be ahead.
  return { sent: { member: job.member, dueMs: Math.max(wasMs, dueMs) <= nowMs ? 0 : dueMs, mode, seen } };
}

const beyond = (id: string, dueMs: number) =>
  new DuestreamError(
    'bad-input',
    `job ${id} would be due at ${new Date(dueMs).toISOString()}, beyond the horizon; it was not changed; allowed: a smaller shift`,
  );

type Answered = Answer<RescheduleTarget, RescheduleItem, RescheduleReply>;

/** Only a shift itself needs what was seen: where nobody else asked for it, it is made anew from what is there now. */
function decideShift(answer: Answered): Decision<Rescheduled> | undefined {
  const { item, sent, reply, isRepeated, isLastLook } = answer;
  const { id, found, ifMatch } = item;
  const { dueMs, seen = '' } = sent;
  if (reply.kind === 'bad-due') return { outcome: 'refused', error: beyond(id, dueMs) };
  if (reply.kind === 'already' && isRepeated) {
    return { outcome: 'done', result: { id, status: 'rescheduled', dueMs, wasMs: placeIn(seen) } };
  }
  const isAnew = reply.kind === 'changed' && !isRepeated && !found && seenOfEtag(ifMatch) === undefined;
  return isAnew && !isLastLook ? undefined : decideDue(answer);
}

function decideDue({
  item: { id },
  sent: { dueMs },
  reply,
  isRepeated,
  isLastLook,
}: Answered): Decision<Rescheduled> | undefined {
  switch (reply.kind) {
    case 'ok': {
      const { dueMs: nextMs, wasMs, waitingBehind } = reply;
      const held = waitingBehind === undefined ? {} : { waitingBehind };
      return { outcome: 'done', result: { id, status: 'rescheduled', dueMs: nextMs, wasMs, ...held } };
    }
    case 'already':
      return { outcome: isRepeated ? 'done' : 'already', result: { id, status: 'already', dueMs: reply.dueMs } };
    case 'kept':
      return { outcome: 'kept', result: { id, status: 'kept', dueMs: reply.dueMs } };
    case 'ready':
      return { outcome: isRepeated ? 'indeterminate' : 'already-due', result: { id, status: 'ready' } };
    case 'expires':
      return { outcome: 'refused', error: tooLate(id, dueMs, reply.expiresAtMs) };
    case 'bad-due':
      throw new DuestreamError('bad-input', `the due time of ${id} is beyond the horizon by the clock of Redis`);
    case 'over':
      return isRepeated ? inDoubt(id) : { outcome: 'over', result: { id, status: 'over', over: reply.over } };
    case 'started':
      if (isRepeated) return inDoubt(id);
      return isLastLook ? { outcome: 'running', result: { id, status: 'running' } } : undefined;
    case 'changed':
    case 'running':
    case 'unknown':
      return isRepeated ? inDoubt(id) : { outcome: reply.kind, result: { id, status: reply.kind } };
  }
}

/** A worker has it, and its handler runs. One that is held until its due time has that, and Redis decides. */
export const hasBegun = (run: Peek['run']): boolean => run?.owner !== undefined && run.nextDueMs === undefined;

/** When a job was due that is in ready. */
export const nextDueOf = ({ run, ...job }: Found | Peek, record: string): number =>
  run?.nextDueMs ?? decodeHeader(record)?.askedDueMs ?? ('nowMs' in job ? job.nowMs : 0);

/** When a job that was found would be due; undefined: it would stay where it is. */
export function dueAfter(
  { dueMs: asked, mode, shift }: RescheduleTarget,
  { dueMs: wasMs, run, state }: Found,
  nowMs: number,
): number | undefined {
  const isLive = state === 'running' && hasBegun(run);
  const dueMs = shift ? Math.max(wasMs + shift.byMs, nowMs) : asked === 0 ? nowMs : asked;
  const isKept = (mode === 'earlier' && dueMs > wasMs) || (mode === 'later' && dueMs < wasMs);
  const staysDue = Math.max(wasMs, dueMs) <= nowMs;
  return isLive || isKept || staysDue || dueMs === wasMs ? undefined : dueMs;
}

/** What is seen of a job that has another due time since it was seen. */
export const seenAt = (seen: string, dueMs: number): string => [...seen.split(' ').slice(0, 2), dueMs].join(' ');

/** When it was due, in all that was seen of a job; undefined: it was ready. */
const placeIn = (seen: string): number | undefined => {
  const place = seen.split(' ')[2];
  return place === undefined || place === 'ready' ? undefined : Number(place);
};

export const tooLate = (id: string, dueMs: number, expiresAtMs: number): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `job ${id} would be due at ${new Date(dueMs).toISOString()}, after its expiresAt, ${new Date(expiresAtMs).toISOString()}, and never start; nothing was changed; allowed: an earlier due time, or another expiresAt first, with an edit`,
  );

const inDoubt = (id: string): Decision<Rescheduled> => ({
  outcome: 'indeterminate',
  result: { id, status: 'indeterminate' },
});
