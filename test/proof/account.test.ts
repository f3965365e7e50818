/**
 * Random lives of jobs on a gated partition, in virtual time over the model of Redis: producers, a leader that is away at times, three
 * workers, closings, pauses and limits that change. In some walks leaders and workers die, or the clock of Redis is set back. The account of
 * each start is compared with what held its job in truth, which the walk knows at each moment.
 */
import { describe, expect, test } from 'vitest';
import { type Cause, type Diary, type LineLook, type StartAccount, tokenMs, withDiary } from '../../src/job/account.ts';
import { encodeRecord } from '../../src/job/codec.ts';
import { createEmitter } from '../../src/job/events.ts';
import { gateShare, type PartitionGates } from '../../src/job/gate.ts';
import { groupOf } from '../../src/job/labels.ts';
import { turn } from '../../src/kernel/clock.ts';
import { createSurveyor } from '../../src/mover/chores/surveyor.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { readLooks } from '../../src/redis/read/looks.ts';
import { close, limit } from '../../src/redis/scripts/gates.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ensureGroup, ownPending, reclaim, startAccount } from '../../src/redis/scripts/ready.ts';
import type { Delivery, Started } from '../../src/redis/scripts/replies.ts';
import { pause, resume } from '../../src/redis/scripts/upkeep.ts';
import { openLine } from '../../src/testing/line.ts';
import { createServer } from '../../src/testing/redis/server.mjs';
import { VirtualTime } from '../../src/testing/time.ts';
import { randomFrom } from '../support/gates-world.ts';

const T0 = 1_760_000_000_000;
const TICK_MS = 10;
const WAITS = 2 ** 52;
const LIMITS = [
  { perGroup: 1 },
  { perGroup: 2, concurrency: 4 },
  { rate: { limit: 30, perMs: 1000, burst: 1 } },
  { rate: { limit: 40, perMs: 1000, burst: 3 }, perGroup: 1, concurrency: 3 },
  { concurrency: 2 },
];
type Limits = (typeof LIMITS)[number];
type Parts = Map<Cause, number>;
type Run = Delivery & Started;

/** What goes wrong in a walk. */
interface Fate {
  /** Leaders and workers die, and others come. */
  readonly deaths?: boolean;
  /** The clock of Redis is set back at this tick. */
  readonly backAt?: number;
}
/** What was seen last is written down within a second. */
const REST_TICKS = 150;
const BACK_MS = 3000;
/** How long the lease of a leader that can die lasts, and until when a worker counts as dead. */
const LEASE_MS = 1500;
const PROOF_MS = 1500;

interface Start {
  readonly run: Run;
  readonly truth: Parts;
  /** By the clock of Redis. */
  readonly atMs: number;
  readonly isBeforeStep: boolean;
}

/** A worker that is dead, with what it ran. */
interface Dead {
  readonly owner: string;
  readonly runs: readonly Run[];
  /** Monotonic. */
  readonly diedMs: number;
}

/** A process that leads. */
interface Leader {
  readonly term: string;
  readonly events: ReturnType<typeof createEmitter>;
  /** When its surveyor goes on; monotonic. */
  alarm: { readonly atMs: number; readonly act: () => void } | undefined;
}

interface Seen {
  readonly held: ReadonlyMap<string, number>;
  readonly entries: number;
  readonly arrivalUs: number;
}

class Walk {
  /** The clock of Redis. */
  nowMs = T0;
  /** A clock that nobody sets. */
  #passedMs = T0;
  readonly starts: Start[] = [];
  readonly paused: Diary['told'][number][] = [];
  readonly #random: () => number;
  readonly #fate: Fate;
  readonly #redis;
  readonly ref;
  readonly #jobs;
  readonly #time = new VirtualTime(T0, () => undefined);
  readonly #truth = new Map<string, Parts>();
  readonly #running = new Map<string, Run[]>([1, 2, 3].map((nth) => [`w${nth}`, []]));
  readonly #dead: Dead[] = [];
  readonly #closed = new Map<string, number>();
  #leader: Leader | undefined;
  #limits: Limits = { perGroup: 1 };
  #pausedMs: number | undefined;
  #awayUntilMs = 0;
  #serial = 0;
  #processes = 3;
  #isBeforeStep = true;
  /** Of a worker that takes few jobs, the others wait. */
  #slots = 3;

  constructor(seed: number, fate: Fate) {
    this.#random = randomFrom(seed);
    this.#fate = fate;
    const server = createServer({ nowUs: () => this.nowMs * 1000, timer: () => () => undefined });
    this.#redis = openLine(server, this.#time, { isService: false, isReady: true });
    const gates = gateShare({ perGroup: 1 }, { partition: 0, partitions: 1 });
    if (!gates) throw new Error('the queue is gated');
    this.ref = partitionRef('duestream', { queue: 'q', partition: 0, layoutGeneration: 0, gates });
    this.#jobs = createJobs(this.#redis);
  }

  #isThere = () => this.#passedMs >= this.#awayUntilMs;
  #below = (count: number) => Math.floor(this.#random() * count);
  #pick = <T>(list: readonly T[]): T => list[this.#below(list.length)] as T;

  async begin(): Promise<void> {
    await ensureGroup(this.#redis, this.ref.keys);
    await this.#setLimits();
  }

  async tick(nth: number, isLast: boolean): Promise<void> {
    this.#time.skipTo(this.#passedMs);
    if (nth === this.#fate.backAt) this.#setBack();
    if (!isLast) await this.#change();
    if (this.#isThere()) await this.#lead();
    for (const name of [...this.#running.keys()]) if (this.#random() < 0.4) await this.#serve(name, isLast);
    for (const one of this.#dead.splice(0)) await this.#takeOver(one);
    await this.#credit();
    this.nowMs += TICK_MS;
    this.#passedMs += TICK_MS;
  }

  async #change(): Promise<void> {
    if (this.#random() < 0.12) await this.#schedule();
    if (this.#random() < 0.001) await this.#setLimits();
    if (this.#random() < 0.0003) this.#awayUntilMs = this.#passedMs + this.#below(4000);
    if (this.#random() < 0.003) this.#slots = this.#below(4);
    if (this.#random() < 0.001) await this.#close(this.#pick(['', 'a', 'b']));
    if (this.#random() < 0.0008) await this.#pause();
    if (this.#fate.deaths && this.#random() < 0.002) this.#leaderDies();
    if (this.#fate.deaths && this.#random() < 0.004) this.#workerDies();
  }

  #setBack(): void {
    this.nowMs -= BACK_MS;
    this.#isBeforeStep = false;
  }

  #leaderDies(): void {
    this.#leader = undefined;
    this.#awayUntilMs = this.#passedMs + this.#below(2000);
  }

  #workerDies(): void {
    const owner = this.#pick([...this.#running.keys()]);
    const runs = this.#running.get(owner) ?? [];
    this.#running.delete(owner);
    this.#processes += 1;
    this.#running.set(`w${this.#processes}`, []);
    this.#dead.push({ owner, runs, diedMs: this.#passedMs });
    for (const { member, token } of runs) {
      const begun = this.starts.findLast(({ run }) => run.token === token);
      this.#truth.set(member, new Map(begun?.truth));
      this.#add(member, 'unproven', this.nowMs - (begun?.atMs ?? this.nowMs));
    }
  }

  /** Somebody else takes the jobs of a dead worker once its death is proven. */
  async #takeOver(one: Dead): Promise<void> {
    const { owner, diedMs } = one;
    const heir = this.#pick([...this.#running.keys()]);
    const take = { owner, consumer: heir, idleMs: PROOF_MS, limit: 100 };
    const { deliveries } =
      this.#passedMs - diedMs < PROOF_MS ? { deliveries: [] } : await reclaim(this.#redis, this.ref, take);
    const given = deliveries.toSorted((before, after) => (before.entry < after.entry ? -1 : 1));
    if (given.length > 0) await this.#start(heir, { ended: [], given, take: 0 });
    const left = await ownPending(this.#redis, this.ref.keys, { consumer: owner, idleMs: 0, limit: 100 });
    if (left.length > 0) this.#dead.push({ ...one, runs: one.runs.filter(({ entry }) => left.includes(entry)) });
  }

  async #schedule(): Promise<void> {
    const items = Array.from({ length: 1 + this.#below(4) }, () => {
      this.#serial += 1;
      const group = this.#pick(['', '{a}', '{a}', '{b}', '{c}']);
      const dueMs = this.nowMs + this.#below(300);
      return { member: `j:${group}x${this.#serial}`, record: encodeRecord(dueMs, '{}'), dueMs };
    });
    await this.#jobs.schedule(this.ref, items, { mode: 'keep', horizonMs: 1e12, bytesMax: 10_000 });
  }

  async #setLimits(): Promise<void> {
    this.#limits = this.#pick(LIMITS);
    const share = gateShare(this.#limits, { partition: 0, partitions: 1 }) as PartitionGates;
    await limit(this.#redis, this.ref, { share });
  }

  async #close(group: string): Promise<void> {
    const untilMs = this.nowMs + 200 + this.#below(3000);
    if (untilMs <= (this.#closed.get(group) ?? 0)) return;
    await close(this.#redis, this.ref, { group, until: untilMs, why: 'x' });
    this.#closed.set(group, untilMs);
  }

  async #pause(): Promise<void> {
    await pause(this.#redis, this.ref, { reason: 'x' });
    this.#pausedMs = this.nowMs;
    this.#resumeMs = this.nowMs + 100 + this.#below(4000);
  }

  #resumeMs = Number.POSITIVE_INFINITY;

  async resumeIfDue(isLast: boolean): Promise<void> {
    if (this.#pausedMs === undefined || (this.nowMs < this.#resumeMs && !isLast)) return;
    await resume(this.#redis, this.ref);
    this.paused.push({ cause: 'paused', fromMs: this.#pausedMs, toMs: this.nowMs });
    this.#pausedMs = undefined;
    this.#resumeMs = Number.POSITIVE_INFINITY;
  }

  /** The leader, or who becomes it, makes a pass, and its surveyor goes on. */
  async #lead(): Promise<void> {
    this.#leader ??= await this.#elected();
    if (!this.#leader) return;
    const { term, events, alarm } = this.#leader;
    const leaseMs = this.#fate.deaths ? LEASE_MS : undefined;
    const reply = await this.#jobs.promote(this.ref, { term, leaseMs, limit: 300, cap: 1000, lineMax: 100_000 });
    if (reply.kind === 'fenced') {
      this.#leader = undefined;
      return;
    }
    const { lateness, gated } = reply;
    const told = { queue: 'q', partition: 0, count: 1, deadLetters: 0, tookMs: 1, lateness, waiting: gated?.waiting };
    if (lateness.length > 0) events.emit('jobs.promoted', told);
    if (alarm && alarm === this.#leader.alarm && alarm.atMs <= this.#passedMs) alarm.act();
    await turn();
  }

  async #elected(): Promise<Leader | undefined> {
    const lease = { processId: `p${this.#processes}`, leaseMs: this.#fate.deaths ? LEASE_MS : 100_000_000 };
    const reply = await elect(this.#redis, this.ref, lease);
    if (reply.kind !== 'elected') return undefined;
    this.#processes += 1;
    const leader: Leader = { term: reply.term, events: createEmitter(), alarm: undefined };
    const surveyor = createSurveyor({
      redis: this.#redis,
      ref: this.ref,
      current: () => this.ref,
      leading: () => (this.#leader === leader && this.#isThere() ? { term: reply.term, epoch: 1 } : undefined),
      clock: {
        ...this.#time.clock,
        rest: (_who, ms, act) => {
          const alarm = { atMs: this.#passedMs + ms, act };
          leader.alarm = alarm;
          return () => {
            if (leader.alarm === alarm) leader.alarm = undefined;
          };
        },
      },
      events: leader.events,
    });
    this.#leader = leader;
    surveyor.start();
    await turn();
    return leader;
  }

  async #serve(name: string, isLast: boolean): Promise<void> {
    const mine = this.#running.get(name) ?? [];
    const done = mine.splice(0, this.#below(mine.length + 1));
    const ended = done.map(({ entry, member, token }) => ({ entry, member, token, mark: '' }));
    const take = Math.max(0, (isLast ? 3 : this.#slots) - mine.length);
    await this.#start(name, { ended, given: [], take });
  }

  async #start(name: string, turn: Parameters<ReturnType<typeof createJobs>['serve']>[1]): Promise<void> {
    const settings = { consumer: name, bytesMax: 1e6, windowMs: 60_000 };
    const { taken } = await this.#jobs.serve(this.ref, turn, settings);
    for (const run of taken) {
      if (run.kind !== 'run') continue;
      this.#running.get(name)?.push(run);
      const truth = this.#truth.get(run.member) ?? new Map();
      this.starts.push({ run, truth, atMs: this.nowMs, isBeforeStep: this.#isBeforeStep });
      this.#truth.delete(run.member);
    }
  }

  /** What holds each job that is due and did not start, for this tick. */
  async #credit(): Promise<void> {
    const { keys } = this.ref;
    const scores = await this.#redis.zrange(keys.scheduled, '0', '-1', 'WITHSCORES');
    const entries = await this.#redis.xrange(keys.ready, '-', '+');
    const held = new Map<string, number>();
    for (const [, fields] of entries) {
      const group = groupOf(fields[1] ?? '') ?? '';
      held.set(group, (held.get(group) ?? 0) + 1);
    }
    const arrivalUs = Number(((await this.#redis.hget(keys.meta, 'gate')) ?? '0').split(' ')[0]);
    const seen = { held, entries: entries.length, arrivalUs };
    for (let at = 0; at < scores.length; at += 2) {
      this.#creditScheduled(scores[at] ?? '', Number(scores[at + 1]), seen);
    }
    const running = new Set([...this.#running.values()].flatMap((all) => all.map(({ entry }) => String(entry))));
    const lost = new Set(this.#dead.flatMap(({ runs }) => runs.map(({ entry }) => String(entry))));
    for (const [id, fields] of entries) {
      if (lost.has(id)) this.#add(fields[1] ?? '', 'unproven');
      else if (!running.has(id)) this.#add(fields[1] ?? '', this.#unlessPaused('worker'));
    }
  }

  #creditScheduled(member: string, score: number, seen: Seen): void {
    const endMs = this.nowMs + TICK_MS;
    if (score >= WAITS) this.#add(member, this.#causeOf(member, seen));
    else if (score < endMs) this.#add(member, this.#unlessPaused('promotion'), Math.min(TICK_MS, endMs - score));
  }

  #unlessPaused(cause: Cause): Cause {
    return this.#pausedMs === undefined ? cause : 'paused';
  }

  #add(member: string, cause: Cause, ms = TICK_MS): void {
    const parts = this.#truth.get(member) ?? new Map<Cause, number>();
    parts.set(cause, (parts.get(cause) ?? 0) + ms);
    this.#truth.set(member, parts);
  }

  #causeOf(member: string, seen: Seen): Cause {
    const {
      perGroup = 0,
      concurrency = 0,
      rate,
    } = this.#limits as {
      perGroup?: number;
      concurrency?: number;
      rate?: { limit: number; perMs: number; burst: number };
    };
    const group = groupOf(member) ?? '';
    if (this.#pausedMs !== undefined) return 'paused';
    if (Math.max(this.#closed.get('') ?? 0, this.#closed.get(group) ?? 0) > this.nowMs) return 'closed';
    if (group !== '' && perGroup > 0 && (seen.held.get(group) ?? 0) >= perGroup) return 'group-full';
    if (concurrency > 0 && seen.entries >= concurrency) return 'concurrency';
    const intervalUs = rate ? (rate.perMs * 1000) / rate.limit : 0;
    const turnMs = rate ? (seen.arrivalUs - (rate.burst - 1) * intervalUs - 50_000) / 1000 : 0;
    return turnMs > this.nowMs ? 'rate' : 'unasked';
  }

  looks(): Promise<readonly LineLook[]> {
    return readLooks(this.#redis, this.ref, { fromMs: T0, toMs: this.nowMs + 10_000 });
  }

  async left(): Promise<number> {
    return (await this.#redis.zcard(this.ref.keys.scheduled)) + (await this.#redis.xlen(this.ref.keys.ready));
  }
}

const accountIn = (ref: Parameters<typeof startAccount>[0]['ref'], { run, atMs }: Start, known: Known) => {
  // As a worker knows the clock of Redis: to a second.
  const isClockSet = tokenMs(run.token) - atMs > 1000;
  const account = startAccount({ ref, delivery: run, run, record: run.record, looks: known.looks, isClockSet });
  return account && withDiary(account, { sinceMs: Number.POSITIVE_INFINITY, told: known.told });
};

interface Known {
  readonly looks: readonly LineLook[];
  readonly told: Diary['told'];
}

async function walked(seed: number, { ticks, fate }: { readonly ticks: number; readonly fate: Fate }): Promise<Walk> {
  const walk = new Walk(seed, fate);
  await walk.begin();
  let rest = REST_TICKS;
  for (let tick = 0; rest > 0; tick += 1) {
    await walk.resumeIfDue(tick >= ticks);
    await walk.tick(tick, tick >= ticks);
    if (tick >= ticks * 2 || (tick >= ticks && (await walk.left()) === 0)) rest -= 1;
  }
  return walk;
}

interface Judged {
  readonly starts: number;
  readonly lateMs: number;
  /** Of the time in line, what has another cause than in truth, or none. */
  readonly wrongMs: number;
  /** Of that, what has a wrong one: more than the truth has of it. */
  readonly blamedMs: number;
  /** How many say that the clock was set, and that a worker died. */
  readonly setBack: number;
  readonly unproven: number;
}

/** Each account adds up, and beside the truth. After a step of the clock only the sums are compared. */
async function judged(seed: number, ticks: number, fate: Fate = {}): Promise<Judged> {
  const walk = await walked(seed, { ticks, fate });
  const known = { looks: await walk.looks(), told: walk.paused };
  const sums = { starts: walk.starts.length, lateMs: 0, wrongMs: 0, blamedMs: 0, setBack: 0, unproven: 0 };
  for (const start of walk.starts) {
    const account = accountIn(walk.ref, start, known);
    const parts = account?.parts ?? [];
    expect(parts.reduce((sum, { ms }) => sum + ms, 0)).toBe(account?.lateMs);
    expect(parts.every(({ ms }) => ms > 0)).toBe(true);
    sums.unproven += parts.some(({ cause }) => cause === 'unproven') ? 1 : 0;
    if (start.isBeforeStep) addWrong(sums, start.truth, account);
    else sums.setBack += saysSetBack(start, account) ? 1 : 0;
  }
  return sums;
}

function addWrong(
  sums: { lateMs: number; wrongMs: number; blamedMs: number },
  truth: Parts,
  account: StartAccount | undefined,
): void {
  const missing = new Map<Cause, number>(truth);
  for (const { cause, ms } of account?.parts ?? []) missing.set(cause, (missing.get(cause) ?? 0) - ms);
  sums.lateMs += account?.lateMs ?? 0;
  for (const [cause, ms] of missing) {
    sums.wrongMs += Math.abs(ms) / 2;
    if (cause !== 'line') sums.blamedMs += Math.max(0, -ms);
  }
}

/** Of a start whose token was ahead of the clock of Redis nothing else is told. */
function saysSetBack({ atMs }: Start, account: StartAccount | undefined): boolean {
  const isAhead = (account?.startedMs ?? 0) - atMs > 1000;
  expect(account?.parts.every(({ cause }) => (cause === 'clock-set') === isAhead)).toBe(true);
  return isAhead;
}

describe('accounts of a gated queue', () => {
  test.each([1, 2, 4])('add up, and name what held each job for most of 20 seconds, in walk %i', async (seed) => {
    const { starts, lateMs, wrongMs } = await judged(seed, 2000);
    expect(starts).toBeGreaterThan(75);
    expect(wrongMs / lateMs).toBeLessThan(0.16);
  });

  test('add up where leaders and workers die, and blame nothing for more than a tenth that it did not hold', async () => {
    const { lateMs, blamedMs, unproven } = await judged(1, 2000, { deaths: true });
    expect(unproven).toBeGreaterThan(0);
    expect(blamedMs / lateMs).toBeLessThan(0.1);
  });

  test('add up where the clock of Redis was set back, say so, and blame nobody', async () => {
    const { setBack } = await judged(4, 2000, { backAt: 1000 });
    expect(setBack).toBeGreaterThan(10);
  });
});
