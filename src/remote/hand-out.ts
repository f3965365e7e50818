/**
 * One ask for one poll: partition by partition, until one has something for it. What a worker has lost comes first, then what is
 * ready. A claim takes from one partition, so that the same claim, sent again, finds all that it was handed in one place.
 *
 *  overdue ─▶ reclaim ─┐                             for an idle worker: all before the first suspect, or that one alone
 *                      ├─▶ hand ─▶ run, again      the job goes into the answer, or is a dead letter
 *  ready ──────────────┘          suspect         alone into the answer of an idle worker; else it stays where it is, and is overdue
 *                                                 once its lease is over
 *                                 later           back to scheduled: the answer is full
 *                                 late            it is over
 *                                 others          they left ready
 */
import { idOf } from '../job/codec.ts';
import type { Emitter } from '../job/events.ts';
import { DEFAULT_NAME } from '../job/job.ts';
import type { Rules } from '../job/judge.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { outageOf, type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { EXPIRE_JOBS_MAX, inParts, READ_BYTES_MAX } from '../redis/scripts/bytes.ts';
import { wasHanded } from '../redis/scripts/claims.ts';
import type { Jobs } from '../redis/scripts/jobs.ts';
import { ensureGroup, reclaim } from '../redis/scripts/ready.ts';
import type { Delivery, Ended, Handed, SettleReply, Taken } from '../redis/scripts/replies.ts';
import { burialOf, type ClaimedJob, jobOf, judged, type Start } from './claimed-job.ts';
import type { Found, Poll } from './poll-line.ts';
import type { Overdue, TakeBack } from './take-back.ts';

/** A poll with what it wants. */
export interface Claim extends Poll {
  /** Free slots. */
  readonly max: number;
  /** How many jobs its worker runs now. */
  readonly running: number;
  /** What is over, by partition: it goes with the first ask there, and `ended` is told what became of it. */
  readonly ends: Map<number, readonly Ended[]>;
  readonly ended: (ref: PartitionRef, replies: readonly SettleReply[]) => void;
}

interface HandOutParts {
  readonly redis: Redis;
  readonly jobs: Jobs;
  readonly refs: () => readonly PartitionRef[];
  readonly rules: Rules<true>;
  readonly takeBack: TakeBack;
  readonly windowMs: number;
  readonly jobLeaseMs: number;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  readonly events: Emitter;
}

/** A poll waits no longer than this for an outage to pass; then its worker is told, and sends the same claim again. */
const BUDGET_MS = 3000;
/** A suspect that no idle worker has asked for so often goes to any. */
const PATIENCE = 3;

export class HandOut {
  readonly #parts: HandOutParts;
  /** Where the next ask begins. */
  #turn = 0;
  /** How often a suspect was not handed out, of some that were seen last. */
  readonly #passedOver = new Map<string, number>();

  constructor(parts: HandOutParts) {
    this.#parts = parts;
  }

  /** @throws DuestreamError when Redis does not answer in time */
  async ask(claim: Claim, isKnown: boolean): Promise<Found<ClaimedJob>> {
    const found = await this.#find(claim, isKnown);
    if (claim.ends.size > 0) for (const ref of this.#parts.refs()) await this.#complete(ref, claim);
    return found;
  }

  async #find(claim: Claim, isKnown: boolean): Promise<Found<ClaimedJob>> {
    for (const ref of await this.#order(claim)) {
      const { handed, jobs } = await this.#askOne(ref, claim);
      if (handed.word === 'superseded') return { kind: 'superseded' };
      const isFound = handed.word === 'again' || jobs.length > 0;
      if (isFound && !isKnown) await this.#tellOthers(ref, claim);
      if (handed.word === 'again') return { kind: 'again', jobs };
      if (jobs.length > 0) return { kind: 'handed', jobs };
    }
    return { kind: 'empty' };
  }

  /**
   * An older call of this lane, or this very call, may wait at another daemon, which would ask another partition and answer a
   * caller that has gone. So the ledgers of all partitions learn the number.
   */
  async #tellOthers(own: PartitionRef, { worker: consumer, lane, seq }: Claim): Promise<void> {
    const { jobs, refs, windowMs } = this.#parts;
    const ask = { ended: [], given: [], take: -1, lane, seq };
    const settings = { consumer, bytesMax: READ_BYTES_MAX, windowMs };
    for (const ref of refs()) {
      if (ref !== own) await withRetry('claim', () => jobs.hand(ref, ask, settings), this.#policy());
    }
  }

  /** What is over in partitions that were not asked. */
  async #complete(ref: PartitionRef, claim: Claim): Promise<void> {
    const { jobs, windowMs } = this.#parts;
    const ended = claim.ends.get(ref.partition);
    if (!ended) return;
    const call = () => jobs.complete(ref, ended, { windowMs, consumer: claim.worker });
    const replies = await withRetry('complete', call, this.#policy());
    claim.ends.delete(ref.partition);
    claim.ended(ref, replies);
  }

  /** The partitions in their turns; of a claim that was made before, the one alone that knows it. */
  async #order(claim: Claim): Promise<readonly PartitionRef[]> {
    const { redis, refs } = this.#parts;
    const all = refs();
    this.#turn += 1;
    if (all.length > 1 && claim.isAgain) {
      const keys = all.map((ref) => ref.keys);
      const found = await withRetry('look', () => wasHanded(redis, keys, claim), this.#policy());
      const knowing = all.filter((_, at) => found[at]);
      if (knowing.length > 0) return knowing.slice(0, 1);
    }
    return all.map((_, at) => all[(at + this.#turn) % all.length]).filter((ref) => ref !== undefined);
  }

  async #askOne(ref: PartitionRef, claim: Claim) {
    const { takeBack } = this.#parts;
    const { max, running } = claim;
    // To a worker that runs something a suspect is not started, whoever comes with it.
    const look = () => takeBack.company(ref, { most: max, suspects: this.#suspects });
    const { count, isSuspect } =
      running === 0 ? await withRetry('look', look, this.#policy()) : { count: max, isSuspect: false };
    const lost = count > 0 ? takeBack.next(ref, count) : undefined;
    const given = lost ? await this.#takeOver(ref, claim, lost) : [];
    const handed = await this.#hand(ref, claim, { given, isAlone: isSuspect && given.length > 0 });
    return { handed, jobs: await this.#jobsOf(ref, claim, handed) };
  }

  /** What was lost becomes the claimant's, each with a crash where its worker had started it. */
  async #takeOver(
    ref: PartitionRef,
    { worker }: Claim,
    { owner, cause, entries }: Overdue,
  ): Promise<readonly Delivery[]> {
    const { redis, jobLeaseMs, events } = this.#parts;
    // @taken-after-a-lease
    const take = { owner, consumer: worker, idleMs: jobLeaseMs, limit: entries.length, entries };
    const { deliveries } = await withRetry('reclaim', () => reclaim(redis, ref, take), this.#policy());
    if (deliveries.length === 0) return deliveries;
    const { queue, partition } = ref;
    const ids = deliveries.map(({ member }) => idOf(member).id);
    events.emit('runs.reclaimed', { queue, partition, from: owner, to: worker, cause, count: deliveries.length, ids });
    return deliveries;
  }

  async #hand(
    ref: PartitionRef,
    claim: Claim,
    { given, isAlone }: { readonly given: readonly Delivery[]; readonly isAlone: boolean },
  ): Promise<Handed> {
    const { jobs, windowMs } = this.#parts;
    const { worker: consumer, lane, seq, max, ends } = claim;
    const take = isAlone ? 0 : Math.max(0, max - given.length);
    const ended = ends.get(ref.partition) ?? [];
    const settings = { consumer, bytesMax: READ_BYTES_MAX, windowMs, suspects: this.#suspects };
    const call = () => jobs.hand(ref, { ended, given, take, lane, seq }, settings);
    const handed = await withRetry('claim', call, this.#policy());
    ends.delete(ref.partition);
    if (ended.length > 0) claim.ended(ref, handed.completed ?? ended.map(() => 'ok'));
    if (handed.refusal !== undefined) await this.#mend(ref, handed.refusal);
    return handed;
  }

  /** The group may have vanished. Whatever else Redis refuses to deliver is told to the caller. */
  async #mend({ keys }: PartitionRef, refusal: string): Promise<void> {
    const error = new Error(refusal);
    if (outageOf(error) !== 'no-group') throw error;
    await ensureGroup(this.#parts.redis, keys);
  }

  async #jobsOf(ref: PartitionRef, claim: Claim, { taken }: Handed): Promise<readonly ClaimedJob[]> {
    const found: ClaimedJob[] = [];
    const [late, later]: [Taken[], Taken[]] = [[], []];
    for (const one of taken) {
      switch (one.kind) {
        case 'run':
        case 'again':
          found.push(...(await this.#jobOf(ref, one)));
          break;
        case 'suspect':
          found.push(...(await this.#suspect(ref, claim, one, taken.length === 1)));
          break;
        case 'late':
          late.push(one);
          break;
        case 'later':
          later.push(one);
          break;
        case 'cancelled':
          this.#tellCancelled(ref, one);
          break;
        case 'deadLetter':
          this.#tellMissing(ref, one);
          break;
        case 'dropped':
        case 'released':
        case 'parked':
        case 'lost':
          break;
      }
    }
    await this.#expire(ref, claim, late);
    await this.#release(ref, claim, later);
    return found;
  }

  /** None where nobody can run it: it is a dead letter then. */
  async #jobOf(ref: PartitionRef, start: Start): Promise<readonly ClaimedJob[]> {
    const { jobs, rules, windowMs, events, serverOf } = this.#parts;
    const nowMs = Math.round(serverOf(ref).nowMs());
    const verdict = judged(ref, start, { rules, nowMs });
    const { queue } = ref;
    const { id } = idOf(start.member);
    if (verdict.kind === 'refused') {
      const { name, outcome } = verdict;
      const burial = { ...burialOf(ref, start, verdict), windowMs };
      const reply = await withRetry('bury', () => jobs.bury(ref, start, burial), this.#policy());
      const told = { queue, id, name, reason: outcome.reason, tookMs: 0, error: outcome.error };
      if (reply === 'ok') events.emit('job.dead', told);
      return [];
    }
    const job = jobOf(ref, start, { verdict, nowMs, windowMs });
    if (start.kind === 'run') {
      const lateMs = Math.max(0, nowMs - start.dueMs);
      events.emit('job.started', { queue, id, name: job.name, attempt: job.attempt, lateMs });
    }
    return [job];
  }

  /** Alone, to a worker that runs nothing: if that dies, a crash is counted for no other job. Else it is left, and is overdue soon. */
  async #suspect(ref: PartitionRef, { worker, running }: Claim, one: Delivery, isAlone: boolean) {
    const { jobs, windowMs } = this.#parts;
    const passed = this.#passedOver.get(one.entry) ?? 0;
    this.#passedOver.delete(one.entry);
    if (!isAlone || (running > 0 && passed < PATIENCE)) {
      const [first] = this.#passedOver.size >= SEEN_MAX ? this.#passedOver.keys() : [];
      if (first !== undefined) this.#passedOver.delete(first);
      this.#passedOver.set(one.entry, passed + 1);
      return [];
    }
    const settings = { consumer: worker, bytesMax: READ_BYTES_MAX, windowMs };
    const [started] = await withRetry('start', () => jobs.start(ref, [one], settings), this.#policy());
    if (started?.kind !== 'run' && started?.kind !== 'again') return [];
    const found = await this.#jobOf(ref, { ...one, ...started });
    return found.map((job): ClaimedJob => ({ ...job, suspect: true }));
  }

  async #expire(ref: PartitionRef, { worker: consumer }: Claim, late: readonly Delivery[]): Promise<void> {
    const { jobs, windowMs, events } = this.#parts;
    const call = (some: readonly Delivery[]) =>
      withRetry('expire', () => jobs.expire(ref, some, { consumer, windowMs }), this.#policy());
    const replies = await inParts(late, call, EXPIRE_JOBS_MAX);
    for (const [at, reply] of replies.entries()) {
      if (reply !== 'expired' && reply !== 'dead') continue;
      const { id } = idOf(late[at]?.member ?? '');
      events.emit('job.expired', { queue: ref.queue, id, dead: reply === 'dead' });
    }
    await this.#release(
      ref,
      { worker: consumer },
      late.filter((_, at) => replies[at] === 'kept' || replies[at] === 'later'),
    );
  }

  async #release(
    ref: PartitionRef,
    { worker: consumer }: Pick<Claim, 'worker'>,
    some: readonly Delivery[],
  ): Promise<void> {
    if (some.length === 0) return;
    const { jobs } = this.#parts;
    await withRetry('release', () => jobs.release(ref, some, { consumer }), this.#policy());
  }

  #tellCancelled({ queue }: PartitionRef, { member }: Delivery): void {
    this.#parts.events.emit('job.cancelled', { queue, id: idOf(member).id, name: DEFAULT_NAME });
  }

  #tellMissing({ queue }: PartitionRef, { member }: Delivery): void {
    const { clock, events } = this.#parts;
    const error = { atMs: clock.wallMs(), attempt: 0, kind: 'refused' as const, message: 'the record is missing' };
    const told = { queue, id: idOf(member).id, name: DEFAULT_NAME, reason: 'record-missing', tookMs: 0, error };
    events.emit('job.dead', told);
  }

  /** With one crash more it may be dead: so many make a suspect. */
  get #suspects(): number {
    return Math.max(1, this.#parts.rules.queue.crashes - 1);
  }

  #policy(): RetryPolicy {
    return { clock: this.#parts.clock, budgetMs: BUDGET_MS };
  }
}

const SEEN_MAX = 1000;
