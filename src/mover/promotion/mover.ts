/**
 * Moves due jobs of one partition from `scheduled` to `ready`, or of a broadcast queue to `cast`, while this process leads it.
 *
 *  follower ──▶ campaign ──▶ leader ──▶ wait ──▶ pass (promote, cast or relay) ──▶ plan the next look ──▶ wait ──▶ …
 *                                        ▲                                          │
 *                                        └── nudge: a sooner job ◀── K:wake         └ fenced, or no reply: follower
 *
 * The mover sleeps until the next due time, which every pass replies. A producer that adds a sooner job nudges the mover
 * through `K:wake`; if that nudge is lost, the safety tick finds the job. The alarm clock is a Node timer (0.3 ms late in the
 * median), never a blocking time-out of Redis (up to 100 ms late). The safety tick reads the head of the zset and no more:
 * the mover makes a pass when a job is due, and once a minute for the rest of its look.
 *
 *  each tick ──found a job that nobody nudged about──▶ ten times in a tick, for a day ──▶ each tick
 *
 * A producer that does not nudge is so noted in `K:meta`, for the next leader too.
 *
 * Workers read `ready` in `worker/fetch/stream-fetcher.ts`, and in a cluster in `worker/fetch/polling-fetcher.ts`.
 *
 * What must always hold: no job is promoted outside a trusted term; a pass is bounded, so that no other command of
 * Redis waits for long; when the undelivered backlog is at its cap, jobs stay in the zset, where they can be cancelled.
 */
import type { Emitter } from '../../job/events.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type Idle, idle, type Loop } from '../../kernel/loop.ts';
import { RHYTHMS, type Rhythm } from '../../kernel/rhythm.ts';
import { isCluster } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { createServers, type ServerClock, type ServerOf } from '../../redis/connection/server-clock.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import { foreignSince, headDue, isNudged, noteForeign } from '../../redis/read/head.ts';
import { createJobs, type Jobs } from '../../redis/scripts/jobs.ts';
import type { LeadersPass, Passed, PromoteReply } from '../../redis/scripts/passes.ts';
import { Election, type LeaderOrder, type Leadership } from '../election/election.ts';
import { partitionLoop } from '../partition-loop.ts';
import type { LoneWorker } from './lone-worker.ts';

export interface MoverOptions {
  /** How long a lease lasts. A dead leader is replaced after this time. */
  readonly leaseMs: number;
  /** Most members per pass. */
  readonly batchMax: number;
  /** Most undelivered entries in ready; above, promotion waits. */
  readonly readyMax: number;
  /** Longest rest: the bound on the lateness of a job that nobody nudged about, where no such producer is known. */
  readonly safetyTickMs: number;
}

interface MoverParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly processId: string;
  readonly options: MoverOptions;
  readonly clock: Clock;
  readonly events: Emitter;
  /** Which daemons should lead the partition rather than this one. */
  readonly order: Pick<LeaderOrder, 'rank' | 'betterBeatSince' | 'isOlder'>;
  /** A worker in this process that takes the jobs of a pass in the same call. */
  readonly loneWorker: Pick<LoneWorker, 'relay' | 'isPolled' | 'canHold'>;
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
  /** How long the end of a job that a broadcast queue has sent is remembered. */
  readonly windowMs: number;
  /** The clocks that the movers of a process share. Default: one of its own. */
  readonly serverOf?: ServerOf;
  /** Default: that of the profile `default`. */
  readonly rhythm?: Pick<Rhythm, 'foreignLooks' | 'wholePassMs' | 'passGapMs'>;
}

/** So much of a lease may be over before a pass prolongs it. */
const PROLONG_AFTER = 1 / 10;
/** A producer that does not nudge counts as there for so long after it was seen, and is noted again after an hour. */
const FOREIGN_FOR_MS = 86_400_000;
const FOREIGN_NOTE_MS = 3_600_000;
/** A look asks for the time, too, unless it was told so lately: with every second look of a partition that waits alone. */
const CLOCK_TICKS = 1.5;
/** So long before the next due time a pass offers it, so that its worker has it by then: a read and a start. */
const LEAD_MS = 3;
/** What was offered and nobody took is promoted so long after it was due. */
const AFTER_MS = 2;
/** At rest the lease is prolonged when so much of it is over; earlier, when the mover wakes up anyway. */
const RENEW_AFTER = 1 / 2;
const RENEW_EARLY = 2 / 5;

type Promoted = Exclude<PromoteReply, { kind: 'fenced' }>;

export class Mover {
  readonly ref: PartitionRef;
  readonly #parts: MoverParts;
  readonly #loop: Loop;
  readonly #election: Election;
  readonly #jobs: Jobs;
  readonly #server: ServerClock;
  readonly #rate = new PromotionRate();
  readonly #backoff: BacklogBackoff;
  /** In a cluster no worker waits in a read, so the mover calls the workers when entries became ready. */
  readonly #callsWorkers: boolean;
  readonly #rhythm: Pick<Rhythm, 'foreignLooks' | 'wholePassMs' | 'passGapMs'>;
  /** Server time of the next look. A look before it would find nothing, so the clock must not be ahead. */
  #nextLookMs = 0;
  /** The soonest nudge since promote was sent last: its reply may not know of that job yet. */
  #nudgedMs = Number.POSITIVE_INFINITY;
  /** The soonest due time that a pass or a nudge has told. A job that is due before it came without a nudge. */
  #knownMs = 0;
  /** Epoch ms at which a producer was seen that does not nudge. */
  #foreignMs = Number.NEGATIVE_INFINITY;
  #soonestLookMs = 0;
  #promotedMs = Number.NEGATIVE_INFINITY;
  #promoted = 0;
  /** When the head was seen last, by a pass or by the safety tick. */
  #lookedMs = Number.NEGATIVE_INFINITY;
  #prolongedMs = Number.NEGATIVE_INFINITY;
  /** Somebody was in line after the last pass: if a bell went astray, the safety tick rings it again. */
  #isInLine = false;
  /** The last pass promoted nothing because the queue is paused. */
  #isPaused = false;
  /** The last promote failed. Being elected again is then no progress: the pass goes on until it has promoted. */
  #isStuck = false;

  constructor(parts: MoverParts) {
    const { redis, ref, options, clock } = parts;
    this.ref = ref;
    this.#parts = parts;
    this.#loop = partitionLoop('mover', parts, () => this.pass());
    this.#election = new Election({ ...parts, leaseMs: options.leaseMs });
    this.#jobs = createJobs(redis);
    this.#server = (parts.serverOf ?? createServers(redis, clock))(ref);
    this.#backoff = new BacklogBackoff(options);
    this.#callsWorkers = isCluster(redis);
    this.#rhythm = parts.rhythm ?? RHYTHMS.default;
  }

  start(): void {
    this.#loop.start();
  }

  /** Stops and gives the lease back. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#election.resign('stopped').catch(() => undefined);
  }

  /** After a reconnect: go on at once. */
  wake(): void {
    this.#loop.wake();
  }

  /** Nudges may have been missed: it looks at once, and not with the next safety tick. */
  look(): void {
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    this.#loop.wake();
  }

  /** A message of `K:wake`: a due time in ms, or `resigned`. */
  nudge(message: string): void {
    const dueMs = Number(message);
    if (message === 'resigned') this.#onResigned();
    else if (Number.isFinite(dueMs)) this.#onSooner(dueMs);
  }

  leading(): Leadership | undefined {
    return this.#election.leading();
  }

  /** How many jobs this mover has promoted. */
  promoted(): number {
    return this.#promoted;
  }

  /** Epoch ms by the clock of Redis, as its answers have told it. */
  serverMs(): number {
    return this.#server.nowMs();
  }

  lastProgressMs(): number {
    return this.#loop.lastProgressMs();
  }

  lastTurnMs(): number {
    return this.#loop.lastTurnMs();
  }

  /** One step: campaign, or promote once. Returns milliseconds until the next. */
  async pass(): Promise<number | Idle> {
    const { clock, options } = this.#parts;
    const election = this.#election;
    const leadership = election.leading();
    if (!leadership || (election.isOutranked() && (await election.giveWay()))) return this.#campaign();
    if (this.#isDue()) return this.#promote(leadership);
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lookedMs >= this.#tickMs()) {
      const passEveryMs = this.#isInLine ? options.safetyTickMs : this.#rhythm.wholePassMs;
      const isOwing = nowMs - this.#promotedMs >= passEveryMs || (await this.#sawDue());
      const still = election.leading();
      if (isOwing && still) return this.#promote(still);
    }
    // A timer fires up to a millisecond early; only a long rest needs the lease to be kept meanwhile.
    if (nowMs - this.#prolongedMs >= options.leaseMs * RENEW_EARLY) {
      this.#prolongedMs = nowMs;
      await election.renew();
    }
    return election.leading() ? this.#restMs() : 0;
  }

  async #campaign(): Promise<number | Idle> {
    const election = this.#election;
    const waitMs = election.outForMs();
    if (waitMs > 0) return idle(waitMs);
    this.#nextLookMs = 0;
    this.#promotedMs = Number.NEGATIVE_INFINITY;
    this.#prolongedMs = Number.NEGATIVE_INFINITY;
    const nextMs = await election.campaign();
    const leadership = election.leading();
    if (leadership) await this.#recallForeign();
    return this.#isStuck && leadership ? this.#promote(leadership) : nextMs;
  }

  #isDue(): boolean {
    return this.#server.earliestMs(this.#parts.clock.monotonicMs()) >= this.#nextLookMs;
  }

  /** Finds jobs of producers that do not nudge. The clock of Redis is asked as well: it may have been set. */
  async #sawDue(): Promise<boolean> {
    const { redis, ref, clock, options } = this.#parts;
    const [dueMs] = await Promise.all([headDue(redis, ref), this.#server.freshen(options.safetyTickMs * CLOCK_TICKS)]);
    this.#lookedMs = clock.monotonicMs();
    // Where the clock of Redis was set back, this time would lie far ahead.
    this.#soonestLookMs = Math.min(this.#soonestLookMs, this.#server.nowMs() + this.#apartMs());
    this.#nextLookMs = Math.min(this.#nextLookMs, Math.max(dueMs, this.#soonestLookMs));
    if (dueMs < this.#knownMs) await this.#askWhoseItIs(dueMs);
    return this.#isDue();
  }

  /** A nudge that was lost, or is on its way, has left its due time in `K:meta`. A producer that does not nudge leaves none. */
  async #askWhoseItIs(dueMs: number): Promise<void> {
    const { redis, ref } = this.#parts;
    this.#knownMs = dueMs;
    if (await isNudged(redis, ref, dueMs)) return;
    const seenMs = Math.round(this.#server.nowMs());
    const isNews = seenMs - this.#foreignMs >= FOREIGN_NOTE_MS;
    this.#foreignMs = seenMs;
    // A full Redis refuses the note; this leader knows all the same.
    if (isNews) await noteForeign(redis, ref, seenMs).catch(() => undefined);
  }

  /** What the leader before it has noted. */
  async #recallForeign(): Promise<void> {
    const { redis, ref } = this.#parts;
    this.#foreignMs = (await foreignSince(redis, ref)) ?? Number.NEGATIVE_INFINITY;
  }

  #tickMs(): number {
    const isForeign = !this.#isPaused && this.#server.nowMs() - this.#foreignMs < FOREIGN_FOR_MS;
    return this.#parts.options.safetyTickMs / (isForeign ? this.#rhythm.foreignLooks : 1);
  }

  async #promote({ term }: Leadership): Promise<number> {
    const { clock, options } = this.#parts;
    const election = this.#election;
    const sentMs = clock.monotonicMs();
    const prolongs = sentMs - this.#prolongedMs >= options.leaseMs * PROLONG_AFTER;
    this.#nudgedMs = Number.POSITIVE_INFINITY;
    const leaseMs = prolongs ? options.leaseMs : undefined;
    const pass = { term, leaseMs, limit: options.batchMax, cap: options.readyMax };
    const { reply, receivedMs, limit } = await this.#send(pass).catch((error: unknown) => {
      this.#isStuck = true;
      election.concede('promote got no reply');
      throw error;
    });
    this.#isStuck = false;
    if (reply.kind === 'fenced') {
      election.concede('fenced');
      return 0;
    }
    if (prolongs) {
      election.prolonged(sentMs);
      this.#prolongedMs = sentMs;
    }
    this.#promotedMs = this.#lookedMs = receivedMs;
    this.#server.saw({ sentMs, receivedMs, serverMs: reply.nowMs });
    this.#tell(reply, receivedMs - sentMs);
    return this.#planNext(reply, {
      receivedMs,
      isFull: reply.count - (reply.offered ?? 0) + reply.deadLetters >= limit,
    });
  }

  /** A worker of this process that has room takes the pass as a part of its round trip. A broadcast queue has no worker. */
  async #send(pass: LeadersPass): Promise<Passed> {
    const { ref, clock, loneWorker, current, windowMs } = this.#parts;
    const { broadcast } = current();
    if (broadcast?.isOn) {
      const limit = Math.min(pass.limit, broadcast.max);
      const reply = await this.#jobs.cast(current(), { ...pass, limit, broadcast, windowMs });
      return { reply, receivedMs: clock.monotonicMs(), limit };
    }
    const relayed = loneWorker.relay(ref, pass);
    if (relayed) return relayed;
    const reply = await this.#jobs.promote(ref, { ...pass, aheadMs: this.#aheadMs() });
    return { reply, receivedMs: clock.monotonicMs(), limit: pass.limit };
  }

  #tell(reply: Promoted, tookMs: number): void {
    const { ref, events } = this.#parts;
    const { queue, partition } = ref;
    const { kind: state, count, deadLetters, lateness, gated } = reply;
    events.emit('mover.passed', { queue, partition, state, tookMs });
    if (count + deadLetters === 0) return;
    events.emit('jobs.promoted', { queue, partition, count, deadLetters, lateness, waiting: gated?.waiting, tookMs });
  }

  #planNext(
    reply: Promoted,
    { receivedMs, isFull }: { readonly receivedMs: number; readonly isFull: boolean },
  ): number {
    const { options, current, loneWorker } = this.#parts;
    this.#promoted += reply.count;
    this.#isInLine = (reply.gated?.waiting ?? 0) > 0;
    this.#isPaused = reply.kind === 'paused';
    // In a gated queue the script calls them for what it has let through.
    const hears = this.#callsWorkers || loneWorker.isPolled(current().queue);
    const callsThem = hears && !reply.gated && !isBroadcast(current());
    if (reply.count > 0 && callsThem) this.#callWorkers(reply.count);
    this.#rate.promoted(reply.count, receivedMs);
    if (reply.kind === 'capped') {
      return this.#lookAt(reply.nowMs + Math.min(options.safetyTickMs, this.#backoff.waitMs(reply.backlog)));
    }
    this.#backoff.reset();
    if (reply.kind === 'paused') return this.#lookAt(reply.nowMs + this.#tickMs());
    if (isFull) return this.#lookAt(0);
    this.#soonestLookMs = reply.nowMs + this.#apartMs();
    const nextMs = Math.min(reply.nextMs ?? Number.POSITIVE_INFINITY, this.#nudgedMs);
    this.#knownMs = nextMs;
    // Where jobs come in company the next pass offers them in time; a lone job has its pass when it is due.
    const offerMs = reply.offered ? nextMs - LEAD_MS : nextMs;
    const leftMs = reply.offered ? reply.nowMs + (this.#aheadMs() ?? 0) + AFTER_MS : Number.POSITIVE_INFINITY;
    return this.#lookAt(Math.max(Math.min(offerMs, leftMs), this.#soonestLookMs));
  }

  /** In a queue with limits jobs start when it is their turn. In virtual time, where passes have no gap, company saves nothing. */
  #aheadMs(): number | undefined {
    const { current, loneWorker } = this.#parts;
    const { queue, aheadMs, gates } = current();
    const isOff = gates !== undefined || this.#rhythm.passGapMs === 0 || !loneWorker.canHold(queue);
    return isOff ? undefined : aheadMs;
  }

  /** How far two passes are apart at least. */
  #apartMs(): number {
    return Math.max(Math.min(this.#rate.gapMs(), this.#rhythm.passGapMs), this.#parts.current().lingerMs ?? 0);
  }

  /** A worker that misses the call looks within a second. */
  #callWorkers(count: number): void {
    const { redis, ref } = this.#parts;
    redis.spublish(ref.keys.work, String(count)).catch(() => undefined);
  }

  #lookAt(atMs: number): number {
    this.#nextLookMs = atMs;
    return this.#restMs();
  }

  #restMs(): number {
    const { options, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    const lookMs = nowMs + this.#nextLookMs - this.#server.earliestMs(nowMs);
    const renewMs = this.#prolongedMs + options.leaseMs * RENEW_AFTER;
    const untilMs = Math.min(lookMs, this.#lookedMs + this.#tickMs(), renewMs);
    return Math.max(0, Math.ceil(untilMs - nowMs));
  }

  #onResigned(): void {
    if (this.#election.leading()) return;
    this.#election.onResigned();
    this.#loop.wake();
  }

  #onSooner(dueMs: number): void {
    this.#nudgedMs = Math.min(this.#nudgedMs, dueMs);
    this.#knownMs = Math.min(this.#knownMs, dueMs);
    const lookMs = Math.max(dueMs, this.#soonestLookMs);
    if (!(lookMs < this.#nextLookMs)) return;
    this.#nextLookMs = lookMs;
    this.#loop.wake();
  }
}

// How long a leader waits between two passes: by the rate of promotions, and while the backlog is at its cap.

/** From this rate on, passes are so far apart at least; below it less, in proportion. */
const NEAR_GAP_MS = 1.5;
const NEAR_PER_SECOND = 400;
/** Above this rate the gap grows further, to its maximum near 14,000/s. */
const FAR_PER_SECOND = 5000;
const JOBS_PER_MS_OF_GAP = 2500;
const GAP_MAX_MS = 5;
/** How fast the estimate follows: about the last 200 ms count. */
const MEMORY_MS = 200;

/**
 * The rate of promotions, and the gap that it calls for. While the rate is low there is none, so that a job is on time to
 * the millisecond. As the rate grows the gap grows, so that one pass carries several jobs, and with it one read, one start
 * and one acknowledgement of the worker. The first one and a half milliseconds come early, because a call for one job costs
 * Redis nearly as much as a call for three. The rest comes with rates at which so many passes would keep this process busy.
 * A timer fires at whole milliseconds, so passes are 1 to 2 ms apart then, and a job waits for half of that in the median.
 */
export class PromotionRate {
  #perSecond = 0;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** A pass promoted so many jobs at a monotonic time. */
  promoted(count: number, atMs: number): void {
    const elapsedMs = Math.max(0.1, Math.min(atMs - this.#lastMs, 60_000));
    const weight = 1 - Math.exp(-elapsedMs / MEMORY_MS);
    this.#perSecond += weight * ((count / elapsedMs) * 1000 - this.#perSecond);
    this.#lastMs = atMs;
  }

  /** The least wait before the next pass. */
  gapMs(): number {
    const nearMs = Math.min(1, this.#perSecond / NEAR_PER_SECOND) * NEAR_GAP_MS;
    const farMs = Math.max(0, this.#perSecond - FAR_PER_SECOND) / JOBS_PER_MS_OF_GAP;
    return Math.min(GAP_MAX_MS, nearMs + farMs);
  }
}

const FIRST_MS = 5;
const GROWTH = 1.25;
const JOBS_PER_MS = 20;
/** A small cap must not cost hundreds of looks per second. */
const LONGEST_MIN_MS = 100;

/**
 * The wait of a leader while the backlog is at its cap. While workers take entries, the leader looks every few
 * milliseconds, because the room that they make is to be filled at once. While the backlog stands still, each wait is a
 * quarter longer than the one before. So the leader notices the end of a standstill within a quarter of its length, and a
 * partition without workers costs about as much as an idle one.
 *
 * The longest wait is the time that a drain of a full backlog surely takes: 20,000 jobs/s are more than the workers of one
 * partition get through. So when workers come back, the leader makes room in time, however long they were away.
 */
export class BacklogBackoff {
  readonly #longestMs: number;
  #least = Number.POSITIVE_INFINITY;
  #nextMs = FIRST_MS;

  constructor({ readyMax }: { readonly readyMax: number }) {
    this.#longestMs = Math.max(LONGEST_MIN_MS, readyMax / JOBS_PER_MS);
  }

  /** How long to wait while the partition is at its cap with so many undelivered entries. */
  waitMs(backlog: number): number {
    if (backlog < this.#least) this.reset();
    this.#least = backlog;
    const waitMs = this.#nextMs;
    this.#nextMs = Math.min(this.#longestMs, waitMs * GROWTH);
    return waitMs;
  }

  /** The partition is below its cap, or a worker has taken an entry. */
  reset(): void {
    this.#least = Number.POSITIVE_INFINITY;
    this.#nextMs = FIRST_MS;
  }
}
