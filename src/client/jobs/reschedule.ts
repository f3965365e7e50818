/**
 * Another due time for jobs that wait. The token of the last start is looked up first and travels with the call: when a
 * reply was lost and the job has been started since, the repeated call changes nothing. With `ifMatch` all that the caller
 * has seen of the job travels instead.
 */
import { memberOf } from '../../job/codec.ts';
import type { Queue } from '../../job/queue.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { lastTokens } from '../../redis/read/inspect.ts';
import { RESCHEDULE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { RescheduleItem, RescheduleReply } from '../../redis/scripts/edits.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { inSlices, type Some } from '../calls/each-partition.ts';
import { seenOfEtag } from '../calls/etag.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { type Answer, sendRepeated } from '../calls/repeats.ts';

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

/** One job, checked. */
export interface Request {
  readonly id: string;
  /** 0: now. */
  readonly dueMs: number;
  readonly mode: RescheduleItem['mode'];
  readonly ifMatch?: string | undefined;
}

export interface RescheduleParts {
  readonly redis: Redis;
  readonly jobs: Pick<Jobs, 'reschedule'>;
  readonly callPartitions: CallPartitions;
  readonly horizonMs: number;
}

export type Reschedule = (queue: Queue, requests: readonly Request[]) => Promise<readonly Rescheduled[]>;

/** A job that is started between look and call is looked at again, so often. */
const LOOKS_MAX = 5;

export function createReschedule(parts: RescheduleParts): Reschedule {
  return (queue, requests) =>
    inSlices(parts.callPartitions, { queue, items: requests }, (some, policy) => inPartition(parts, some, policy));
}

async function inPartition(parts: RescheduleParts, { ref, some }: Some<Request>, policy: RetryPolicy) {
  const results: Rescheduled[] = [];
  for (let from = 0; from < some.length; from += RESCHEDULE_JOBS_MAX) {
    const found = await inOneCall(parts, { ref, some: some.slice(from, from + RESCHEDULE_JOBS_MAX) }, policy);
    if (isMoved(found)) return found;
    results.push(...found);
  }
  return results;
}

async function inOneCall(
  parts: RescheduleParts,
  { ref, some }: Some<Request>,
  policy: RetryPolicy,
): Promise<readonly Rescheduled[] | Moved> {
  const results = new Map<Request, Rescheduled>();
  let open = some;
  for (let looks = 1; open.length > 0; looks += 1) {
    const answers = await lookAndCall(parts, { ref, some: open }, policy);
    if (isMoved(answers)) return answers;
    const again: Request[] = [];
    for (const [at, request] of open.entries()) {
      const { reply, isRepeated } = answers[at] ?? {};
      if (!reply) throw new Error('the script replied to fewer jobs than it was sent');
      const isStarted = reply.kind === 'started' && !isRepeated && looks < LOOKS_MAX;
      if (isStarted || reply.kind === 'later') again.push(request);
      else results.set(request, rescheduledOf(request.id, reply, isRepeated === true));
    }
    open = again;
  }
  return some.flatMap((request) => results.get(request) ?? []);
}

async function lookAndCall(
  { redis, jobs, horizonMs }: RescheduleParts,
  { ref, some }: Some<Request>,
  policy: RetryPolicy,
): Promise<readonly Answer<RescheduleReply>[] | Moved> {
  const members = some.map(({ id }) => memberOf(id));
  const seen = await withReadRetry('reschedule', () => lastTokens(redis, ref, members), policy);
  const items = some.map(({ dueMs, mode, ifMatch }, at) => ({
    member: members[at] ?? '',
    dueMs,
    mode,
    seen: seenOfEtag(ifMatch) ?? seen[at] ?? '0',
  }));
  const send = () => jobs.reschedule(ref, items, { horizonMs });
  return sendRepeated('reschedule', { items: some, send }, policy);
}

export function rescheduledOf(id: string, reply: RescheduleReply, isRepeated: boolean): Rescheduled {
  switch (reply.kind) {
    case 'ok':
      return { id, status: 'rescheduled', dueMs: reply.dueMs, wasMs: reply.wasMs };
    case 'already':
    case 'kept':
      return { id, status: reply.kind, dueMs: reply.dueMs };
    case 'ready':
      return { id, status: 'ready' };
    case 'later':
      throw new Error('the script has not looked at the job');
    case 'bad-due':
      throw new DuestreamError('bad-input', `the due time of ${id} is beyond the horizon by the clock of Redis`);
    default:
      if (isRepeated) return { id, status: 'indeterminate' };
      if (reply.kind === 'over') return { id, status: 'over', over: reply.over };
      return { id, status: reply.kind === 'started' ? 'running' : reply.kind };
  }
}
