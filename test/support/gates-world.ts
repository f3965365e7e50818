/**
 * One gated partition, random steps of everybody who changes it, and the promises that must hold after each step: no limit is
 * exceeded, a lane keeps its order, holds and line say what ready and scheduled say, and nobody is stuck at the end.
 */

import { encodeRecord } from '../../src/job/codec.ts';
import { gateShare, type PartitionGates } from '../../src/job/gate.ts';
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

/** Of a queue with one partition. */
function shareOf(settings: GateSettings): PartitionGates {
  const share = gateShare(settings, { partition: 0, partitions: 1 });
  if (!share) throw new Error('it is gated');
  return share;
}

export const groupIn = (member: string): string => /^(?:j:)?\{([^{}]+)\}./.exec(member)?.[1] ?? '';

interface WorldOptions {
  readonly seed: number;
  readonly cuts: boolean;
  readonly owns: boolean;
  readonly strict?: boolean | 'at times';
  readonly two?: boolean;
  readonly costs?: boolean;
}

export class GatesWorld {
  readonly #redis: Redis;
  readonly #ref: PartitionRef;
  readonly #jobs: Jobs;
  readonly #random: () => number;
  readonly #groups: readonly string[];
  readonly #workers = ['w0', 'w1', 'w2'] as const;
  /** What each worker runs. */
  readonly #running = new Map<string, (Claim & { readonly dueMs: number })[]>();
  readonly #classes = new Map<string, Class>();
  readonly #members = new Set<string>();
  #nowMs = START_MS;
  #term = '';
  #serial = 0;
  #through = 0;
  #looks = 0;
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
  readonly #cuts: boolean;
  /** Groups have rates and limits of their own, and are closed at times. */
  readonly #owns: boolean;
  /** The queue is in strict order; with `at times` it begins and ends with the limits, while jobs run and wait. */
  readonly #strict: boolean | 'at times';
  /** The queue has two rates. */
  readonly #two: boolean;
  /** Jobs may cost more than one turn. */
  readonly #costs: boolean;
  /** Of those in line, the class by which each was lined up. */
  readonly #linedUp = new Map<string, Class | undefined>();
  #leaders = 1;
  /** Who was let through and is not over, by group; a dead letter that holds its group begins with a mark. */
  readonly #heads = new Map<string, string>();
  /** How often somebody waited for a job that has its group and waits itself. */
  #kept = 0;

  /** @param cuts whether scripts are cut off between two writes, and called again */
  constructor(redis: Redis, ref: PartitionRef, options: WorldOptions) {
    const { seed, cuts, owns, strict = false, two = false, costs = false } = options;
    this.#redis = redis;
    this.#ref = ref;
    this.#jobs = createJobs(redis);
    this.#cuts = cuts;
    this.#owns = owns;
    this.#strict = strict;
    this.#two = two;
    this.#costs = costs;
    this.#random = randomFrom(seed);
    this.#groups = ['', ...Array.from({ length: 1 + this.#below(6) }, (_, nth) => `g${nth}`)];
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

  /** So many random steps. What is wrong after one of them; undefined: nothing. */
  async walk(steps: number): Promise<string | undefined> {
    let before = await this.#snapshot();
    for (let step = 0; step < steps; step += 1) {
      const name = this.#pick(this.#strict ? BAG_IN_ORDER : this.#costs ? BAG_OF_COSTS : BAG);
      await this.#steps[name]();
      const after = await this.#snapshot();
      const wrong = this.#isGated ? await this.#judge(before, after, name) : undefined;
      if (wrong !== undefined) return `step ${step}, ${name}, gates ${after.share}: ${wrong}`;
      before = after;
    }
    return this.#drain();
  }

  #below(most: number): number {
    return Math.floor(this.#random() * most);
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

  async #judge(before: Snapshot, after: Snapshot, step: string): Promise<string | undefined> {
    const [, , concurrency = 0] = after.share.split(' ').map(Number);
    const known = new Set(before.entries.map(({ id }) => id));
    const fresh = after.entries.filter(({ id }) => !known.has(id));
    this.#through += fresh.length;
    const wrong = step === 'limits' ? undefined : this.#wronglyThrough(after, fresh, concurrency);
    if (wrong !== undefined) return wrong;
    const heads = new Map(this.#heads);
    this.#placed(before, after);
    const overtaken = this.#isStrict() ? await this.#overtaken(after, fresh) : undefined;
    if (overtaken !== undefined) return overtaken;
    await this.#note(fresh);
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
    if (!this.#cuts) return members;
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
    const isCounted = this.#costs && this.#limits.costs === true;
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
      this.#tooFast('', this.#two || this.#costs ? ratesOf(this.#limits.rate) : [], turn)
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

  /** Somebody was let through, and another job has the group, or a dead letter holds it. */
  async #overtaken(after: Snapshot, fresh: Snapshot['entries']): Promise<string | undefined> {
    for (const { member } of fresh) {
      const group = groupIn(member);
      // A cut has left an entry that its start drops.
      if (group === '' || after.toCome.has(member) || after.waiting.has(member)) continue;
      const head = this.#heads.get(group);
      const isOther = head !== undefined && head !== member && (await this.#counts(head));
      if (isOther) return `${member} was let through, and ${head} has its group`;
      this.#heads.set(group, member);
    }
    const isHeld = (member: string) => after.toCome.has(this.#heads.get(groupIn(member)) ?? '');
    this.#kept += [...after.waiting.keys()].some(isHeld) ? 1 : 0;
    return undefined;
  }

  /** A job that is over has its group no longer, whatever was answered to whoever ended it. */
  async #counts(head: string): Promise<boolean> {
    if (head.startsWith('!')) return this.#limits.groupOnDead === 'hold';
    return !((await this.#redis.hget(this.#ref.keys.jobs, head)) ?? '.').startsWith('.');
  }

  /** It has its group no longer. */
  #gaveUp(member: string): void {
    const group = groupIn(member);
    if (this.#heads.get(group) === member) this.#heads.delete(group);
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
      if (dueMs === undefined || heads.get(groupIn(member)) === member) continue;
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

  /** A call that is sometimes cut off before one of its writes, and made again. */
  async #call<T>(verb: string, call: () => Promise<T>): Promise<T> {
    if (!this.#cuts || this.#random() > 0.2) return call();
    const replies: T[] = [];
    const allowed = this.#below(16);
    const site = await cutOff(this.#redis, {
      verb,
      lua: luaOf(verb),
      allowed,
      call: async () => replies.push(await call()),
    });
    if (site === undefined) return replies[0] as T;
    this.#wasCut = true;
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
    if (given.length > 0) await this.#serve(name, [], 0, given);
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
    for (const [group, head] of this.#heads) if (head.startsWith('!')) this.#heads.delete(group);
    if (this.#strict) await this.#mendOrder();
  }

  /** Everything ends: nobody is stuck, and nothing is left. */
  async #drain(): Promise<string | undefined> {
    await this.#steps.resume();
    if (!this.#isGated) await this.#steps.limits();
    for (const group of this.#strict ? this.#groups.slice(1) : []) {
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
      // What jobs with costs owe takes longer.
      this.#nowMs += this.#costs ? 2000 : 50;
      await this.#promote(50);
      for (const name of this.#workers) {
        await this.#serve(name, this.#mine(name).splice(0), 3);
        if (this.#cuts) await this.#adopt(name);
      }
      if (this.#cuts) await mendGates(this.#redis, this.#ref, await this.#allFlaws(), this.#nowMs);
      const { waiting, entries } = await this.#snapshot();
      if (waiting.size + entries.length === 0 && (await this.#redis.zcard(this.#ref.keys.scheduled)) === 0) return;
    }
  }

  #settingsOfNow(): GateSettings {
    const often = this.#costs ? 0.8 : 0.3;
    const rate: Rates | 0 = this.#two ? this.#pick(PAIRS) : this.#random() < often ? this.#pick(RATES) : 0;
    const concurrency = this.#random() < 0.4 ? 1 + this.#below(8) : 0;
    const perGroup = this.#random() < 0.7 ? 1 + this.#below(3) : 0;
    const isStrict = this.#strict === 'at times' ? this.#random() < 0.6 : this.#strict;
    const own = this.#owns ? this.#ownLimits(isStrict) : {};
    const limits = { rate, concurrency, perGroup, ...own, ...(this.#costs && { costs: true as const }) };
    if (!isStrict) return limits;
    const groupOnDead = this.#random() < 0.5 ? ('hold' as const) : ('continue' as const);
    return { ...limits, perGroup: 1, groupOrder: 'strict', groupOnDead };
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

  async #serve(name: string, over: readonly Claim[], take: number, given: readonly Delivery[] = []): Promise<void> {
    const ended = this.#over(over);
    const call = () => this.#jobs.serve(this.#ref, { ended, given, take }, this.#settings(name));
    this.#took(name, await this.#call('serve', call));
    if (this.#wasCut && given.length === 0) await this.#adopt(name);
  }

  /** In strict order the line is full at times, for whoever has a group too. */
  #promote(most: number) {
    const lineMax = this.#strict && this.#random() < 0.5 ? 3 : 1_000_000;
    const pass = { term: this.#term, leaseMs: undefined, limit: most, cap: 1000, lineMax, nowMs: this.#nowMs };
    return this.#call('promote', () => this.#jobs.promote(this.#ref, pass));
  }

  async #settle(verb: 'retry' | 'defer' | 'bury' | 'complete' | 'commit'): Promise<void> {
    const claim = this.#mine(this.#pick(this.#workers)).shift();
    if (!claim) return;
    const when = { windowMs: WINDOW_MS, nowMs: this.#nowMs };
    if (verb === 'retry') {
      const failed = { ...when, delayMs: this.#below(50), error: '{"m":"x"}' };
      const reply = await this.#call(verb, () => this.#jobs.retry(this.#ref, claim, failed));
      if (reply === 'cancelled') this.#gaveUp(claim.member);
    } else if (verb === 'defer') {
      const later = { ...when, delayMs: this.#below(50), closing: this.#closing(claim.member) };
      const reply = await this.#call(verb, () => this.#jobs.defer(this.#ref, claim, later));
      if (reply === 'cancelled') this.#gaveUp(claim.member);
    } else {
      this.#members.delete(claim.member);
      const why = { ...when, reason: 'because', error: '{"m":"x"}' };
      const calls: Readonly<Record<typeof verb, () => Promise<unknown>>> = {
        bury: () => this.#jobs.bury(this.#ref, claim, why),
        commit: () => this.#jobs.commit(this.#ref, claim, { ...when, effects: [] }),
        complete: () => this.#jobs.complete(this.#ref, [claim], when),
      };
      await this.#call(verb, calls[verb]);
      await this.#ended(verb, claim.member);
    }
  }

  /** A dead letter holds the group that its job had, if the limits say so. */
  async #ended(verb: string, member: string): Promise<void> {
    const group = groupIn(member);
    const isHead = this.#heads.get(group) === member;
    this.#gaveUp(member);
    const [letter] = verb === 'bury' ? await this.#redis.xrevrange(this.#ref.keys.dead, '+', '-', 'COUNT', 1) : [];
    if (isHead && letter?.[1][1] === member && this.#limits.groupOnDead === 'hold') {
      this.#heads.set(group, `!${letter[0]}`);
    }
  }

  #closeUntil(group: string, ms: number): void {
    this.#closedMs.set(group, Math.max(ms, this.#closedMs.get(group) ?? 0));
  }

  /** Sometimes a handler closes its group or its queue. */
  #closing(member: string) {
    if (!this.#isGated || !this.#owns || this.#random() < 0.5) return undefined;
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
    return this.#costs ? `;c=${this.#pick(COSTS).toString(36)}` : '';
  }

  /** A rate for each group, and limits of some. */
  #ownLimits(isStrict: boolean): GateSettings {
    const some = (): GroupSettings => ({
      ...(this.#random() < 0.5 && !isStrict && { concurrency: this.#below(4) }),
      ...(this.#random() < 0.5 && { rate: this.#pick<Rate | 0>([0, ...RATES]) }),
      ...(this.#random() < 0.5 && { weight: 1 + this.#below(4) }),
    });
    const names = ['g0', 'g*', 'g1', 'x*'].filter(() => this.#random() < 0.3);
    const groups = Object.fromEntries(names.map((name) => [name, some()]));
    return { groups, ...(this.#random() < 0.5 && { groupRate: this.#pick(RATES) }) };
  }

  readonly #steps = {
    schedule: async () => {
      const items = Array.from({ length: 1 + this.#below(6) }, () => {
        const group = this.#pick(this.#groups);
        const member = `${this.#below(8) === 0 ? '' : 'j:'}${group && `{${group}}`}n${this.#serial++}`;
        const isBare = !member.startsWith('j:');
        const kind: Class = isBare ? 1 : this.#pick([0, 1, 1, 1, 2]);
        const dueMs = this.#nowMs + this.#below(200) - 100;
        this.#members.add(member);
        this.#classes.set(member, kind);
        const plain = encodeRecord(dueMs, '{}', {});
        return { member, dueMs, record: plain.replace('|', `${HEADERS[kind]}${this.#costWords()}|`) };
      });
      for (const { member, dueMs } of items.filter((one) => !one.member.startsWith('j:'))) {
        await this.#redis.zadd(this.#ref.keys.scheduled, dueMs, member);
      }
      const managed = items.filter((one) => one.member.startsWith('j:'));
      const settings = { mode: 'keep', horizonMs: 1e12, bytesMax: 1000, nowMs: this.#nowMs } as const;
      await this.#jobs.schedule(this.#ref, managed, settings);
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
      await this.#serve(name, mine.splice(0, this.#below(mine.length + 1)), this.#below(5));
    },
    relay: async () => {
      const name = this.#pick(this.#workers);
      const mine = this.#mine(name);
      const ended = this.#over(mine.splice(0, this.#below(mine.length + 1)));
      const take = 1 + this.#below(4);
      const pass = { term: this.#term, leaseMs: undefined, limit: take, cap: 1000 };
      const call = () => this.#jobs.relay(this.#ref, { ended, take, pass }, this.#settings(name));
      this.#took(name, await this.#call('relay', call));
      if (this.#wasCut) await this.#adopt(name);
    },
    read: async () => {
      const name = this.#pick(this.#workers);
      const batches = await readNew(this.#redis, [this.#ref], {
        consumer: name,
        count: 1 + this.#below(2),
        blockMs: 0,
      });
      const given = batches.flatMap(({ deliveries }) => deliveries);
      if (given.length === 0) return;
      if (this.#random() < 0.3) {
        await this.#call('release', () => this.#jobs.release(this.#ref, given, { consumer: name, nowMs: this.#nowMs }));
      } else {
        await this.#serve(name, [], this.#below(4), given);
      }
    },
    /** A start says how many turns it has used, sometimes what it has said before. */
    spend: async () => {
      const claim = this.#pick(this.#mine(this.#pick(this.#workers)));
      if (claim === undefined || !this.#isGated) return;
      const { entry, member, token } = claim;
      const known = this.#saidBy(entry, token);
      const said = { nth: known.nth + 1, turns: this.#pick([0, 1, 2, 20]) };
      const call = () => this.#jobs.spend(this.#ref, { entry, member, token, ...said }, this.#nowMs);
      const isCounted = (await this.#call('spend', call)) === 'ok';
      const isKnown = this.#throughs.has(entry) && this.#begun.has(entry);
      if (!isCounted || !isKnown) return;
      this.#said.set(entry, { token, ...said });
      const more = said.turns - known.turns;
      this.#moments += 1;
      const at = { entry, atMs: this.#nowMs, nth: this.#moments, isStart: false };
      if (more > 0) this.#use(groupIn(member), { ...at, turns: more });
      else this.#giveBack(groupIn(member), entry, -more);
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
      const plain = encodeRecord(dueMs, `{"d":${this.#serial++}}`, {});
      const record = plain.replace('|', `${HEADERS[kind]}${this.#costWords()}|`);
      const settings = { mode: 'replace', horizonMs: 1e12, bytesMax: 1000, nowMs: this.#nowMs } as const;
      const reply = await this.#jobs.schedule(this.#ref, [{ member, record, dueMs }], settings);
      if (Array.isArray(reply) && reply[0].kind === 'replaced') this.#gaveUp(member);
    },
    /** Somebody else puts a bare member again, which leaves its place in line behind. */
    again: async () => {
      const member = this.#pick([...this.#members].filter((one) => !one.startsWith('j:')));
      if (member !== undefined) {
        await this.#redis.zadd(this.#ref.keys.scheduled, 'XX', this.#nowMs + this.#below(200), member);
      }
    },
    death: async () => {
      const [owner, heir] = [this.#pick(this.#workers), this.#pick(this.#workers)];
      const mine = this.#mine(owner).splice(0);
      if (owner === heir || mine.length === 0) {
        this.#mine(owner).push(...mine);
        return;
      }
      const entries = mine.map(({ entry }) => entry);
      const take = { owner, consumer: heir, idleMs: 0, limit: 100, entries, nowMs: this.#nowMs };
      const { deliveries } = await reclaim(this.#redis, this.#ref, take);
      const given = deliveries.toSorted((one, other) => (one.entry < other.entry ? -1 : 1));
      if (given.length > 0) await this.#serve(heir, [], 0, given);
    },
    limits: async () => {
      // No two calls have the same microsecond of Redis.
      this.#nowMs += 1;
      const settings = this.#settingsOfNow();
      const share = shareOf(settings);
      // Somebody who set others went away after the first call.
      const other = shareOf(this.#settingsOfNow());
      const args = { now: this.#nowMs, term: '', share: other.share, limit: 1 };
      const each = other.groups.flat();
      if (this.#random() < 0.3) await run(this.#redis, scripts.limit, { keys: this.#ref.keys, args, each });
      const isEnded = this.#strict && (await this.#redis.exists(this.#ref.keys.order)) === 0;
      await this.#call('limit', () => limit(this.#redis, this.#ref, { share, slice: 3, nowMs: this.#nowMs }));
      this.#limits = settings;
      if (isEnded || !this.#isStrict()) this.#heads.clear();
      if (settings.groupOnDead === 'continue') await this.#forgetDead();
      this.#turns = new Map();
      this.#throughs.clear();
      this.#isGated = true;
    },
    close: async () => {
      if (!this.#isGated || !this.#owns) return;
      const group = this.#pick([...this.#groups]);
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
      if (this.#heads.get(group)?.startsWith('!')) this.#heads.delete(group);
    },
    /** A dead letter lives again, or is removed, which the janitor sees. */
    revive: async () => {
      const letters = this.#strict ? await this.#redis.xrange(this.#ref.keys.dead, '-', '+') : [];
      const letter = this.#pick(letters);
      if (letter === undefined) return;
      const [id, [, member = '']] = letter;
      const isHead = this.#heads.get(groupIn(member)) === `!${id}`;
      if (this.#random() < 0.3) {
        await this.#redis.xdel(this.#ref.keys.dead, id);
        await this.#mendOrder();
        if (isHead) this.#heads.delete(groupIn(member));
        return;
      }
      const reply = await this.#call('replay', () => this.#jobs.replay(this.#ref, id, { nowMs: this.#nowMs }));
      if (reply.kind !== 'ok') return;
      this.#members.add(member);
      if (isHead) this.#heads.set(groupIn(member), member);
    },
    /** Another process leads, and a pass of the one before is refused. */
    lead: async () => {
      await resign(this.#redis, this.#ref, this.#term);
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
      const dueMs = this.#random() < 0.5 ? this.#nowMs + this.#below(100) - 50 : undefined;
      const items = [{ member, before: digestOf(before), record, dueMs }];
      const when = { bytesMax: 1000, nowMs: this.#nowMs };
      await this.#call('edit', () => this.#jobs.edit(this.#ref, items, when));
    },
    pause: async () => {
      if (this.#strict) await pause(this.#redis, this.#ref, { reason: 'x', nowMs: this.#nowMs });
      else await this.#redis.hset(this.#ref.keys.meta, 'paused', `${this.#nowMs} x`);
    },
    resume: async () => {
      if (this.#strict) await resume(this.#redis, this.#ref);
      else await this.#redis.hdel(this.#ref.keys.meta, 'paused');
    },
    /** Somebody takes all lanes and holds away, and the janitor makes them again. */
    loss: async () => {
      if (!this.#isGated || this.#random() < 0.8) return;
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
  ...['pause', 'resume', 'resume', 'loss', 'close', 'close', 'open'],
] as readonly Step[];
/** And where jobs have costs. */
const BAG_OF_COSTS: typeof BAG = [...BAG, 'spend', 'spend', 'spend', 'spend'];
/** And in strict order. */
const BAG_IN_ORDER: typeof BAG = [...BAG, 'revive', 'retry', 'retry', 'time', 'lead', 'edit'];
type Step =
  | ('schedule' | 'time' | 'promote' | 'serve' | 'read' | 'relay' | 'retry' | 'limits' | 'pause' | 'loss' | 'close')
  | ('revive' | 'lead' | 'edit' | 'spend');
