/**
 * Another due time for jobs that wait. Where the caller names ids, the token of each job's last start is looked up first and
 * travels with the call: when a reply was lost and the job has been started since, the repeated call changes nothing. With
 * `ifMatch`, and for a job that a filter found, all that was seen of the job travels instead.
 */
import { memberOf } from '../../job/codec.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { RESCHEDULE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { RescheduleItem, RescheduleReply } from '../../redis/scripts/edits.ts';
import { seenOfEtag } from '../calls/etag.ts';
import { withReadRetry } from '../calls/retry.ts';
import { type Act, type ActParts, type Answer, actBy, type Decision, type Target } from './act.ts';

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
  readonly over?: OverState | undefined;
}

/** A job and its new due time, checked. */
export interface RescheduleTarget extends Target {
  /** 0: now. */
  readonly dueMs: number;
  readonly mode: RescheduleItem['mode'];
  readonly ifMatch?: string | undefined;
}

type Parts = Pick<ActParts, 'reader' | 'jobs' | 'horizonMs'>;

export function rescheduling({ reader, jobs, horizonMs }: Parts): Act<RescheduleTarget, Rescheduled> {
  return actBy<RescheduleTarget, RescheduleItem, RescheduleReply, Rescheduled>({
    name: 'reschedule',
    jobsMax: RESCHEDULE_JOBS_MAX,
    async prepare({ ref, items }, policy) {
      const members = items.map(({ id, found }) => found?.member ?? memberOf(id));
      const isFound = items.every(({ found }) => found !== undefined);
      const look = async () => (isFound ? [] : reader.lastTokens(ref, members));
      const tokens = await withReadRetry('reschedule', look, policy);
      return items.map(({ dueMs, mode, ifMatch, found }, at) => {
        const seen = found?.seen ?? seenOfEtag(ifMatch) ?? tokens[at] ?? '0';
        return { sent: { member: members[at] ?? '', dueMs, mode, seen } };
      });
    },
    send: (ref, items) => jobs.reschedule(ref, items, { horizonMs }),
    decide,
  });
}

function decide({
  item: { id, dueMs },
  reply,
  isRepeated,
  isLastLook,
}: Answer<RescheduleTarget, RescheduleItem, RescheduleReply>): Decision<Rescheduled> | undefined {
  switch (reply.kind) {
    case 'ok':
      return { outcome: 'done', result: { id, status: 'rescheduled', dueMs: reply.dueMs, wasMs: reply.wasMs } };
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

export const tooLate = (id: string, dueMs: number, expiresAtMs: number): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `job ${id} would be due at ${new Date(dueMs).toISOString()}, after its expiresAt, ${new Date(expiresAtMs).toISOString()}, and never start; nothing was changed; allowed: an earlier due time, or another expiresAt first, with an edit`,
  );

const inDoubt = (id: string): Decision<Rescheduled> => ({
  outcome: 'indeterminate',
  result: { id, status: 'indeterminate' },
});
