/** Sets of jobs in virtual time, by the rules of the scripts: who is a member, how the members ended, and the callback. */
import type { SetEnds } from '../job/job.ts';
import { decodeHeader } from '../job/record-header.ts';
import { isLiveState, type OverState } from '../job/state.ts';
import type { PartitionRef } from '../redis/keys.ts';
import type { SeenSet, SetsAsk, SetsSlice } from '../redis/read/sets.ts';
import type { SetCallback, SetChange, SetReply } from '../redis/scripts/sets.ts';
import type { Kept } from './kept.ts';

interface KeptSet {
  readonly callback: SetCallback;
  readonly madeMs: number;
  readonly ends: Record<OverState, number>;
  isSealed: boolean;
}

interface SetsParts {
  readonly nowMs: () => number;
  readonly inQueue: (queue: string) => Iterable<Kept>;
  readonly find: (queue: string, id: string) => Kept | undefined;
}

/** Schedules a callback, whatever limits its queue has. */
type Put = (
  queue: string,
  callback: { readonly id: string; readonly record: string; readonly dueMs: number },
) => Promise<unknown>;

export class KeptSets {
  readonly #parts: SetsParts;
  readonly #put: Put;
  readonly #queues = new Map<string, Map<string, KeptSet>>();

  constructor(parts: SetsParts, put: Put) {
    this.#parts = parts;
    this.#put = put;
  }

  /** Whether a job may become a member of the set that its record says: the set is there, and of the group of the id. */
  admits(queue: string, { id, record }: { readonly id: string; readonly record: string }): boolean {
    const name = setIn(record);
    if (name === undefined) return true;
    const set = this.#in(queue).get(name);
    return set !== undefined && id.startsWith(bracesOf(set.callback.member));
  }

  /** A job is over. */
  ended({ queue: { name: queue }, record, state }: Kept): void {
    const name = setIn(record);
    const set = name === undefined ? undefined : this.#in(queue).get(name);
    if (name === undefined || !set || isLiveState(state)) return;
    set.ends[state] += 1;
    this.#callBack(queue, name, set);
  }

  /**
   * A dead letter is about to live again, with the record that is returned: who died before the set began was a member of an
   * earlier one of its name, and is none of this one.
   */
  rejoin(queue: string, { record, atMs }: { readonly record: string; readonly atMs: number }): string {
    const set = this.#in(queue).get(setIn(record) ?? '');
    if (!set) return record;
    if (atMs < set.madeMs) return setless(record);
    set.ends.dead = Math.max(0, set.ends.dead - 1);
    return record;
  }

  /** The rules of `gather.lua`, `seal.lua` and `disband.lua`. */
  change(queue: string, change: SetChange): SetReply {
    switch (change.kind) {
      case 'gather':
        return this.#gather(queue, change);
      case 'seal':
        return this.#seal(queue, change);
      case 'disband':
        return { kind: this.#in(queue).delete(change.name) ? 'ok' : 'unknown' };
    }
  }

  #gather(queue: string, { name, callback }: Extract<SetChange, { kind: 'gather' }>): SetReply {
    const sets = this.#in(queue);
    const set = sets.get(name);
    if (set) return { kind: isSame(set.callback, callback) ? 'already' : 'exists' };
    if (this.#isThere(queue, callback.member)) return { kind: 'over' };
    if (this.#open(queue, name) > 0) return { kind: 'lives' };
    const ends = { done: 0, dead: 0, cancelled: 0, expired: 0 };
    sets.set(name, { callback, madeMs: this.#parts.nowMs(), ends, isSealed: false });
    return { kind: 'ok' };
  }

  #seal(queue: string, { name, member }: Extract<SetChange, { kind: 'seal' }>): SetReply {
    const set = this.#in(queue).get(name);
    if (!set) return { kind: this.#isThere(queue, member) ? 'over' : 'unknown' };
    const kind = set.isSealed ? 'already' : 'ok';
    set.isSealed = true;
    this.#callBack(queue, name, set);
    return { kind };
  }

  #isThere = (queue: string, member: string): boolean => this.#parts.find(queue, member.slice(2)) !== undefined;

  look({ queue, partition }: PartitionRef, ask: SetsAsk): SetsSlice {
    // A queue of the kit has one list of sets, whatever its partitions.
    const here = [...(partition === 0 ? this.#in(queue) : [])]
      .map(([name, set]) => this.#seen(queue, name, set))
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
    if ('named' in ask) return { sets: here.filter(({ name }) => ask.named.includes(name)), next: undefined };
    const sets = here.filter(({ name }) => name > (ask.after ?? '')).slice(0, ask.limit);
    return { sets, next: sets.length < ask.limit ? undefined : sets.at(-1)?.name };
  }

  #seen(queue: string, name: string, { callback, madeMs, ends, isSealed }: KeptSet): SeenSet {
    return { name, ...ends, isSealed, madeMs, open: this.#open(queue, name), callback };
  }

  #open(queue: string, name: string): number {
    let open = 0;
    for (const job of this.#parts.inQueue(queue)) {
      if (isLiveState(job.state) && setIn(job.record) === name) open += 1;
    }
    return open;
  }

  /** The rules of `lua/lib/callback.lua`. */
  #callBack(queue: string, name: string, set: KeptSet): void {
    if (!set.isSealed || this.#open(queue, name) > 0) return;
    this.#in(queue).delete(name);
    const { member, record, delayMs } = set.callback;
    const dueMs = this.#parts.nowMs() + delayMs;
    const text = endsText({ name, ...set.ends });
    const made = record.replace(/^1\w+/, () => `1${dueMs.toString(36)};n=${text}`);
    void this.#put(queue, { id: member.slice(2), record: made, dueMs });
  }

  #in(queue: string): Map<string, KeptSet> {
    const sets = this.#queues.get(queue) ?? new Map<string, KeptSet>();
    this.#queues.set(queue, sets);
    return sets;
  }
}

const endsText = ({ name, done, dead, cancelled, expired }: SetEnds): string =>
  `${done}.${dead}.${cancelled}.${expired}.${name}`;

const isSame = (one: SetCallback, other: SetCallback): boolean =>
  one.record === other.record && one.delayMs === other.delayMs && one.member === other.member;

/** What the ids of the members begin with as well. */
const bracesOf = (member: string): string => /^j:(\{[^}]*\})/.exec(member)?.[1] ?? '';

/** As `setless` of `lua/lib/rejoining.lua`. */
function setless(record: string): string {
  const bar = record.indexOf('|');
  const header = record
    .slice(0, bar)
    .replace(/ set:[^,;]+,?/, '')
    .replace(/,(?=;|$)/, '')
    .replace(/;t=(?=;|$)/, '');
  return header + record.slice(bar);
}

/** The set that a job is a member of. */
const setIn = (record: string): string | undefined => decodeHeader(record)?.set;
