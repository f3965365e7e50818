/**
 * Jobs that come into being in the same step in which their job is completed, or not at all. They go into the partition of
 * that job, because a script writes in one slot only: their ids route there. Such an id has the number of the start in it,
 * so no other job can have it, and nobody has to look whether it is live.
 */
import { needsOf, refusalOf } from '../../client/calls/needs.ts';
import { countedPlan, type Plan, planJob } from '../../client/calls/plan.ts';
import { type Content, hasContent, seal } from '../../job/content.ts';
import type { Job } from '../../job/job.ts';
import { derivedId } from '../../job/job-id.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { entriesOfRecord } from '../../job/record-header.ts';
import { dataBytesMaxRange } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import type { PartitionKeys, PartitionRef } from '../../redis/keys.ts';
import type { Effect } from '../../redis/scripts/replies.ts';
import { carrying } from '../../telemetry/spans.ts';

/** Without what is about another job of the same id: there is none. */
export type CommitJobOptions = Omit<ScheduleOptions, 'id' | 'ifExists' | 'group' | 'debounce'>;

/** Whose end the new job goes with. */
export interface Committing {
  readonly job: Pick<Job<unknown>, 'id' | 'bare'>;
  readonly token: string;
  /** How many came before it. */
  readonly nth: number;
  readonly queue: Content;
  readonly ref: Pick<PartitionRef, 'queue' | 'gates'>;
  /** The set that the job is a member of. */
  readonly set: string | undefined;
  readonly nowMs: number;
}

const HORIZON_MS = 3650 * 86_400_000;
/** As many as 100 jobs take, so that their ids sort in the order of the calls. */
const NTH_DIGITS = 2;

/** @throws DuestreamError `bad-input` */
export async function planCommitted(data: unknown, given: CommitJobOptions, from: Committing): Promise<Plan> {
  const options = snapshot(given);
  // Of what goes on now: the handler may be somewhere else when a codec has taken its time.
  const carry = carrying();
  const { job, token, nth, queue, ref, nowMs } = from;
  for (const name of ['id', 'ifExists', 'group', 'debounce', 'durability']) {
    if (Reflect.get(options, name) === undefined) continue;
    throw new DuestreamError(
      'bad-input',
      `${name} is not an option of commitJob; allowed: those of a new job in the queue of this one, whose id is made for it`,
    );
  }
  if (options.set !== undefined && options.set !== from.set) {
    throw new DuestreamError(
      'bad-input',
      `commitJob was called with set ${show(options.set)} by a job of ${from.set === undefined ? 'no set' : `set ${from.set}`}; allowed: the set of this job`,
    );
  }
  if (job.bare) {
    throw new DuestreamError(
      'bad-input',
      `commitJob was called for the bare job ${show(job.id)}, whose partition no id leads to; allowed: context.schedule`,
    );
  }
  const sealed = hasContent(queue) ? await seal(queue, { name: options.name, data }) : data;
  const id = derivedId(job.id, `then:${token}.${String(nth).padStart(NTH_DIGITS, '0')}`);
  const newId = () => id;
  const limits = { horizonMs: HORIZON_MS, dataBytesMax: dataBytesMaxRange.default, nowMs, newId, carry };
  const plan = planJob(sealed, options, limits);
  const refusal = refusalOf(ref.queue, needsOf(options, undefined), ref);
  if (refusal) throw refusal;
  return ref.gates?.isCounted ? countedPlan(plan) : plan;
}

/** What schedules them, in the order of the scripts: the index before the record. */
export const effectsOf = (keys: PartitionKeys, plans: readonly Plan[]): readonly Effect[] =>
  plans.flatMap(({ member, record, dueMs }): readonly Effect[] => [
    ...tagged(keys, { member, entries: entriesOfRecord(record) }),
    { command: 'ZADD', key: keys.scheduled, args: [dueMs, member] },
    { command: 'HSET', key: keys.jobs, args: [member, record] },
    { command: 'HINCRBY', key: keys.meta, args: ['n.scheduled', 1] },
    // Nobody looks whether the leader would have woken up sooner anyway.
    { command: 'SPUBLISH', key: keys.wake, args: [String(dueMs)] },
  ]);

const tagged = (
  keys: PartitionKeys,
  { member, entries }: { readonly member: string; readonly entries: readonly string[] },
) =>
  entries.length === 0
    ? []
    : [{ command: 'ZADD', key: keys.tags, args: entries.flatMap((entry) => [0, `${entry}\0${member}`]) }];
