/**
 * The one engine of changes: select jobs, then act on each. A verb (cancel, reschedule, edit) says what it sends for a job,
 * and decides what a reply means; the rest is the same for a call by one id, by a list of ids (`onIds`) and by a filter
 * (`by-filter.ts`).
 *
 *   jobs of a partition ──▶ prepare: what is sent for each ──▶ calls of bounded size ──▶ decide: reply × repeated ──▶ results
 *                               ▲                                                           │
 *                               └───────────── jobs that the script sends back ◀────────────┘
 *
 * The retry hands one fact to `decide` with each reply: whether an earlier call may have been carried out for this job,
 * because its reply was lost (`calls/repeats.ts`).
 */
import type { Queue } from '../../job/queue.ts';
import type { DuestreamError } from '../../kernel/errors.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { DurableJobs } from '../../redis/durable/durable-jobs.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Found } from '../../redis/read/look.ts';
import { EDIT_BYTES_MAX, EDIT_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { CHUNK_JOBS_MAX } from '../calls/batch.ts';
import type { CallClock } from '../calls/calls.ts';
import type { Confirming } from '../calls/durability.ts';
import { letGoByMs, pausedForHeld, stillHeld } from '../calls/held.ts';
import { homeOf, type Layout } from '../calls/layouts.ts';
import { asOne, isMoved } from '../calls/partition-calls.ts';
import { isDoubtful, type Answer as Repeated, sendRepeated } from '../calls/repeats.ts';
import type { WalkParts } from '../query/walk.ts';

/**
 * Why a job that the filter meant was not changed: `changed`: it was edited, started, rescheduled or ended since it was
 * read · `running`, `over`, `unknown`: it does not wait · `already`: it is so already · `already-due`: it waits for a
 * worker · `kept`: `only` forbids it · `unreadable`: its record or its id cannot be read · `refused`: the change does not
 * fit this job, for example its expiry, or its worker holds it until it is due and has not let it go · `indeterminate`: the reply
 * was lost, and nobody knows.
 */
export type SkipReason =
  | 'changed'
  | 'running'
  | 'over'
  | 'unknown'
  | 'already'
  | 'already-due'
  | 'kept'
  | 'unreadable'
  | 'refused'
  | 'indeterminate';

/** How a call by filter counts one job. `requested`: the job runs, and was asked to stop. */
export type Outcome = 'done' | 'requested' | SkipReason;

/** What became of one job: for a caller who named its id, and for a call by filter, which counts. */
export type Decision<Result> =
  | { readonly outcome: Outcome; readonly result: Result }
  /** The change does not fit this job, or its worker has not let it go. A caller who named its id gets the error. */
  | { readonly outcome: 'refused'; readonly error: DuestreamError };

/** A job that a call means. */
export interface Target {
  readonly id: string;
  /** The job as a walk by filter has read it; undefined where the caller named its id. */
  readonly found?: Found | undefined;
}

/** Jobs of one partition. */
export interface InPartition<Item> {
  readonly ref: PartitionRef;
  readonly items: readonly Item[];
}

/** Acts on jobs of one partition. The decisions are in the order of the jobs. */
export type Act<Item, Result> = (
  jobs: InPartition<Item>,
  policy: RetryPolicy,
) => Promise<readonly Decision<Result>[] | Moved>;

/** What every verb stands on. */
/** What a method needs that finds jobs and changes them. */
export interface ChangingParts extends CallClock {
  readonly finding: ActParts;
}

export interface ActParts extends WalkParts, Confirming {
  readonly jobs: Omit<DurableJobs, 'schedule' | 'replay'>;
  readonly windowMs: number;
  readonly horizonMs: number;
  readonly recordBytesMax: number;
}

/** A job and what is sent for it, or a decision that needs no call. */
export type Prepared<Sent, Result> = { readonly sent: Sent } | { readonly decision: Decision<Result> };

/** A reply, with the facts that decide what it means. */
export interface Answer<Item, Sent, Reply> {
  readonly item: Item;
  readonly sent: Sent;
  /** `later` and `held` never get here: the engine sends the job again. */
  readonly reply: Exclude<Reply, Again>;
  /** An earlier call may have been carried out for this job. */
  readonly isRepeated: boolean;
  /** The job was looked at often enough: `decide` may not ask for another look. */
  readonly isLastLook: boolean;
}

export interface Verb<Item extends Target, Sent, Reply extends { readonly kind: string }, Result> {
  readonly name: keyof ActParts['jobs'];
  /** Jobs of one call, where the script does not compare all that was seen of each. */
  readonly jobsMax: number;
  readonly prepare: (
    jobs: InPartition<Item>,
    policy: RetryPolicy,
  ) => Promise<readonly Prepared<Sent, Result>[] | Moved>;
  /** How much of a call this job takes. Default: nothing worth counting. */
  readonly bytesOf?: (sent: Sent) => number;
  /** Whether the call would change the job, so that a lost reply leaves it in doubt. Default: it would. */
  readonly changes?: (sent: Sent) => boolean;
  readonly send: (ref: PartitionRef, sent: readonly Sent[]) => Promise<readonly Reply[] | Moved>;
  /** Undefined: the job is to be prepared anew, and sent again. */
  readonly decide: (answer: Answer<Item, Sent, Reply>) => Decision<Result> | undefined;
}

/** What is not the answer yet. */
type Again = { readonly kind: 'later' } | { readonly kind: 'held' };

/** A job that others start or edit between look and call is looked at again, so often. */
const LOOKS_MAX = 5;

/** As many calls as it takes; the script looks at the first job of each call at least. */
export const actBy =
  <Item extends Target, Sent, Reply extends { readonly kind: string }, Result>(
    verb: Verb<Item, Sent, Reply, Result>,
  ): Act<Item, Result> =>
  (jobs, policy) =>
    new Acting(verb, policy).on(jobs);

interface Asked<Item, Sent> {
  readonly item: Item;
  readonly sent: Sent;
}

/** One verb under way for jobs of one partition. */
class Acting<Item extends Target, Sent, Reply extends { readonly kind: string }, Result> {
  readonly #verb: Verb<Item, Sent, Reply, Result>;
  readonly #policy: RetryPolicy;
  readonly #decided = new Map<Item, Decision<Result>>();
  readonly #looks = new Map<Item, number>();

  constructor(verb: Verb<Item, Sent, Reply, Result>, policy: RetryPolicy) {
    this.#verb = verb;
    this.#policy = policy;
  }

  async on({ ref, items }: InPartition<Item>): Promise<readonly Decision<Result>[] | Moved> {
    const untilMs = letGoByMs(this.#policy);
    for (let open = items; open.length > 0; open = open.filter((item) => !this.#decided.has(item))) {
      // The script hashes each record that it compares.
      const most = open[0]?.found ? EDIT_JOBS_MAX : this.#verb.jobsMax;
      const asked = await this.#prepare({ ref, items: open.slice(0, most) });
      if (isMoved(asked)) return asked;
      const sent = firstBytes(asked, this.#verb.bytesOf);
      const answers = await this.#send({ ref, items: sent });
      if (isMoved(answers)) return answers;
      for (const [at, answer] of answers.entries()) this.#take(sent[at], answer);
      const held = sent.filter((_, at) => answers[at]?.reply.kind === 'held');
      if (held.length > 0 && !(await pausedForHeld(this.#policy.clock, untilMs))) this.#giveUp(held);
    }
    return items.flatMap((item) => this.#decided.get(item) ?? []);
  }

  /** Their workers have not let them go. */
  #giveUp(held: readonly Asked<Item, Sent>[]): void {
    for (const { item } of held) {
      this.#decided.set(item, { outcome: 'refused', error: stillHeld(item.id, isDoubtful(item)) });
    }
  }

  /** What is sent for those jobs that need a call. */
  async #prepare(jobs: InPartition<Item>): Promise<readonly Asked<Item, Sent>[] | Moved> {
    const prepared = await this.#verb.prepare(jobs, this.#policy);
    if (isMoved(prepared)) return prepared;
    const asked: Asked<Item, Sent>[] = [];
    for (const [at, item] of jobs.items.entries()) {
      const one = prepared[at];
      if (one && 'sent' in one) asked.push({ item, sent: one.sent });
      else if (one) this.#decided.set(item, one.decision);
    }
    return asked;
  }

  async #send({ ref, items }: InPartition<Asked<Item, Sent>>): Promise<readonly Repeated<Reply>[] | Moved> {
    if (items.length === 0) return [];
    const { name, changes = () => true } = this.#verb;
    const all = items.map(({ sent }) => sent);
    const changed = items.map(({ item, sent }) => (changes(sent) ? item : undefined));
    return sendRepeated(name, { items: changed, send: () => this.#verb.send(ref, all) }, this.#policy);
  }

  #take(asked: Asked<Item, Sent> | undefined, { reply, isRepeated }: Repeated<Reply>): void {
    if (!asked || !isFinal(reply)) return;
    const { item } = asked;
    const look = (this.#looks.get(item) ?? 0) + 1;
    const decision = this.#verb.decide({ ...asked, reply, isRepeated, isLastLook: look >= LOOKS_MAX });
    this.#looks.set(item, look);
    if (decision) this.#decided.set(item, decision);
  }
}

const isFinal = <Reply extends { readonly kind: string }>(reply: Reply): reply is Exclude<Reply, Again> =>
  reply.kind !== 'later' && reply.kind !== 'held';

/** As many as one call may carry, and at least one. */
function firstBytes<Item, Sent>(
  asked: readonly Asked<Item, Sent>[],
  bytesOf: ((sent: Sent) => number) | undefined,
): readonly Asked<Item, Sent>[] {
  if (!bytesOf) return asked;
  let bytes = 0;
  const end = asked.findIndex(({ sent }, at) => {
    bytes += bytesOf(sent);
    return at > 0 && bytes > EDIT_BYTES_MAX;
  });
  return end === -1 ? asked : asked.slice(0, end);
}

/**
 * A list of jobs by their ids → slices of bounded size → the partitions that have them, one after the other → the results in
 * the order of the list. A queue that moves meanwhile costs only the slice under way another try.
 *
 * @throws DuestreamError also `bad-input` where the change does not fit one of the jobs
 */
export async function onIds<Item extends Target, Result>(
  { callPartitions }: Pick<ActParts, 'callPartitions'>,
  { queue, items }: { readonly queue: Queue; readonly items: readonly Item[] },
  act: Act<Item, Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const calls = asOne(callPartitions);
  for (let from = 0; from < items.length; from += CHUNK_JOBS_MAX) {
    const slice = items.slice(from, from + CHUNK_JOBS_MAX);
    const decided = await calls(queue, (layout, policy) => inEachPartition(layout, slice, (jobs) => act(jobs, policy)));
    results.push(...decided.map(resultOf));
  }
  return results;
}

/** @throws DuestreamError that of a change which does not fit the job */
export function resultOf<Result>(decision: Decision<Result>): Result {
  if ('error' in decision) throw decision.error;
  return decision.result;
}

async function inEachPartition<Item extends Target, Answered>(
  layout: Layout,
  items: readonly Item[],
  act: (jobs: InPartition<Item>) => Promise<readonly Answered[] | Moved>,
): Promise<readonly Answered[] | Moved> {
  const groups = new Map<PartitionRef, number[]>();
  for (const [index, { id }] of items.entries()) {
    const ref = homeOf(layout, id);
    const group = groups.get(ref);
    if (group) group.push(index);
    else groups.set(ref, [index]);
  }
  const results = new Map<number, Answered>();
  for (const [ref, indexes] of groups) {
    const answers = await act({ ref, items: indexes.flatMap((index) => items[index] ?? []) });
    if (isMoved(answers)) return answers;
    for (const [at, answer] of answers.entries()) results.set(indexes[at] ?? -1, answer);
  }
  return items.flatMap((_, index) => results.get(index) ?? []);
}
