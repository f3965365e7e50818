/**
 * One gated partition, random steps of everybody who changes it, and the promises that must hold after each step: no limit is
 * exceeded, a lane keeps its order, in strict order nobody overtakes who has the group, holds and line say what ready and scheduled
 * say, and nobody is stuck at the end. `gates-queue.ts` walks over the partitions of a queue.
 */

import { encodeRecord } from '../../src/job/codec.ts';
import { gateShare, type PartitionGates } from '../../src/job/gate.ts';
import { partitionOf } from '../../src/job/job-id.ts';
import type { Closing } from '../../src/job/outcome.ts';
import type { GateSettings, GroupSettings } from '../../src/job/queue-settings.ts';
import { type Rate, type Rates, ratesOf } from '../../src/job/rate.ts';
import { digestOf } from '../../src/job/record-header.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import {
  checkGates,
  close,
  GATE_PARTS,
  type GateFlaw,
  type GatePart,
  limit,
  mendGates,
} from '../../src/redis/scripts/gates.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import { elect, resign } from '../../src/redis/scripts/lease.ts';
import { ensureGroup, ownPending, readEntries, readNew, reclaim } from '../../src/redis/scripts/ready.ts';
import type { Claim, Delivery, Ended, Served } from '../../src/redis/scripts/replies.ts';
import { scripts } from '../../src/redis/scripts/script-table.ts';
import { run } from '../../src/redis/scripts/scripts.ts';
import { pause, resume } from '../../src/redis/scripts/upkeep.ts';
import type { Head, Keepers } from './gates-keepers.ts';
import { cutOff, luaOf } from './model-cut.ts';

const WAITS = 2 ** 52;
const WINDOW_MS = 600_000;
const START_MS = 1_764_000_000_000;

type Class = 0 | 1 | 2;
/** No rate, and three. */
const RATES: readonly Rate[] = [
  { limit: 200, perMs: 1000, burst: 1 },
  { limit: 50, perMs: 1000, burst: 3 },
  { limit: 7, perMs: 1000, burst: 2 },
];
/** Two that both hold, the faster one first and last. A burst of the slower one is more than the faster one lets through in 50 ms. */
const PAIRS: readonly Rates[] = [
  [
    { limit: 200, perMs: 1000, burst: 1 },
    { limit: 20, perMs: 1000, burst: 16 },
  ],
  [
    { limit: 7, perMs: 1000, burst: 9 },
    { limit: 50, perMs: 1000, burst: 2 },
  ],
  [
    { limit: 50, perMs: 1000, burst: 3 },
    { limit: 15, perMs: 1000, burst: 12 },
  ],
];
const HEADERS = [';t= high', '', ';t= low'] as const;
/** What jobs cost where they have costs: mostly one, and some more than any burst. */
const COSTS = [1, 1, 1, 2, 3, 12] as const;

interface Snapshot {
  /** Members in line, with their due times. */
  readonly waiting: ReadonlyMap<string, number>;
  /** Members that are scheduled and not in line, with their due times. */
  readonly toCome: ReadonlyMap<string, number>;
  readonly entries: readonly { readonly id: string; readonly member: string }[];
  readonly holds: ReadonlySet<string>;
  /** Members that a worker runs. */
  readonly running: readonly string[];
  readonly share: string;
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A start that used turns of a rate, or what one says that it used more. */
interface Turn {
  readonly entry: string;
  readonly atMs: number;
  /** Of several in one moment, which came first. */
  readonly nth: number;
  readonly isStart: boolean;
  turns: number;
}

const inTime = (one: Turn, other: Turn): number => one.atMs - other.atMs || one.nth - other.nth;

/**
 * In some time up to a start there were more turns than a rate, its burst and 50 ms allow. What the start itself costs above one
 * is owed.
 */
function tooMany(all: readonly Turn[], { limit: most, perMs, burst }: Rate): string | undefined {
  for (let first = 0; first < all.length; first += 1) {
    const fromMs = all[first]?.atMs ?? 0;
    let used = 0;
    for (let at = first; at < all.length; at += 1) {
      const { atMs = 0, isStart = false, turns = 0 } = all[at] ?? {};
      const isOver = isStart && at > first && used + 1 > ((atMs - fromMs + 50) * most) / perMs + burst;
      if (isOver) return `${used + 1} turns in ${atMs - fromMs} ms`;
      used += turns;
    }
  }
  return undefined;
}

function shareOf(
  settings: GateSettings,
  of: { readonly partition: number; readonly partitions: number },
): PartitionGates {
  const share = gateShare(settings, of);
  if (!share) throw new Error('it is gated');
  return share;
}

const stillWaiting = (added: Snapshot['entries'], fresh: Snapshot['entries']) =>
  added.filter((entry) => !fresh.includes(entry)).map(({ member }) => member);

export const groupIn = (member: string): string => /^(?:j:)?\{([^{}]+)\}./.exec(member)?.[1] ?? '';

export interface WorldOptions {
  /** Whether scripts are cut off between two writes, or their replies are lost, and called again. */
  readonly cuts: boolean;
  /** Groups have rates and limits of their own, and are closed at times. */
  readonly owns: boolean;
  /** The queue is in strict order; with `at times` it begins and ends with the limits, while jobs run and wait. */
  readonly strict?: boolean | 'at times';
  /** The queue has two rates. */
  readonly two?: boolean;
  readonly costs?: boolean;
}

/** What the partitions of a queue have in common. */
export interface WalkedQueue {
  readonly random: () => number;
  readonly groups: readonly string[];
  readonly keepers: Keepers;
  readonly worlds: readonly GatesWorld[];
  /** What somebody has set last: a partition gets it sooner or later. */
  limits: GateSettings | undefined;
}

interface WorldPlace {
  readonly ref: PartitionRef;
  readonly queue: WalkedQueue;
}

export class GatesWorld {
  readonly #redis: Redis;
  readonly #ref: PartitionRef;
  readonly #jobs: Jobs;
  readonly #queue: WalkedQueue;
  readonly #workers = ['w0', 'w1', 'w2'] as const;
  /** What each worker runs. */
  readonly #running = new Map<string, (Claim & { readonly dueMs: number })[]>();
  readonly #classes = new Map<string, Class>();
  readonly #members = new Set<string>();
  #nowMs: number;
  #term = '';
  #serial = 0;
  #through = 0;
  #looks = 0;
  #before: Snapshot | undefined;
  /** What a reply has shown to be wrong. */
  #told: string | undefined;
  #isGated = false;
  /** The limits of now. */
  #limits: GateSettings = {};
  /** The turns of each group, and of all, whose entries started since the limits were set. */
  #turns = new Map<string, Turn[]>();
  /** When an entry was let through, and how many turns it used. */
  readonly #throughs = new Map<string, Turn>();
  #moments = 0;
  /** By entry, how often its start has said how many turns it used, and how many it said last. */
  readonly #said = new Map<string, { readonly token: string; readonly nth: number; readonly turns: number }>();
  readonly #begun = new Set<string>();
  /** Until when each group is closed; '' = the queue. */
  readonly #closedMs = new Map<string, number>();

  /** The last step was cut off: a hold or a place may be left behind, which the janitor takes away. */
  #wasCut = false;
  /** The reply to the last call was lost. */
  #wasLost = false;
  readonly #options: Required<WorldOptions>;
  /** Of those in line, the class by which each was lined up. */
  readonly #linedUp = new Map<string, Class | undefined>();
  #leaders = 1;
  /** Entries that were let through in strict order and have not begun. */
  readonly #inOrder = new Set<string>();
  /** Who waits after a call that was cut off, and may have its group already: it goes first then. */
  readonly #half = new Set<string>();
  /** What a worker ran when another one took it over. */
  readonly #lost: Claim[] = [];
  #kept = 0;

  constructor(
    redis: Redis,
    { ref, queue }: WorldPlace,
    { strict = false, two = false, costs = false, ...options }: WorldOptions,
  ) {
    this.#redis = redis;
    this.#ref = ref;
    this.#jobs = createJobs(redis);
    this.#queue = queue;
    this.#options = { ...options, strict, two, costs };
    // Servers of partitions have clocks of their own.
    this.#nowMs = START_MS + 500 * ref.partition;
    for (const name of this.#workers) this.#running.set(name, []);
  }

  /** Jobs that were let through. */
  get through(): number {
    return this.#through;
  }

  /** How often somebody waited for a job that has its group and waits itself. */
  get kept(): number {
    return this.#kept;
  }

  async begin(): Promise<void> {
    const { keys } = this.#ref;
    const elected = await elect(this.#redis, this.#ref, { processId: 'p1', leaseMs: 100_000_000, nowMs: this.#nowMs });
    if (elected.kind !== 'elected') throw new Error('nobody else leads');
    this.#term = elected.term;
    await ensureGroup(this.#redis, keys);
  }

  /** A random step. @returns its name */
  async step(): Promise<Step> {
    const name = this.#pick(this.#options.strict ? BAG_IN_ORDER : this.#options.costs ? BAG_OF_COSTS : BAG);
    await this.#steps[name]();
    return name;
  }

  /** What is wrong since the last look. @param step that it made itself meanwhile */
  async judge(step: Step | undefined): Promise<string | undefined> {
    const before = this.#before ?? NOTHING;
    const after = await this.#snapshot();
    this.#before = after;
    const wrong = this.#told ?? (this.#isGated ? await this.#judge(before, after, step) : undefined);
    return wrong && `with ${after.share}: ${wrong}`;
  }

  #below(most: number): number {
    return Math.floor(this.#queue.random() * most);
  }

  #pick<T>(of: readonly T[]): T {
    return of[this.#below(of.length)] as T;
  }

  async #snapshot(): Promise<Snapshot> {
    const { scheduled, ready, holds, meta } = this.#ref.keys;
    const [scores, entries, held, share] = await Promise.all([
      this.#redis.zrange(scheduled, '0', '-1', 'WITHSCORES'),
      this.#redis.xrange(ready, '-', '+'),
      this.#redis.zrange(holds, '0', '-1'),
      this.#redis.hget(meta, 'gates'),
    ]);
    const waiting = new Map<string, number>();
    const toCome = new Map<string, number>();
    for (let at = 0; at < scores.length; at += 2) {
      const score = Number(scores[at + 1]);
      if (score >= WAITS) waiting.set(scores[at] ?? '', score - WAITS);
      else toCome.set(scores[at] ?? '', score);
    }
    return {
      waiting,
      toCome,
      entries: entries.map(([id, fields]) => ({ id, member: fields[1] ?? '' })),
      holds: new Set(held),
      running: [...this.#running.values()].flat().map(({ member }) => member),
      share: share ?? '',
    };
  }

  async #judge(before: Snapshot, after: Snapshot, step: Step | undefined): Promise<string | undefined> {
    const [, , concurrency = 0] = after.share.split(' ').map(Number);
    const known = new Set(before.entries.map(({ id }) => id));
    const added = after.entries.filter(({ id }) => !known.has(id));
    const fresh = added.filter(({ member }) => !after.toCome.has(member) && !after.waiting.has(member));
    // A cut leaves an entry that its start drops, or takes when its member was let through meanwhile.
    if (fresh.length < added.length && !this.#wasCut) return `${stillWaiting(added, fresh)} wait and were let through`;
    const waits = (member: string) => after.toCome.has(member) || after.waiting.has(member);
    // Of what runs a second entry, which a cut has left, may be taken back; its next start is dropped.
    const both = after.running.find((member) => !before.running.includes(member) && waits(member));
    if (both !== undefined) return `${both} has begun and waits`;
    this.#through += fresh.length;
    const wrong = step === 'limits' ? undefined : this.#wronglyThrough(after, fresh, concurrency);
    if (wrong !== undefined) return wrong;
    const heads = this.#queue.keepers.names();
    this.#placed(before, after);
    const overtaken = this.#isStrict() ? await this.#overtaken(after, { added, fresh }) : undefined;
    if (overtaken !== undefined) return overtaken;
    await this.#note(added);
    return (
      this.#tooMany(before, after, concurrency) ??
      this.#tooSoon() ??
      this.#early(before, fresh) ??
      this.#disorder({ before, after, heads }, fresh) ??
      this.#flaws()
    );
  }

  /** More were let through than may be, or somebody whose group is closed. */
  #wronglyThrough(after: Snapshot, fresh: Snapshot['entries'], concurrency: number): string | undefined {
    const through = this.#letThrough(after);
    const count = through.length;
    if (fresh.length > 0 && concurrency > 0 && count > concurrency) return `ready has ${count}`;
    for (const { member } of fresh) {
      const group = groupIn(member);
      const ofGroup = through.filter((one) => groupIn(one) === group).length;
      const most = this.#limitsOf(group).concurrency ?? 0;
      if (most > 0 && ofGroup > most) return `group ${group} has ${ofGroup}`;
      const closedMs = Math.max(this.#closedMs.get('') ?? 0, this.#closedMs.get(group) ?? 0);
      if (closedMs > this.#nowMs) return `${member} was let through, and its group is closed until ${closedMs}`;
    }
    return undefined;
  }

  /** Who was let through. A cut may leave two entries of one, or one of somebody who waits: its start takes one, or drops it. */
  #letThrough({ entries, toCome, waiting }: Snapshot): readonly string[] {
    const members = entries.map(({ member }) => member);
    if (!this.#options.cuts) return members;
    return [...new Set(members)].filter((member) => !toCome.has(member) && !waiting.has(member));
  }

  /** More were started than may run; what ran when the limit came goes on. */
  #tooMany(before: Snapshot, after: Snapshot, concurrency: number): string | undefined {
    const known = new Set(before.running);
    const fresh = after.running.filter((member) => !known.has(member));
    if (fresh.length > 0 && concurrency > 0 && after.running.length > concurrency) return `${after.running.length} run`;
    for (const group of new Set(fresh.map(groupIn))) {
      const count = after.running.filter((member) => groupIn(member) === group).length;
      const most = this.#limitsOf(group).concurrency ?? 0;
      if (most > 0 && count > most) return `${count} of group ${group} run`;
    }
    return undefined;
  }

  /** What a group may have: its name counts first, then the longest beginning. */
  #limitsOf(group: string): GroupSettings {
    const { perGroup = 0, groupRate = 0, groups = {} } = this.#limits;
    if (group === '') return {};
    const names = Object.keys(groups).filter((name) => name.endsWith('*') && group.startsWith(name.slice(0, -1)));
    const [longest] = names.sort((one, other) => other.length - one.length);
    return { concurrency: perGroup, rate: groupRate, ...(groups[group] ?? groups[longest ?? '']) };
  }

  /** In any time no more of a group, or of all, were let through, and started, than each rate, its burst and 50 ms allow. */
  #tooSoon(): string | undefined {
    for (const { entry, member } of [...this.#running.values()].flat()) {
      if (this.#begun.has(entry)) continue;
      this.#begun.add(entry);
      const through = this.#throughs.get(entry);
      const wrong = through && this.#use(groupIn(member), through);
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  /** What an entry costs that was let through in this step is what its record says. */
  async #note(fresh: Snapshot['entries']): Promise<void> {
    const isCounted = this.#options.costs && this.#limits.costs === true;
    for (const { id, member } of fresh) {
      const record = isCounted ? await this.#redis.hget(this.#ref.keys.jobs, member) : null;
      const [, cost = '1'] = /^1\w+[^|]*;c=(\w+)/.exec(record ?? '') ?? [];
      this.#moments += 1;
      const turns = Number.parseInt(cost, 36);
      this.#throughs.set(id, { entry: id, atMs: this.#nowMs, nth: this.#moments, isStart: true, turns });
    }
  }

  /** Turns of the queue and of a group. What was wrong. */
  #use(group: string, turn: Turn): string | undefined {
    return (
      this.#tooFast(group, ratesOf(this.#limitsOf(group).rate), turn) ??
      this.#tooFast('', this.#options.two || this.#options.costs ? ratesOf(this.#limits.rate) : [], turn)
    );
  }

  /** @param group '' = all of the queue */
  #tooFast(group: string, rates: readonly Rate[], turn: Turn): string | undefined {
    if (rates.length === 0) return undefined;
    const turns = [...(this.#turns.get(group) ?? []), { ...turn }].sort(inTime);
    this.#turns.set(group, turns);
    const [wrong] = rates.flatMap((rate) => tooMany(turns, rate) ?? []);
    return wrong && `group ${group} had ${wrong}`;
  }

  /** So many turns were used for nothing, the latest ones first. */
  #giveBack(group: string, entry: string, count: number): void {
    for (const scope of new Set([group, ''])) {
      let left = count;
      for (const turn of (this.#turns.get(scope) ?? []).filter((one) => one.entry === entry).toReversed()) {
        const some = Math.min(left, turn.turns);
        turn.turns -= some;
        left -= some;
      }
    }
  }

  /** Somebody was let through or has begun, and another job has the group, or a dead letter holds it. */
  async #overtaken(
    after: Snapshot,
    { added, fresh }: { readonly added: Snapshot['entries']; readonly fresh: Snapshot['entries'] },
  ): Promise<string | undefined> {
    const { keepers } = this.#queue;
    for (const { id } of added) this.#inOrder.add(id);
    for (const { member } of added.filter((one) => !fresh.includes(one))) this.#half.add(member);
    for (const { member } of fresh) {
      const group = groupIn(member);
      if (group === '') continue;
      const other = await keepers.other(group, this.#head(member));
      if (other !== undefined) return `${member} was let through, and ${other} has its group`;
      keepers.set(group, this.#head(member));
    }
    const isHeld = (member: string) => after.toCome.has(keepers.nameOf(groupIn(member)) ?? '');
    this.#kept += [...after.waiting.keys()].some(isHeld) ? 1 : 0;
    return this.#begunBeside();
  }

  /** Of what was let through in strict order. What was before may run beside who has the group. */
  async #begunBeside(): Promise<string | undefined> {
    for (const { entry, member } of [...this.#running.values()].flat()) {
      if (!this.#inOrder.delete(entry) || groupIn(member) === '') continue;
      const other = await this.#queue.keepers.other(groupIn(member), this.#head(member));
      if (other !== undefined) return `${member} runs, and ${other} has its group`;
    }
    return undefined;
  }

  /** @param name a member, or a dead letter with a mark */
  #head(name: string): Head {
    const { jobs } = this.#ref.keys;
    const lives = async () => !((await this.#redis.hget(jobs, name)) ?? '.').startsWith('.');
    const holds = async () => this.#limits.groupOnDead === 'hold';
    return { name, partition: this.#ref.partition, counts: name.startsWith('!') ? holds : lives };
  }

  /** It has its group no longer. */
  #gaveUp(member: string): void {
    this.#queue.keepers.drop(groupIn(member), member);
  }

  #isStrict(): boolean {
    return this.#limits.groupOrder === 'strict';
  }

  /** Who came into line did so by the limits of now. */
  #placed(before: Snapshot, after: Snapshot): void {
    for (const [member, dueMs] of after.waiting) {
      if (before.waiting.get(member) !== dueMs) this.#linedUp.set(member, this.#classOf(member));
    }
  }

  /** Nobody of a group has a priority in strict order. */
  #classOf(member: string): Class | undefined {
    return this.#isStrict() && groupIn(member) !== '' ? 1 : this.#classes.get(member);
  }

  /** A job was let through before its due time, by a place in line that it had left. */
  #early(before: Snapshot, fresh: Snapshot['entries']): string | undefined {
    for (const { member } of fresh) {
      const dueMs = before.toCome.get(member) ?? 0;
      if (dueMs > this.#nowMs) return `${member} was let through, and is due ${dueMs - this.#nowMs} ms later`;
    }
    return undefined;
  }

  /** Somebody waits who was due before one of the same lane that was let through. */
  #disorder(
    seen: { readonly before: Snapshot; readonly after: Snapshot; readonly heads: ReadonlyMap<string, string> },
    fresh: Snapshot['entries'],
  ): string | undefined {
    const { before, after, heads } = seen;
    const placeOf = (dueMs: number, member: string) => `${String(dueMs).padStart(16, '0')}${member}`;
    for (const { member } of fresh) {
      const dueMs = before.waiting.get(member);
      // Who has the group comes before all others of it.
      if (dueMs === undefined || heads.get(groupIn(member)) === member || this.#half.delete(member)) continue;
      for (const [other, otherMs] of after.waiting) {
        const isOfLane = groupIn(other) === groupIn(member) && this.#linedUp.get(other) === this.#linedUp.get(member);
        if (!isOfLane || before.waiting.get(other) !== otherMs) continue;
        if (placeOf(otherMs, other) < placeOf(dueMs, member)) return `${other} waits, and ${member} did not`;
      }
    }
    return undefined;
  }

  /** Places in which nobody waits are no harm. */
  async #flaws(): Promise<string | undefined> {
    const all = await this.#allFlaws();
    const wasCut = this.#wasCut;
    this.#wasCut = false;
    const flaws: GateFlaw[] = [];
    for (const flaw of all) if (!(await this.#isHarmless(flaw, wasCut))) flaws.push(flaw);
    if (flaws.length > 0) return JSON.stringify(flaws);
    if (wasCut && all.length > 0) await mendGates(this.#redis, this.#ref, all, this.#nowMs);
    return undefined;
  }

  /**
   * What a cut may leave: a hold without an entry, and an entry that its start drops. Its member was not let through, or once
   * more, by an entry that has its hold. Also places that fill the line before their members wait, in a lane that nobody opened.
   */
  async #isHarmless({ kind, name }: GateFlaw, wasCut: boolean): Promise<boolean> {
    if (kind === 'stale' || kind === 'unused' || kind === 'vacant' || kind === 'spent') return true;
    if (!wasCut || (kind !== 'unheld' && kind !== 'shut')) return wasCut && kind === 'loose';
    const { entries, holds, toCome, waiting } = await this.#snapshot();
    const waitsIn = (lane: string) =>
      [...waiting.keys()].some((one) => `${this.#linedUp.get(one)}${groupIn(one)}` === lane);
    if (kind === 'shut') return !waitsIn(name);
    const member = entries.find(({ id }) => id === name)?.member ?? '';
    const isTwin = entries.some((one) => one.member === member && holds.has(`${groupIn(member)}\0${one.id}`));
    return isTwin || toCome.has(member) || waiting.has(member);
  }

  /** A call that is sometimes cut off before one of its writes, or whose reply is lost, and made again. */
  async #call<T>(verb: string, call: () => Promise<T>): Promise<T> {
    this.#wasLost = false;
    if (!this.#options.cuts || this.#queue.random() > 0.2) return call();
    const allowed = this.#below(16);
    const site = await cutOff(this.#redis, { verb, lua: luaOf(verb), allowed, call });
    this.#wasLost = true;
    this.#wasCut ||= site !== undefined;
    return call();
  }

  /** Entries that a call without a reply has delivered. */
  async #adopt(name: string): Promise<void> {
    const { keys } = this.#ref;
    const mine = new Set(this.#mine(name).map(({ entry }) => entry));
    const pending = await ownPending(this.#redis, keys, { consumer: name, idleMs: 0, limit: 200 });
    const given = await readEntries(
      this.#redis,
      keys,
      pending.filter((entry) => !mine.has(entry)),
    );
    if (given.length > 0) await this.#serve(name, [], { take: 0, given });
  }

  async #allFlaws() {
    // Small slices show that none is lost between two of them, and cost much.
    this.#looks += 1;
    const slice = this.#looks % 8 === 0 ? 3 : 200;
    const flaws = [];
    for (const part of [...GATE_PARTS, 'groups', 'order'] as readonly GatePart[]) {
      let cursor: string | undefined = '';
      while (cursor !== undefined) {
        const page: Awaited<ReturnType<typeof checkGates>> = await checkGates(this.#redis, this.#ref, {
          part,
          cursor,
          slice,
        });
        flaws.push(...page.flaws);
        cursor = page.cursor;
      }
    }
    return flaws;
  }

  /** What the janitor does each second. */
  async #mendOrder(): Promise<void> {
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page: Awaited<ReturnType<typeof checkGates>> = await checkGates(this.#redis, this.#ref, {
        part: 'order',
        cursor,
      });
      if (page.flaws.length > 0) await mendGates(this.#redis, this.#ref, page.flaws, this.#nowMs);
      cursor = page.cursor;
    }
  }

  /** Dead letters hold groups no longer. */
  async #forgetDead(): Promise<void> {
    this.#queue.keepers.forgetDead(this.#ref.partition);
    if (this.#options.strict) await this.#mendOrder();
  }

  /** Everything ends: nobody is stuck, and nothing is left. */
  async drain(): Promise<string | undefined> {
    await this.#steps.resume();
    if (!this.#isGated) await this.#steps.limits();
    for (const group of this.#options.strict ? this.#queue.groups.slice(1) : []) {
      await close(this.#redis, this.#ref, { group, until: 0, nowMs: this.#nowMs });
    }
    await this.#empty();
    const { waiting, entries, holds, share } = await this.#snapshot();
    if (waiting.size + entries.length > 0)
      return `stuck with ${share}: ${[...waiting.keys()]} ${JSON.stringify(entries)}`;
    return holds.size > 0 ? `holds are left: ${[...holds]}` : undefined;
  }

  /** Everybody works until nothing is left, or for a long time. */
  async #empty(): Promise<void> {
    this.#nowMs += 1_000_000;
    for (let turn = 0; turn < 500; turn += 1) {
      // Each partition has its part of a rate, and what jobs with costs owe takes longer.
      this.#nowMs += (this.#options.costs ? 2000 : 50) * this.#queue.worlds.length;
      await this.#promote(50);
      for (const name of this.#workers) {
        await this.#serve(name, this.#mine(name).splice(0), { take: 3 });
        if (this.#options.cuts) await this.#adopt(name);
      }
      if (this.#options.cuts) await mendGates(this.#redis, this.#ref, await this.#allFlaws(), this.#nowMs);
      const { waiting, entries } = await this.#snapshot();
      if (waiting.size + entries.length === 0 && (await this.#redis.zcard(this.#ref.keys.scheduled)) === 0) return;
    }
  }

  /** What another partition has already, or what somebody sets now. */
  #nextLimits(): GateSettings {
    const { limits, worlds, random } = this.#queue;
    if (worlds.length > 1 && limits && limits !== this.#limits && random() < 0.7) return limits;
    this.#queue.limits = this.#settingsOfNow();
    return this.#queue.limits;
  }

  #settingsOfNow(): GateSettings {
    const often = this.#options.costs ? 0.8 : 0.3;
    const rate: Rates | 0 = this.#options.two
      ? this.#pick(PAIRS)
      : this.#queue.random() < often
        ? this.#pick(RATES)
        : 0;
    const concurrency = this.#queue.random() < 0.4 ? 1 + this.#below(8) : 0;
    const perGroup = this.#queue.random() < 0.7 ? 1 + this.#below(3) : 0;
    const isStrict = this.#options.strict === 'at times' ? this.#queue.random() < 0.6 : this.#options.strict;
    const own = this.#options.owns ? this.#ownLimits(isStrict) : {};
    const limits = { rate, concurrency, perGroup, ...own, ...(this.#options.costs && { costs: true as const }) };
    if (!isStrict) return limits;
    const groupOnDead = this.#queue.random() < 0.5 ? ('hold' as const) : ('continue' as const);
    return { ...limits, perGroup: 1, groupOrder: 'strict', groupOnDead };
  }

  /** New jobs, due so long after now. */
  async #accept(items: readonly { readonly member: string; readonly dueMs: number; readonly kind: Class }[]) {
    for (const { member, kind } of items) {
      this.#members.add(member);
      this.#classes.set(member, kind);
    }
    for (const { member, dueMs } of items.filter((one) => !one.member.startsWith('j:'))) {
      await this.#redis.zadd(this.#ref.keys.scheduled, this.#nowMs + dueMs, member);
    }
    const managed = items.flatMap(({ member, kind, dueMs: inMs }) => {
      const dueMs = this.#nowMs + inMs;
      const record = encodeRecord(dueMs, '{}', {}).replace('|', `${HEADERS[kind]}${this.#costWords()}|`);
      return member.startsWith('j:') ? [{ member, dueMs, record }] : [];
    });
    if (managed.length === 0) return;
    const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 1000, nowMs: this.#nowMs } as const;
    await this.#call('schedule', () => this.#jobs.schedule(this.#ref, managed, settings));
  }

  #mine(name: string) {
    return this.#running.get(name) ?? [];
  }

  #settings(consumer: string) {
    return { consumer, bytesMax: 655_360, windowMs: WINDOW_MS, nowMs: this.#nowMs };
  }

  #took(name: string, { taken }: Served): void {
    for (const one of taken) {
      if (one.kind === 'run' || one.kind === 'again') this.#mine(name).push(one);
    }
  }

  #over(claims: readonly Claim[]): readonly Ended[] {
    for (const { member } of claims) {
      this.#members.delete(member);
      this.#gaveUp(member);
    }
    return claims.map((claim) => ({ ...claim, mark: '' }));
  }

  async #serve(
    name: string,
    over: readonly Claim[],
    { take, given = [] }: { readonly take: number; readonly given?: readonly Delivery[] },
  ): Promise<void> {
    const ended = this.#over(over);
    const call = () => this.#jobs.serve(this.#ref, { ended, given, take }, this.#settings(name));
    this.#took(name, await this.#call('serve', call));
    if (this.#wasLost && take > 0) await this.#adopt(name);
  }

  /** What a worker has read is started, or handed back. */
  async #begins(name: string, given: readonly Delivery[]): Promise<void> {
    if (given.length === 0) return;
    if (this.#queue.random() < 0.3) {
      await this.#call('release', () => this.#jobs.release(this.#ref, given, { consumer: name, nowMs: this.#nowMs }));
    } else {
      await this.#serve(name, [], { take: this.#below(4), given });
    }
  }

  /** In strict order the line is full at times, for whoever has a group too. */
  #promote(most: number) {
    const lineMax = this.#options.strict && this.#queue.random() < 0.5 ? 3 : 1_000_000;
    const pass = { term: this.#term, leaseMs: undefined, limit: most, cap: 1000, lineMax, nowMs: this.#nowMs };
    return this.#call('promote', () => this.#jobs.promote(this.#ref, pass));
  }

  async #settle(verb: End): Promise<void> {
    const claim = this.#mine(this.#pick(this.#workers)).shift();
    if (!claim) return;
    const isOver = verb !== 'retry' && verb !== 'defer';
    if (isOver) this.#members.delete(claim.member);
    const closing = verb === 'defer' ? this.#closing(claim.member) : undefined;
    const reply = await this.#ends(verb, claim, closing);
    if (isOver) await this.#ended(verb, claim.member);
    else if (reply === 'cancelled') this.#gaveUp(claim.member);
  }

  /** What comes late, after what its start has said since, changes nothing. */
  async #says({ entry, member, token }: Claim): Promise<void> {
    const known = this.#saidBy(entry, token);
    const isLate = known.nth > 0 && this.#queue.random() < 0.3;
    const said = { nth: known.nth + (isLate ? 0 : 1), turns: this.#pick([0, 1, 2, 20]) };
    const call = () => this.#jobs.spend(this.#ref, { entry, member, token, ...said }, this.#nowMs);
    const isCounted = (await this.#call('spend', call)) === 'ok';
    const isKnown = this.#throughs.has(entry) && this.#begun.has(entry);
    if (!isCounted || !isKnown || isLate) return;
    this.#said.set(entry, { token, ...said });
    const more = said.turns - known.turns;
    this.#moments += 1;
    const at = { entry, atMs: this.#nowMs, nth: this.#moments, isStart: false };
    if (more > 0) this.#use(groupIn(member), { ...at, turns: more });
    else this.#giveBack(groupIn(member), entry, -more);
  }

  /** The call of a worker that says how a start ended. */
  #ends(verb: End, claim: Claim, closing?: Closing): Promise<unknown> {
    const when = { windowMs: WINDOW_MS, nowMs: this.#nowMs };
    const why = { ...when, reason: 'because', error: '{"m":"x"}' };
    const delayMs = verb === 'retry' || verb === 'defer' ? this.#below(50) : 0;
    const calls: Readonly<Record<End, () => Promise<unknown>>> = {
      retry: () => this.#jobs.retry(this.#ref, claim, { ...when, delayMs, error: '{"m":"x"}' }),
      defer: () => this.#jobs.defer(this.#ref, claim, { ...when, delayMs, closing }),
      bury: () => this.#jobs.bury(this.#ref, claim, why),
      commit: () => this.#jobs.commit(this.#ref, claim, { ...when, effects: [] }),
      complete: () => this.#jobs.complete(this.#ref, [claim], when),
    };
    return this.#call(verb, calls[verb]);
  }

  async #takeOver(owner: string, heir: string): Promise<void> {
    const mine = this.#mine(owner).splice(0);
    if (mine.length === 0) return;
    const entries = mine.map(({ entry }) => entry);
    const take = { owner, consumer: heir, idleMs: 0, limit: 100, entries, nowMs: this.#nowMs };
    const { deliveries } = await reclaim(this.#redis, this.#ref, take);
    const given = deliveries.toSorted((one, other) => (one.entry < other.entry ? -1 : 1));
    if (given.length > 0) await this.#serve(heir, [], { take: 0, given });
    this.#lost.push(...mine);
  }

  /** A dead letter holds the group that its job had, if the limits say so. */
  async #ended(verb: string, member: string): Promise<void> {
    const group = groupIn(member);
    const isHead = this.#queue.keepers.drop(group, member);
    const [letter] = verb === 'bury' ? await this.#redis.xrevrange(this.#ref.keys.dead, '+', '-', 'COUNT', 1) : [];
    if (isHead && letter?.[1][1] === member && this.#limits.groupOnDead === 'hold') {
      this.#queue.keepers.set(group, this.#head(`!${letter[0]}`));
    }
  }

  #closeUntil(group: string, ms: number): void {
    this.#closedMs.set(group, Math.max(ms, this.#closedMs.get(group) ?? 0));
  }

  /** Sometimes a handler closes its group or its queue. */
  #closing(member: string): Closing | undefined {
    if (!this.#isGated || !this.#options.owns || this.#queue.random() < 0.5) return undefined;
    const scope = this.#pick(['group', 'queue'] as const);
    const [group, forMs] = [scope === 'queue' ? '' : groupIn(member), this.#below(80)];
    if (scope === 'queue' || group !== '') this.#closeUntil(group, this.#nowMs + forMs);
    return { scope, forMs, reason: 'it said 429' };
  }

  /** What a start has said, or has used by itself. One that has taken an entry over has used nothing for that. */
  #saidBy(entry: string, token: string): { readonly nth: number; readonly turns: number } {
    const said = this.#said.get(entry);
    if (said === undefined) return { nth: 0, turns: this.#throughs.get(entry)?.turns ?? 1 };
    return said.token === token ? said : { nth: 0, turns: 0 };
  }

  #costWords(): string {
    return this.#options.costs ? `;c=${this.#pick(COSTS).toString(36)}` : '';
  }

  /** A rate for each group, and limits of some. */
  #ownLimits(isStrict: boolean): GateSettings {
    const some = (): GroupSettings => ({
      ...(this.#queue.random() < 0.5 && !isStrict && { concurrency: this.#below(4) }),
      ...(this.#queue.random() < 0.5 && { rate: this.#pick<Rate | 0>([0, ...RATES]) }),
      ...(this.#queue.random() < 0.5 && { weight: 1 + this.#below(4) }),
    });
    const names = ['g0', 'g*', 'g1', 'x*'].filter(() => this.#queue.random() < 0.3);
    const groups = Object.fromEntries(names.map((name) => [name, some()]));
    return { groups, ...(this.#queue.random() < 0.5 && { groupRate: this.#pick(RATES) }) };
  }

  readonly #steps = {
    schedule: async () => {
      const items = Array.from({ length: 1 + this.#below(6) }, () => {
        const group = this.#pick(this.#queue.groups);
        const member = `${this.#below(8) === 0 ? '' : 'j:'}${group && `{${group}}`}n${this.#ref.partition}-${this.#serial++}`;
        const isBare = !member.startsWith('j:');
        const kind: Class = isBare ? 1 : this.#pick([0, 1, 1, 1, 2]);
        const dueMs = this.#below(200) - 100;
        return { member, dueMs, kind };
      });
      const { worlds } = this.#queue;
      for (const [partition, world] of worlds.entries()) {
        const isHere = ({ member }: (typeof items)[number]) =>
          partitionOf(member.replace(/^j:/, ''), worlds.length) === partition;
        await world.#accept(items.filter(isHere));
      }
    },
    time: async () => {
      this.#nowMs += this.#below(60);
    },
    promote: async () => {
      await this.#promote(1 + this.#below(20));
    },
    serve: async () => {
      const name = this.#pick(this.#workers);
      const mine = this.#mine(name);
      const over = mine.splice(0, this.#below(mine.length + 1));
      await this.#serve(name, over, { take: this.#below(5) });
    },
    relay: async () => {
      const name = this.#pick(this.#workers);
      const mine = this.#mine(name);
      const ended = this.#over(mine.splice(0, this.#below(mine.length + 1)));
      const take = 1 + this.#below(4);
      const pass = { term: this.#term, leaseMs: undefined, limit: take, cap: 1000 };
      const call = () => this.#jobs.relay(this.#ref, { ended, take, pass }, this.#settings(name));
      this.#took(name, await this.#call('relay', call));
      if (this.#wasLost) await this.#adopt(name);
    },
    /** One read of all partitions. */
    read: async () => {
      const name = this.#pick(this.#workers);
      const { worlds } = this.#queue;
      const refs = worlds.map((world) => world.#ref);
      const batches = await readNew(this.#redis, refs, { consumer: name, count: 1 + this.#below(2), blockMs: 0 });
      for (const world of worlds) {
        const given = batches.flatMap(({ ref, deliveries }) => (ref === world.#ref ? deliveries : []));
        await world.#begins(name, given);
      }
    },
    /** A start says how many turns it has used, and corrects itself. */
    spend: async () => {
      const claim = this.#pick(this.#mine(this.#pick(this.#workers)));
      if (claim === undefined || !this.#isGated) return;
      for (let words = 1 + this.#below(3); words > 0; words -= 1) await this.#says(claim);
    },
    retry: () => this.#settle('retry'),
    defer: () => this.#settle('defer'),
    bury: () => this.#settle('bury'),
    complete: () => this.#settle('complete'),
    commit: () => this.#settle('commit'),
    cancel: async () => {
      const member = this.#pick([...this.#members]);
      if (member === undefined) return;
      const when = { windowMs: WINDOW_MS, nowMs: this.#nowMs };
      const reply = await this.#call('cancel', () => this.#jobs.cancel(this.#ref, [member], when));
      if (Array.isArray(reply) && reply[0].kind === 'cancelled') {
        this.#members.delete(member);
        this.#gaveUp(member);
      }
    },
    reschedule: async () => {
      const member = this.#pick([...this.#members]);
      if (member === undefined) return;
      const dueMs = this.#nowMs + this.#below(100) - 20;
      const wishes = [{ member, dueMs, mode: 'any', seen: '' }] as const;
      const when = { horizonMs: 1e12, nowMs: this.#nowMs };
      await this.#call('reschedule', () => this.#jobs.reschedule(this.#ref, wishes, when));
    },
    replace: async () => {
      const member = this.#pick([...this.#members]);
      if (!member?.startsWith('j:')) return;
      const dueMs = this.#nowMs + this.#below(100) - 50;
      const kind = this.#classes.get(member) ?? 1;
      const body = `{"d":${this.#serial++}}`;
      const record = encodeRecord(dueMs, body, {}).replace('|', `${HEADERS[kind]}${this.#costWords()}|`);
      const settings = { mode: 'replace', horizonMs: 1e12, bytesMax: 1000, nowMs: this.#nowMs } as const;
      await this.#call('schedule', () => this.#jobs.schedule(this.#ref, [{ member, record, dueMs }], settings));
      // Another job has its id now. The reply may be that to a second call.
      const stored = await this.#redis.hget(this.#ref.keys.jobs, member);
      if (stored?.endsWith(body)) this.#gaveUp(member);
    },
    /** Somebody else puts a bare member again, which leaves its place in line behind. */
    again: async () => {
      const member = this.#pick([...this.#members].filter((one) => !one.startsWith('j:')));
      if (member !== undefined) {
        await this.#redis.zadd(this.#ref.keys.scheduled, 'XX', this.#nowMs + this.#below(200), member);
      }
    },
    /** A worker is taken for dead in all partitions, and goes on for a while: `late`. */
    death: async () => {
      const [owner, heir] = [this.#pick(this.#workers), this.#pick(this.#workers)];
      if (owner === heir) return;
      for (const world of this.#queue.worlds) await world.#takeOver(owner, heir);
    },
    /** It ends a job that another one has taken over. */
    late: async () => {
      const claim = this.#lost.shift();
      if (!claim) return;
      const verb = this.#pick(['retry', 'defer', 'bury', 'complete', 'commit'] as const);
      const reply = [await this.#ends(verb, claim)].flat()[0];
      if (reply === 'ok') this.#told = `${verb} by a worker that has lost ${claim.member} was taken`;
    },
    limits: async () => {
      // No two calls have the same microsecond of Redis.
      this.#nowMs += 1;
      const settings = this.#nextLimits();
      const of = { partition: this.#ref.partition, partitions: this.#queue.worlds.length };
      const share = shareOf(settings, of);
      // Somebody who set others went away after the first call.
      const other = shareOf(this.#settingsOfNow(), of);
      const args = { now: this.#nowMs, term: '', share: other.share, limit: 1 };
      const each = other.groups.flat();
      if (this.#queue.random() < 0.3) await run(this.#redis, scripts.limit, { keys: this.#ref.keys, args, each });
      const isEnded = other.isStrict !== true && (await this.#redis.exists(this.#ref.keys.order)) === 0;
      await this.#call('limit', () => limit(this.#redis, this.#ref, { share, slice: 3, nowMs: this.#nowMs }));
      this.#limits = settings;
      if (isEnded || !this.#isStrict()) {
        this.#queue.keepers.forget(this.#ref.partition);
        this.#inOrder.clear();
        this.#half.clear();
      }
      if (settings.groupOnDead === 'continue') await this.#forgetDead();
      this.#turns = new Map();
      this.#throughs.clear();
      this.#isGated = true;
    },
    close: async () => {
      if (!this.#isGated || !this.#options.owns) return;
      const group = this.#pick([...this.#queue.groups]);
      const forMs = this.#below(80);
      const closing = { group, until: { forMs }, why: 'it said 429', nowMs: this.#nowMs };
      await this.#call('close', () => close(this.#redis, this.#ref, closing));
      this.#closeUntil(group, this.#nowMs + forMs);
    },
    open: async () => {
      const group = this.#pick([...this.#closedMs.keys()]);
      if (!this.#isGated || group === undefined) return;
      await this.#call('close', () => close(this.#redis, this.#ref, { group, until: 0, nowMs: this.#nowMs }));
      this.#closedMs.delete(group);
      const head = this.#queue.keepers.nameOf(group);
      if (head?.startsWith('!')) this.#queue.keepers.drop(group, head);
    },
    /** A dead letter lives again, or is removed, which the janitor sees. */
    revive: async () => {
      const letters = this.#options.strict ? await this.#redis.xrange(this.#ref.keys.dead, '-', '+') : [];
      const letter = this.#pick(letters);
      if (letter === undefined) return;
      const [id, [, member = '']] = letter;
      if (this.#queue.random() < 0.3) {
        await this.#redis.xdel(this.#ref.keys.dead, id);
        await this.#mendOrder();
        this.#queue.keepers.drop(groupIn(member), `!${id}`);
        return;
      }
      await this.#call('replay', () => this.#jobs.replay(this.#ref, id, { nowMs: this.#nowMs }));
      // The reply may be that to a second call.
      if ((await this.#redis.xrange(this.#ref.keys.dead, id, id)).length > 0) return;
      this.#members.add(member);
      const group = groupIn(member);
      if (this.#queue.keepers.drop(group, `!${id}`)) this.#queue.keepers.set(group, this.#head(member));
    },
    /** Another process leads, and a pass of the one before is refused. */
    lead: async () => {
      if (this.#queue.random() < 0.5) await resign(this.#redis, this.#ref, this.#term);
      // The lease has run out.
      else await this.#redis.del(this.#ref.keys.leader);
      this.#leaders += 1;
      const processId = `p${this.#leaders}`;
      const elected = await elect(this.#redis, this.#ref, { processId, leaseMs: 100_000_000, nowMs: this.#nowMs });
      if (elected.kind !== 'elected') throw new Error('nobody else leads');
      const pass = { term: this.#term, leaseMs: undefined, limit: 20, cap: 1000, nowMs: this.#nowMs };
      const late = await this.#jobs.promote(this.#ref, pass);
      if (late.kind !== 'fenced') throw new Error('the leader before still promotes');
      this.#term = elected.term;
    },
    /** Other data, and sometimes another due time. */
    edit: async () => {
      const member = this.#pick([...this.#members]);
      const before = member && (await this.#redis.hget(this.#ref.keys.jobs, member));
      if (!before || before.startsWith('.')) return;
      const record = before.replace(/\|.*$/s, `|{"d":${this.#serial++}}`);
      const dueMs = this.#queue.random() < 0.5 ? this.#nowMs + this.#below(100) - 50 : undefined;
      const items = [{ member, before: digestOf(before), record, dueMs }];
      const when = { bytesMax: 1000, nowMs: this.#nowMs };
      await this.#call('edit', () => this.#jobs.edit(this.#ref, items, when));
    },
    pause: async () => {
      if (this.#options.strict) await pause(this.#redis, this.#ref, { reason: 'x', nowMs: this.#nowMs });
      else await this.#redis.hset(this.#ref.keys.meta, 'paused', `${this.#nowMs} x`);
    },
    resume: async () => {
      if (this.#options.strict) await resume(this.#redis, this.#ref);
      else await this.#redis.hdel(this.#ref.keys.meta, 'paused');
    },
    /** Somebody takes all lanes and holds away, and the janitor makes them again. */
    loss: async () => {
      if (!this.#isGated || this.#queue.random() < 0.8) return;
      await this.#redis.del(this.#pick([this.#ref.keys.lanes, this.#ref.keys.holds, this.#ref.keys.line]));
      for (let round = 0; round < 3; round += 1) {
        const flaws = await this.#allFlaws();
        if (flaws.length > 0) await mendGates(this.#redis, this.#ref, flaws, this.#nowMs);
      }
    },
  } as const;
}

const BAG = [
  ...['schedule', 'schedule', 'schedule', 'schedule', 'time', 'time', 'promote', 'promote', 'promote', 'promote'],
  ...['serve', 'serve', 'serve', 'serve', 'serve', 'serve', 'read', 'read', 'relay', 'relay', 'relay'],
  ...['retry', 'defer', 'bury', 'complete', 'commit', 'cancel', 'reschedule', 'replace', 'again', 'death', 'limits'],
  ...['pause', 'resume', 'resume', 'loss', 'close', 'close', 'open', 'late'],
] as readonly Step[];
/** And where jobs have costs. */
const BAG_OF_COSTS: typeof BAG = [...BAG, 'spend', 'spend', 'spend', 'spend'];
/** And in strict order. */
const BAG_IN_ORDER: typeof BAG = [...BAG, 'revive', 'retry', 'retry', 'time', 'lead', 'edit'];
/** How a start ends. */
type End = 'retry' | 'defer' | 'bury' | 'complete' | 'commit';
const NOTHING: Snapshot = {
  ...{ waiting: new Map(), toCome: new Map(), entries: [], holds: new Set(), running: [] },
  share: '',
};
type Step =
  | (
      | 'late'
      | 'schedule'
      | 'time'
      | 'promote'
      | 'serve'
      | 'read'
      | 'relay'
      | 'retry'
      | 'limits'
      | 'pause'
      | 'loss'
      | 'close'
    )
  | ('revive' | 'lead' | 'edit' | 'spend');
