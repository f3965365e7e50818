/**
 * How much of a queue runs at once in virtual time, by the rules of `lua/lib/lining-up.lua` and `lua/lib/letting-through.lua`.
 *
 *   due ──▶ arrived ──▶ in line ──▶ let through, and started
 *                          ▲            │
 *                          └── room ────┘ the start ends
 *
 * All that happens at a moment comes before a line is looked at. So jobs of one due time are in the order of their ids, and
 * each of them may have the room that a job leaves at that moment.
 */

import {
  checkGateSettings,
  type GateSettings,
  type GateShare,
  gateShare,
  nextTurnMs,
  readShare,
  turnsAt,
} from '../job/gate.ts';
import { partitionOf } from '../job/job-id.ts';
import { groupOf, PRIORITIES } from '../job/labels.ts';
import type { Queue } from '../job/queue.ts';
import { decodeHeader } from '../job/record-header.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { SeenWait } from '../redis/read/groups.ts';
import type { Pause } from '../redis/scripts/upkeep.ts';
import type { Agenda } from './agenda.ts';
import type { Kept } from './kept.ts';

interface GatesParts {
  readonly agenda: Agenda;
  readonly isServed: (queue: string) => boolean;
  readonly start: (job: Kept) => Promise<void>;
  /** The job waits for its due time again. */
  readonly putBack: (job: Kept) => void;
}

interface GatedQueue {
  readonly name: string;
  readonly partitions: number;
  readonly lines: readonly Line[];
  settings: GateSettings;
  /** Undefined: it goes on. */
  pause: Pause | undefined;
}

/** The limits of all queues, and whether they rest. */
export class Gates {
  readonly #parts: GatesParts;
  readonly #queues = new Map<string, GatedQueue>();

  constructor(parts: GatesParts) {
    this.#parts = parts;
  }

  /** Undefined: nobody has used the queue yet. */
  settingsOf(queue: string): GateSettings | undefined {
    return this.#queues.get(queue)?.settings;
  }

  /** What is said of limits holds from now on, the rest stays. @throws DuestreamError `bad-input` */
  set(declared: Queue, said: GateSettings): void {
    refuseOwn(said);
    const queue = this.#queueOf(declared);
    const { name, partitions, lines } = queue;
    const { settings: before } = queue;
    const settings = {
      rate: said.rate ?? before.rate,
      concurrency: said.concurrency ?? before.concurrency,
      perGroup: said.perGroup ?? before.perGroup,
      fair: said.fair ?? before.fair,
    };
    checkGateSettings(name, settings, { partitions, isBroadcast: declared.broadcast?.isOn === true });
    queue.settings = settings;
    for (const [partition, line] of lines.entries()) {
      const share = gateShare(settings, { partition, partitions })?.share;
      if (share === undefined || share === line.shareText) continue;
      for (const job of line.limit(share)) if (job.state === 'ready') this.#parts.putBack(job);
      this.#ringSoon(queue, line);
    }
  }

  /** @returns whether the queue went on until now; the first pause stays as it is */
  pause(declared: Queue, reason = ''): boolean {
    const queue = this.#queueOf(declared);
    const isNew = queue.pause === undefined;
    queue.pause ??= { sinceMs: this.#parts.agenda.nowMs(), reason };
    return isNew;
  }

  /** @returns whether the queue rested before */
  resume(declared: Queue): boolean {
    const queue = this.#queueOf(declared);
    const wasPaused = queue.pause !== undefined;
    queue.pause = undefined;
    for (const line of queue.lines) {
      if (line.isGated) this.#ringSoon(queue, line);
      else for (const job of line.arrived()) this.#parts.putBack(job);
    }
    return wasPaused;
  }

  paused(): readonly string[] {
    return [...this.#queues.values()].filter(({ pause }) => pause !== undefined).map(({ name }) => name);
  }

  /** What keeps a job in line. */
  waitOf(job: Kept): SeenWait {
    const { queue, line } = this.#placeOf(job);
    return { ...line.waitOf(job), pause: queue.pause };
  }

  /** Whether a job that has become due waits here, and is started when it is its turn. */
  takes(job: Kept): boolean {
    const { queue, line } = this.#placeOf(job);
    if (!line.isGated && !queue.pause) return false;
    line.arrive(job);
    this.#ring(queue, line);
    return true;
  }

  /** It has a place from now on, also where nothing is limited yet. */
  hold(job: Kept): void {
    this.#placeOf(job).line.hold(job);
  }

  /** A job gives its place up. @param isUnused it did not run, so its turn of the rate is given back */
  leave(job: Kept, isUnused = false): void {
    const { queue, line } = this.#placeOf(job);
    line.leave(job, isUnused);
    if (line.isGated) this.#ring(queue, line);
  }

  #placeOf({ queue: definition, id }: Kept) {
    const queue = this.#queueOf(definition);
    const line = queue.lines[partitionOf(id, queue.partitions)];
    if (!line) throw new Error(`queue ${queue.name} has no place for ${id}`);
    return { queue, line };
  }

  #queueOf({ name, partitions }: Queue): GatedQueue {
    const known = this.#queues.get(name);
    if (known) return known;
    const isServed = this.#parts.isServed(name);
    const lines = Array.from({ length: partitions }, () => new Line(isServed));
    const queue = { name, partitions, lines, settings: {}, pause: undefined };
    this.#queues.set(name, queue);
    return queue;
  }

  /** The line is looked at behind all else of this moment. */
  #ring(queue: GatedQueue, line: Line): void {
    if (line.isRung) return;
    line.isRung = true;
    const { agenda } = this.#parts;
    agenda.at(agenda.nowMs(), () => {
      line.isRung = false;
      return this.#look(queue, line);
    });
  }

  /** The same from outside: whatever else is noted for this moment by then comes first. */
  #ringSoon(queue: GatedQueue, line: Line): void {
    const { agenda } = this.#parts;
    agenda.at(agenda.nowMs(), () => this.#ring(queue, line));
  }

  async #look(queue: GatedQueue, line: Line): Promise<void> {
    const { agenda, start } = this.#parts;
    const nowMs = agenda.nowMs();
    line.strike();
    let job = queue.pause ? undefined : line.lineUp(nowMs);
    while (job) {
      await start(job);
      job = queue.pause ? undefined : line.next(nowMs);
    }
    const turnMs = line.nextTurnMs(nowMs);
    if (turnMs !== undefined) line.strike = agenda.at(turnMs, () => this.#ring(queue, line));
  }
}

/** Those who wait in one group with one priority, in the order of their due times. */
interface Lane {
  readonly group: string;
  /** The place of their priority. */
  readonly kind: Kind;
  readonly jobs: Kept[];
}

const KINDS = [0, 1, 2] as const;
type Kind = (typeof KINDS)[number];
/** The priority whose clock is behind comes next. */
type Clocks = [number, number, number];
/** What a turn takes the clock of a priority on: of 21 turns `high` has 16, `normal` 4 and `low` 1. */
const STEPS = [1, 4, 16] as const;

/** One partition: who is in line, whose turn it is, and what has a place. */
class Line {
  /** Undefined: the queue is not gated. */
  shareText: string | undefined;
  isRung = false;
  /** Nobody looks when the rate allows the next start. */
  strike: () => void = () => undefined;
  readonly #isServed: boolean;
  #share: GateShare = { intervalUs: 0, burst: 1, concurrency: 0, perGroup: 0 };
  /** Due, and not in line yet. */
  readonly #arrived = new Set<Kept>();
  readonly #lanes = new Map<string, Lane>();
  /** Those that may have somebody whose group has room, of each priority in the order of their turns. */
  readonly #open = [new Set<Lane>(), new Set<Lane>(), new Set<Lane>()] as const;
  #clocks: Clocks = [0, 0, 0];
  /** Jobs that were let through and have not ended, and how many there are of each group. */
  readonly #through = new Set<Kept>();
  readonly #held = new Map<string, number>();
  #arrivalUs = 0;

  constructor(isServed: boolean) {
    this.#isServed = isServed;
  }

  get isGated(): boolean {
    return this.shareText !== undefined;
  }

  arrive(job: Kept): void {
    this.#arrived.add(job);
    job.strike = () => void this.#arrived.delete(job);
  }

  /** Takes out those that have arrived, by due time and id. */
  arrived(): readonly Kept[] {
    const due = [...this.#arrived].sort(inDueOrder);
    this.#arrived.clear();
    return due;
  }

  /** Those that have arrived are lined up. @returns whose turn it is; one that comes alone and finds nobody goes past the line */
  lineUp(nowMs: number): Kept | undefined {
    const due = this.arrived();
    const [first, ...others] = due;
    const isAlone = others.length === 0 && this.#open.every((lanes) => lanes.size === 0);
    if (first && isAlone && this.#hasRoom(nowMs) && this.#freeIn(groupIn(first)) > 0) return this.#take(first, nowMs);
    for (const job of due) this.#enter(job);
    return this.next(nowMs);
  }

  /** The job whose turn it is, where there is room. */
  next(nowMs: number): Kept | undefined {
    const clocks: Clocks = [...this.#clocks];
    while (this.#hasRoom(nowMs)) {
      const lanes = KINDS.flatMap((kind) => this.#open[kind].values().next().value ?? []);
      const [first, ...others] = lanes;
      if (!first) return undefined;
      const lane = others.reduce((best, other) => (clocks[other.kind] < clocks[best.kind] ? other : best), first);
      const job = this.#visit(lane);
      if (job) clocks[lane.kind] += STEPS[lane.kind];
      drawAlong(clocks, new Set(lanes.map(({ kind }) => kind)));
      if (!job) continue;
      this.#clocks = clocks;
      return this.#take(job, nowMs);
    }
    return undefined;
  }

  hold(job: Kept): void {
    if (this.#through.has(job)) return;
    this.#through.add(job);
    this.#count(groupIn(job), 1);
  }

  leave(job: Kept, isUnused: boolean): void {
    if (!this.#through.delete(job)) return;
    const group = groupIn(job);
    this.#count(group, -1);
    if (group !== '') this.#openLanes(group);
    const { intervalUs } = this.#share;
    if (isUnused && intervalUs > 0 && this.#arrivalUs >= intervalUs) this.#arrivalUs -= intervalUs;
  }

  /** Other limits hold. @returns what was let through and started by nobody */
  limit(text: string): readonly Kept[] {
    const unstarted = this.#isServed ? [] : [...this.#through];
    for (const job of unstarted) this.leave(job, this.isGated);
    const had = this.#share.perGroup;
    this.#share = readShare(text);
    this.shareText = text;
    const gets = this.#share.perGroup;
    const isMore = had > 0 && (gets === 0 || gets > had);
    const groups = new Set([...this.#lanes.values()].map(({ group }) => group));
    for (const group of isMore ? [...groups].sort() : []) if (this.#freeIn(group) > 0) this.#openLanes(group);
    return unstarted;
  }

  /** When the rate allows the next start; undefined where nobody waits for that. */
  nextTurnMs(nowMs: number): number | undefined {
    if (this.#open.every((lanes) => lanes.size === 0)) return undefined;
    const { turns, arrivalUs } = turnsAt(this.#share, this.#arrivalUs, nowMs);
    return turns > 0 ? undefined : Math.max(nowMs + 1, nextTurnMs(this.#share, arrivalUs));
  }

  waitOf(job: Kept): Omit<SeenWait, 'pause'> {
    const { group, jobs } = this.#laneOf(job);
    const gate = { ...this.#share, nextTurnMs: nextTurnMs(this.#share, this.#arrivalUs), closedMs: 0 };
    const held = this.#held.get(group) ?? 0;
    const state = group === '' ? undefined : { most: this.#share.perGroup, ...NO_LIMITS };
    return { gate, entries: this.#through.size, held, ahead: jobs.indexOf(job), group: state, closing: '' };
  }

  /** Where no worker is, one job is let through, which would wake one. */
  #hasRoom(nowMs: number): boolean {
    const most = this.#isServed ? this.#share.concurrency || Number.POSITIVE_INFINITY : 1;
    return this.#through.size < most && turnsAt(this.#share, this.#arrivalUs, nowMs).turns > 0;
  }

  #freeIn(group: string): number {
    const { perGroup } = this.#share;
    return group === '' || perGroup === 0 ? Number.POSITIVE_INFINITY : perGroup - (this.#held.get(group) ?? 0);
  }

  #count(group: string, more: number): void {
    if (group === '') return;
    const count = (this.#held.get(group) ?? 0) + more;
    if (count > 0) this.#held.set(group, count);
    else this.#held.delete(group);
  }

  #enter(job: Kept): void {
    const lane = this.#laneOf(job);
    lane.jobs.splice(lane.jobs.findLastIndex((other) => inDueOrder(other, job) < 0) + 1, 0, job);
    job.state = 'waiting';
    job.strike = () => {
      // Its lane stays open: the next visit finds out that nobody is in it.
      const at = lane.jobs.indexOf(job);
      if (at >= 0) lane.jobs.splice(at, 1);
    };
    if (this.#freeIn(lane.group) > 0) this.#open[lane.kind].add(lane);
  }

  #laneOf(job: Kept): Lane {
    const [group, kind] = [groupIn(job), kindIn(job)];
    const key = `${kind}${group}`;
    const lane = this.#lanes.get(key) ?? { group, kind, jobs: [] };
    this.#lanes.set(key, lane);
    return lane;
  }

  /** The first of a lane. Then the lane goes behind the others, or is shut where nobody is left or its group is full. */
  #visit(lane: Lane): Kept | undefined {
    const { group, kind, jobs } = lane;
    const free = this.#freeIn(group);
    const job = free > 0 ? jobs.shift() : undefined;
    this.#open[kind].delete(lane);
    if (jobs.length === 0) this.#lanes.delete(`${kind}${group}`);
    else if (free > 1) this.#open[kind].add(lane);
    return job;
  }

  #take(job: Kept, nowMs: number): Kept {
    this.#arrivalUs = turnsAt(this.#share, this.#arrivalUs, nowMs).arrivalUs + this.#share.intervalUs;
    job.state = 'ready';
    job.strike = () => undefined;
    this.hold(job);
    return job;
  }

  /** Lanes of a group that are open keep their turns. */
  #openLanes(group: string): void {
    for (const kind of KINDS) {
      const lane = this.#lanes.get(`${kind}${group}`);
      if (lane && lane.jobs.length > 0) this.#open[kind].add(lane);
    }
  }
}

/** A priority that has nobody would have all turns when somebody comes. */
function drawAlong(clocks: Clocks, some: ReadonlySet<Kind>): void {
  const least = Math.min(...[...some].map((kind) => clocks[kind]));
  for (const kind of KINDS) if (!some.has(kind)) clocks[kind] = Math.max(clocks[kind], least);
}

/** Of one due time by the bytes of their ids, as in Redis. */
const inDueOrder = (one: Kept, other: Kept): number => one.dueMs - other.dueMs || (one.id < other.id ? -1 : 1);

const groupIn = ({ id }: Kept): string => groupOf(id) ?? '';

function kindIn({ record }: Kept): Kind {
  return KINDS[PRIORITIES.indexOf(decodeHeader(record)?.priority ?? 'normal')] ?? 1;
}

/** Of single groups. */
export const NO_LIMITS = { intervalUs: 0, burst: 1, weight: 1, nextTurnMs: 0, closedMs: 0, reason: '' };

/** Limits of single groups, and closing, are tried with Redis. */
export const notInKit = () =>
  new DuestreamError(
    'refused',
    'the test kit has no limits of single groups and closes none; allowed: perGroup of the queue as a number, or a test with Redis',
  );

/** @throws DuestreamError `refused` */
function refuseOwn({ groupRate, groups = {} }: GateSettings): void {
  if (groupRate || Object.keys(groups).length > 0) throw notInKit();
}
