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

import type { Closing } from '../client/groups/rules.ts';
import {
  aheadUs,
  checkGateSettings,
  type GateShare,
  type GroupGate,
  gateShare,
  groupGate,
  isGated,
  nextTurnMs,
  type PartitionGates,
  readShare,
  turnsAt,
} from '../job/gate.ts';
import { partitionOf } from '../job/job-id.ts';
import { groupOf, PRIORITIES } from '../job/labels.ts';
import type { Closing as JobClosing } from '../job/outcome.ts';
import type { Queue } from '../job/queue.ts';
import { checkGroups, type GateSettings, type GroupSettings } from '../job/queue-settings.ts';
import { decodeHeader } from '../job/record-header.ts';
import { DuestreamError } from '../kernel/errors.ts';
import type { GroupState, SeenWait } from '../redis/read/groups.ts';
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
  readonly isBroadcast: boolean;
  readonly lines: readonly Line[];
  /** What holds: what definitions say, and above it what was set by command, of the queue and of single groups. */
  settings: GateSettings;
  layers: Layers;
  /** Undefined: it goes on. */
  pause: Pause | undefined;
}

interface Layers {
  readonly code: GateSettings;
  readonly set: GateSettings;
  readonly groups: NonNullable<GateSettings['groups']>;
}

/** What is said of limits, over what was said before. */
const over = (before: GateSettings, said: GateSettings): GateSettings => ({
  rate: said.rate ?? before.rate,
  concurrency: said.concurrency ?? before.concurrency,
  perGroup: said.perGroup ?? before.perGroup,
  groupRate: said.groupRate ?? before.groupRate,
  groupPending: said.groupPending ?? before.groupPending,
  groups: said.groups ?? before.groups,
  fair: said.fair ?? before.fair,
});

function effective({ code, set, groups }: Layers): GateSettings {
  const settings = over(code, set);
  return Object.keys(groups).length === 0 ? settings : { ...settings, groups: { ...settings.groups, ...groups } };
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

  /** What a definition says of limits holds from now on, where nobody has set another one. @throws DuestreamError `bad-input` */
  declare(declared: Queue, said: GateSettings): void {
    const queue = this.#queueOf(declared);
    this.#layer(queue, { ...queue.layers, code: over(queue.layers.code, said) });
  }

  /** What is set of limits holds from now on, whatever definitions say; the rest stays. @throws DuestreamError `bad-input` */
  set(declared: Queue, said: GateSettings): void {
    const queue = this.#queueOf(declared);
    const { code, set, groups } = queue.layers;
    this.#layer(queue, { code, set: over(set, said), groups: said.groups ? {} : groups });
  }

  #layer(queue: GatedQueue, layers: Layers): void {
    const settings = effective(layers);
    checkGroups(settings.groups ?? {});
    checkGateSettings(queue.name, settings, queue);
    queue.layers = layers;
    this.#share(queue, settings);
  }

  /**
   * The limits of one group, or of all whose names begin so; undefined: it has what its definition says, or those of all groups.
   *
   * @returns whether anything is different now
   * @throws DuestreamError `not-found`, `bad-input`
   */
  setGroup(name: string, { group, limits }: { readonly group: string; readonly limits?: GroupSettings }): boolean {
    const queue = this.#queues.get(name);
    if (!queue) throw new DuestreamError('not-found', `queue ${name} is not declared`);
    const before = queue.settings.groups?.[group];
    const { code, set, groups } = queue.layers;
    const { [group]: _, ...others } = groups;
    // Once there were limits of groups there are some, perhaps none.
    const under = { ...code, groups: code.groups ?? {} };
    this.#layer(queue, {
      code: limits || before ? under : code,
      set,
      groups: limits ? { ...others, [group]: limits } : others,
    });
    return JSON.stringify(queue.settings.groups?.[group]) !== JSON.stringify(before);
  }

  #share(queue: GatedQueue, settings: GateSettings): void {
    const { partitions, lines } = queue;
    queue.settings = settings;
    for (const [partition, line] of lines.entries()) {
      const share = gateShare(settings, { partition, partitions })?.share;
      if (share === undefined || share === line.shareText) continue;
      const nowMs = this.#parts.agenda.nowMs();
      for (const job of line.limit(share, settings, nowMs)) if (job.state === 'ready') this.#parts.putBack(job);
      this.#ringSoon(queue, line);
    }
  }

  /** Lets nobody of a group, or of the queue, through until a time; 0: it opens. @returns as the script `close` */
  close(declared: Queue, { group, until, why = '' }: Closing): 'ok' | 'same' | 'ungated' {
    const queue = this.#queueOf(declared);
    if (!isGated(queue.settings)) return 'ungated';
    const nowMs = this.#parts.agenda.nowMs();
    const untilMs = typeof until === 'number' ? until : nowMs + until.forMs;
    const isChanged = queue.lines.map((line) => {
      this.#ringSoon(queue, line);
      return untilMs === 0 ? line.open(group, nowMs) : line.close(group, { untilMs, reason: why });
    });
    return isChanged.includes(true) ? 'ok' : 'same';
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

  /** A handler says that its group, or its queue, is to be left alone; a queue that is not gated closes nothing. */
  closeBy(job: Kept, { scope, forMs, reason }: JobClosing): void {
    const group = scope === 'group' ? groupIn(job) : '';
    if (scope === 'queue' || group !== '') this.close(job.queue, { group, until: { forMs }, why: reason });
  }

  /** The limits of the partition of a job. */
  shareOf(job: Kept): { readonly gates?: PartitionGates } {
    const { settings, partitions } = this.#placeOf(job).queue;
    const gates = gateShare(settings, { partition: partitionOf(job.id, partitions), partitions });
    return gates ? { gates } : {};
  }

  /** What keeps a job in line. */
  waitOf(job: Kept): SeenWait {
    const { queue, line } = this.#placeOf(job);
    return { ...line.waitOf(job, this.#parts.agenda.nowMs()), pause: queue.pause };
  }

  /** What a group may have in its partition. */
  groupState(queue: string, partition: number, group: string): Omit<GroupState, 'pending'> | undefined {
    const line = this.#queues.get(queue)?.lines[partition];
    return line?.isGated ? line.groupState(group, this.#parts.agenda.nowMs()) : undefined;
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

  #queueOf({ name, partitions, broadcast }: Queue): GatedQueue {
    const known = this.#queues.get(name);
    if (known) return known;
    const isServed = this.#parts.isServed(name);
    const lines = Array.from({ length: partitions }, () => new Line(isServed));
    const isBroadcast = broadcast?.isOn === true;
    const layers = { code: {}, set: {}, groups: {} };
    const queue = { name, partitions, isBroadcast, lines, settings: {}, layers, pause: undefined };
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
    if (queue.pause) line.openTimed(nowMs);
    let job = queue.pause ? undefined : line.lineUp(nowMs);
    while (job) {
      await start(job);
      job = queue.pause ? undefined : line.next(nowMs);
    }
    const lookMs = line.nextLookMs(nowMs, { isPaused: queue.pause !== undefined });
    if (lookMs !== undefined) line.strike = agenda.at(lookMs, () => this.#ring(queue, line));
  }
}

/** Those who wait in one group with one priority, in the order of their due times. */
interface Lane {
  readonly key: string;
  readonly group: string;
  /** The place of their priority. */
  readonly kind: Kind;
  readonly jobs: Kept[];
  /** Of its round: a lane with a weight has so many turns, one after the other. */
  turns: number;
}

const KINDS = [0, 1, 2] as const;
type Kind = (typeof KINDS)[number];
/** The priority whose clock is behind comes next. */
type Clocks = [number, number, number];
/** What a turn takes the clock of a priority on: of 21 turns `high` has 16, `normal` 4 and `low` 1. */
const STEPS = [1, 4, 16] as const;

/** Nobody is let through before, and why. */
interface Closed {
  readonly untilMs: number;
  readonly reason: string;
}
const OPEN: Closed = { untilMs: 0, reason: '' };

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
  /** Those whose group has no turn of its own now, and when it has. */
  readonly #timed = new Map<Lane, number>();
  #clocks: Clocks = [0, 0, 0];
  /** Jobs that were let through and have not ended. */
  readonly #through = new Set<Kept>();
  #arrivalUs = 0;
  /** When a job was let through last; a worker that has a slot starts it in the same moment. */
  #startedMs: number | undefined;
  #closed = OPEN;
  readonly #groups = new Groups();

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
    const isAlone = others.length === 0 && !this.#isAnyOpen() && this.#timed.size === 0;
    if (first && isAlone && this.#hasRoom(nowMs) && this.#groups.freeIn(groupIn(first), nowMs).free > 0) {
      this.#groups.use(groupIn(first), nowMs);
      return this.#take(first, nowMs);
    }
    for (const job of due) this.#enter(job);
    this.openTimed(nowMs);
    return this.next(nowMs);
  }

  /** The job whose turn it is, where there is room. */
  next(nowMs: number): Kept | undefined {
    const clocks: Clocks = [...this.#clocks];
    while (this.#hasRoom(nowMs)) {
      const lanes = KINDS.flatMap((kind) => this.#open[kind].values().next().value ?? []);
      const [first, ...others] = lanes;
      if (!first) {
        if (!this.openTimed(nowMs)) return undefined;
        continue;
      }
      const lane = others.reduce((best, other) => (clocks[other.kind] < clocks[best.kind] ? other : best), first);
      const job = this.#visit(lane, nowMs);
      if (job) clocks[lane.kind] += STEPS[lane.kind];
      drawAlong(clocks, new Set(lanes.map(({ kind }) => kind)));
      if (!job) continue;
      this.#clocks = clocks;
      return this.#take(job, nowMs);
    }
    return undefined;
  }

  /** Lanes whose time has come have their turn behind the others. @returns whether any lane is open */
  openTimed(nowMs: number): boolean {
    const due = [...this.#timed].filter(([, atMs]) => atMs <= nowMs);
    due.sort(([one, oneMs], [other, otherMs]) => oneMs - otherMs || (one.key < other.key ? -1 : 1));
    for (const [lane] of due) this.#openLast(lane);
    return this.#isAnyOpen();
  }

  hold(job: Kept): void {
    if (this.#through.has(job)) return;
    this.#through.add(job);
    this.#groups.hold(groupIn(job), 1);
  }

  leave(job: Kept, isUnused: boolean): void {
    if (!this.#through.delete(job)) return;
    const group = groupIn(job);
    this.#groups.hold(group, -1);
    for (const lane of this.#shutIn(group)) this.#openLast(lane);
    if (!isUnused) return;
    const { intervalUs } = this.#share;
    if (intervalUs > 0 && this.#arrivalUs >= intervalUs) this.#arrivalUs -= intervalUs;
    this.#groups.refund(group);
  }

  /** Other limits hold. @returns what was let through and started by nobody */
  limit(text: string, settings: GateSettings, nowMs: number): readonly Kept[] {
    const unstarted = this.#isServed ? [] : [...this.#through];
    for (const job of unstarted) this.leave(job, this.isGated);
    const [{ perGroup: had, intervalUs: beforeUs }, before] = [this.#share, this.shareText ?? text];
    this.#share = readShare(text);
    if (this.#share.intervalUs > 0 && this.#share.intervalUs !== beforeUs) {
      const usedUs = Math.max(0, this.#arrivalUs - nowMs * 1000);
      this.#arrivalUs = nowMs * 1000 + aheadUs(this.#share, usedUs, beforeUs);
    }
    this.shareText = text;
    this.#groups.settings = settings;
    const gets = this.#share.perGroup;
    const isMore = (had > 0 && (gets === 0 || gets > had)) || behindPerGroup(before) !== behindPerGroup(text);
    const groups = new Set([...this.#lanes.values()].map(({ group }) => group));
    for (const group of isMore ? [...groups].sort() : []) this.#reopen(group);
    return unstarted;
  }

  /** The longest closing wins. @returns whether it is closed for longer than before */
  close(group: string, closed: Closed): boolean {
    const before = group === '' ? this.#closed : this.#groups.closed(group);
    if (closed.untilMs <= before.untilMs) return false;
    if (group === '') this.#closed = closed;
    else this.#groups.close(group, closed);
    return true;
  }

  /** @returns whether it was closed */
  open(group: string, nowMs: number): boolean {
    const { untilMs } = group === '' ? this.#closed : this.#groups.closed(group);
    if (group === '') this.#closed = OPEN;
    else this.#groups.close(group, OPEN);
    if (group !== '') this.#reopen(group);
    return untilMs > nowMs;
  }

  /** When somebody may have a turn who has none now; undefined where nobody waits for that. */
  nextLookMs(nowMs: number, { isPaused }: { readonly isPaused: boolean }): number | undefined {
    let lookMs = isPaused || !this.#isAnyOpen() ? Number.POSITIVE_INFINITY : this.#nextTurn(nowMs);
    for (const opensMs of this.#timed.values()) lookMs = Math.min(lookMs, opensMs);
    return lookMs === Number.POSITIVE_INFINITY ? undefined : Math.max(nowMs + 1, lookMs);
  }

  /** When the queue lets somebody through again; infinity: it does now, as far as its rate and its closing go. */
  #nextTurn(nowMs: number): number {
    if (this.#closed.untilMs > nowMs) return this.#closed.untilMs;
    const { turns, arrivalUs } = turnsAt(this.#share, this.#arrivalUs, nowMs);
    return turns > 0 ? Number.POSITIVE_INFINITY : nextTurnMs(this.#share, arrivalUs);
  }

  waitOf(job: Kept, nowMs: number): Omit<SeenWait, 'pause'> {
    const { group, jobs } = this.#laneOf(job);
    const { untilMs: closedMs, reason: closing } = this.#closed;
    const { arrivalUs } = turnsAt(this.#share, this.#arrivalUs, nowMs);
    const gate = { ...this.#share, nextTurnMs: nextTurnMs(this.#share, arrivalUs), closedMs };
    // What is pending lets nobody wait.
    const state = group === '' ? undefined : { ...this.groupState(group, nowMs), pending: 0 };
    const held = this.#groups.held(group);
    const now = { entries: this.#through.size, startedMs: this.#startedMs };
    return { gate, ...now, held, ahead: jobs.indexOf(job), group: state, closing };
  }

  groupState(group: string, nowMs: number): Omit<GroupState, 'pending'> {
    return this.#groups.state(group, nowMs);
  }

  /** Where no worker is, one job is let through, which would wake one. */
  #hasRoom(nowMs: number): boolean {
    const most = this.#isServed ? this.#share.concurrency || Number.POSITIVE_INFINITY : 1;
    const isOpen = this.#closed.untilMs <= nowMs;
    return isOpen && this.#through.size < most && turnsAt(this.#share, this.#arrivalUs, nowMs).turns > 0;
  }

  #isAnyOpen(): boolean {
    return this.#open.some((lanes) => lanes.size > 0);
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
    if (this.#isShut(lane) && this.#groups.roomIn(lane.group) > 0) this.#openLast(lane);
  }

  #laneOf(job: Kept): Lane {
    const [group, kind] = [groupIn(job), kindIn(job)];
    const key = `${kind}${group}`;
    const lane = this.#lanes.get(key) ?? { key, group, kind, jobs: [], turns: 0 };
    this.#lanes.set(key, lane);
    return lane;
  }

  /** As `headsOf` and `shutOrMove` for one job: the first of a lane, and what becomes of the lane. */
  #visit(lane: Lane, nowMs: number): Kept | undefined {
    const { free, isTimed, weight } = this.#groups.freeIn(lane.group, nowMs);
    const there = lane.jobs.length;
    const job = free > 0 ? lane.jobs.shift() : undefined;
    const taken = job ? 1 : 0;
    if (job) this.#groups.use(lane.group, nowMs);
    // One place more than is wanted is read where the lane stays open if there is one.
    const isKnown = free > 0 && there < (free > 1 ? 2 : 1);
    if (isKnown) this.#shut(lane);
    else if (taken >= free && isTimed) this.#waitForTurn(lane, nowMs);
    else if (taken >= free) this.#shut(lane);
    else if (lane.turns + taken < weight) lane.turns += taken;
    else this.#openLast(lane);
    return job;
  }

  #shut(lane: Lane): void {
    this.#open[lane.kind].delete(lane);
    if (lane.jobs.length === 0) this.#lanes.delete(lane.key);
  }

  #waitForTurn(lane: Lane, nowMs: number): void {
    this.#open[lane.kind].delete(lane);
    this.#timed.set(lane, this.#groups.whenMore(lane.group, nowMs));
  }

  /** Its turn comes behind those of all others of its priority, and its round begins anew. */
  #openLast(lane: Lane): void {
    this.#timed.delete(lane);
    this.#open[lane.kind].delete(lane);
    lane.turns = 0;
    this.#open[lane.kind].add(lane);
  }

  #isShut = (lane: Lane): boolean => !this.#open[lane.kind].has(lane) && !this.#timed.has(lane);

  #lanesIn(group: string): readonly Lane[] {
    const lanes = KINDS.flatMap((kind) => this.#lanes.get(`${kind}${group}`) ?? []);
    return lanes.filter(({ jobs }) => jobs.length > 0);
  }

  /** Lanes of a group with somebody in line that have no turn. */
  #shutIn(group: string): readonly Lane[] {
    return group === '' ? [] : this.#lanesIn(group).filter(this.#isShut);
  }

  /** Also those that wait for a time; lanes that are open keep their turns. */
  #reopen(group: string): void {
    if (this.#groups.roomIn(group) <= 0) return;
    for (const lane of this.#lanesIn(group)) if (!this.#open[lane.kind].has(lane)) this.#openLast(lane);
  }

  #take(job: Kept, nowMs: number): Kept {
    this.#arrivalUs = turnsAt(this.#share, this.#arrivalUs, nowMs).arrivalUs + this.#share.intervalUs;
    this.#startedMs = nowMs;
    job.state = 'ready';
    job.strike = () => undefined;
    this.hold(job);
    return job;
  }
}

/** The rate of a group, as far as it is used. */
interface Used {
  readonly arrivalUs: number;
  /** When it last had a turn. */
  readonly sinceUs: number;
  /** That of the rate of then. */
  readonly intervalUs: number;
}

/** What the groups of a partition have, and may have: as `lua/lib/own.lua`. Jobs without a group are never held up. */
class Groups {
  #settings: GateSettings = {};
  readonly #limits = new Map<string, GroupGate>();
  /** How many jobs of each were let through and have not ended. */
  readonly #held = new Map<string, number>();
  readonly #used = new Map<string, Used>();
  readonly #closed = new Map<string, Closed>();

  set settings(settings: GateSettings) {
    this.#settings = settings;
    this.#limits.clear();
  }

  held(group: string): number {
    return this.#held.get(group) ?? 0;
  }

  hold(group: string, more: number): void {
    if (group === '') return;
    const count = this.held(group) + more;
    if (count > 0) this.#held.set(group, count);
    else this.#held.delete(group);
  }

  closed(group: string): Closed {
    return this.#closed.get(group) ?? OPEN;
  }

  close(group: string, closed: Closed): void {
    this.#closed.set(group, closed);
  }

  /** How many more may run. */
  roomIn(group: string): number {
    const { most } = this.#limitsOf(group);
    return group === '' || most === 0 ? Number.POSITIVE_INFINITY : most - this.held(group);
  }

  /** How many more may start now; `isTimed`: fewer than there is room for, as the group has no turn or is closed. */
  freeIn(group: string, nowMs: number) {
    const room = this.roomIn(group);
    const free = group === '' ? room : Math.min(room, this.#turns(group, nowMs));
    return { free, isTimed: free < room, weight: group === '' ? 1 : this.#limitsOf(group).weight };
  }

  /** A turn of its rate is used. */
  use(group: string, nowMs: number): void {
    const limits = this.#limitsOf(group);
    if (group === '' || limits.intervalUs === 0) return;
    const { intervalUs } = limits;
    const arrivalUs = turnsAt(limits, this.#arrival(group), nowMs).arrivalUs + intervalUs;
    this.#used.set(group, { arrivalUs, sinceUs: nowMs * 1000, intervalUs });
  }

  /** A turn was used for nothing. */
  refund(group: string): void {
    const { intervalUs } = this.#limitsOf(group);
    const used = this.#used.get(group);
    if (!used || intervalUs === 0) return;
    this.#used.set(group, { ...used, arrivalUs: Math.max(0, this.#arrival(group) - intervalUs), intervalUs });
  }

  /** When one more may start. */
  whenMore(group: string, nowMs: number): number {
    return Math.max(nowMs + 1, this.closed(group).untilMs, this.#nextTurnMs(group, nowMs));
  }

  state(group: string, nowMs: number): Omit<GroupState, 'pending'> {
    const { untilMs, reason } = this.closed(group);
    const isClosed = untilMs > nowMs;
    const shut = { closedMs: isClosed ? untilMs : 0, reason: isClosed ? reason : '' };
    return { ...this.#limitsOf(group), nextTurnMs: this.#nextTurnMs(group, nowMs), ...shut };
  }

  /** 0: now. */
  #nextTurnMs(group: string, nowMs: number): number {
    const limits = this.#limitsOf(group);
    const { turns, arrivalUs } = turnsAt(limits, this.#arrival(group), nowMs);
    return turns > 0 ? 0 : nextTurnMs(limits, arrivalUs);
  }

  #turns(group: string, nowMs: number): number {
    if (this.closed(group).untilMs > nowMs) return 0;
    return turnsAt(this.#limitsOf(group), this.#arrival(group), nowMs).turns;
  }

  #arrival(group: string): number {
    const { arrivalUs, sinceUs, intervalUs } = this.#used.get(group) ?? { arrivalUs: 0, sinceUs: 0, intervalUs: 0 };
    const limits = this.#limitsOf(group);
    if (limits.intervalUs === 0 || limits.intervalUs === intervalUs) return arrivalUs;
    return sinceUs + aheadUs(limits, arrivalUs - sinceUs, intervalUs);
  }

  #limitsOf(group: string): GroupGate {
    const limits = this.#limits.get(group) ?? groupGate(this.#settings, group);
    this.#limits.set(group, limits);
    return limits;
  }
}

/** What a share says behind the limit per group: where it changes, lanes of any group may open. */
const behindPerGroup = (share: string): string => share.split(' ').slice(4).join(' ');

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
