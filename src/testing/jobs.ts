/**
 * The jobs there are in virtual time: scheduled, replaced, cancelled, with the answers of the scripts. What happens when
 * one comes due is `runner.ts`; how callers change one is `changes.ts`, and how they find some is `finding.ts`.
 */

import { Orders } from '../client/calls/orders.ts';
import { countedPlan, type Plan } from '../client/calls/plan.ts';
import { failureOf, notGated, type Scheduled, scheduledOf } from '../client/calls/scheduled.ts';
import { refuseShown } from '../client/jobs/shown.ts';
import { countsGroups, isGated, ownLimits } from '../job/gate.ts';
import { COUNTED_ENTRY, groupOf } from '../job/labels.ts';
import { type Queue, queueOf as queueNamed } from '../job/queue.ts';
import type { GateSettings } from '../job/queue-settings.ts';
import { decodeHeader, entriesOfRecord, markOf } from '../job/record-header.ts';
import type { JobState } from '../job/state.ts';
import { isLiveState } from '../job/state.ts';
import type { CancelReply, ScheduleReply } from '../redis/scripts/replies.ts';
import { ClosedTags } from './closing.ts';
import { type Debounced, debouncedAs } from './debounce.ts';
import type { Gates } from './gates.ts';
import { dueOf, endJob, endsOf, freshJob, type Kept, type KeptLetter, overOf, priorityIn } from './kept.ts';
import { createRunner, type Runner, type RunnerParts } from './runner.ts';
import { KeptSets } from './sets.ts';

/** A job that is not over, or how it ended. */
export interface TestJob {
  readonly id: string;
  readonly queue: string;
  readonly state: JobState;
  /** Epoch ms; undefined when it is not scheduled and not in line. */
  readonly dueMs: number | undefined;
  readonly attempts: number;
  readonly failures: number;
  /** With `dead`: the reason, such as `attempts-exhausted`. */
  readonly reason: string | undefined;
}

type Wanted = Pick<Plan, 'id' | 'record' | 'dueMs' | 'mode' | 'strict' | 'gated'> & {
  /** Of a schedule, or of a job that died: it is never refused for want of room. */
  readonly isOwed?: boolean;
};

interface Limits extends Pick<Queue, 'maxPending' | 'maxBytes'> {
  readonly gates: GateSettings;
}

const keyOf = (queue: string, id: string): string => `${queue} ${id}`;

/** A job that is never refused. */
const owed = (job: Pick<Wanted, 'id' | 'record' | 'dueMs'>): Wanted => ({
  ...job,
  mode: 'keep',
  strict: false,
  isOwed: true,
});

export type JobBook = ReturnType<typeof createJobBook>;

type Answer = Exclude<ScheduleReply, { kind: 'later' }>;

export interface JobBookParts extends Omit<RunnerParts, 'deadLetters' | 'closed' | 'isKept'> {
  /** The definition that counts: the worker's, else the producer's. */
  readonly queueOf: (given: Queue) => Queue;
}

export function createJobBook(parts: JobBookParts) {
  const { agenda, queueOf } = parts;
  /** The newest last. */
  const deadLetters: KeptLetter[] = [];
  const closed = new ClosedTags(agenda.nowMs);
  const kept = new Map<string, Kept>();
  const isKept = (job: Kept) => kept.get(keyOf(job.queue.name, job.id)) === job;
  const runner = createRunner({ ...parts, deadLetters, closed, isKept }, (queue, { dueMs = agenda.nowMs(), ...job }) =>
    add(queue, owed({ ...job, dueMs })),
  );
  const registry = new Registry(queueOf, runner.gates);
  const listeners = new Listeners();
  const find = (queue: string, id: string) => kept.get(keyOf(queue, id));
  // The refusals of a call are not for a callback.
  const sets = new KeptSets({ nowMs: agenda.nowMs, inQueue: (name) => jobsOf(kept, name), find }, (queue, job) =>
    add(registry.declare(queueNamed(queue)), owed(job)),
  );
  listeners.add((job) => sets.ended(job));

  const add = async (queue: Queue, plan: Wanted): Promise<Scheduled> =>
    scheduledOf(queue.name, plan, await place(queue, plan));

  /** The same answers as `schedule.lua`. */
  async function place(queue: Queue, given: Wanted): Promise<Answer> {
    const plan = registry.admit(queue, given);
    const before = find(queue.name, plan.id);
    if (!plan.isOwed) refuseShown(plan, { redact: queueOf(queue).redact, before: before?.record });
    const debounced = debouncedIn(plan, before, agenda.nowMs());
    const asked = askedOf(before, { ...plan, nowMs: agenda.nowMs() }, debounced);
    const room = roomFor(registry.limitsOf(queue), { plan, before, asked, there: jobsOf(kept, queue.name) });
    const reply = unlessClosed(closed, queue.name, plan, joined(room, { sets, queue: queue.name, plan, before }));
    if (reply.kind !== 'ok' && reply.kind !== 'replaced') return reply;
    if (debounced && reply.kind === 'replaced' && before) return renew(runner, before, debounced);
    before?.strike();
    await begin(nextLife(queueOf(queue), plan, { before, debounced, isReplaced: reply.kind === 'replaced' }));
    return reply;
  }

  /** A job, new or with another life, waits for its due time. */
  async function begin(job: Kept): Promise<void> {
    kept.set(keyOf(job.queue.name, job.id), job);
    job.tell = () => listeners.tell(job);
    await runner.begin(job, job.dueMs);
  }

  return {
    add,
    place,
    begin,
    isLive: (queue: string, id: string) => isLiveState(find(queue, id)?.state ?? 'done'),
    inQueue: (queue: string) => jobsOf(kept, queue),
    deadLetters,
    closed,
    sets,
    queues: () => registry.names(),
    declare: (queue: Queue) => registry.declare(queue),
    use: (queue: Queue) => registry.use(queue),
    seen: (queue: Queue) => registry.seen(queue),
    gates: runner.gates,
    nowMs: agenda.nowMs,
    orderOf: new Orders().next,
    /** Calls back after virtual time; the returned function calls it off. */
    timer: (ms: number, what: () => void) => agenda.at(agenda.nowMs() + ms, what),
    /** Is told of each job that ends. The returned function ends that. */
    listen: (listener: (job: Kept) => void) => listeners.add(listener),
    find,
    cancel: (queue: string, id: string) => cancel(find(queue, id), agenda.nowMs()),
    all: (): readonly TestJob[] => [...kept.values()].map(testJobOf),
  };
}

/** Newer data for a job that lives. */
async function renew(
  { begin }: Runner,
  job: Kept,
  { reply, record = job.record, dueMs = job.dueMs }: Debounced,
): Promise<Answer> {
  const isMoved = dueMs !== job.dueMs || (job.state === 'waiting' && priorityIn(job.record) !== priorityIn(record));
  job.record = record;
  job.hasNews = job.state === 'running';
  if (!isMoved) return reply;
  job.strike();
  if (job.nextDueMs !== undefined) job.nextDueMs = dueMs;
  await begin(job, dueMs);
  return reply;
}

/** Who waits for jobs to end. */
class Listeners {
  readonly #all = new Set<(job: Kept) => void>();

  add(listener: (job: Kept) => void): () => void {
    this.#all.add(listener);
    return () => void this.#all.delete(listener);
  }

  tell(job: Kept): void {
    for (const listener of this.#all) listener(job);
  }
}

/** As in the registry of a namespace: a queue is declared by its first use. */
class Registry {
  readonly #queueOf: JobBookParts['queueOf'];
  readonly #gates: Gates;
  readonly #queues = new Map<string, Queue>();
  /** Those that the client has used. */
  readonly #used = new Set<string>();

  constructor(queueOf: JobBookParts['queueOf'], gates: Gates) {
    this.#queueOf = queueOf;
    this.#gates = gates;
  }

  names(): readonly string[] {
    return [...this.#queues.keys()].toSorted();
  }

  /** The definition by which a queue was declared: that of its worker, or of the first call. */
  declare(queue: Queue): Queue {
    const known = this.#queues.get(queue.name) ?? this.#queueOf(queue);
    if (!this.#queues.has(queue.name)) this.#gates.declare(known, known);
    this.#queues.set(queue.name, known);
    return known;
  }

  /** The first call of a client about a queue sets the limits that its definition says. @throws DuestreamError `bad-input` */
  use(queue: Queue): Queue {
    const declared = this.declare(queue);
    if (!this.#used.has(queue.name)) this.#gates.declare(declared, queue);
    this.#used.add(queue.name);
    return declared;
  }

  /** As a look finds it, which declares nothing. */
  seen(queue: Queue): Queue {
    return this.#queues.get(queue.name) ?? this.#queueOf(queue);
  }

  /** How many jobs and bytes there may be, and in each group. */
  limitsOf(queue: Queue): Limits {
    const { maxPending, maxBytes } = this.#queueOf(queue);
    return { maxPending, maxBytes, gates: this.#gates.settingsOf(queue.name) ?? {} };
  }

  /**
   * The job as it is sent.
   *
   * @throws DuestreamError `bad-input` for limits that the queue cannot have, and for a job that needs a gate where there is none
   */
  admit(queue: Queue, plan: Wanted): Wanted {
    if (plan.isOwed) {
      this.declare(queue);
      return plan;
    }
    try {
      this.use(queue);
      const { gated } = plan;
      const { gates: settings } = this.limitsOf(queue);
      if (gated !== undefined && !isGated(settings)) throw notGated(queue.name, gated);
      return countsGroups(settings) ? countedPlan(plan) : plan;
    } catch (error) {
      throw failureOf(queue.name, plan, error);
    }
  }
}

function testJobOf(job: Kept): TestJob {
  const { id, queue, state, attempts, failures, reason } = job;
  return { id, queue: queue.name, state, attempts, failures, reason, dueMs: dueOf(job) };
}

function cancel(job: Kept | undefined, nowMs: number): Exclude<CancelReply, { kind: 'later' | 'changed' }> {
  if (!job) return { kind: 'unknown' };
  if (job.state === 'running') {
    job.cancelRequested = true;
    job.hasNews = false;
    job.abort?.('cancelled');
    return { kind: 'requested' };
  }
  const over = overOf(job.state);
  if (over) return { kind: 'over', over };
  job.strike();
  endJob(job, 'cancelled', nowMs);
  return { kind: 'cancelled' };
}

function* jobsOf(kept: ReadonlyMap<string, Kept>, queue: string): Generator<Kept, undefined, undefined> {
  for (const job of kept.values()) if (job.queue.name === queue) yield job;
}

/** A job of an id that is new, over, or replaced. */
function nextLife(
  queue: Queue,
  { id, record, dueMs }: Wanted,
  {
    before,
    debounced,
    isReplaced,
  }: {
    readonly before: Kept | undefined;
    readonly debounced: Debounced | undefined;
    readonly isReplaced: boolean;
  },
): Kept {
  const generation = isReplaced ? before?.generation : undefined;
  return {
    ...freshJob(queue, { id, record: debounced?.record ?? record, dueMs, past: before ? endsOf(before) : [] }),
    generation: generation === undefined ? undefined : generation + 1,
  };
}

/** As `lua/lib/joining.lua`. */
function joined(
  reply: Answer,
  of: { readonly sets: KeptSets; readonly queue: string; readonly plan: Wanted; readonly before: Kept | undefined },
): Answer {
  const { sets, queue, plan, before } = of;
  if (reply.kind !== 'ok' && reply.kind !== 'replaced') return reply;
  const [set, other] = [decodeHeader(plan.record)?.set, decodeHeader(before?.record ?? '')?.set];
  if (before && reply.kind === 'replaced' && set !== other) return { kind: 'exists', dueMs: before.dueMs };
  return plan.isOwed || sets.admits(queue, plan) ? reply : { kind: 'no-set' };
}

/** What would be made or replaced is not where a tag of it is closed, whether there is room or not. */
function unlessClosed(closed: ClosedTags, queue: string, { isOwed, record }: Wanted, reply: Answer): Answer {
  const isMade = ['ok', 'replaced', 'full', 'uncounted'].includes(reply.kind);
  return (isMade && isOwed !== true && closed.by(queue, record)) || reply;
}

const debouncedIn = (plan: Wanted, before: Kept | undefined, nowMs: number): Debounced | undefined =>
  plan.mode === 'debounce' ? debouncedAs(before, { ...plan, nowMs }) : undefined;

/** What the call is told where there is room. Newer data of a job that lives ask as a job that is replaced. */
function askedOf(
  before: Kept | undefined,
  plan: Wanted & { readonly nowMs: number },
  debounced: Debounced | undefined,
): Answer {
  if (!debounced) return before ? replyTo(before, plan, plan.nowMs) : { kind: 'ok' };
  const isNews = debounced.record !== undefined && debounced.reply.kind !== 'ok';
  return isNews ? { kind: 'replaced' } : debounced.reply;
}

/** As `lua/lib/quota.lua`, where every queue has one partition and each record was weighed. */
function roomFor(
  { maxPending = 0, maxBytes = 0, gates }: Limits,
  {
    plan,
    before,
    asked: reply,
    there,
  }: {
    readonly plan: Wanted;
    readonly before: Kept | undefined;
    readonly asked: Answer;
    readonly there: Iterable<Kept>;
  },
): Answer {
  const isIn = reply.kind === 'ok' || reply.kind === 'replaced';
  if (!isIn || plan.isOwed || (maxPending + maxBytes === 0 && !countsGroups(gates))) return reply;
  const live = [...there].filter(({ state }) => isLiveState(state));
  const isNew = reply.kind === 'ok';
  const full = isNew ? fullGroup(gates, plan, live) : undefined;
  if (full) return full;
  if (isNew && maxPending > 0 && live.length >= maxPending) {
    return { kind: 'full', what: 'pending', limit: maxPending, there: live.length };
  }
  const bytes = live.reduce((sum, { record }) => sum + Buffer.byteLength(record), 0);
  const more = Buffer.byteLength(plan.record) - (isNew ? 0 : Buffer.byteLength(before?.record ?? ''));
  const isHeavy = maxBytes > 0 && more > 0 && bytes + more > maxBytes;
  return isHeavy ? { kind: 'full', what: 'bytes', limit: maxBytes, there: bytes } : reply;
}

/** As `lua/lib/group-quota.lua`. */
function fullGroup(gates: GateSettings, { id, record }: Wanted, live: readonly Kept[]): Answer | undefined {
  const group = isCounted({ record }) ? groupOf(id) : undefined;
  if (group === undefined) return undefined;
  const { maxPending: limit = gates.groupPending ?? 0 } = ownLimits(gates, group);
  const there = pendingIn(live, group);
  return limit > 0 && there >= limit ? { kind: 'full', what: 'group', limit, there } : undefined;
}

/** How many of these jobs count in a group. */
export const pendingIn = (live: readonly Kept[], group: string): number =>
  live.filter((job) => groupOf(job.id) === group && isCounted(job)).length;

const isCounted = ({ record }: Pick<Kept, 'record'>): boolean => entriesOfRecord(record).includes(COUNTED_ENTRY);

/** What is told about a job of this id that is there already; `ok` when it is over and gets a new life. */
function replyTo(before: Kept, wanted: Wanted, nowMs: number): Answer {
  const { state } = before;
  const over = overOf(state);
  const exists = {
    kind: 'exists',
    dueMs: dueOf(before) ?? decodeHeader(before.record)?.askedDueMs ?? before.dueMs,
  } as const;
  if (wanted.mode === 'update') return over ? { kind: 'already', over } : exists;
  const isSame = markOf(before.record) === markOf(wanted.record);
  // A cancel ends what was scheduled before it, and no call is sent twice here.
  if (over) return isSame && (over !== 'cancelled' || wanted.isOwed) ? { kind: 'already', over } : { kind: 'ok' };
  if (isSame && !before.cancelRequested && !takesBack(before, wanted, nowMs)) {
    const dueMs = dueOf(before);
    return { kind: 'already', over, ...(dueMs !== undefined && { dueMs }) };
  }
  if (wanted.mode === 'replace') return { kind: state === 'running' ? 'running' : 'replaced' };
  return exists;
}

/** Whether the same call undoes what was done to its job since: it was edited, or rescheduled before its first start. */
function takesBack(before: Kept, { mode, record, dueMs }: Wanted, nowMs: number): boolean {
  if (mode !== 'replace') return false;
  const there = dueOf(before);
  const isMoved = there !== undefined && there !== dueMs && (dueMs > 0 || there > nowMs);
  return before.record !== record || (isMoved && before.attempts === 0);
}
