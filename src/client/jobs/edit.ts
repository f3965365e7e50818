/**
 * Another content for jobs that wait: data, name, options, and with it another due time. A job is read, changed here, and written if it is still what
 * was read (compare and set), so two edits at once cannot undo each other. The same edit again is recognised, because
 * the record it would write stands there.
 */
import { memberOf } from '../../job/codec.ts';
import { hasContent, seal } from '../../job/content.ts';
import { groupOf } from '../../job/labels.ts';
import type { Queue } from '../../job/queue.ts';
import { editRecord, type RecordChange } from '../../job/record-edit.ts';
import { digestOf, expiryIn, markOf } from '../../job/record-header.ts';
import { refuseRedacted } from '../../job/redaction.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Peek } from '../../redis/read/inspect.ts';
import type { Found } from '../../redis/read/look.ts';
import { EDIT_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { EditItem, EditReply } from '../../redis/scripts/edits.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { etagOfJob, seenOfEtag } from '../calls/etag.ts';
import { needsOf, refusalOf } from '../calls/needs.ts';
import { isDoubtful } from '../calls/repeats.ts';
import { withReadRetry } from '../calls/retry.ts';
import { nameIn } from '../query/walk.ts';
import {
  type Act,
  type ActParts,
  type Answer,
  actBy,
  type Decision,
  type InPartition,
  type Outcome,
  type Prepared,
  type Target,
} from './act.ts';
import { hasBegun, nextDueOf, tooLate } from './reschedule.ts';
import { refuseEncoded } from './shown.ts';

/** What became of a request to edit a job. */
export interface Edited {
  readonly id: string;
  /**
   * `edited` · `already`: it is what it should become · `changed`: somebody has changed it, it is not what `ifMatch` or
   * `ifDigest` says · `running`, `over`, `unknown`: it does not wait, nothing was changed · `unreadable`: its record cannot be read
   * · `indeterminate`: the reply was lost, and the job has been started, changed or ended since, so nobody knows whether
   * it was edited before.
   */
  readonly status: 'edited' | 'already' | 'changed' | 'running' | 'over' | 'unknown' | 'unreadable' | 'indeterminate';
  /** Of what is stored now, with `edited`, `already` and `changed`: for the next edit's `ifDigest`. */
  readonly digest?: string | undefined;
  /** Epoch ms, with `edited` and `already` of an edit that gives a due time. */
  readonly dueMs?: number | undefined;
  /** Of the job after it, with `edited` and `already`: for the next change's `ifMatch`. */
  readonly etag?: string | undefined;
  readonly over?: OverState | undefined;
}

/** What is to be different about a job. */
export type Change = Omit<RecordChange, 'dueMs'>;

/** A job and its change, checked. */
export interface EditTarget extends Target {
  readonly change: Change;
  /** When it is to be due instead. */
  readonly dueMs?: number | undefined;
  readonly ifDigest?: string | undefined;
  readonly ifMatch?: string | undefined;
  /** The mark of a call that may have made the job, in a send whose reply was lost. */
  readonly madeBy?: string | undefined;
}

/** What the script is sent, and all that was seen of the job from which the record was made. */
interface Sent extends EditItem {
  readonly seen: string | undefined;
}

type Parts = Pick<ActParts, 'reader' | 'jobs' | 'recordBytesMax'>;

/** New data is checked and encoded for each job, under the name that the job then has. */
export function editing(parts: Parts, queue: Queue): Act<EditTarget, Edited> {
  return actBy<EditTarget, Sent, EditReply, Edited>({
    name: 'edit',
    jobsMax: EDIT_JOBS_MAX,
    prepare: (jobs, policy) => prepare(parts, { ...jobs, queue }, policy),
    bytesOf: ({ record }) => Buffer.byteLength(record),
    changes: ({ record, before, dueMs }) => dueMs !== undefined || digestOf(record) !== before.split(' ')[0],
    send: (ref, items) => parts.jobs.edit(ref, items, { bytesMax: parts.recordBytesMax }),
    decide,
  });
}

async function prepare(
  { reader }: Parts,
  { ref, items, queue }: InPartition<EditTarget> & { readonly queue: Queue },
  policy: RetryPolicy,
): Promise<readonly Prepared<Sent, Edited>[] | Moved> {
  for (const { change } of items) refuseRedacted(change.data, ref.redact);
  if (refusalOfAll(ref, items)) {
    // The settings that are remembered may be older than what they have to honour.
    const refusal = refusalOfAll(await withReadRetry('edit', () => reader.renewed(ref), policy), items);
    if (refusal) throw refusal;
  }
  const look = async ({ id, found }: EditTarget) =>
    found ?? withReadRetry('edit', () => reader.peek(ref, memberOf(id)), policy);
  const jobs = await Promise.all(items.map(look));
  const prepared: Prepared<Sent, Edited>[] = [];
  for (const [at, item] of items.entries()) {
    const job = jobs[at];
    if (job && 'kind' in job) return job;
    const plan = await planned(queue, item, job);
    const isUnsure = 'decision' in plan && isDoubtful(item);
    prepared.push(isUnsure ? decided('indeterminate', { id: item.id, status: 'indeterminate' }) : plan);
  }
  return prepared;
}

/** Why the queue cannot honour the changes; undefined: it can. */
function refusalOfAll(ref: PartitionRef, items: readonly EditTarget[]): DuestreamError | undefined {
  for (const { id, change } of items) {
    const { options } = change;
    // A group that it has already is no news.
    const group = (options.priority ?? 'normal') === 'normal' ? undefined : groupOf(id);
    const refusal = refusalOf(ref.queue, needsOf(options, group), ref);
    if (refusal) return refusal;
  }
  return undefined;
}

const decided = (outcome: Outcome, result: Edited) => ({ decision: { outcome, result } });

/**
 * What is to be written for an edit of a job as it was seen, or what becomes of the edit without a write. What a codec throws
 * ends the call: it says nothing about this job.
 *
 * @throws DuestreamError `bad-input` for data that the queue refuses under the name of a job whose id the caller named
 */
async function planned(
  queue: Queue,
  target: EditTarget,
  job: Found | Peek | undefined,
): Promise<Prepared<Sent, Edited>> {
  try {
    const { change } = target;
    refuseEncoded(change.data, job?.record);
    if (job?.record === undefined) return planOf(target, change, job);
    const data = await sealed(queue, change.name ?? nameIn(job.record), change);
    return planOf(target, { ...change, data }, job);
  } catch (error) {
    if (!target.found || !(error instanceof DuestreamError)) throw error;
    return { decision: { outcome: 'refused', error } };
  }
}

/** @throws DuestreamError `bad-input` for data that the queue refuses under this name, or whatever its codec throws */
export const sealed = async (
  queue: Queue,
  name: string | undefined,
  { hasData, data }: Pick<Change, 'hasData' | 'data'>,
): Promise<unknown> => (hasData && hasContent(queue) ? seal(queue, { name, data }) : data);

function planOf(
  { id, found, dueMs, ifDigest, ifMatch, madeBy }: EditTarget,
  change: Change,
  job: Found | Peek | undefined,
): Prepared<Sent, Edited> {
  if (!job) return decided('unknown', { id, status: 'unknown' });
  const { record, run, member, seen } = job;
  if ('tombstone' in job && job.tombstone) {
    return decided('over', { id, status: 'over', over: job.tombstone.outcome });
  }
  if (record === undefined) return decided('unreadable', { id, status: 'unreadable' });
  const digest = digestOf(record);
  const edited = editRecord(record, { ...change, dueMs: dueMs ?? job.dueMs ?? nextDueOf(job, record) });
  if (edited === undefined) return decided('unreadable', { id, status: 'unreadable' });
  const own = madeBy === markOf(record) ? sinceMade(id, edited === record) : undefined;
  if (own) return own;
  refuseTooLate(id, { dueMs, record: edited });
  // The script compares what the caller or the walk has seen, or else only what was changed here.
  const before = found?.seen ?? seenOfEtag(ifMatch) ?? digest;
  const sent = { member, record: edited, seen, dueMs };
  // Nothing to do, whatever it does now: the same edit again, or one that changes nothing. The script says so, because
  // a call that is to be durable waits for what it finds as well.
  if (edited === record && (dueMs ?? job.dueMs) === job.dueMs)
    return { sent: { ...sent, before: found?.seen ?? digest } };
  if (hasBegun(run)) return decided('running', { id, status: 'running' });
  if (!isAsSeen({ ifDigest, ifMatch }, digest, seen)) return decided('changed', { id, status: 'changed', digest });
  return { sent: { ...sent, before } };
}

/** A job that the call itself has made, perhaps: as that left it, or somebody has edited it since. */
const sinceMade = (id: string, isAsMade: boolean): Prepared<Sent, Edited> => {
  const status = isAsMade ? 'already' : 'indeterminate';
  return decided(status, { id, status });
};

const isAsSeen = (
  { ifDigest, ifMatch }: Pick<EditTarget, 'ifDigest' | 'ifMatch'>,
  digest: string,
  seen: string | undefined,
): boolean => (ifDigest ?? digest) === digest && (seenOfEtag(ifMatch) ?? seen) === seen;

/** @throws DuestreamError `bad-input` for a job that could never start */
function refuseTooLate(id: string, { dueMs = 0, record }: Pick<EditItem, 'dueMs' | 'record'>): void {
  const expiresAtMs = expiryIn(record) ?? dueMs;
  if (dueMs > expiresAtMs) throw tooLate(id, dueMs, expiresAtMs);
}

function decide({
  item: { id, found, ifDigest, ifMatch },
  sent: { record, seen, dueMs },
  reply,
  isRepeated,
  isLastLook,
}: Answer<EditTarget, Sent, EditReply>): Decision<Edited> | undefined {
  switch (reply.kind) {
    case 'ok':
      return { outcome: 'done', result: { id, status: 'edited', ...after(record, { seen, dueMs }) } };
    case 'already':
      return isRepeated
        ? { outcome: 'done', result: { id, status: 'edited', ...after(record, { seen, dueMs }) } }
        : { outcome: 'already', result: { id, status: 'already', ...after(record, { seen, dueMs }) } };
    case 'bad-record':
    case 'too-large':
      return { outcome: 'refused', error: tooLarge(id, record) };
    default:
      break;
  }
  if (isRepeated) return { outcome: 'indeterminate', result: { id, status: 'indeterminate' } };
  if (reply.kind === 'over') return { outcome: 'over', result: { id, status: 'over', over: reply.over } };
  if (reply.kind === 'unknown') return { outcome: 'unknown', result: { id, status: 'unknown' } };
  if (reply.kind !== 'changed') return { outcome: 'running', result: { id, status: 'running' } };
  // Nobody named a content that the job should have: the edit is made anew from what is there now.
  const isAnew = !found && (ifDigest ?? seenOfEtag(ifMatch)) === undefined;
  return isAnew && !isLastLook ? undefined : { outcome: 'changed', result: { id, status: 'changed' } };
}

/** An edit changes the content, and the due time if it says one, but not what was started. */
function after(
  record: string,
  { seen = '', dueMs }: Pick<Sent, 'seen' | 'dueMs'>,
): Pick<Edited, 'digest' | 'etag' | 'dueMs'> {
  const digest = digestOf(record);
  const seenNow = seen.replace(/^\S+/, digest);
  if (dueMs === undefined) return { digest, etag: etagOfJob(seenNow) };
  return { digest, dueMs, etag: etagOfJob(seenNow.replace(/\S+$/, String(dueMs))) };
}

const tooLarge = (id: string, record: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `the edited record of ${id} is ${Buffer.byteLength(record)} bytes, more than the producer may write; ` +
      'store the data elsewhere and put a reference to it into the job',
  );
