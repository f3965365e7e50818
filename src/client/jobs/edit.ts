/**
 * Another content for jobs that wait: data, name, options. A job is read, changed here, and written if it is still what
 * was read (compare and set), so two edits at once cannot undo each other. The same edit again is recognised, because
 * the record it would write stands there.
 */
import { decodeRecord, memberOf } from '../../job/codec.ts';
import { hasContent, seal } from '../../job/content.ts';
import type { Queue } from '../../job/queue.ts';
import { editRecord, type RecordChange } from '../../job/record-edit.ts';
import { decodeHeader, digestOf } from '../../job/record-header.ts';
import { refuseRedacted } from '../../job/redaction.ts';
import type { OverState } from '../../job/state.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import { type Peek, peek } from '../../redis/read/inspect.ts';
import { EDIT_BYTES_MAX, EDIT_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { EditItem, EditReply } from '../../redis/scripts/edits.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { inSlices, type Some } from '../calls/each-partition.ts';
import { etagOfJob, seenOfEtag } from '../calls/etag.ts';
import { type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/read-retry.ts';
import { type Answer, isDoubtful, sendRepeated } from '../calls/repeats.ts';
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
  /** Of the job after it, with `edited` and `already`: for the next change's `ifMatch`. */
  readonly etag?: string | undefined;
  readonly over?: OverState | undefined;
}

/** One job, checked. */
export interface EditRequest {
  readonly id: string;
  readonly change: Omit<RecordChange, 'dueMs'>;
  readonly ifDigest: string | undefined;
  readonly ifMatch: string | undefined;
}

export interface EditParts {
  readonly redis: Redis;
  readonly jobs: Pick<Jobs, 'edit'>;
  readonly callPartitions: CallPartitions;
  readonly recordBytesMax: number;
}

export type Edit = (queue: Queue, requests: readonly EditRequest[]) => Promise<readonly Edited[]>;

/** Where somebody else edits the same job at the same time, it is read anew so often. */
const LOOKS_MAX = 5;

export function createEdit(parts: EditParts): Edit {
  return (queue, requests) =>
    inSlices(parts.callPartitions, { queue, items: requests }, (some, policy) =>
      inPartition(parts, { ...some, queue }, policy),
    );
}

interface Asked extends Some<EditRequest> {
  readonly queue: Queue;
}

async function inPartition(parts: EditParts, { ref, some, queue }: Asked, policy: RetryPolicy) {
  const results = new Map<EditRequest, Edited>();
  let open = some;
  for (const { change } of some) refuseRedacted(change.data, ref.redact);
  for (let looks = 1; open.length > 0; looks += 1) {
    const round = await lookAndCall(parts, { ref, queue, some: open.slice(0, EDIT_JOBS_MAX) }, policy);
    if (isMoved(round)) return round;
    const isLast = looks >= LOOKS_MAX + some.length;
    for (const { request, result } of round) {
      const known = result ?? (isLast ? { id: request.id, status: 'changed' as const } : undefined);
      if (known) results.set(request, known);
    }
    open = open.filter((request) => !results.has(request));
  }
  return some.flatMap((request) => results.get(request) ?? []);
}

interface Round {
  readonly request: EditRequest;
  /** Undefined: it is to be looked at again. */
  readonly result: Edited | undefined;
}

async function lookAndCall(parts: EditParts, some: Asked, policy: RetryPolicy): Promise<readonly Round[] | Moved> {
  const plans = await lookAt(parts, some, policy);
  if (isMoved(plans)) return plans;
  const round: Round[] = plans.filter((plan) => 'result' in plan);
  const sent = firstBytes(plans.filter((plan) => 'item' in plan));
  if (sent.length === 0) return round;
  const items = sent.map(({ item }) => item);
  const edit = () => parts.jobs.edit(some.ref, items, { bytesMax: parts.recordBytesMax });
  const edits = sent.map(({ request, item }) => (digestOf(item.record) === item.before ? undefined : request));
  const answers = await sendRepeated('edit', { items: edits, send: edit }, policy);
  if (isMoved(answers)) return answers;
  const told = answers.flatMap((answer, at) => {
    const one = sent[at];
    return one ? [{ request: one.request, result: resultOf(one.request, one.item, answer) }] : [];
  });
  return [...round, ...told];
}

type Plan =
  | { readonly request: EditRequest; readonly result: Edited }
  | { readonly request: EditRequest; readonly item: SeenItem };
/** `seen`: all that was seen of the job from which the record was made. */
type SeenItem = EditItem & { readonly seen: string | undefined };
type Sent = Extract<Plan, { item: EditItem }>;

async function lookAt(
  { redis }: EditParts,
  { ref, some, queue }: Asked,
  policy: RetryPolicy,
): Promise<readonly Plan[] | Moved> {
  const look = ({ id }: EditRequest) => withReadRetry('edit', () => peek(redis, ref, memberOf(id)), policy);
  const found = await Promise.all(some.map(look));
  const plans: Plan[] = [];
  for (const [at, request] of some.entries()) {
    const job = found[at];
    if (job && 'kind' in job) return job;
    const plan = await plannedIn(queue, request, job);
    const isUnsure = 'result' in plan && isDoubtful(request);
    plans.push(isUnsure ? { request, result: { id: request.id, status: 'indeterminate' } } : plan);
  }
  return plans;
}

/**
 * What is to be written for an edit of a job as it stands there, or what becomes of the edit without a write.
 *
 * @throws DuestreamError `bad-input` for data that the queue refuses under the name of the job
 */
export async function plannedIn(queue: Queue, request: EditRequest, job: Peek | undefined): Promise<Plan> {
  const { change } = request;
  refuseEncoded(change.data, job?.record);
  if (!change.hasData || !hasContent(queue) || job?.record === undefined) return planOf(request, job);
  const data = await seal(queue, { name: change.name ?? nameIn(job.record), data: change.data });
  return { ...planOf({ ...request, change: { ...change, data } }, job), request };
}

function nameIn(record: string): string | undefined {
  try {
    return decodeRecord(record).name;
  } catch {
    return undefined;
  }
}

function planOf(request: EditRequest, job: Peek | undefined): Plan {
  const { id, change, ifDigest, ifMatch } = request;
  const done = (result: Omit<Edited, 'id'>): Plan => ({ request, result: { id, ...result } });
  if (!job) return done({ status: 'unknown' });
  const { record, run, tombstone, member, seen } = job;
  if (tombstone) return done({ status: 'over', over: tombstone.outcome });
  if (record === undefined) return done({ status: 'unreadable' });
  const before = digestOf(record);
  const dueMs = job.dueMs ?? run?.nextDueMs ?? decodeHeader(record)?.askedDueMs ?? job.nowMs;
  const edited = editRecord(record, { ...change, dueMs });
  if (edited === undefined) return done({ status: 'unreadable' });
  // Nothing to do, whatever it does now: the same edit again, or one that changes nothing. The script says so, because a
  // call that is to be durable waits for what it finds as well.
  if (edited === record) return { request, item: { member, before, record, seen } };
  if (run?.owner !== undefined) return done({ status: 'running' });
  const isSeen = (ifDigest ?? before) === before && (seenOfEtag(ifMatch) ?? seen) === seen;
  if (!isSeen) return done({ status: 'changed', digest: before });
  // The script compares what the caller has seen, or else only what was changed here.
  return { request, item: { member, before: seenOfEtag(ifMatch) ?? before, record: edited, seen } };
}

/** As many as one call may carry, and at least one. */
function firstBytes(plans: readonly Sent[]): readonly Sent[] {
  let bytes = 0;
  const end = plans.findIndex(({ item }, at) => {
    bytes += Buffer.byteLength(item.record);
    return at > 0 && bytes > EDIT_BYTES_MAX;
  });
  return end === -1 ? plans : plans.slice(0, end);
}

/** Undefined: it is to be looked at again. */
function resultOf(
  { id, ifDigest, ifMatch }: EditRequest,
  { record, seen }: SeenItem,
  { reply, isRepeated }: Answer<EditReply>,
): Edited | undefined {
  switch (reply.kind) {
    case 'ok':
      return { id, status: 'edited', ...after(record, seen) };
    case 'already':
      return { id, status: isRepeated ? 'edited' : 'already', ...after(record, seen) };
    case 'later':
      return undefined;
    case 'bad-record':
    case 'too-large':
      throw tooLarge(id, record);
    default:
      if (isRepeated) return { id, status: 'indeterminate' };
      if (reply.kind === 'over') return { id, status: 'over', over: reply.over };
      if (reply.kind !== 'changed') return { id, status: reply.kind === 'unknown' ? 'unknown' : 'running' };
      return (ifDigest ?? seenOfEtag(ifMatch)) === undefined ? undefined : { id, status: 'changed' };
  }
}

/** An edit changes neither the due time nor what was started. */
function after(record: string, seen = ''): Pick<Edited, 'digest' | 'etag'> {
  const digest = digestOf(record);
  return { digest, etag: etagOfJob(seen.replace(/^\S+/, digest)) };
}

const tooLarge = (id: string, record: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `the edited record of ${id} is ${Buffer.byteLength(record)} bytes, more than the producer may write; ` +
      'store the data elsewhere and put a reference to it into the job',
  );
