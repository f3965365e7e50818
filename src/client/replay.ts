/**
 * A dead letter → a scheduled job with fresh budgets. The dead letter is looked up first: it says which partition it is in,
 * and whose it is, so that a call whose reply was lost recognises its own work when it is repeated and the dead letter is
 * gone.
 */
import { memberOf } from '../core/codec.ts';
import { show } from '../core/duration.ts';
import { DuestreamError } from '../core/errors.ts';
import type { Queue } from '../core/queue.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import { type DeadLetter, deadLetter as deadLetterAt, peek } from '../redis/inspect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { Moved, ReplayReply } from '../redis/transitions/replies.ts';
import type { Layout } from './layouts.ts';
import { type CallPartitions, isMoved } from './partition-calls.ts';
import { withReadRetry } from './read-retry.ts';

/** What became of a request to replay a dead letter. */
export interface Replayed {
  readonly deadLetter: string;
  /**
   * `scheduled`: the job lives again, and the dead letter is gone · `live`: a job of this id lives, and the dead letter
   * stays · `empty`: the dead letter has no record to replay · `gone`: there is no such dead letter.
   */
  readonly status: 'scheduled' | 'live' | 'empty' | 'gone';
  /** Whose dead letter it is, unless it is gone. */
  readonly id: string | undefined;
  /** With `scheduled`: epoch ms from which the job may run. */
  readonly dueMs: number | undefined;
}

export interface ReplayRequest {
  readonly deadLetterId: string;
  readonly dueMs: number;
  /** Needed only where two partitions have a dead letter of this number. */
  readonly partition: number | undefined;
}

const LETTER = /^\d{1,16}-\d{1,16}$/;

/** @throws DuestreamError `bad-input` */
export function parseDeadLetterId(input: unknown): string {
  if (typeof input === 'string' && LETTER.test(input)) return input;
  throw new DuestreamError('bad-input', `dead letter is ${show(input)}; allowed: a number such as 1763719000000-0`);
}

export function createReplay(parts: {
  readonly redis: Redis;
  readonly jobs: Pick<Jobs, 'replay'>;
  readonly callPartitions: CallPartitions;
}) {
  const { redis, jobs, callPartitions } = parts;

  async function locate(layout: Layout, request: ReplayRequest, policy: RetryPolicy) {
    const { deadLetterId, partition } = request;
    const found: { readonly ref: PartitionRef; readonly deadLetter: DeadLetter }[] = [];
    for (const ref of layout) {
      if (partition !== undefined && ref.partition !== partition) continue;
      const deadLetter = await withReadRetry('replay', () => deadLetterAt(redis, ref, deadLetterId), policy);
      if (deadLetter) found.push({ ref, deadLetter });
    }
    if (found.length <= 1) return found[0];
    const places = found.map(({ ref }) => ref.partition).join(', ');
    throw new DuestreamError(
      'bad-input',
      `dead letter ${deadLetterId} is in the partitions ${places}; name one with the option partition`,
    );
  }

  async function send(
    ref: PartitionRef,
    deadLetter: DeadLetter,
    { dueMs, policy }: { readonly dueMs: number; readonly policy: RetryPolicy },
  ): Promise<ReplayReply> {
    let tries = 0;
    const call = () => {
      tries += 1;
      return jobs.replay(ref, deadLetter.entry, { dueMs });
    };
    const reply = await withRetry('replay', call, policy);
    if (reply.kind !== 'gone' || tries === 1) return reply;
    const member = memberOf(deadLetter.id, deadLetter);
    const job = await withReadRetry('replay', () => peek(redis, ref, member), policy);
    const own = job && 'run' in job && job.run?.generation === deadLetter.generation + 1;
    return own ? { kind: 'ok', dueMs: job.dueMs ?? dueMs, member } : reply;
  }

  return (queue: Queue, request: ReplayRequest): Promise<Replayed> =>
    callPartitions(queue, async (layout, policy): Promise<Replayed | Moved> => {
      const { deadLetterId, dueMs } = request;
      const found = await locate(layout, request, policy);
      if (!found) return { deadLetter: deadLetterId, status: 'gone', id: undefined, dueMs: undefined };
      const reply = await send(found.ref, found.deadLetter, { dueMs, policy });
      if (isMoved(reply)) return reply;
      const { id } = found.deadLetter;
      if (reply.kind === 'ok') return { deadLetter: deadLetterId, status: 'scheduled', id, dueMs: reply.dueMs };
      return { deadLetter: deadLetterId, status: reply.kind, id, dueMs: undefined };
    });
}
