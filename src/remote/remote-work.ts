/**
 * Workers over HTTP: what a daemon does for workers in any language (docs/how-to/work-over-http.md). It claims for them, takes
 * their ends and beats, and takes back what they have lost. It keeps nothing of what they run: all is in the call and in
 * Redis, so any daemon answers any call, and one that dies costs the open polls and nothing else.
 *
 *  start ─▶ connected ─▶ looks each second: what is overdue, and polls that no message has woken
 *  drain ─▶ no new claims; polls that wait are answered, polls that are being asked end with their asks ─▶ stop
 */
import type { Emitter } from '../job/events.ts';
import type { Queue } from '../job/queue.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import { show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { createLoop, type Loop } from '../kernel/loop.ts';
import { version } from '../kernel/version.ts';
import { Channels } from '../redis/channels.ts';
import { openCommands, openSubscriber, type Redis, type RedisInput } from '../redis/connection/connect.ts';
import { createOpening, type Opening } from '../redis/connection/opening.ts';
import { pauseAfter, withRetry } from '../redis/connection/outage.ts';
import { createServers } from '../redis/connection/server-clock.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { checkSchema } from '../redis/schema.ts';
import { haveClaims, isRemote } from '../redis/scripts/claims.ts';
import { createJobs } from '../redis/scripts/jobs.ts';
import { beat, forget, leave } from '../redis/scripts/presence.ts';
import { listQueues, partitionsOf } from '../redis/scripts/queues.ts';
import type { Ended, SettleReply } from '../redis/scripts/replies.ts';
import type { ClaimedJob } from './claimed-job.ts';
import type { Claim } from './hand-out.ts';
import { type QueueParts, RemoteQueue } from './remote-queue.ts';
import { readRun } from './run-handle.ts';
import type { Beat, BeatWord, RunEnd, Said, SettleWord } from './settling.ts';

export interface RemoteWorkOptions {
  readonly redis: RedisInput;
  readonly namespace: string;
  /** A queue by its name, as the configuration says it. */
  readonly queueOf: (name: string) => Queue;
  readonly windowMs: number;
  readonly jobLeaseMs: number;
  readonly beatTtlMs: number;
  /** Polls of this daemon, and of one token. */
  readonly pollsMax: number;
  readonly callerPollsMax: number;
  readonly events: Emitter;
  readonly clock?: Clock;
}

/** A run, by its handle, with what is said of it. */
export type OfRun<What> = What & { readonly run: string };

export interface ClaimAsk {
  readonly worker: string;
  readonly lane: number;
  readonly seq: number;
  /** The same call was made before. */
  readonly again: boolean;
  /** Free slots. */
  readonly max: number;
  readonly waitMs: number;
  /** How many jobs the worker runs. */
  readonly running: number;
  readonly ends: readonly OfRun<RunEnd>[];
}

/** Who makes a call. */
export interface WorkCaller {
  /** Tells callers apart for the limit of polls. */
  readonly key: string;
  readonly address: string;
  /** Aborts when the caller has gone, or the daemon stops. */
  readonly signal: AbortSignal;
}

export interface ClaimAnswer {
  readonly jobs: readonly ClaimedJob[];
  /** What became of each of `ends`. */
  readonly ended: readonly SettleWord[];
  /** So long a run is the worker's after its last beat. */
  readonly leaseMs: number;
  /** How often the worker is to beat. */
  readonly beatMs: number;
}

/** Why a claim was not carried out. */
export type ClaimRefusal = 'superseded' | 'broadcast' | 'target' | 'too-many';

export interface RemoteWork {
  /** Connects, and begins to look. Never fails: what cannot connect yet connects later. */
  readonly start: () => void;
  /** @throws DuestreamError `bad-input`, `stopped`, `unavailable` */
  readonly claim: (queue: string, ask: ClaimAsk, caller: WorkCaller) => Promise<ClaimAnswer | ClaimRefusal>;
  /** @throws DuestreamError `bad-input`, `not-found`, `unavailable` */
  readonly settle: (
    queue: string,
    of: { readonly worker: string; readonly runs: readonly OfRun<RunEnd>[]; readonly address: string },
  ) => Promise<readonly SettleWord[]>;
  /** @throws DuestreamError `bad-input`, `not-found`, `unavailable` */
  readonly beat: (
    queue: string,
    of: { readonly worker: string; readonly runs: readonly OfRun<Beat>[]; readonly address: string },
  ) => Promise<readonly BeatWord[]>;
  /** Returns how many jobs went back. @throws DuestreamError `bad-input`, `not-found`, `unavailable` */
  readonly leave: (queue: string, worker: string) => Promise<number>;
  /** Answers the polls that wait, and refuses new claims. */
  readonly drain: () => void;
  readonly stop: () => Promise<void>;
}

/** No claim waits longer. */
export const CLAIM_WAIT_MS_MAX = 60_000;
/** A caller waits no longer than this for an outage to pass. */
const WAIT_MS = 3000;
/** Between two looks, where the lease allows it. */
const LOOK_MS = 1000;
/** A look that takes longer, or comes so much later, tells that this daemon, or Redis, stood still. With short leases: a beat. */
const STALL_MS = 1000;
/** How often layouts are read anew, queues are looked for, and what workers have left is taken away. */
const CHORES_MS = 30_000;
/** The heartbeats of so many workers are known. */
const WORKERS_MAX = 10_000;

interface Opened extends Omit<QueueParts, 'counted'> {
  readonly redis: Redis;
}

/** @throws nothing: connections are made at `start`, or by the first call */
export function createRemoteWork(options: RemoteWorkOptions): RemoteWork {
  return new Remote(options);
}

class Remote implements RemoteWork {
  readonly #options: RemoteWorkOptions;
  readonly #clock: Clock;
  readonly #opening: Opening<Opened>;
  readonly #loop: Loop;
  readonly #queues = new Map<string, RemoteQueue>();
  readonly #polls = new PollCount();
  readonly #beats: Beats;
  #isStopped = false;
  /** Monotonic ms since which looks come in time; infinite before the first. */
  #steadySinceMs = Number.POSITIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #choresMs = Number.NEGATIVE_INFINITY;

  constructor(options: RemoteWorkOptions) {
    const { events, clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#beats = new Beats(options, clock);
    this.#opening = createOpening({
      waitMs: WAIT_MS,
      open: () => connectionsOf(options),
      furnish: ([commands, subscriber]) => furnished(options, { commands, subscriber, clock }),
    });
    this.#loop = createLoop({
      who: 'workers over HTTP',
      pass: () => this.#pass(),
      clock,
      events,
      pauseAfter,
      onError: () => {
        this.#steadySinceMs = Number.POSITIVE_INFINITY;
      },
    });
  }

  start(): void {
    this.#loop.start();
  }

  async claim(name: string, ask: ClaimAsk, caller: WorkCaller): Promise<ClaimAnswer | ClaimRefusal> {
    checkWorker(ask.worker);
    if (this.#isStopped) throw new DuestreamError('stopped', 'the daemon stops; another one may answer the claim');
    const ends = ask.ends.map(saidOf);
    const queue = this.#queueIn(await this.#opening.use(), name);
    queue.claims += 1;
    try {
      // It is declared unless it is.
      if (queue.refs.length === 0) await queue.declare();
      return await this.#claimFrom(queue, { ...ask, ends }, caller);
    } finally {
      queue.claims -= 1;
    }
  }

  async #claimFrom(
    queue: RemoteQueue,
    ask: Omit<ClaimAsk, 'ends'> & { readonly ends: readonly Said<RunEnd>[] },
    caller: WorkCaller,
  ): Promise<ClaimAnswer | ClaimRefusal> {
    const { worker, lane, seq, again, max, waitMs, running, ends } = ask;
    const { pollsMax, callerPollsMax } = this.#options;
    const { name } = queue;
    if (queue.isBroadcast) return 'broadcast';
    if (queue.hasTarget) return 'target';
    const leavePolls = this.#polls.enter(caller.key, { all: pollsMax, each: callerPollsMax });
    if (!leavePolls) return 'too-many';
    try {
      await this.#beats.alive({ ...(await this.#opening.use()), worker, queue: name, address: caller.address });
      const told = (end: RunEnd['end'], word: SettleWord) => this.#tellSettled(name, end, word);
      const book = await endBook(queue, { worker, all: ends, told });
      const claim = { worker, lane, seq, isAgain: again, max, running, ends: book.ends, ended: book.ended };
      return await this.#wait(queue, claim, { waitMs, caller, words: book.words });
    } finally {
      leavePolls();
    }
  }

  async #wait(
    queue: RemoteQueue,
    claim: Claim,
    { waitMs, caller, words }: { waitMs: number; caller: WorkCaller; words: () => readonly SettleWord[] },
  ): Promise<ClaimAnswer | ClaimRefusal> {
    const { events, jobLeaseMs } = this.#options;
    const sinceMs = this.#clock.monotonicMs();
    const mustAsk = claim.ends.size > 0;
    const answer = await queue.line.claim(claim, { waitMs, signal: caller.signal, mustAsk });
    const isLate = answer.kind === 'superseded' || (answer.kind === 'empty' && answer.cause === 'superseded');
    const isGone = answer.kind === 'empty' && answer.cause === 'gone';
    const outcome = isLate ? 'superseded' : isGone ? 'gone' : answer.kind;
    const jobs = 'jobs' in answer ? answer.jobs : [];
    const waitedMs = this.#clock.monotonicMs() - sinceMs;
    events.emit('claim.answered', { queue: queue.name, outcome, jobs: jobs.length, waitedMs });
    if (isLate) return 'superseded';
    return { jobs, ended: words(), leaseMs: jobLeaseMs, beatMs: beatMsOf(jobLeaseMs) };
  }

  async settle(
    name: string,
    { worker, runs, address }: { worker: string; runs: readonly OfRun<RunEnd>[]; address: string },
  ): Promise<readonly SettleWord[]> {
    checkWorker(worker);
    const said = runs.map(saidOf);
    const queue = await this.#known(name);
    await this.#beats.alive({ ...(await this.#opening.use()), worker, queue: name, address });
    const words = await queue.settling.settle(worker, said);
    for (const [at, word] of words.entries()) this.#tellSettled(name, said[at]?.what.end ?? 'complete', word);
    return words;
  }

  async beat(
    name: string,
    { worker, runs, address }: { worker: string; runs: readonly OfRun<Beat>[]; address: string },
  ): Promise<readonly BeatWord[]> {
    checkWorker(worker);
    const said = runs.map(saidOf);
    const queue = await this.#known(name);
    await this.#beats.alive({ ...(await this.#opening.use()), worker, queue: name, address });
    return queue.settling.beat(worker, said);
  }

  async leave(name: string, worker: string): Promise<number> {
    checkWorker(worker);
    const { namespace, clock } = this.#options;
    const queue = await this.#known(name);
    const { redis } = await this.#opening.use();
    const given = await queue.leave(worker);
    this.#beats.forget(worker);
    const call = () => leave(redis, namespace, worker);
    await withRetry('leave', call, { clock: clock ?? systemClock, budgetMs: WAIT_MS });
    return given;
  }

  drain(): void {
    this.#isStopped = true;
    for (const queue of this.#queues.values()) queue.line.stop();
  }

  async stop(): Promise<void> {
    this.drain();
    await this.#loop.stop();
    for (const queue of this.#queues.values()) queue.stop();
    this.#opening.close();
  }

  #tellSettled(queue: string, end: RunEnd['end'], word: SettleWord): void {
    this.#options.events.emit('run.settled', { queue, end, word });
  }

  /** @throws DuestreamError `not-found` */
  async #known(name: string): Promise<RemoteQueue> {
    const queue = await this.#queueOf(name);
    if (queue.refs.length > 0 || (await queue.find())) return queue;
    throw new DuestreamError('not-found', `there is no queue ${name}`);
  }

  async #queueOf(name: string): Promise<RemoteQueue> {
    return this.#queueIn(await this.#opening.use(), name);
  }

  #queueIn(opened: Opened, name: string): RemoteQueue {
    const known = this.#queues.get(name);
    if (known) return known;
    const { queueOf, events } = this.#options;
    const counted = (queue: string, polls: number) => events.emit('polls.waiting', { queue, polls });
    const queue = new RemoteQueue(queueOf(name), { ...opened, counted });
    this.#queues.set(name, queue);
    return queue;
  }

  /** One look at each queue. Returns milliseconds until the next. */
  async #pass(): Promise<number> {
    const { jobLeaseMs } = this.#options;
    const restMs = Math.max(20, Math.min(LOOK_MS, jobLeaseMs / 15));
    const { redis, channels } = await this.#opening.use();
    const begunMs = this.#clock.monotonicMs();
    if (begunMs - this.#choresMs >= CHORES_MS) await this.#chores(redis);
    const isSteady = begunMs - this.#steadySinceMs >= 2 * beatMsOf(jobLeaseMs);
    for (const queue of this.#queues.values()) await queue.look(isSteady);
    if (channels.isDeaf()) channels.mend();
    const nowMs = this.#clock.monotonicMs();
    const stallMs = Math.min(STALL_MS, beatMsOf(jobLeaseMs));
    const isLate = begunMs - this.#lookedMs > restMs + stallMs || nowMs - begunMs > stallMs;
    this.#steadySinceMs = isLate ? nowMs : Math.min(this.#steadySinceMs, nowMs);
    this.#lookedMs = nowMs;
    return restMs;
  }

  /** Follows layouts, finds queues in which other daemons have claimed, and takes away what is left of workers. */
  async #chores(redis: Redis): Promise<void> {
    const { namespace } = this.#options;
    for (const layout of await listQueues(redis, namespace)) {
      if (this.#queues.has(layout.queue)) continue;
      if (await haveClaims(redis, partitionsOf(namespace, layout))) await (await this.#queueOf(layout.queue)).find();
    }
    for (const [name, queue] of this.#queues) {
      // A claim may come while it is looked for, and declare it.
      if (queue.claims === 0 && !(await queue.find()) && queue.claims === 0) {
        queue.stop();
        this.#queues.delete(name);
        continue;
      }
      const gone = await queue.tidy();
      if (gone.length > 0) await forget(redis, namespace, ...gone);
    }
    this.#choresMs = this.#clock.monotonicMs();
  }
}

const beatMsOf = (leaseMs: number): number => Math.floor(leaseMs / 3);

function connectionsOf({ redis }: RemoteWorkOptions) {
  return [openCommands({ redis, name: 'work' }), openSubscriber({ redis, name: 'work:calls' })] as const;
}

async function furnished(
  { namespace, windowMs, jobLeaseMs, events }: RemoteWorkOptions,
  { commands, subscriber, clock }: { readonly commands: Redis; readonly subscriber: Redis; readonly clock: Clock },
): Promise<Opened> {
  const serverOf = createServers(commands, clock);
  await checkSchema(commands, namespace);
  await serverOf().measure();
  const shared = { namespace, windowMs, jobLeaseMs, events, clock, serverOf, random: Math.random };
  return { ...shared, redis: commands, jobs: createJobs(commands), channels: new Channels(subscriber) };
}

/** @throws DuestreamError `bad-input` */
function checkWorker(worker: string): void {
  if (isRemote(worker)) return;
  throw new DuestreamError(
    'bad-input',
    `worker is ${show(worker)}; allowed: h-<label>-<32 hexadecimal digits>, where the digits are random and made anew by each process`,
  );
}

/** @throws DuestreamError `bad-input` */
function saidOf<What>(what: OfRun<What>): Said<OfRun<What>> {
  const run = readRun(what.run);
  if (run) return { run, what };
  throw new DuestreamError('bad-input', 'run is no run; allowed: what a claim has handed out as run');
}

/** What a claim says of runs that are over: completions travel with it, all else is settled before it. */
async function endBook(
  queue: RemoteQueue,
  {
    worker,
    all,
    told,
  }: {
    readonly worker: string;
    readonly all: readonly Said<RunEnd>[];
    readonly told: (end: RunEnd['end'], word: SettleWord) => void;
  },
) {
  const words: SettleWord[] = all.map(() => 'gone');
  const others = all.filter(({ what }) => what.end !== 'complete');
  const settled = others.length > 0 ? await queue.settling.settle(worker, others) : [];
  for (const [nth, one] of others.entries()) {
    const word = settled[nth] ?? 'gone';
    words[all.indexOf(one)] = word;
    told(one.what.end, word);
  }
  await queue.settling.spend(all.filter(({ what }) => what.end === 'complete'));
  const byPartition = new Map<number, { readonly said: Said<RunEnd>[]; readonly ended: Ended[] }>();
  for (const one of all) {
    const ref = queue.settling.refOf(one.run);
    if (one.what.end !== 'complete' || !ref) continue;
    const known = byPartition.get(ref.partition) ?? { said: [], ended: [] };
    known.said.push(one);
    known.ended.push(await queue.settling.endedOf(ref, one));
    byPartition.set(ref.partition, known);
  }
  return {
    ends: new Map([...byPartition].map(([partition, { ended }]) => [partition, ended] as const)),
    ended(ref: PartitionRef, replies: readonly SettleReply[]): void {
      for (const [nth, one] of (byPartition.get(ref.partition)?.said ?? []).entries()) {
        const word = replies[nth] ?? 'gone';
        words[all.indexOf(one)] = word;
        told('complete', word);
        queue.settling.tellCompleted(ref, one.run, word);
      }
    },
    words: (): readonly SettleWord[] => words,
  };
}

/** How many polls there are, of all callers and of each. */
class PollCount {
  #all = 0;
  readonly #each = new Map<string, number>();

  /** Undefined: there are as many as there may be. What is returned is called when the poll is over. */
  enter(key: string, most: { readonly all: number; readonly each: number }): (() => void) | undefined {
    const there = this.#each.get(key) ?? 0;
    if (this.#all >= most.all || there >= most.each) return undefined;
    this.#all += 1;
    this.#each.set(key, there + 1);
    return () => {
      this.#all -= 1;
      const left = (this.#each.get(key) ?? 1) - 1;
      if (left > 0) this.#each.set(key, left);
      else this.#each.delete(key);
    };
  }
}

/** The heartbeats of workers: a worker lives as long as it calls, and as long as a claim of it may wait. */
class Beats {
  readonly #options: RemoteWorkOptions;
  readonly #clock: Clock;
  /** Worker → monotonic ms of its last heartbeat that was sent here. */
  readonly #sentMs = new Map<string, number>();

  constructor(options: RemoteWorkOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  async alive(of: { redis: Redis; worker: string; queue: string; address: string }): Promise<void> {
    const { namespace, beatTtlMs } = this.#options;
    const { redis, worker, queue, address } = of;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - (this.#sentMs.get(worker) ?? Number.NEGATIVE_INFINITY) < beatTtlMs / 3) return;
    this.#sentMs.delete(worker);
    const [first] = this.#sentMs.size >= WORKERS_MAX ? this.#sentMs.keys() : [];
    if (first !== undefined) this.#sentMs.delete(first);
    this.#sentMs.set(worker, nowMs);
    const told = { id: worker, role: 'worker', host: labelOf(worker), pid: 0, version, queues: [queue] } as const;
    const identity = { ...told, startedMs: this.#clock.wallMs(), polls: true, via: 'http', address } as const;
    // A worker whose heartbeat cannot be written is served all the same: each of its runs has a lease of its own.
    await beat(redis, { namespace, identity, ttlMs: CLAIM_WAIT_MS_MAX + beatTtlMs }).catch(() =>
      this.#sentMs.delete(worker),
    );
  }

  forget(worker: string): void {
    this.#sentMs.delete(worker);
  }
}

/** `h-mailer-…` is called `mailer`. */
const labelOf = (worker: string): string => worker.slice('h-'.length, -'-'.length - 32);
