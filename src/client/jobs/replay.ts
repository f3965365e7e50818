/**
 * A dead letter → a scheduled job with fresh budgets. The dead letter is looked up first: it says which partition it is in,
 * and whose it is, so that a call whose reply was lost recognises its own work when it is repeated and the dead letter is
 * gone.
 */
import { memberOf, type Tombstone } from '../../job/codec.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import type { Queue } from '../../job/queue.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type DeadLetter, deadLetter as deadLetterAt, deadLetters, peek } from '../../redis/read/inspect.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Moved, ReplayReply } from '../../redis/scripts/replies.ts';
import type { Confirming, DurabilityOption } from '../calls/durability.ts';
import { etagOfDeadLetter, type IfMatchOption, isMatch } from '../calls/etag.ts';
import type { Layout } from '../calls/layouts.ts';
import { type CallPartitions, isMoved, placesOf } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { parseAnyId } from '../calls/settings.ts';

/** A dead letter by its own id, or the newest one of a job by the id of that job. */
export type ReplayTarget =
  | string
  | {
      readonly id: string;
      /** A job that a foreign producer put as a plain zset member. */
      readonly bare?: boolean | undefined;
    };

/** What became of a request to replay a dead letter. */
export interface Replayed {
  /** Undefined where a job was named and has none. */
  readonly deadLetter: string | undefined;
  /**
   * `scheduled`: the job lives again, and the dead letter is gone · `live`: a job of this id lives, and the dead letter
   * stays · `empty`: the dead letter has no record to replay · `gone`: there is no such dead letter · `changed`: it is
   * another one than `ifMatch` says, and stays · `indeterminate`: the reply was lost and the dead letter is gone since, but
   * nothing is known of its job, so nobody knows what became of both.
   */
  readonly status: 'scheduled' | 'live' | 'empty' | 'gone' | 'changed' | 'indeterminate';
  /** The job that was named, else whose dead letter it is, unless that is gone. */
  readonly id: string | undefined;
  /** With `scheduled`: epoch ms from which the job may run. */
  readonly dueMs: number | undefined;
}

/** When a dead letter runs again, and which one is meant. */
export type ReplayOptions = Pick<ScheduleOptions, 'delay' | 'at'> &
  DurabilityOption &
  IfMatchOption & {
    /** Needed only where two partitions have a dead letter of this number. */
    readonly partition?: number | undefined;
  };

/** What is replayed, checked. */
type Target =
  | { readonly deadLetterId: string }
  | { readonly deadLetterId?: undefined; readonly id: string; readonly bare: boolean };

export interface ReplayRequest extends IfMatchOption {
  readonly target: Target;
  readonly dueMs: number;
  /** Needed only where two partitions have a dead letter of this number. */
  readonly partition: number | undefined;
}

const DEAD_LETTER_ID = /^\d{1,16}-\d{1,16}$/;

/** Dead letters of a partition, newest first, in which one of a job is looked for; and how many are read at once. */
const LOOKED_AT_MAX = 100_000;
const PAGE = 200;

/** @throws DuestreamError `bad-input` */
export function parseReplayed(input: unknown): Target {
  if (typeof input === 'string' && DEAD_LETTER_ID.test(input)) return { deadLetterId: input };
  if (typeof input === 'object' && input !== null && 'id' in input) {
    const bare = 'bare' in input && input.bare === true;
    return { id: parseAnyId(input.id, bare), bare };
  }
  throw new DuestreamError(
    'bad-input',
    `dead letter is ${show(input)}; allowed: a number such as 1763719000000-0, or { id } with the id of a job`,
  );
}

interface Found {
  readonly ref: PartitionRef;
  readonly deadLetter: DeadLetter;
}

interface Replaying extends Confirming {
  readonly redis: Redis;
  readonly jobs: Pick<Jobs, 'replay'>;
  readonly callPartitions: CallPartitions;
}

/** Answers with what became of one dead letter. */
export type Replay = (queue: Queue, request: ReplayRequest) => Promise<Replayed>;

export function createReplay(replaying: Replaying): Replay {
  return async (queue, request) => {
    const replayed = await replaying.callPartitions(queue, async (layout, policy): Promise<Replayed | Moved> => {
      const { target, dueMs, ifMatch } = request;
      const found = await locate(replaying, { layout, request, policy });
      if (!found) return { deadLetter: target.deadLetterId, status: 'gone', id: idIn(target), dueMs: undefined };
      const { id, entry: deadLetter } = found.deadLetter;
      // A dead letter never changes: the script replays what was read here, or finds it gone.
      const isSeen = isMatch(ifMatch, etagOfDeadLetter(found.deadLetter));
      if (!isSeen) return { deadLetter, status: 'changed', id, dueMs: undefined };
      const reply = await replayPlaced({ ...replaying, policy }, found, dueMs);
      if (isMoved(reply)) return reply;
      if (reply.kind === 'ok') return { deadLetter, status: 'scheduled', id, dueMs: reply.dueMs };
      return { deadLetter, status: reply.kind, id, dueMs: undefined };
    });
    // An earlier call of the same kind may have replayed it.
    if (replayed.status === 'gone') await replaying.confirm?.(queue);
    return replayed;
  };
}

async function locate(
  replaying: Replaying,
  {
    layout,
    request: { target, partition },
    policy,
  }: { readonly layout: Layout; readonly request: ReplayRequest; readonly policy: RetryPolicy },
): Promise<Found | undefined> {
  const asked = (ref: PartitionRef) => partition === undefined || ref.partition === partition;
  if (target.deadLetterId === undefined) {
    const places = placesOf(layout, target.id, target.bare).filter(asked);
    const newest = await Promise.all(places.map((ref) => newestIn(replaying, ref, { ...target, policy })));
    return newestOf(newest.flat());
  }
  const { deadLetterId } = target;
  const found: Found[] = [];
  for (const ref of layout.filter(asked)) {
    const deadLetter = await withReadRetry('replay', () => deadLetterAt(replaying.redis, ref, deadLetterId), policy);
    if (deadLetter) found.push({ ref, deadLetter });
  }
  return onlyPlace(deadLetterId, found);
}

/** The one that was found. @throws DuestreamError `bad-input` for several */
export function onlyPlace<T extends { readonly ref: PartitionRef }>(
  deadLetterId: string,
  found: readonly T[],
): T | undefined {
  if (found.length <= 1) return found[0];
  const places = found.map(({ ref }) => ref.partition).join(', ');
  throw new DuestreamError(
    'bad-input',
    `dead letter ${deadLetterId} is in the partitions ${places}; name one with the option partition`,
  );
}

/** The tombstone of a job that has just died names its dead letter; an older one is looked for among the newest. */
async function newestIn(
  { redis }: Replaying,
  ref: PartitionRef,
  { id, bare, policy }: { readonly id: string; readonly bare: boolean; readonly policy: RetryPolicy },
): Promise<readonly Found[]> {
  const read = <T>(call: () => Promise<T>) => withReadRetry('replay', call, policy);
  const job = await read(() => peek(redis, ref, memberOf(id, { bare })));
  const named = job && 'tombstone' in job ? job.tombstone?.deadLetter : undefined;
  const last = named === undefined ? undefined : await read(() => deadLetterAt(redis, ref, named));
  if (last) return [{ ref, deadLetter: last }];
  let before: string | undefined;
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += PAGE) {
    const from = before;
    const page = await read(() => deadLetters(redis, ref, { limit: PAGE, ...(from && { before: from }) }));
    const deadLetter = page.find((one) => one.id === id && one.bare === bare);
    if (deadLetter) return [{ ref, deadLetter }];
    if (page.length < PAGE) return [];
    before = page.at(-1)?.entry;
  }
  return [];
}

/** `indeterminate`: an earlier call may have replayed it, and what it left has gone since. */
type Placing = ReplayReply | { readonly kind: 'indeterminate' };

/**
 * A dead letter that is gone may have been replayed by a call whose reply was lost: then its job lives, one generation on,
 * or has ended since, with more attempts than the dead letter had, or cancelled before its next start.
 */
export async function replayPlaced(
  { redis, jobs, policy }: Pick<Replaying, 'redis' | 'jobs'> & { readonly policy: RetryPolicy },
  { ref, deadLetter }: Found,
  dueMs: number,
): Promise<Placing> {
  const call = async (isRepeated: boolean) => ({
    isRepeated,
    reply: await jobs.replay(ref, deadLetter.entry, { dueMs }),
  });
  const { reply, isRepeated } = await withRetry('replay', call, policy);
  if (reply.kind !== 'gone' || !isRepeated) return reply;
  const member = memberOf(deadLetter.id, deadLetter);
  const job = await withReadRetry('replay', () => peek(redis, ref, member), policy);
  if (!job || 'kind' in job) return { kind: 'indeterminate' };
  if (job.run?.generation === deadLetter.generation + 1) return { kind: 'ok', dueMs: job.dueMs ?? dueMs, member };
  return job.tombstone && endedAfter(job.tombstone, deadLetter)
    ? { kind: 'ok', dueMs, member }
    : { kind: 'indeterminate' };
}

/** Attempts go on in a replayed life, and begin anew in every other one. */
const endedAfter = ({ outcome, attempts }: Tombstone, deadLetter: DeadLetter): boolean =>
  attempts > deadLetter.attempts || (outcome !== 'dead' && attempts > 0 && attempts === deadLetter.attempts);

const idIn = (target: Target): string | undefined => (target.deadLetterId === undefined ? target.id : undefined);

const newestOf = (found: readonly Found[]): Found | undefined =>
  [...found].sort((a, b) => b.deadLetter.atMs - a.deadLetter.atMs)[0];
