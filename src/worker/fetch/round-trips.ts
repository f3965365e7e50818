/**
 * The round trips of a worker to its partitions. One call completes jobs that are done and starts entries that were read; where
 * more wait, it also delivers the next entries and starts them, as many as there are free slots.
 *
 *  blocking read ──entries──▶ round trip ──▶ handlers run ──▶ done ──▶ round trip, which brings the next ──▶ handlers run ──▶ …
 *        ▲                                                                   │
 *        └──────────────── a round trip that brought less than it asked for ◀┘
 *
 * A busy worker asks once per batch, an idle one waits in its blocking read. At most half of the slots are asked for at a time:
 * while Redis works for one half, the handlers of the other run.
 *
 * A leader in this process makes its passes a part of these round trips (`relay`) where this is the only worker.
 *
 * A completion waits up to 5 ms for a round trip while nothing else needs one: at low rates completions travel together, or with
 * the start of the next job. Where due jobs linger for company, passes are so far apart, and completions wait for so much longer:
 * they are there when the jobs of the next pass are to be started. So they do while jobs are held that were handed out ahead. Not so
 * in a gated queue, where each makes room for another job. A call that fails is not repeated as a whole. Its completions
 * and its starts are, each as a call of its own; entries that it may have delivered are left to adoption, as after a lost read.
 */
import type { Emitter } from '../../job/events.ts';
import { type Clock, clearImmediate, setImmediate } from '../../kernel/clock.ts';
import { crash } from '../../kernel/crash.ts';
import { RHYTHMS } from '../../kernel/rhythm.ts';
import type { ServerOf } from '../../redis/connection/server-clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { READ_JOBS_MAX, RELAY_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { LeadersPass, Passed, PromoteReply } from '../../redis/scripts/passes.ts';
import type { Served, StartReply, Taken } from '../../redis/scripts/replies.ts';
import { type Acknowledger, COMPLETIONS_MAX, type Completion, type NextTrip } from '../run/acknowledgement.ts';
import type { InFlight, InFlightEntry } from '../run/in-flight.ts';
import { sendLines } from '../run/log-book.ts';
import type { Starter } from '../run/starter.ts';

interface RoundTripsParts {
  readonly inFlight: InFlight;
  readonly acknowledger: Acknowledger;
  /** Takes entries that a call delivered and started. */
  readonly starter: Starter;
  readonly jobs: Jobs;
  /** The same calls on the connection of the reader. */
  readonly readerJobs: Jobs;
  readonly consumer: string;
  /** Bytes of records per call. */
  readonly bytesMax: number;
  readonly windowMs: number;
  /** A job under which so many workers died is started alone. */
  readonly suspectCrashes: number;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly serverOf: ServerOf;
  /** Default: that of the profile `default`. */
  readonly gatherMs?: number;
  /** While this says so, completions ask for nothing new: the slots are for a look into other partitions. */
  readonly isLookDue: () => boolean;
  /** A call that may have brought entries had no reply. */
  readonly onLost: () => void;
}

/** What one call asks for. */
interface Request {
  readonly completions: readonly Completion[];
  /** Entries that were read and are to be started. */
  readonly given: readonly InFlightEntry[];
  /** How many new entries it may deliver. */
  readonly take: number;
  /** The call is a pass of the leader, too. It is given nothing then, and takes something. */
  readonly pass?: LeadersPass;
}

interface Response extends Served {
  /** Of a pass. */
  readonly promoted?: PromoteReply;
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface Partition {
  readonly ref: PartitionRef;
  /** They wait for the next round trip. */
  readonly completions: Completion[];
  /** New entries may wait there. */
  hasMore: boolean;
  /** Jobs in line at the last round trip: what ends makes room for one of them, and the same call takes it. Undefined: not gated. */
  waiting: number | undefined;
  /** Its last call had no reply. Until one has, no call may bring entries: their slots would wait with it, and others need them. */
  isAway: boolean;
  /** Calls off the round trip that the completions wait for. */
  callOff: (() => void) | undefined;
  /** That round trip comes in this turn of the event loop. */
  isImminent: boolean;
}

/** After that another process leads, or has other workers. */
const RELAYED_MS = 15_000;

export class RoundTrips implements NextTrip {
  readonly #parts: RoundTripsParts;
  /** Those that have their round trip next come first. */
  readonly #partitions = new Map<PartitionRef, Partition>();
  readonly #underWay = new Set<Promise<unknown>>();
  #isOpen = true;
  #isThroughReader = false;
  /** The read that is under way may bring so many entries. */
  #readCount = 0;
  /** Monotonic ms at which a leader wished for a relay last. */
  #relayedMs = Number.NEGATIVE_INFINITY;

  constructor(parts: RoundTripsParts) {
    this.#parts = parts;
  }

  /** Nothing more is asked for; completions still travel. Resolves when nothing more can come. */
  async close(): Promise<void> {
    this.#isOpen = false;
    for (const partition of this.#partitions.values()) this.#flush(partition);
    await Promise.allSettled(this.#underWay);
  }

  complete(completion: Completion): void {
    const partition = this.#partitionOf(completion.attempt.entry.ref);
    partition.hasMore ||= (partition.waiting ?? 0) > 0;
    if (this.#isOpen && !partition.hasMore) this.#flushSoon(partition);
    else this.#flushAtOnce(partition);
    partition.completions.push(completion);
  }

  async start(ref: PartitionRef, given: readonly InFlightEntry[]): Promise<readonly StartReply[] | undefined> {
    const partition = this.#partitionOf(ref);
    const request = { completions: this.#takeCompletions(partition), given, take: 0 };
    const response = await this.#call(partition, request).catch(() => undefined);
    if (!response) return undefined;
    const replies = new Map(response.taken.map((one) => [one.entry, one]));
    return given.flatMap(({ delivery }) => replies.get(delivery.entry) ?? []);
  }

  /** Calls that are sent while this runs go out on the connection of the reader, which must not be waiting there. */
  throughReader(send: () => void): void {
    this.#isThroughReader = true;
    try {
      send();
    } finally {
      this.#isThroughReader = false;
    }
  }

  /** A read brought as much as it asked for, so there may be more. */
  expectMore(ref: PartitionRef): void {
    this.#partitionOf(ref).hasMore = true;
  }

  hasMore(): boolean {
    return this.#withMore().length > 0;
  }

  /** One round trip to the next partition that has more. Rejects when there was no reply. */
  async next(): Promise<void> {
    const [partition] = this.#withMore();
    if (!partition) return;
    // The last from now on: each has its round trip.
    this.#partitions.delete(partition.ref);
    this.#partitions.set(partition.ref, partition);
    const completions = this.#takeCompletions(partition);
    await this.#fetch(partition, { completions, given: [], take: this.#roomFor(partition) });
  }

  /** One round trip to this partition, unless no slot is free; whether it may have more. Rejects with no reply or a refusal. */
  async to(ref: PartitionRef): Promise<boolean> {
    const partition = this.#partitionOf(ref);
    if (partition.isAway) {
      await this.#call(partition, { completions: this.#takeCompletions(partition), given: [], take: 0 });
    }
    const take = this.#roomFor(partition);
    if (take === 0) return true;
    const { refusal } = await this.#fetch(partition, {
      completions: this.#takeCompletions(partition),
      given: [],
      take,
    });
    if (refusal !== undefined) throw new Error(refusal);
    return partition.hasMore;
  }

  /**
   * A round trip that is a pass as well, for a leader in this process that has no other worker: it starts what it promotes.
   * Undefined: the worker is busy with entries that wait already. Then the leader passes by itself, and moves as much as it may.
   */
  relay(ref: PartitionRef, pass: LeadersPass): Promise<Passed> | undefined {
    const { inFlight, clock } = this.#parts;
    const partition = this.#partitionOf(ref);
    this.#relayedMs = clock.monotonicMs();
    const take = Math.min(inFlight.free() - this.#readCount, RELAY_JOBS_MAX, pass.limit);
    if (!this.#isOpen || !inFlight.isOpen() || partition.hasMore || take <= 0) return undefined;
    return this.#relay(partition, { ...pass, limit: take });
  }

  async #relay(partition: Partition, pass: LeadersPass): Promise<Passed> {
    const completions = this.#takeCompletions(partition, RELAY_JOBS_MAX);
    const { promoted, receivedMs } = await this.#fetch(partition, { completions, given: [], take: pass.limit, pass });
    return { reply: promoted ?? { kind: 'fenced' }, receivedMs, limit: pass.limit };
  }

  /** A leader relays, or a queue is gated: then round trips bring nearly all entries, and a read is left one slot for each partition. */
  leavesSlots(): boolean {
    const isGated = [...this.#partitions.values()].some(({ waiting }) => waiting !== undefined);
    return isGated || this.#parts.clock.monotonicMs() - this.#relayedMs < RELAYED_MS;
  }

  /** The read that is under way may bring so many entries: no relay may fill their slots. */
  readsUpTo(count: number): void {
    this.#readCount = count;
  }

  #partitionOf(ref: PartitionRef): Partition {
    let partition = this.#partitions.get(ref);
    if (!partition) {
      partition = {
        ref,
        completions: [],
        hasMore: false,
        waiting: undefined,
        isAway: false,
        callOff: undefined,
        isImminent: false,
      };
      this.#partitions.set(ref, partition);
    }
    return partition;
  }

  #withMore(): readonly Partition[] {
    return [...this.#partitions.values()].filter(({ hasMore }) => hasMore);
  }

  #flushSoon(partition: Partition): void {
    const { gatherMs = RHYTHMS.default.gatherMs, clock, inFlight } = this.#parts;
    const { lingerMs = 0, aheadMs = 0 } = partition.ref;
    const companyMs = partition.waiting === undefined ? lingerMs + (inFlight.hasSpare() ? aheadMs : 0) : 0;
    if (gatherMs === 0) this.#flushAtOnce(partition);
    else partition.callOff ??= clock.timer(gatherMs + companyMs, () => this.#flush(partition));
  }

  #flushAtOnce(partition: Partition): void {
    if (partition.isImminent) return;
    partition.callOff?.();
    const immediate = setImmediate(() => this.#flush(partition));
    partition.callOff = () => clearImmediate(immediate);
    partition.isImminent = true;
  }

  /** All completions of this partition, in as many calls as it takes; each brings more where more may be. */
  #flush(partition: Partition): void {
    const { isLookDue } = this.#parts;
    while (partition.completions.length > 0) {
      const take = isLookDue() ? 0 : this.#roomFor(partition);
      const request = { completions: this.#takeCompletions(partition), given: [], take };
      // Where Redis does not answer, the calls of the reader tell of it.
      this.#fetch(partition, request).catch(() => undefined);
    }
  }

  /** The completions that the next call takes with it. Those that are too many for one follow at once. */
  #takeCompletions(partition: Partition, most = COMPLETIONS_MAX): readonly Completion[] {
    partition.callOff?.();
    partition.callOff = undefined;
    partition.isImminent = false;
    const completions = partition.completions.splice(0, most);
    if (partition.completions.length > 0) this.#flushAtOnce(partition);
    return completions;
  }

  /** How many new entries a call may ask for: a share of the free slots, where several partitions have more. */
  #roomFor(partition: Partition): number {
    const { inFlight } = this.#parts;
    if (!partition.hasMore || partition.isAway || !this.#isOpen || !inFlight.isOpen()) return 0;
    // The bell of a gated queue rings for the read that waits.
    const free = inFlight.free() - (partition.waiting === undefined ? 0 : this.#readCount);
    const share = Math.max(0, Math.ceil(free / this.#withMore().length));
    return Math.min(share, Math.ceil(inFlight.concurrency / 2), READ_JOBS_MAX);
  }

  /** A call that may deliver entries: their slots are reserved until they are here. */
  #fetch(partition: Partition, request: Request): Promise<Response> {
    const { inFlight } = this.#parts;
    if (request.take === 0) return this.#call(partition, request);
    inFlight.reserve(request.take);
    const end = () => {
      inFlight.reserve(-request.take);
      this.#underWay.delete(call);
    };
    const call = this.#call(partition, request).finally(end);
    call.catch(this.#parts.onLost);
    this.#underWay.add(call);
    return call;
  }

  /** @throws the failure of the call, when the repetition of its completions is on its way */
  async #call(partition: Partition, request: Request): Promise<Response> {
    const { clock, acknowledger } = this.#parts;
    const { ref } = partition;
    const sentMs = clock.monotonicMs();
    let response: Response;
    try {
      const served = await this.#send(ref, request, sentMs);
      response = { ...served, sentMs, receivedMs: clock.monotonicMs() };
    } catch (error) {
      partition.isAway = true;
      partition.hasMore &&= request.take === 0;
      acknowledger.repeat(ref, request.completions);
      throw error;
    }
    try {
      this.#receive(partition, request, response);
    } catch (bug) {
      // Otherwise it would be taken for a call that failed.
      crash(bug);
    }
    return response;
  }

  #receive(partition: Partition, { completions, given, take }: Request, response: Response): void {
    const { acknowledger, starter, serverOf } = this.#parts;
    partition.isAway = false;
    const { nowMs: serverMs } = response;
    if (serverMs !== undefined) serverOf(partition.ref).saw({ ...response, serverMs });
    if (take > 0) partition.hasMore = response.delivered >= take;
    partition.waiting = response.waiting;
    for (const [index, { attempt }] of completions.entries()) {
      acknowledger.completed(attempt, response.completed?.[index] ?? 'ok');
    }
    const fresh = given.length === 0 ? response.taken : freshOf(response, given);
    if (fresh.length > 0) starter.takeStarted(partition.ref, fresh, response.sentMs);
  }

  #send(
    ref: PartitionRef,
    { completions, given, take, pass }: Request,
    sentMs: number,
  ): Promise<Served & { readonly promoted?: PromoteReply }> {
    const { inFlight, consumer, bytesMax, windowMs, suspectCrashes, events } = this.#parts;
    const jobs = this.#isThroughReader ? this.#parts.readerJobs : this.#parts.jobs;
    for (const entry of given) inFlight.startSent(entry, sentMs);
    const speaking = completions.filter(({ attempt }) => attempt.run?.book !== undefined);
    if (speaking.length > 0) {
      const speakers = speaking.map(({ attempt, ended }) => ({ claim: ended, book: attempt.run?.book }));
      sendLines({ jobs, events }, ref, speakers);
    }
    const ended = completions.map((one) => one.ended);
    const settings = { consumer, bytesMax, windowMs, suspects: suspectCrashes };
    if (pass) return jobs.relay(ref, { ended, take, pass }, settings);
    return jobs.serve(ref, { ended, given: given.map(({ delivery }) => delivery), take }, settings);
  }
}

function freshOf({ taken }: Served, given: readonly InFlightEntry[]): readonly Taken[] {
  const known = new Set(given.map(({ delivery }) => delivery.entry));
  return taken.filter(({ entry }) => !known.has(entry));
}
