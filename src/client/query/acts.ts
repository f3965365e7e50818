/** How jobs of one page are cancelled, rescheduled or edited, each only if it is still what was seen of it. */
import { hasContent, seal } from '../../job/content.ts';
import type { Queue } from '../../job/queue.ts';
import { editRecord, type RecordChange } from '../../job/record-edit.ts';
import { refuseRedacted } from '../../job/redaction.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Found } from '../../redis/read/look.ts';
import { EDIT_BYTES_MAX, EDIT_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { EditReply, RescheduleItem, RescheduleReply } from '../../redis/scripts/edits.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { CancelReply, Moved } from '../../redis/scripts/replies.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { sendRepeated } from '../calls/repeats.ts';
import { refuseEncoded } from '../jobs/shown.ts';
import { nameIn } from './name-in.ts';
import type { Act, Outcome } from './where.ts';

/** Each hashes the records it compares. */
const JOBS_MAX = EDIT_JOBS_MAX;
/** What a script takes as a text. Others are put by foreign producers, and become dead letters when they are due. */
const READABLE = /^[!-~]{1,200}$/;

export function cancelling(jobs: Pick<Jobs, 'cancel'>, windowMs: number): Act {
  const words = (some: readonly Found[]) => some.map(({ member, seen }) => `${member}\0${seen}`);
  return each<CancelReply>({
    what: 'cancel',
    call: (ref, some) => jobs.cancel(ref, words(some), { windowMs }),
    outcomeOf(reply, isRepeated) {
      if (reply.kind === 'cancelled') return 'done';
      // The call before may have been carried out.
      if (isRepeated && reply.kind === 'over' && reply.over === 'cancelled') return 'done';
      if (isRepeated && reply.kind === 'unknown') return 'indeterminate';
      return reply.kind === 'later' ? undefined : reply.kind;
    },
  });
}

export interface NewDueAsk {
  /** 0: now. */
  readonly dueMs: number;
  readonly mode: RescheduleItem['mode'];
  readonly horizonMs: number;
}

export function rescheduling(jobs: Pick<Jobs, 'reschedule'>, { dueMs, mode, horizonMs }: NewDueAsk): Act {
  const items = (some: readonly Found[]) => some.map(({ member, seen }) => ({ member, seen, dueMs, mode }));
  return each<RescheduleReply>({
    what: 'reschedule',
    call: (ref, some) => jobs.reschedule(ref, items(some), { horizonMs }),
    outcomeOf(reply, isRepeated) {
      switch (reply.kind) {
        case 'ok':
          return 'done';
        case 'later':
          return undefined;
        case 'already':
          return isRepeated ? 'done' : 'already';
        case 'kept':
          return 'kept';
        case 'bad-due':
          throw new DuestreamError('bad-input', 'the due time is beyond the horizon by the clock of Redis');
        case 'ready':
          return isRepeated ? 'indeterminate' : 'already-due';
        case 'started':
          return isRepeated ? 'indeterminate' : 'changed';
        default:
          return isRepeated ? 'indeterminate' : reply.kind;
      }
    },
  });
}

/** A record that the change makes, undefined where it cannot be read, or why it does not fit. */
type Made = string | undefined | DuestreamError;

/** What is to be different about the jobs of a queue. */
export interface EditAsk {
  readonly queue: Queue;
  readonly change: Omit<RecordChange, 'dueMs'>;
  readonly bytesMax: number;
}

/** New data is checked and encoded for each job, under the name that the job then has. */
export function editing(jobs: Pick<Jobs, 'edit'>, { queue, change, bytesMax }: EditAsk): Act {
  const made = new Map<Found, Made>();
  const recordOf = (job: Found): string => {
    const record = made.get(job);
    return typeof record === 'string' ? record : '';
  };
  const edit = each<EditReply>({
    what: 'edit',
    bytesOf: (job) => Buffer.byteLength(recordOf(job)),
    changes: (job) => made.get(job) !== job.record,
    call(ref, some) {
      const items = some.map((job) => ({ member: job.member, before: job.seen, record: recordOf(job) }));
      return jobs.edit(ref, items, { bytesMax });
    },
    outcomeOf: editOutcome,
  });
  return async (ref, some, policy) => {
    refuseRedacted(change.data, ref.redact);
    made.clear();
    for (const job of some) made.set(job, await madeOf(job, { queue, change }));
    // Also where nothing is to be different: a call that is to be durable waits for what it finds as well.
    const sent = some.filter((job) => typeof made.get(job) === 'string');
    const answers = await edit(ref, sent, policy);
    if (isMoved(answers)) return answers;
    const told = new Map(sent.map((job, at) => [job, answers[at]]));
    return some.map((job): Outcome => told.get(job) ?? unsent(made.get(job)));
  };
}

function editOutcome(reply: EditReply, isRepeated: boolean): Outcome | undefined {
  switch (reply.kind) {
    case 'ok':
      return 'done';
    case 'later':
      return undefined;
    case 'already':
      return isRepeated ? 'done' : 'already';
    case 'bad-record':
    case 'too-large':
      return 'refused';
    case 'started':
      return isRepeated ? 'indeterminate' : 'changed';
    default:
      return isRepeated ? 'indeterminate' : reply.kind;
  }
}

const unsent = (made: Made): Outcome => (made instanceof DuestreamError ? 'refused' : 'unreadable');

/** @throws DuestreamError `bad-input` for data that the queue refuses under this name, or whatever its codec throws */
export const sealedFor = async (
  queue: Queue,
  name: string | undefined,
  { hasData, data }: Pick<RecordChange, 'hasData' | 'data'>,
): Promise<unknown> => (hasData && hasContent(queue) ? seal(queue, { name, data }) : data);

/** What a codec throws ends the call: it says nothing about this job. */
async function madeOf({ record, dueMs }: Found, { queue, change }: Pick<EditAsk, 'queue' | 'change'>): Promise<Made> {
  if (record === undefined) return undefined;
  try {
    refuseEncoded(change.data, record);
    const data = await sealedFor(queue, change.name ?? nameIn(record), change);
    return editRecord(record, { ...change, data, dueMs });
  } catch (error) {
    if (error instanceof DuestreamError) return error;
    throw error;
  }
}

interface Each<Reply> {
  readonly what: string;
  readonly call: (ref: PartitionRef, some: readonly Found[]) => Promise<readonly Reply[] | Moved>;
  readonly bytesOf?: (job: Found) => number;
  /** Whether the call would change this job as it was seen. Default: it would. */
  readonly changes?: (job: Found) => boolean;
  /** Undefined: the job is to be sent again. */
  readonly outcomeOf: (reply: Reply, isRepeated: boolean) => Outcome | undefined;
}

/** As many calls as it takes; a script looks at the first job of each at least. */
function each<Reply>(how: Each<Reply>): Act {
  return async (ref, jobs, policy) => {
    const readable = jobs.filter(({ member }) => READABLE.test(member));
    const outcomes = new Map<Found, Outcome>();
    for (let open = readable; open.length > 0; open = open.filter((job) => !outcomes.has(job))) {
      const answers = await sendSome(how, { ref, some: firstOf(open, how.bytesOf) }, policy);
      if (isMoved(answers)) return answers;
      for (const [job, outcome] of answers) outcomes.set(job, outcome);
    }
    return jobs.map((job) => outcomes.get(job) ?? 'unreadable');
  };
}

/** What became of those that were looked at. */
async function sendSome<Reply>(
  { what, call, outcomeOf, changes = () => true }: Each<Reply>,
  { ref, some }: { readonly ref: PartitionRef; readonly some: readonly Found[] },
  policy: RetryPolicy,
): Promise<readonly (readonly [Found, Outcome])[] | Moved> {
  const items = some.map((job) => (changes(job) ? job : undefined));
  const answers = await sendRepeated(what, { items, send: () => call(ref, some) }, policy);
  if (isMoved(answers)) return answers;
  return some.flatMap((job, at) => {
    const answer = answers[at];
    if (answer === undefined) throw new Error('the script replied to fewer jobs than it was sent');
    const outcome = outcomeOf(answer.reply, answer.isRepeated);
    return outcome === undefined ? [] : [[job, outcome] as const];
  });
}

/** As many as one call may carry, and at least one. */
function firstOf(jobs: readonly Found[], bytesOf: Each<unknown>['bytesOf']): readonly Found[] {
  const some = jobs.slice(0, JOBS_MAX);
  if (!bytesOf) return some;
  let bytes = 0;
  const end = some.findIndex((job, at) => {
    bytes += bytesOf(job);
    return at > 0 && bytes > EDIT_BYTES_MAX;
  });
  return end === -1 ? some : some.slice(0, end);
}
