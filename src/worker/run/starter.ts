/**
 * Entries that this worker was given → started, in as few calls as they fit into; and what becomes of each by its reply:
 *
 *  run, again            it is executed (`execution.ts`)
 *  suspect               it waits in the quarantine, and is started alone
 *  later                 it did not fit into the call: the next call starts it
 *  late                  it is past its expiry, and ends without a start
 *  cancelled, deadLetter an event tells it: a job without a record is a dead letter
 *  parked                its record is of a later version: Redis put it off, and another worker may read it
 *  dropped, released, lost, no reply at all
 *                        it is not in flight any more: it is over, another worker's, or left to adoption
 *
 * What must always hold: an entry is in flight before the call that starts it, and leaves only on a final reply. None stays here
 * unstarted.
 */
import { idOf } from '../../job/codec.ts';
import type { Emitter } from '../../job/events.ts';
import { DEFAULT_NAME, type Token } from '../../job/job.ts';
import { compensationOfExpired } from '../../job/judge.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { peek } from '../../redis/read/inspect.ts';
import { EXPIRE_JOBS_MAX, READ_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Compensation, Delivery, ExpireReply, StartReply, Taken } from '../../redis/scripts/replies.ts';
import type { NextTrip } from './acknowledgement.ts';
import type { Executor } from './execution.ts';
import { startTrustedUntilMs, trustedUntilMs } from './extender.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';
import { type Membership, processQuarantine } from './quarantine.ts';

interface StarterParts {
  readonly commands: Redis;
  readonly jobs: Jobs;
  readonly queue: string;
  readonly consumer: string;
  /** Bytes of records per start call. */
  readonly bytesMax: number;
  readonly windowMs: number;
  /** A job under which so many workers died is started alone. */
  readonly suspectCrashes: number;
  readonly jobLeaseMs: number;
  /** Whether a handler takes half-done work back. */
  readonly compensations: boolean;
  readonly inFlight: InFlight;
  readonly nextTrip: NextTrip;
  readonly executor: Executor;
  readonly clock: Clock;
  readonly serverOf: ServerOf;
  readonly events: Emitter;
}

/** What becomes of an entry: it waits for the next call, is past its expiry, or needs nothing more from here. */
type Answer = 'later' | 'late' | 'answered';

type Expiring = Delivery & { readonly compensation?: Compensation | undefined };

/** A start, a release or an expiry that Redis does not answer is repeated for so long; then its entries are left to adoption. */
const BUDGET_MS = 10_000;
/** Of late entries that may have a compensation job, so many records are read at once, and travel back with the call. */
const COMPENSATIONS_MAX = 16;

export class Starter {
  readonly #parts: StarterParts;
  readonly #stopping = createAbort();
  readonly #parked: ParkedJobs;
  readonly #membership: Membership;
  /** Entries of round trips that were not started at once. */
  readonly #underWay = new Set<Promise<void>>();
  #suspectsTold = 0;

  constructor(parts: StarterParts) {
    const { inFlight, clock } = parts;
    this.#parts = parts;
    this.#parked = new ParkedJobs(parts);
    this.#membership = processQuarantine.join({ inFlight, clock, start: (entry) => this.#startAlone(entry) });
  }

  /** Starts entries of a read, or releases them where there is no room. */
  async start(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    const { inFlight } = this.#parts;
    const fresh = deliveries.filter(({ entry }) => !inFlight.has(ref, entry));
    // A read and a take-over can both have counted on the same free slot. Or a suspect is alone meanwhile.
    const room = this.#isStopping() || !inFlight.isOpen() ? 0 : inFlight.vacant();
    const entries = fresh.slice(0, room).map((delivery) => inFlight.add(ref, delivery));
    // Without a wait where nothing is released: the reader sends the call that starts the rest together with its next
    // read.
    if (fresh.length > room) await this.#release(ref, fresh.slice(room));
    await this.#startAll(ref, entries);
  }

  /** The same for entries that another worker had. They wait for a suspect: released, they would only come again. */
  async takeOver(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    const { inFlight } = this.#parts;
    await inFlight.until(() => inFlight.isOpen(), this.#stopping.signal);
    await this.start(ref, deliveries);
  }

  /** Entries that a round trip delivered and started. After a stop none of them is run: they are left to the hand-over. */
  takeStarted(ref: PartitionRef, taken: readonly Taken[], sentMs: number): void {
    const { inFlight } = this.#parts;
    if (this.#isStopping()) return;
    // A group that was made anew delivers what runs here once more, and its start is answered with the token it has.
    const fresh = taken.filter(({ entry }) => !inFlight.has(ref, entry));
    const others = fresh.filter((one) => !this.#runAtOnce(ref, one, sentMs));
    if (others.length === 0) return;
    const entries = others.map((one) => inFlight.add(ref, one));
    for (const entry of entries) inFlight.startSent(entry, sentMs);
    const started = this.#answerAll(ref, entries, others)
      .then((later) => this.#startAll(ref, later))
      .finally(() => this.#underWay.delete(started));
    this.#underWay.add(started);
    started.catch(crash);
  }

  /** From now on nothing is started. Resolves when the suspects that waited are released. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const unstarted = this.#membership.leave();
    this.#tellSuspects();
    await Promise.all(unstarted.map(({ ref, delivery }) => this.#release(ref, [delivery])));
    await Promise.all(this.#underWay);
  }

  /** Forgets the jobs that were put off. */
  end(): void {
    this.#parked.forget();
  }

  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #startAll(ref: PartitionRef, entries: readonly InFlightEntry[]): Promise<void> {
    const { inFlight, suspectCrashes } = this.#parts;
    let rest = entries;
    while (rest.length > 0 && inFlight.isOpen() && !this.#isStopping()) {
      const later = await this.#startSome(rest.slice(0, READ_JOBS_MAX), suspectCrashes);
      rest = [...later, ...rest.slice(READ_JOBS_MAX)];
    }
    const left = rest.map(({ delivery }) => delivery);
    for (const entry of rest) inFlight.forgotten(entry);
    await this.#release(ref, left);
  }

  /** Starts a suspect. */
  async #startAlone(entry: InFlightEntry): Promise<void> {
    this.#tellSuspects();
    // Left to adoption, as without a reply.
    for (const later of await this.#startSome([entry], 0)) this.#parts.inFlight.forgotten(later);
  }

  /** Starts what fits into one call; returns entries that were answered `later`, or too late to run them. */
  async #startSome(entries: readonly InFlightEntry[], suspects: number): Promise<readonly InFlightEntry[]> {
    const { nextTrip, inFlight } = this.#parts;
    const [first] = entries;
    if (!first) return [];
    const { ref } = first;
    // A suspect is started alone, by a call of its own.
    const isAlone = suspects === 0;
    const answered = isAlone ? undefined : await nextTrip.start(ref, entries);
    const replies = answered ?? (await this.#callStart(ref, entries, suspects).catch(() => undefined));
    if (replies) return this.#answerAll(ref, entries, replies);
    // Nobody knows whether they were started. Adoption finds them by their idle time and asks again.
    for (const entry of entries) inFlight.forgotten(entry);
    return [];
  }

  /** @throws DuestreamError when there was no reply in all that time */
  #callStart(ref: PartitionRef, entries: readonly InFlightEntry[], suspects: number): Promise<readonly StartReply[]> {
    const { jobs, inFlight, consumer, bytesMax, windowMs, clock } = this.#parts;
    const deliveries = entries.map(({ delivery }) => delivery);
    const call = async () => {
      const sentMs = clock.monotonicMs();
      for (const entry of entries) inFlight.startSent(entry, sentMs);
      return jobs.start(ref, deliveries, { consumer, bytesMax, windowMs, suspects });
    };
    return withRetry('start', call, this.#untilStop());
  }

  /** Back to scheduled, where another worker finds them. Without a reply they stay ours, and adoption finds them. */
  async #release(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const { jobs, consumer } = this.#parts;
    const call = () => jobs.release(ref, deliveries, { consumer });
    await withRetry('release', call, this.#untilStop()).catch(() => undefined);
  }

  #untilStop() {
    return { clock: this.#parts.clock, budgetMs: BUDGET_MS, signal: this.#stopping.signal };
  }

  /** Nearly all entries: started, and answered soon enough. */
  #runAtOnce(ref: PartitionRef, one: Taken, sentMs: number): boolean {
    const { inFlight, clock, jobLeaseMs, executor } = this.#parts;
    if (one.kind !== 'run') return false;
    const nowMs = clock.monotonicMs();
    if (nowMs >= startTrustedUntilMs(sentMs, jobLeaseMs)) return false;
    executor.execute(inFlight.addStarted(ref, one, { startedMs: nowMs, leasedMs: sentMs }), one);
    return true;
  }

  /** Ends entries that are late, and returns those that were answered `later`. */
  async #answerAll(
    ref: PartitionRef,
    entries: readonly InFlightEntry[],
    replies: readonly StartReply[],
  ): Promise<readonly InFlightEntry[]> {
    const answers = entries.map((entry, index) => this.#answer(entry, replies[index]));
    this.#tellSuspects();
    this.#parked.add(ref.partition, replies.filter(({ kind }) => kind === 'parked').length);
    const late = entries.filter((_, index) => answers[index] === 'late');
    if (late.length > 0) await this.#expireAll(ref, late);
    return entries.filter((_, index) => answers[index] === 'later');
  }

  #answer(entry: InFlightEntry, reply: StartReply | undefined): Answer {
    const { inFlight, clock, jobLeaseMs, executor } = this.#parts;
    switch (reply?.kind) {
      case 'late':
      case 'later':
        return reply.kind;
      case 'run':
      case 'again': {
        const nowMs = clock.monotonicMs();
        // Answered so late that others may have it by now: it is asked for again, and the answer says whose it is.
        if (nowMs >= trustedUntilMs(entry, { jobLeaseMs, nowMs })) return 'later';
        inFlight.started(entry, reply.token, nowMs);
        executor.execute(entry, reply);
        return 'answered';
      }
      case 'suspect':
        return this.#quarantine(entry, reply.token);
      case 'cancelled':
        this.#tellCancelled(entry);
        break;
      case 'deadLetter':
        this.#tellDeadLetter(entry);
        break;
      case 'dropped':
      case 'released':
      case 'parked':
      case 'lost':
      case undefined:
        break;
    }
    inFlight.forgotten(entry);
    return 'answered';
  }

  #quarantine(entry: InFlightEntry, token: Token): Answer {
    // The quarantine was left. Entries that are not started are released, as with every answer `later`.
    if (this.#isStopping()) return 'later';
    this.#membership.admit(entry, token);
    return 'answered';
  }

  #tellCancelled({ ref, delivery }: InFlightEntry): void {
    const { id } = idOf(delivery.member);
    this.#parts.events.emit('job.cancelled', { queue: ref.queue, id, name: DEFAULT_NAME });
  }

  /** An entry without a record: nothing can be run, and somebody should know. */
  #tellDeadLetter({ ref, delivery }: InFlightEntry): void {
    const { clock, events } = this.#parts;
    const error = { atMs: clock.wallMs(), attempt: 0, kind: 'refused' as const, message: 'the record is missing' };
    const { id } = idOf(delivery.member);
    events.emit('job.dead', {
      queue: ref.queue,
      id,
      name: DEFAULT_NAME,
      reason: 'record-missing',
      tookMs: 0,
      error,
    });
  }

  /** How many jobs wait to run alone, when that has changed. */
  #tellSuspects(): void {
    const { inFlight, events, queue } = this.#parts;
    const waiting = inFlight.suspects();
    if (waiting === this.#suspectsTold) return;
    this.#suspectsTold = waiting;
    events.emit('suspects.waiting', { queue, waiting });
  }

  /**
   * Jobs past their expiry are over without a start. One that is not late after all is released and comes again. Without a reply
   * the entries are left to adoption.
   */
  async #expireAll(ref: PartitionRef, late: readonly InFlightEntry[]): Promise<void> {
    const notLate = await this.#expire(
      ref,
      late.map(({ delivery }) => delivery),
    );
    for (const entry of late) this.#parts.inFlight.forgotten(entry);
    await this.#release(ref, notLate);
  }

  /** Returns those that are not late after all. */
  async #expire(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<readonly Delivery[]> {
    const most = this.#parts.compensations ? COMPENSATIONS_MAX : EXPIRE_JOBS_MAX;
    const notLate: Delivery[] = [];
    for (let rest = deliveries; rest.length > 0; ) {
      const some = rest.slice(0, most);
      const call = async (mayHaveRun: boolean) =>
        (await this.#callExpire(ref, some)).map((reply) => asFirst(reply, mayHaveRun));
      const replies = await withRetry('expire', call, this.#untilStop()).catch(() => undefined);
      if (!replies) break;
      this.#tellExpired(ref, some, replies);
      notLate.push(...some.filter((_, index) => replies[index] === 'kept'));
      // Redis looks at the first at least, so this comes to an end.
      const later = some.filter((_, index) => replies[index] === 'later');
      rest = [...later, ...rest.slice(some.length)];
    }
    return notLate;
  }

  async #callExpire(ref: PartitionRef, deliveries: readonly Delivery[]): Promise<readonly ExpireReply[]> {
    const { jobs, consumer, windowMs, compensations } = this.#parts;
    const late = compensations
      ? await Promise.all(deliveries.map((one) => this.#withCompensation(ref, one)))
      : deliveries;
    return jobs.expire(ref, late, { consumer, windowMs });
  }

  #tellExpired({ queue }: PartitionRef, deliveries: readonly Delivery[], replies: readonly ExpireReply[]): void {
    for (const [index, { member }] of deliveries.entries()) {
      const reply = replies[index];
      if (reply !== 'expired' && reply !== 'dead') continue;
      this.#parts.events.emit('job.expired', { queue, id: idOf(member).id, dead: reply === 'dead' });
    }
  }

  /**
   * A job that was started before may have left half of its work outside, like one that dies; so its compensation job comes in
   * the same step. Nobody starts the job meanwhile, because its entry is ours; if it is replaced, `expire` keeps it.
   */
  async #withCompensation(ref: PartitionRef, delivery: Delivery): Promise<Expiring> {
    const { commands, serverOf } = this.#parts;
    const { member } = delivery;
    const found = await peek(commands, ref, member);
    if (!found || 'kind' in found || !found.run || found.record === undefined) return delivery;
    const life = { member, started: { ...found.run, record: found.record } };
    return { ...delivery, compensation: compensationOfExpired(life, Math.round(serverOf(ref).nowMs())) };
  }
}

/** A job that an earlier call has ended, whose reply was lost, is told as that reply would have told it. */
function asFirst(reply: ExpireReply, mayHaveRun: boolean): ExpireReply {
  if (reply === 'over expired') return mayHaveRun ? 'expired' : 'lost';
  if (reply === 'over dead') return mayHaveRun ? 'dead' : 'lost';
  return reply;
}

/** How long Redis puts off a job that this worker cannot read. */
const PARK_MS = 4000;

/**
 * Jobs that this worker could not read, because their record is of a later version. Each is put off for four seconds and comes
 * to some worker again. It counts as waiting here for just that time: so it counts at one worker at a time, and the sum over all
 * workers is how many jobs there are that none of them can read.
 */
class ParkedJobs {
  readonly #parts: Pick<StarterParts, 'queue' | 'clock' | 'events'>;
  readonly #timers = new Set<() => void>();
  #waiting = 0;
  #isForgotten = false;

  constructor(parts: Pick<StarterParts, 'queue' | 'clock' | 'events'>) {
    this.#parts = parts;
  }

  /** So many were put off now. */
  add(partition: number, count: number): void {
    if (count === 0) return;
    const { queue, clock, events } = this.#parts;
    events.emit('jobs.parked', { queue, partition, count });
    if (this.#isForgotten) return;
    this.#count(count);
    const disarm = clock.timer(PARK_MS, () => {
      this.#timers.delete(disarm);
      this.#count(-count);
    });
    this.#timers.add(disarm);
  }

  forget(): void {
    this.#isForgotten = true;
    for (const disarm of this.#timers) disarm();
    this.#timers.clear();
    this.#count(-this.#waiting);
  }

  #count(more: number): void {
    if (more === 0) return;
    this.#waiting += more;
    const { queue, events } = this.#parts;
    events.emit('parked.waiting', { queue, waiting: this.#waiting });
  }
}
