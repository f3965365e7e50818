/**
 * Tells what holds the jobs that wait in line of a led partition, so that the account of a start can say why it was late. While
 * somebody is in line it looks ten times a second, and writes down each second what it has seen. Scripts and jobs have
 * no work with it: what it costs depends on the time for which there is a line, and not on how many jobs are in it.
 *
 *     nobody in line ──a pass put jobs in line, or a second──▶ look each 100 ms ──▶ each second an entry of `K:looks`
 *
 * A look says of a moment. Half of the time between two looks was as the first one saw it, and half as the second one did. A group that is gone was
 * held until then by what held it at its last look, and one that has come was held by what holds it now. Of more than 100 groups each look
 * sees the next 100. Where nobody leads, nobody looks: that time is not told, and nothing is guessed. A failure is not told either: the services that need Redis for
 * jobs tell of an outage.
 */
import type { Cause, LineRun } from '../../job/account.ts';
import { type GateState, spentIn } from '../../job/gate.ts';
import { lentIn } from '../../job/shared-limit.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { groupsOf, type SeenGroup, type SeenGroups } from '../../redis/read/groups.ts';
import { addLook } from '../../redis/read/looks.ts';
import { heldUntil } from '../../redis/read/order.ts';
import { pauseIn } from '../../redis/scripts/upkeep.ts';
import { type Chore, type Duty, turnsOf } from '../partition-loop.ts';

export interface SurveyorParts extends Duty {
  /** The partition with the settings of its queue as they are now. */
  readonly current: () => PartitionRef;
}

/** How often a queue that is not gated is looked at again. */
const IDLE_MS = 5000;
/** How often it looks whether this process leads by now, and whether somebody is in line whom no pass has told of. */
const REST_MS = 1000;
const LOOK_MS = 100;
/** An entry has so much. */
const SECOND_MS = 1000;
const GROUPS_MAX = 100;
/** Two looks that are further apart have not seen what was between them. */
const GAP_MS = 500;
/** The same of a group, which of many is not seen with each look. */
const GROUP_GAP_MS = 2000;

/** What was seen since an entry was written. */
interface Second {
  readonly fromMs: number;
  /** Of each group, and '' of jobs without one: what held it, one time after the other. */
  readonly held: Map<string, LineRun[]>;
}

/** What held a group when it was seen last. */
interface Sight {
  readonly atMs: number;
  readonly cause: Cause;
}

export function createSurveyor(parts: SurveyorParts): Chore {
  const { ref, clock, events } = parts;
  const surveyor = new Surveyor(parts, () => loop.wake());
  const pass = () => surveyor.pass();
  const loop = createLoop({ who: `surveyor of ${ref.queue}:${ref.partition}`, pass, clock, events });
  return {
    start: loop.start,
    stop() {
      surveyor.stopListening();
      return loop.stop();
    },
    pass,
  };
}

const ON_TIME = { ms: 0, atMs: 0 };

class Surveyor {
  readonly #parts: SurveyorParts;
  readonly #wake: () => void;
  /** Of each group that is in line, and '' of jobs without one. */
  #last = new Map<string, Sight>();
  /** The last look: the same moment by the clock of Redis, and monotonic. */
  #looked = { serverMs: 0, atMs: 0 };
  #second: Second | undefined;
  /** The last group of the look before, where there may be more. */
  #after = '';
  /** The pass that was latest since the last entry, or since a look found nobody in line; monotonic. */
  #late = ON_TIME;
  /** It does not look ten times a second now: jobs that come into line wake it. */
  #isResting = true;
  #off: (() => void) | undefined;

  constructor(parts: SurveyorParts, wake: () => void) {
    this.#parts = parts;
    this.#wake = wake;
  }

  async pass(): Promise<number | Idle> {
    const { redis, ref, current, leading } = this.#parts;
    this.#isResting = true;
    const isGated = current().gates !== undefined;
    // Also before it leads: the first pass of a leader may be the late one.
    if (isGated) this.#listen();
    try {
      if (!isGated || !leading()) {
        await this.#close();
        return idle(isGated ? REST_MS : IDLE_MS);
      }
      if ((await redis.zcard(ref.keys.line)) === 0) return await this.#clear();
      this.#isResting = false;
      await this.#look();
    } catch {
      this.#forget();
    }
    return LOOK_MS;
  }

  stopListening(): void {
    this.#off?.();
    this.#off = undefined;
  }

  async #look(): Promise<void> {
    const { redis, ref, current, clock } = this.#parts;
    const [found, entries, [paused, lent]] = await Promise.all([
      groupsOf(redis, current(), { after: this.#after, limit: GROUPS_MAX }),
      redis.xlen(ref.keys.ready),
      redis.hmget(ref.keys.meta, 'paused', 'lent'),
    ]);
    if (!('groups' in found) || !found.gate) return;
    const { nowMs, gate } = found;
    await this.#since(nowMs);
    this.#looked = { serverMs: nowMs, atMs: clock.monotonicMs() };
    this.#second ??= { fromMs: nowMs, held: new Map() };
    const has = gate.shared && { lent: lentIn(lent ?? '', { names: gate.shared, nowMs }) };
    const partition = { gate: { ...gate, ...has }, entries, isPaused: pauseIn(paused) !== undefined, nowMs };
    const causes = new Map([['', causeOf(partition)]]);
    const all = waiting(found);
    const names = all.map(({ group }) => group);
    const held = await heldUntil(redis, current(), names);
    for (const group of all) {
      const isKept = !partition.isPaused && (held.get(group.group) ?? 0) > nowMs;
      causes.set(group.group, isKept ? 'group-full' : causeOf(partition, group));
    }
    this.#saw(causes, nowMs, found.groups);
    if (nowMs - this.#second.fromMs < SECOND_MS) return;
    await this.#tell(nowMs);
    this.#second = { fromMs: nowMs, held: new Map() };
  }

  /** What came of the time since the last look: the clock of Redis may have been set back, and this process held. */
  async #since(nowMs: number): Promise<void> {
    const { serverMs } = this.#looked;
    if (nowMs >= serverMs && nowMs - serverMs <= GAP_MS) return;
    if (nowMs > serverMs) await this.#tell(serverMs, true);
    this.#forget();
  }

  #saw(causes: ReadonlyMap<string, Cause>, nowMs: number, groups: SeenGroups['groups']): void {
    const isAll = this.#after === '' && groups.length < GROUPS_MAX;
    this.#after = groups.length < GROUPS_MAX ? '' : (groups.at(-1)?.group ?? '');
    const sinceMs = this.#last.get('')?.atMs ?? nowMs;
    for (const [group, cause] of causes) this.#note(group, { cause, atMs: nowMs }, sinceMs);
    const gone = isAll ? [...this.#last.keys()].filter((group) => !causes.has(group)) : [];
    for (const group of gone) this.#end(group, nowMs);
  }

  /** @param sinceMs when somebody looked who did not see the group */
  #note(group: string, sight: Sight, sinceMs: number): void {
    const last = this.#last.get(group);
    this.#last.set(group, sight);
    const fromMs = last?.atMs ?? sinceMs;
    const halfMs = last ? Math.floor((fromMs + sight.atMs) / 2) : fromMs;
    if (last) this.#add(group, { cause: last.cause, fromMs, toMs: halfMs });
    this.#add(group, { cause: sight.cause, fromMs: halfMs, toMs: sight.atMs });
  }

  /** Nobody of this group is in line any more. */
  #end(group: string, nowMs: number): void {
    const last = this.#last.get(group);
    if (last) this.#add(group, { cause: last.cause, fromMs: last.atMs, toMs: nowMs });
    this.#last.delete(group);
  }

  #add(group: string, run: LineRun): void {
    const { fromMs, toMs, cause } = run;
    if (!this.#second || !(toMs > fromMs && toMs - fromMs <= GROUP_GAP_MS)) return;
    const runs = this.#second.held.get(group) ?? [];
    const last = runs.at(-1);
    if (last?.cause === cause && last.toMs === fromMs) runs[runs.length - 1] = { cause, fromMs: last.fromMs, toMs };
    else runs.push(run);
    this.#second.held.set(group, runs);
  }

  /** Nobody is in line any more. Who comes before the second is over is told with it. */
  async #clear(): Promise<Idle> {
    const { serverMs, atMs } = this.#looked;
    const nowMs = Math.round(serverMs + this.#parts.clock.monotonicMs() - atMs);
    if (this.#second) for (const group of this.#last.keys()) this.#end(group, nowMs);
    this.#last = new Map();
    const leftMs = this.#second ? this.#second.fromMs + SECOND_MS - nowMs : 0;
    if (leftMs > 0) return idle(leftMs);
    await this.#tell(nowMs);
    this.#forget();
    this.#late = ON_TIME;
    return idle(REST_MS * turnsOf(this.#parts));
  }

  /** This process leads no longer: what it saw is told. */
  async #close(): Promise<void> {
    const { serverMs, atMs } = this.#looked;
    if (this.#parts.clock.monotonicMs() - atMs <= SECOND_MS) await this.#tell(serverMs, true);
    this.#forget();
  }

  /** Writes what was seen, and the latest pass, which was after the last look where there is a hole between. */
  async #tell(toMs: number, isHole = false): Promise<void> {
    const { redis, ref, clock } = this.#parts;
    const [second, late] = [this.#second, isHole ? ON_TIME : this.#late];
    if (!second || second.held.size === 0) return;
    if (!isHole) this.#late = ON_TIME;
    const passMs = Math.round(toMs - (clock.monotonicMs() - late.atMs));
    // Of many groups each is seen now and then: what is told of one may begin in the second before.
    const fromMs = Math.min(second.fromMs, ...[...second.held.values()].map(([first]) => first?.fromMs ?? toMs));
    await addLook(redis, ref, { held: second.held, fromMs, toMs, lateMs: late.ms, passMs });
  }

  #forget(): void {
    this.#last = new Map();
    this.#second = undefined;
    this.#after = '';
  }

  #listen(): void {
    const { ref, clock, events } = this.#parts;
    if (this.#off) return;
    const isOurs = (of: { readonly queue: string; readonly partition: number }) =>
      of.queue === ref.queue && of.partition === ref.partition;
    const offs = [
      events.on('leader.elected', (of) => isOurs(of) && this.#lookNow()),
      events.on('jobs.promoted', (of) => {
        if (!isOurs(of)) return;
        for (const [ms] of of.lateness) if (ms > this.#late.ms) this.#late = { ms, atMs: clock.monotonicMs() };
        if ((of.waiting ?? 0) > 0) this.#lookNow();
      }),
    ];
    this.#off = () => {
      for (const off of offs) off();
    };
  }

  /** Jobs came into line, or it leads from now on. */
  #lookNow(): void {
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#wake();
  }
}

const waiting = ({ groups }: SeenGroups): readonly SeenGroup[] =>
  groups.filter(({ places: { high, normal, low } }) => high + normal + low > 0);

interface SeenPartition {
  readonly gate: GateState;
  readonly entries: number;
  readonly isPaused: boolean;
  readonly nowMs: number;
}

/** What holds the first in line of a group: what somebody has to end comes first, and what time ends last. */
function causeOf({ gate, entries, isPaused, nowMs }: SeenPartition, group?: SeenGroup): Cause {
  const state = group?.state;
  if (isPaused) return 'paused';
  if (gate.closedMs > nowMs || (state?.closedMs ?? 0) > nowMs) return 'closed';
  if (group && state && state.most > 0 && group.running >= state.most) return 'group-full';
  if (gate.concurrency > 0 && entries >= gate.concurrency) return 'concurrency';
  if ((state?.nextTurnMs ?? 0) > nowMs || (gate.intervalUs > 0 && gate.nextTurnMs > nowMs)) return 'rate';
  return spentIn(gate, entries).length > 0 ? 'shared' : 'unasked';
}
