/**
 * A queue in virtual time: jobs come due, wait in line, are let through as the limits say, and take a slot of a worker for as
 * long as they run. It plays a million jobs in about a second, because jobs are columns of numbers and nothing is kept of a job
 * but when it started.
 *
 *     due ──▶ lane of its group and priority ──▶ its turn: room of the queue and of the group, a turn of the rates ──▶ slot ──▶ end
 *
 * The rules of rates and of groups are those of `job/gate.ts`; the turns are those of `lua/lib/turns.lua` and `shutting.lua`: a
 * lane is open while somebody is in it and its group has room, is shut while the group is full, and waits for a time while the
 * group is closed or has no turn of its rate. A partition that could let a job through and finds no slot is *hungry*: of several
 * the one comes first that has waited longest.
 *
 * A job of a queue without limits is in one lane with all others of its partition.
 */
import {
  arrivalAfter,
  arrivalOf,
  type GateShare,
  type GroupShare,
  nextTurnFrom,
  type RateState,
  TURN_STEPS,
} from '../../job/gate.ts';
import type { Steps } from '../../kernel/steps.ts';
import { type GroupTable, Heap, type JobColumns } from './columns.ts';

/** What a partition may let through. */
export interface PartitionLimits extends GateShare {
  /** When its rate allows the next start, epoch ms; in the past: now. */
  readonly nextTurnMs: number;
  /** Of two rates the slower one. */
  readonly second?: RateState;
  /** Nobody is let through before, epoch ms. */
  readonly closedMs: number;
}

/** What a group may have, and how much of it is used at the beginning. */
export interface GroupLimits extends GroupShare {
  readonly nextTurnMs: number;
  readonly closedMs: number;
}

export interface World {
  readonly nowMs: number;
  readonly jobs: JobColumns;
  readonly groups: GroupTable;
  /** By number; undefined: the partition is not gated. */
  readonly partitions: readonly (PartitionLimits | undefined)[];
  readonly limitsOf: (group: string) => GroupLimits;
  /** How many jobs all workers run at a time. */
  readonly slots: number;
  /** Jobs that run already. */
  readonly running: readonly { readonly group: number; readonly endMs: number }[];
  /** How long a job runs, asked at its start. */
  readonly runMs: (job: number) => number;
}

const [SHUT, OPEN, TIMED] = [0, 1, 2];
/** Events between two looks at the clock. */
const EVENTS_EACH = 128;

export class Engine {
  nowMs: number;
  /** Jobs that are due and have not started. */
  line = 0;
  maxLine = 0;
  maxLineAtMs: number;
  running = 0;
  started = 0;
  /** By job; 0: it has not started. */
  readonly startedMs: Float64Array;
  readonly #world: World;
  readonly #lanes: Lanes;
  readonly #partitions: Partitions;
  readonly #groups: GroupColumns;
  /** The first job of each stretch that has not come. */
  readonly #due = new Heap();
  readonly #next: Int32Array;
  readonly #ends = new Heap();
  /** Lanes that wait for a time, and partitions that do. */
  readonly #opens = new Heap();
  readonly #wakes = new Heap();

  constructor(world: World) {
    const { jobs, groups, partitions, nowMs } = world;
    this.#world = world;
    this.nowMs = nowMs;
    this.maxLineAtMs = nowMs;
    this.startedMs = new Float64Array(jobs.count);
    this.#lanes = new Lanes(groups.count * 3, partitions.length * 3, jobs.count);
    this.#partitions = new Partitions(partitions);
    this.#groups = new GroupColumns(groups, world);
    this.#next = Int32Array.from(jobs.stretches);
    for (const [stretch, first] of jobs.stretches.entries()) this.#due.push(jobs.dueMs[first] ?? 0, stretch);
    for (const { group, endMs } of world.running) {
      this.#enter(group);
      this.#run(group, endMs);
    }
  }

  /** Plays all that happens up to a moment. @returns whether something is left that will happen later */
  *upTo(untilMs: number): Steps<boolean> {
    for (let events = 1; ; events += 1) {
      const atMs = Math.min(this.#due.first, this.#ends.first, this.#opens.first, this.#wakes.first);
      if (atMs > untilMs) return atMs < Number.POSITIVE_INFINITY;
      this.nowMs = Math.max(this.nowMs, atMs);
      this.#happen();
      this.#serve();
      if (this.line > this.maxLine) [this.maxLine, this.maxLineAtMs] = [this.line, this.nowMs];
      if (events % EVENTS_EACH === 0) yield;
    }
  }

  /** How many wait in a lane. */
  waitingIn(group: number, priority: number): number {
    return this.#lanes.size[group * 3 + priority] ?? 0;
  }

  /** How many jobs of a group run, and when its rate and its closing allow the next. */
  groupNow(group: number): { readonly running: number; readonly opensMs: number } {
    return { running: this.#groups.held[group] ?? 0, opensMs: this.#groups.turnMs(group, this.nowMs) };
  }

  /** When the rate of a partition and its closing allow the next start. */
  turnMs = (partition: number): number => this.#partitions.turnMs(partition, this.nowMs);

  #happen(): void {
    const { nowMs } = this;
    while (this.#ends.first <= nowMs) this.#end(this.#ends.pop());
    while (this.#opens.first <= nowMs) this.#open(this.#opens.pop());
    while (this.#wakes.first <= nowMs) this.#partitions.wake(this.#wakes.pop());
    while (this.#due.first <= nowMs) {
      const stretch = this.#due.pop();
      const { jobs } = this.#world;
      const job = this.#next[stretch] ?? 0;
      this.#next[stretch] = job + 1;
      const end = jobs.stretches[stretch + 1] ?? jobs.count;
      if (job + 1 < end) this.#due.push(jobs.dueMs[job + 1] ?? 0, stretch);
      this.#comeDue(job);
    }
  }

  #comeDue(job: number): void {
    const { jobs } = this.#world;
    const group = jobs.group[job] ?? 0;
    const partition = this.#groups.partition[group] ?? 0;
    const isGated = this.#partitions.limits[partition] !== undefined;
    // The group without a name of partition n has the number n.
    const lane = isGated ? group * 3 + (jobs.priority[job] ?? 1) : partition * 3 + 1;
    this.line += 1;
    this.#lanes.add(lane, job);
    if (this.#lanes.state[lane] === SHUT && !this.#groups.isFull(group)) this.#open(lane);
  }

  /** The turn of the lane comes last. */
  #open(lane: number): void {
    const partition = this.#groups.partition[Math.floor(lane / 3)] ?? 0;
    this.#lanes.open(lane, partition * 3 + (lane % 3));
    this.#partitions.hunger(partition);
  }

  /** A job has a place of the limits from then on. */
  #enter(group: number): void {
    this.#partitions.enter(this.#groups.partition[group] ?? 0, 1);
    this.#groups.hold(group, 1);
  }

  #run(group: number, endMs: number): void {
    this.running += 1;
    this.#ends.push(endMs, group);
  }

  #end(group: number): void {
    const wasFull = this.#groups.isFull(group);
    const partition = this.#groups.partition[group] ?? 0;
    this.running -= 1;
    this.#partitions.enter(partition, -1);
    this.#groups.hold(group, -1);
    for (let lane = group * 3; wasFull && lane < group * 3 + 3; lane += 1) {
      if (this.#lanes.state[lane] === SHUT && (this.#lanes.size[lane] ?? 0) > 0) this.#open(lane);
    }
    this.#partitions.hunger(partition);
  }

  /** Slots go to jobs that were let through, in their order. Whoever takes one lets the next of its partition through. */
  #serve(): void {
    for (;;) {
      const isFree = this.running < this.#world.slots;
      const served = isFree ? this.#partitions.takeReady() : undefined;
      if (served) {
        this.#start(served.job);
        this.#partitions.hunger(served.partition);
        continue;
      }
      const partition = this.#partitions.next();
      if (partition === undefined) return;
      if (!this.#partitions.hasReady(partition)) this.#letThrough(partition);
    }
  }

  /** One job of a partition is let through, if its limits allow one. */
  #letThrough(partition: number): void {
    const { nowMs } = this;
    if (!this.#lanes.hasTurn(partition)) return;
    const lookMs = this.#partitions.shutUntilMs(partition, nowMs);
    if (lookMs > nowMs) {
      if (this.#partitions.mayWake(partition, lookMs)) this.#wakes.push(lookMs, partition);
      return;
    }
    for (;;) {
      const turn = this.#partitions.turn(partition, this.#lanes);
      if (turn === undefined) return;
      const lane = this.#lanes.first(turn);
      const group = Math.floor(lane / 3);
      const opensMs = this.#groups.opensMs(group, nowMs);
      if (opensMs > nowMs) {
        this.#lanes.shift(turn, opensMs === Number.POSITIVE_INFINITY ? SHUT : TIMED);
        if (opensMs < Number.POSITIVE_INFINITY) this.#opens.push(opensMs, lane);
        continue;
      }
      this.#take({ partition, turn, lane, group });
      return;
    }
  }

  /** The first of a lane is let through. */
  #take(of: {
    readonly partition: number;
    readonly turn: number;
    readonly lane: number;
    readonly group: number;
  }): void {
    const { nowMs } = this;
    const { partition, turn, lane, group } = of;
    const { jobs } = this.#world;
    // A job that comes due where nobody waits goes past the line, and takes no turn.
    const isAlone = this.#lanes.isAlone(lane, partition);
    const job = this.#lanes.take(lane);
    this.#partitions.use(partition, nowMs);
    if (!isAlone || (jobs.dueMs[job] ?? 0) < nowMs) this.#partitions.turned(turn, this.#lanes);
    this.#groups.use(group, nowMs);
    this.#enter(jobs.group[job] ?? 0);
    this.#partitions.ready(partition, job);
    const isLeft = (this.#lanes.size[lane] ?? 0) > 0;
    const opensMs = isLeft ? this.#groups.opensMs(group, nowMs) : Number.POSITIVE_INFINITY;
    if (opensMs <= nowMs) this.#lanes.pass(turn, this.#groups.weight[group] ?? 1);
    else this.#lanes.shift(turn, opensMs === Number.POSITIVE_INFINITY ? SHUT : TIMED);
    if (opensMs > nowMs && opensMs < Number.POSITIVE_INFINITY) this.#opens.push(opensMs, lane);
  }

  #start(job: number): void {
    this.line -= 1;
    this.started += 1;
    this.startedMs[job] = this.nowMs;
    this.#run(this.#world.jobs.group[job] ?? 0, this.nowMs + this.#world.runMs(job));
  }
}

/** Jobs in lanes, and lanes in rings: of each partition and priority one, with the lanes that may have a turn. */
class Lanes {
  readonly state: Uint8Array;
  readonly size: Int32Array;
  readonly #head: Int32Array;
  readonly #tail: Int32Array;
  /** By job: the next of its lane. */
  readonly #behind: Int32Array;
  readonly #firstLane: Int32Array;
  readonly #lastLane: Int32Array;
  /** By lane: the next of its ring. */
  readonly #nextLane: Int32Array;
  /** Of the lane in front of each ring: the turns that it has had of its round. */
  readonly #had: Int32Array;
  /** By partition: lanes that are not shut. */
  readonly #open: Int32Array;

  constructor(lanes: number, rings: number, jobs: number) {
    const none = (length: number) => new Int32Array(length).fill(-1);
    this.state = new Uint8Array(lanes);
    this.size = new Int32Array(lanes);
    [this.#head, this.#tail, this.#nextLane] = [none(lanes), none(lanes), none(lanes)];
    [this.#firstLane, this.#lastLane] = [none(rings), none(rings)];
    this.#behind = none(jobs);
    this.#had = new Int32Array(rings);
    this.#open = new Int32Array(rings / 3);
  }

  add(lane: number, job: number): void {
    const last = this.#tail[lane] ?? -1;
    if (last === -1) this.#head[lane] = job;
    else this.#behind[last] = job;
    this.#tail[lane] = job;
    this.size[lane] = (this.size[lane] ?? 0) + 1;
  }

  /** The first of a lane, which leaves it. */
  take(lane: number): number {
    const job = this.#head[lane] ?? -1;
    const next = this.#behind[job] ?? -1;
    this.#head[lane] = next;
    if (next === -1) this.#tail[lane] = -1;
    this.size[lane] = (this.size[lane] ?? 0) - 1;
    return job;
  }

  /** Nobody else of its partition has a turn, or waits for a time. */
  isAlone = (lane: number, partition: number): boolean => this.#open[partition] === 1 && this.size[lane] === 1;

  open(lane: number, ring: number): void {
    if (this.state[lane] === SHUT) this.#count(ring, 1);
    const last = this.#lastLane[ring] ?? -1;
    if (last === -1) this.#firstLane[ring] = lane;
    else this.#nextLane[last] = lane;
    this.#lastLane[ring] = lane;
    this.#nextLane[lane] = -1;
    this.state[lane] = OPEN;
  }

  #count(ring: number, lanes: 1 | -1): void {
    const partition = Math.floor(ring / 3);
    this.#open[partition] = (this.#open[partition] ?? 0) + lanes;
  }

  first = (ring: number): number => this.#firstLane[ring] ?? -1;

  /** The lane in front leaves its ring. */
  shift(ring: number, state: number): number {
    const lane = this.first(ring);
    const next = this.#nextLane[lane] ?? -1;
    this.#firstLane[ring] = next;
    if (next === -1) this.#lastLane[ring] = -1;
    this.#had[ring] = 0;
    if (state === SHUT) this.#count(ring, -1);
    this.state[lane] = state;
    return lane;
  }

  /** The lane in front has had a turn: it stays as long as its weight gives it more, then it goes to the end. */
  pass(ring: number, weight: number): void {
    const had = (this.#had[ring] ?? 0) + 1;
    this.#had[ring] = had;
    if (had >= weight) this.open(this.shift(ring, SHUT), ring);
  }

  hasTurn = (partition: number): boolean =>
    this.first(partition * 3) >= 0 || this.first(partition * 3 + 1) >= 0 || this.first(partition * 3 + 2) >= 0;
}

/** What partitions have used, and which of them are hungry. */
class Partitions {
  readonly limits: World['partitions'];
  /** The job that was let through and has no slot; -1: none. */
  readonly #ready: Int32Array;
  /** Partitions that have one, in the order in which these were let through. */
  readonly #served: number[] = [];
  readonly #running: Int32Array;
  readonly #arrivalUs: Float64Array;
  /** Of second rates. */
  readonly #secondUs: Float64Array;
  readonly #clocks: Float64Array;
  readonly #wakeMs: Float64Array;
  readonly #isHungry: Uint8Array;
  readonly #queue: Int32Array;
  #first = 0;
  #waiting = 0;

  constructor(limits: World['partitions']) {
    this.limits = limits;
    this.#ready = new Int32Array(limits.length).fill(-1);
    this.#running = new Int32Array(limits.length);
    this.#arrivalUs = Float64Array.from(limits, (one) => (one ? arrivalOf(one, one.nextTurnMs) : 0));
    this.#secondUs = Float64Array.from(limits, (one) =>
      one?.second ? arrivalOf(one.second, one.second.nextTurnMs) : 0,
    );
    this.#clocks = new Float64Array(limits.length * 3);
    this.#wakeMs = new Float64Array(limits.length).fill(Number.POSITIVE_INFINITY);
    this.#isHungry = new Uint8Array(limits.length);
    this.#queue = new Int32Array(limits.length);
  }

  hunger(partition: number): void {
    if (this.#isHungry[partition] === 1) return;
    this.#isHungry[partition] = 1;
    this.#queue[(this.#first + this.#waiting) % this.#queue.length] = partition;
    this.#waiting += 1;
  }

  hasReady = (partition: number): boolean => (this.#ready[partition] ?? -1) >= 0;

  ready(partition: number, job: number): void {
    this.#ready[partition] = job;
    this.#served.push(partition);
  }

  takeReady(): { readonly partition: number; readonly job: number } | undefined {
    const partition = this.#served.shift();
    if (partition === undefined) return undefined;
    const job = this.#ready[partition] ?? -1;
    this.#ready[partition] = -1;
    return { partition, job };
  }

  next(): number | undefined {
    if (this.#waiting === 0) return undefined;
    const partition = this.#queue[this.#first] ?? 0;
    this.#first = (this.#first + 1) % this.#queue.length;
    this.#waiting -= 1;
    this.#isHungry[partition] = 0;
    return partition;
  }

  /** Whether it has to be woken then: it wakes not before, and no end of a job wakes it. */
  mayWake(partition: number, atMs: number): boolean {
    if (atMs === Number.POSITIVE_INFINITY || (this.#wakeMs[partition] ?? 0) <= atMs) return false;
    this.#wakeMs[partition] = atMs;
    return true;
  }

  wake(partition: number): void {
    this.#wakeMs[partition] = Number.POSITIVE_INFINITY;
    this.hunger(partition);
  }

  enter(partition: number, jobs: 1 | -1): void {
    this.#running[partition] = (this.#running[partition] ?? 0) + jobs;
  }

  /** Until when the limits of the queue let nobody through; infinite: until a job ends. */
  shutUntilMs(partition: number, nowMs: number): number {
    const concurrency = this.limits[partition]?.concurrency ?? 0;
    const isFull = concurrency > 0 && (this.#running[partition] ?? 0) >= concurrency;
    return isFull ? Number.POSITIVE_INFINITY : this.turnMs(partition, nowMs);
  }

  turnMs(partition: number, nowMs: number): number {
    const gate = this.limits[partition];
    if (!gate) return nowMs;
    const turnMs = gate.intervalUs > 0 ? nextTurnFrom(gate, this.#arrivalUs[partition] ?? 0, nowMs) : nowMs;
    const secondMs = gate.second ? nextTurnFrom(gate.second, this.#secondUs[partition] ?? 0, nowMs) : nowMs;
    return Math.max(turnMs, secondMs, gate.closedMs, nowMs);
  }

  /** The ring whose turn it is: of the priority whose clock is behind. */
  turn(partition: number, lanes: Lanes): number | undefined {
    let best: number | undefined;
    for (let ring = partition * 3; ring < partition * 3 + 3; ring += 1) {
      const isBefore = best === undefined || (this.#clocks[ring] ?? 0) < (this.#clocks[best] ?? 0);
      if (lanes.first(ring) >= 0 && isBefore) best = ring;
    }
    return best;
  }

  /** A job starts. */
  use(partition: number, nowMs: number): void {
    const gate = this.limits[partition];
    if (!gate || gate.intervalUs === 0) return;
    this.#arrivalUs[partition] = arrivalAfter(gate, this.#arrivalUs[partition] ?? 0, nowMs);
    if (!gate.second) return;
    this.#secondUs[partition] = arrivalAfter(gate.second, this.#secondUs[partition] ?? 0, nowMs);
  }

  /** A ring had a turn. Priorities that have nobody are drawn along, or they would have all turns when somebody comes. */
  turned(turn: number, lanes: Lanes): void {
    const partition = Math.floor(turn / 3);
    this.#clocks[turn] = (this.#clocks[turn] ?? 0) + (TURN_STEPS[turn % 3] ?? 1);
    const behind = this.turn(partition, lanes);
    const least = behind === undefined ? 0 : (this.#clocks[behind] ?? 0);
    for (let ring = partition * 3; ring < partition * 3 + 3; ring += 1) {
      if (lanes.first(ring) < 0) this.#clocks[ring] = Math.max(this.#clocks[ring] ?? 0, least);
    }
  }
}

/** What groups have used. */
class GroupColumns {
  readonly partition: Int32Array;
  readonly held: Int32Array;
  readonly weight: Int32Array;
  readonly #most: Int32Array;
  readonly #intervalUs: Float64Array;
  readonly #burst: Float64Array;
  readonly #arrivalUs: Float64Array;
  readonly #closedMs: Float64Array;

  constructor({ names, partitions }: GroupTable, { limitsOf }: Pick<World, 'limitsOf'>) {
    const all = names.map(limitsOf);
    this.partition = Int32Array.from(partitions);
    this.held = new Int32Array(names.length);
    this.weight = Int32Array.from(all, ({ weight }) => weight);
    this.#most = Int32Array.from(all, ({ most }) => most);
    this.#intervalUs = Float64Array.from(all, ({ intervalUs }) => intervalUs);
    this.#burst = Float64Array.from(all, ({ burst }) => burst);
    this.#arrivalUs = Float64Array.from(all, (one) => arrivalOf(one, one.nextTurnMs));
    this.#closedMs = Float64Array.from(all, ({ closedMs }) => closedMs);
  }

  isFull(group: number): boolean {
    const most = this.#most[group] ?? 0;
    return most > 0 && (this.held[group] ?? 0) >= most;
  }

  hold(group: number, jobs: 1 | -1): void {
    this.held[group] = (this.held[group] ?? 0) + jobs;
  }

  /** When it may have the next start; infinite: when one of its jobs ends. */
  opensMs(group: number, nowMs: number): number {
    return this.isFull(group) ? Number.POSITIVE_INFINITY : this.turnMs(group, nowMs);
  }

  turnMs(group: number, nowMs: number): number {
    const turnMs = this.#isPaced(group) ? nextTurnFrom(this.#pace(group), this.#arrivalUs[group] ?? 0, nowMs) : nowMs;
    return Math.max(turnMs, this.#closedMs[group] ?? 0, nowMs);
  }

  use(group: number, nowMs: number): void {
    if (this.#isPaced(group))
      this.#arrivalUs[group] = arrivalAfter(this.#pace(group), this.#arrivalUs[group] ?? 0, nowMs);
  }

  #isPaced = (group: number): boolean => (this.#intervalUs[group] ?? 0) > 0;

  #pace = (group: number) => ({ intervalUs: this.#intervalUs[group] ?? 0, burst: this.#burst[group] ?? 1 });
}
