/**
 * The groups of a queue, by name, over all of its partitions: each gives its groups in the order of their names, a slice at a
 * time, and the walk takes the least of their heads. A group that is in several partitions, since others put its jobs there, is
 * met once, with all that it has.
 */
import type { GateState } from '../../job/gate.ts';
import { PRIORITIES, type Priority } from '../../job/labels.ts';
import type { RetryPolicy } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { GroupState, GroupsAsk, SeenGroup, SeenGroups } from '../../redis/read/groups.ts';
import type { Moved } from '../../redis/scripts/replies.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { Reader } from '../query/reader.ts';

/** A group at one moment. */
export interface Group {
  readonly group: string;
  /** Jobs of it that were let through and are not over: they run, or a worker is about to start them. */
  readonly running: number;
  /** Jobs of it that are due and in line. */
  readonly waiting: number;
  /** The same by priority. */
  readonly priorities: Readonly<Record<Priority, number>>;
  /** For how long the first of them has waited, ms; 0 when none does. */
  readonly waitMs: number;
  /** How many may run at a time; undefined: no such limit. */
  readonly perGroup: number | undefined;
  /** Ms between two starts at its rate; undefined: it has no rate. */
  readonly intervalMs: number | undefined;
  /** When its rate allows the next start, epoch ms; undefined: now. */
  readonly nextTurnMs: number | undefined;
  /** How many turns it has where another group has one. */
  readonly weight: number;
  /** How many of its jobs may wait or run; undefined: no such limit. */
  readonly maxPending: number | undefined;
  /** How many do, of those that were made since there is such a limit; undefined without one. */
  readonly pending: number | undefined;
  /** Somebody has closed it until then, and why; undefined: it is open. */
  readonly closed: { readonly untilMs: number; readonly reason: string } | undefined;
  /** As many run as may. */
  readonly isFull: boolean;
}

export interface GroupWalkParts {
  readonly reader: Pick<Reader, 'groups'>;
  readonly layout: readonly PartitionRef[];
  readonly policy: RetryPolicy;
}

/** Groups of one call, each of which costs Redis about 30 µs. */
const SLICE = 50;

/** What was read of the partitions besides groups. */
export interface Walked {
  readonly isGated: boolean;
  /** Jobs in line that have no group. */
  readonly ungrouped: number;
  readonly nowMs: number;
}

/**
 * Meets the groups behind `after`, until `meet` has enough of them.
 *
 * @param of.limit how many are wanted, so that no more are read
 * @param meet whether it wants another
 */
export async function walkGroups(
  parts: GroupWalkParts,
  of: { readonly after: string; readonly limit: number },
  meet: (group: Group) => boolean,
): Promise<Walked | Moved> {
  const streams = parts.layout.map((ref) => new PartitionGroups(parts, ref, of));
  for (;;) {
    const moved = await fillAll(streams);
    if (moved) return moved;
    // Names are ASCII: as texts they have the order of their bytes.
    const name = streams.reduce<string | undefined>((least, { head }) => {
      return head && (least === undefined || head.group < least) ? head.group : least;
    }, undefined);
    const heads = streams.flatMap((stream) => (stream.head?.group === name ? (stream.take() ?? []) : []));
    if (heads.length === 0 || !meet(groupIn(heads))) return walkedIn(streams);
  }
}

/** What was read to find the longest groups. */
export interface Longest extends Walked {
  readonly groups: readonly Group[];
  /** Groups that were looked at. */
  readonly scanned: number;
  /** The last of them; undefined: there are no more behind it. */
  readonly last: string | undefined;
}

/** Groups that one walk looks at for the longest. */
const SCANNED_MAX = 100_000;

/** Those with most jobs in line behind `after`, the longest first. No more than twice as many as are wanted are kept. */
export async function longestGroups(
  parts: GroupWalkParts,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<Longest | Moved> {
  let best: Group[] = [];
  let scanned = 0;
  let last = '';
  let isCut = false;
  const walked = await walkGroups(parts, { after, limit: SLICE }, (group) => {
    isCut = scanned === SCANNED_MAX;
    if (isCut) return false;
    scanned += 1;
    last = group.group;
    if (group.waiting > 0) best.push(group);
    if (best.length >= 2 * limit) best = best.sort(longestFirst).slice(0, limit);
    return true;
  });
  if (isMoved(walked)) return walked;
  return { ...walked, groups: best.sort(longestFirst).slice(0, limit), scanned, last: isCut ? last : undefined };
}

const longestFirst = (one: Group, other: Group): number =>
  other.waiting - one.waiting || other.waitMs - one.waitMs || (one.group < other.group ? -1 : 1);

/** One group by its name, also where nobody is in it. */
export async function namedGroup(parts: GroupWalkParts, group: string): Promise<(Walked & Group) | Moved> {
  const streams = parts.layout.map((ref) => new PartitionGroups(parts, ref, { named: [group] }));
  const moved = await fillAll(streams);
  if (moved) return moved;
  return { ...walkedIn(streams), ...groupIn(streams.flatMap((stream) => stream.take() ?? [])) };
}

/** A group of a partition, with what its partition says. */
interface Head extends SeenGroup {
  readonly gate: GateState | undefined;
  readonly nowMs: number;
}

function groupIn(heads: readonly Head[]): Group {
  const of = (priority: Priority) => heads.reduce((sum, { places }) => sum + places[priority], 0);
  const priorities = { high: of('high'), normal: of('normal'), low: of('low') };
  const states = heads.flatMap(({ state }) => state ?? []);
  const largest = (of: (state: GroupState) => number) => Math.max(0, ...states.map(of));
  const [perGroup, closedMs] = [largest(({ most }) => most), largest(({ closedMs }) => closedMs)];
  const [intervalUs, nextTurnMs] = [largest((one) => one.intervalUs), largest((one) => one.nextTurnMs)];
  const maxPending = largest((one) => one.maxPending);
  const reason = states.find((one) => one.closedMs === closedMs)?.reason ?? '';
  return {
    group: heads[0]?.group ?? '',
    running: heads.reduce((sum, { running }) => sum + running, 0),
    waiting: PRIORITIES.reduce((sum, priority) => sum + priorities[priority], 0),
    priorities,
    waitMs: Math.max(...heads.map(({ sinceMs, nowMs }) => (sinceMs === undefined ? 0 : Math.max(0, nowMs - sinceMs)))),
    perGroup: perGroup === 0 ? undefined : perGroup,
    intervalMs: intervalUs === 0 ? undefined : intervalUs / 1000,
    nextTurnMs: nextTurnMs === 0 ? undefined : nextTurnMs,
    weight: Math.max(
      1,
      largest(({ weight }) => weight),
    ),
    maxPending: maxPending === 0 ? undefined : maxPending,
    pending: maxPending === 0 ? undefined : states.reduce((sum, one) => sum + one.pending, 0),
    closed: closedMs === 0 ? undefined : { untilMs: closedMs, reason },
    // Each partition has the whole limit.
    isFull: perGroup > 0 && heads.some(({ running }) => running >= perGroup),
  };
}

const walkedIn = (streams: readonly PartitionGroups[]): Walked => ({
  isGated: streams.some(({ first }) => first?.gate !== undefined),
  ungrouped: streams.reduce((sum, { first }) => sum + (first?.ungrouped ?? 0), 0),
  nowMs: Math.max(...streams.map(({ first }) => first?.nowMs ?? 0)),
});

/** Each partition has a head, or no group more. */
async function fillAll(streams: readonly PartitionGroups[]): Promise<Moved | undefined> {
  const empty = streams.filter((stream) => stream.isEmpty);
  if (empty.length === 0) return undefined;
  return (await Promise.all(empty.map((stream) => stream.fill()))).find((reply) => reply !== undefined);
}

/** The groups of one partition. */
class PartitionGroups {
  readonly #parts: GroupWalkParts;
  readonly #ref: PartitionRef;
  /** What is asked for next; undefined: that was all. */
  #ask: GroupsAsk | undefined;
  #rest: readonly Head[] = [];
  #at = 0;
  /** The first that it replied. */
  first: SeenGroups | undefined;

  constructor(parts: GroupWalkParts, ref: PartitionRef, ask: GroupsAsk) {
    this.#parts = parts;
    this.#ref = ref;
    this.#ask = 'named' in ask ? ask : { after: ask.after, limit: Math.min(ask.limit, SLICE) };
  }

  get head(): Head | undefined {
    return this.#rest[this.#at];
  }

  take(): Head | undefined {
    this.#at += 1;
    return this.#rest[this.#at - 1];
  }

  /** Nothing is left of the slice, and there may be another. */
  get isEmpty(): boolean {
    return this.head === undefined && this.#ask !== undefined;
  }

  /** Reads the next slice. */
  async fill(): Promise<Moved | undefined> {
    const ask = this.#ask;
    if (ask === undefined) return undefined;
    const { reader, policy } = this.#parts;
    const seen = await withReadRetry('groups', () => reader.groups(this.#ref, ask), policy);
    if (isMoved(seen)) return seen;
    const { gate, nowMs, groups } = seen;
    this.first ??= seen;
    this.#rest = groups.map((group) => ({ ...group, gate, nowMs }));
    this.#at = 0;
    const last = groups.at(-1)?.group;
    this.#ask = 'named' in ask || groups.length < ask.limit || last === undefined ? undefined : { ...ask, after: last };
    return undefined;
  }
}
