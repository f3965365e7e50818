/**
 * One queue of a daemon that workers come to over HTTP: its polls, what its runs say, and what was lost. Nothing is kept of a
 * run: all is in the call and in Redis, so any daemon answers any call.
 *
 *  claim ─▶ poll line ─▶ hand-out ─▶ `hand`            settle, beat ─▶ settling ─▶ `complete`, `retry`, `extend`, …
 *              ▲ K:work      ▲ take-back ◀── look
 */
import type { Emitter } from '../job/events.ts';
import type { Queue } from '../job/queue.ts';
import { type Clock, turn } from '../kernel/clock.ts';
import type { Channels } from '../redis/channels.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../redis/connection/outage.ts';
import type { ServerOf } from '../redis/connection/server-clock.ts';
import { isBroadcast, type PartitionRef } from '../redis/keys.ts';
import { READ_BYTES_MAX, READ_JOBS_MAX } from '../redis/scripts/bytes.ts';
import { claimants, forgetClaims, isRemote, LEFT, lanesOf } from '../redis/scripts/claims.ts';
import type { Jobs } from '../redis/scripts/jobs.ts';
import { withoutBeat } from '../redis/scripts/presence.ts';
import { declarationOf, declareQueue, findQueue, partitionsOf } from '../redis/scripts/queues.ts';
import { consumers, ensureGroup, ownPending, readEntries, retire } from '../redis/scripts/ready.ts';
import type { Delivery } from '../redis/scripts/replies.ts';
import { type ClaimedJob, remoteRules } from './claimed-job.ts';
import { type Claim, HandOut } from './hand-out.ts';
import { PollLine } from './poll-line.ts';
import { Settling } from './settling.ts';
import { TakeBack } from './take-back.ts';

/** What all queues share. */
export interface QueueParts {
  readonly redis: Redis;
  readonly jobs: Jobs;
  readonly channels: Channels;
  readonly namespace: string;
  readonly windowMs: number;
  readonly jobLeaseMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly serverOf: ServerOf;
  readonly events: Emitter;
  /** The polls of this queue are so many more, or fewer. */
  readonly counted: (queue: string, polls: number) => void;
}

const BUDGET_MS = 3000;
/** Entries of a worker that leaves, per call. */
const PAGE = 250;
/** No claim waits for so long: a worker that has been missing for longer has no poll anywhere. */
const GONE_MS = 90_000;

export class RemoteQueue {
  readonly name: string;
  readonly line: PollLine<Claim, ClaimedJob>;
  readonly settling: Settling;
  /** How many are under way, from before the queue is declared until they are answered. */
  claims = 0;
  readonly #parts: QueueParts;
  readonly #queue: Queue;
  readonly #takeBack: TakeBack;
  #refs: readonly PartitionRef[] = [];
  /** What ends listening to its partitions. */
  #listening: (() => void)[] = [];
  /** Monotonic ms since when a worker is missing. */
  readonly #missing = new Map<string, number>();
  /** Where the next look into the claims of a partition goes on. */
  readonly #cursors = new Map<number, string>();

  constructor(queue: Queue, parts: QueueParts) {
    this.#parts = parts;
    this.#queue = queue;
    this.name = queue.name;
    const rules = remoteRules(queue);
    const own = { ...parts, rules, refs: () => this.#refs };
    this.#takeBack = new TakeBack(parts);
    const handOut = new HandOut({ ...own, takeBack: this.#takeBack });
    this.settling = new Settling(own);
    this.line = new PollLine({
      ask: (claim, isKnown) => handOut.ask(claim, isKnown),
      clock: parts.clock,
      counted: (polls) => parts.counted(this.name, polls),
    });
  }

  get refs(): readonly PartitionRef[] {
    return this.#refs;
  }

  /** Its jobs go to every subscriber: nobody claims one. */
  get isBroadcast(): boolean {
    return this.#refs.some(isBroadcast);
  }

  /** Its jobs call a URL: dispatchers run them. */
  get hasTarget(): boolean {
    return this.#refs.some(({ target }) => target !== undefined);
  }

  /** Declares the queue unless it is, as every worker does. */
  async declare(): Promise<void> {
    const { redis, namespace } = this.#parts;
    const declaration = declarationOf(namespace, this.#queue);
    const layout = await this.#call('declare', () => declareQueue(redis, { ...declaration, isRepeated: true }));
    await this.#follow(partitionsOf(namespace, layout));
  }

  /** Follows the layout of a queue that is declared. Returns whether there is one. */
  async find(): Promise<boolean> {
    const { redis, namespace } = this.#parts;
    const layout = await this.#call('look', () => findQueue(redis, namespace, this.name));
    await this.#follow(layout ? partitionsOf(namespace, layout) : []);
    return layout !== undefined;
  }

  async #follow(refs: readonly PartitionRef[]): Promise<void> {
    const { redis, channels } = this.#parts;
    const isSame = refs.length === this.#refs.length && refs.every((ref, at) => isLaidOutAs(ref, this.#refs[at]));
    if (!isSame) {
      await Promise.all(refs.map(({ keys }) => ensureGroup(redis, keys)));
      for (const forget of this.#listening) forget();
      this.#listening = refs.map(({ keys }) => channels.listen(keys.work, () => this.line.wake()));
    }
    // Its settings may be others.
    this.#refs = refs;
  }

  /** What is overdue, and what no message has told. */
  async look(isSteady: boolean): Promise<void> {
    const hasOverdue = await this.#takeBack.look(this.#refs, isSteady);
    if (hasOverdue || this.line.size > 0) this.line.wake();
  }

  /** Takes away what workers have left that no heartbeat speaks for any more. Returns those who are gone. */
  async tidy(): Promise<readonly string[]> {
    const { redis, namespace, clock } = this.#parts;
    const gone = new Set<string>();
    const nowMs = clock.monotonicMs();
    const seen = new Set<string>();
    for (const ref of this.#refs) {
      const members = (await consumers(redis, ref.keys)).filter(({ name }) => isRemote(name));
      const { workers, next } = await claimants(redis, ref.keys, this.#cursors.get(ref.partition) ?? '0');
      this.#cursors.set(ref.partition, next);
      const names = [...new Set([...members.map(({ name }) => name), ...workers])];
      for (const name of await withoutBeat(redis, namespace, names)) {
        seen.add(name);
        const sinceMs = this.#missing.get(name) ?? nowMs;
        this.#missing.set(name, sinceMs);
        if (nowMs - sinceMs < GONE_MS) continue;
        const isMember = members.some((one) => one.name === name);
        if (isMember && !(await this.#bringToRest(ref, name))) continue;
        await forgetClaims(redis, ref.keys, [name]);
        gone.add(name);
      }
    }
    for (const name of this.#missing.keys()) if (!seen.has(name)) this.#missing.delete(name);
    return [...gone];
  }

  async #bringToRest(ref: PartitionRef, worker: string): Promise<boolean> {
    const { redis, events } = this.#parts;
    const reply = await retire(redis, ref, worker);
    const { queue, partition } = ref;
    if (reply === 'ok') events.emit('consumer.retired', { queue, partition, consumer: worker });
    return reply !== 'busy';
  }

  /**
   * The worker leaves: no older claim of it takes anything any more, and all that it holds goes back, without an attempt or a
   * crash. Returns how many jobs that were.
   */
  async leave(worker: string): Promise<number> {
    // First of all: a poll that somebody forgot would take a job after it.
    await this.#closeClaims(worker);
    let given = 0;
    for (const ref of this.#refs) {
      given += await this.#giveBack(ref, worker);
      // Not its claims: they are closed.
      await this.#call('retire', () => retire(this.#parts.redis, ref, worker, { keepsClaims: true }));
    }
    return given;
  }

  /** In all partitions: a poll that was handed jobs in one of them would ask another one. */
  async #closeClaims(worker: string): Promise<void> {
    const { redis, jobs, windowMs } = this.#parts;
    const settings = { consumer: worker, bytesMax: READ_BYTES_MAX, windowMs };
    const look = () => Promise.all(this.#refs.map(({ keys }) => lanesOf(redis, keys, worker)));
    // The first claim of the first lane may be on its way.
    const lanes = new Set([0, ...(await this.#call('look', look)).flat()]);
    for (const ref of this.#refs) {
      for (const lane of lanes) {
        const ask = { ended: [], given: [], take: 0, lane, seq: LEFT };
        await this.#call('leave', () => jobs.hand(ref, ask, settings));
      }
    }
  }

  async #giveBack(ref: PartitionRef, worker: string): Promise<number> {
    const { redis } = this.#parts;
    let given = 0;
    for (;;) {
      const find = () => ownPending(redis, ref.keys, { consumer: worker, idleMs: 0, limit: PAGE });
      const held = await this.#call('look', find);
      let done = 0;
      for (let from = 0; from < held.length; from += READ_JOBS_MAX) {
        const some = await readEntries(redis, ref.keys, held.slice(from, from + READ_JOBS_MAX));
        done += await this.#release(ref, worker, some);
      }
      given += done;
      // What nobody can give back is taken back when its lease is over.
      if (held.length < PAGE || done === 0) return given;
      await turn();
    }
  }

  /** What was not started is released, what was is put aside for no time. */
  async #release(ref: PartitionRef, worker: string, some: readonly Delivery[]): Promise<number> {
    if (some.length === 0) return 0;
    const { jobs, windowMs } = this.#parts;
    const replies = await this.#call('release', () => jobs.release(ref, some, { consumer: worker }));
    const started = some.filter((_, at) => replies[at] === 'started');
    let given = replies.filter((reply) => reply === 'ok').length;
    const settings = { consumer: worker, bytesMax: READ_BYTES_MAX, windowMs };
    for (let rest = started; rest.length > 0; ) {
      const starts = await this.#call('start', () => jobs.start(ref, rest, settings));
      const later = rest.filter((_, at) => starts[at]?.kind === 'later');
      for (const [at, { entry, member }] of rest.entries()) {
        const start = starts[at];
        if (start?.kind !== 'run' && start?.kind !== 'again') continue;
        const claim = { entry, member, token: start.token };
        const reply = await this.#call('defer', () => jobs.defer(ref, claim, { windowMs, delayMs: 0 }));
        if (reply === 'ok') given += 1;
      }
      rest = later.length < rest.length ? later : [];
    }
    return given;
  }

  /** Nobody waits here any more. */
  stop(): void {
    this.line.stop();
    for (const forget of this.#listening) forget();
    this.#listening = [];
  }

  #call<T>(what: string, call: () => Promise<T>): Promise<T> {
    const policy: RetryPolicy = { clock: this.#parts.clock, budgetMs: BUDGET_MS };
    return withRetry(what, call, policy);
  }
}

const isLaidOutAs = (one: PartitionRef, other: PartitionRef | undefined): boolean =>
  other !== undefined && one.keys.meta === other.keys.meta && one.layoutGeneration === other.layoutGeneration;
