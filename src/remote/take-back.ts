/**
 * What workers over HTTP have lost. Each of their runs has a lease of its own: a run that nobody extends is lost, although its
 * worker may live, because the answer that named the run may never have arrived. So an entry of a worker over HTTP that is idle
 * for a lease is overdue, and goes to the next poll, before new jobs. It stays in ready until then: released, the next job
 * of its group would overtake it.
 *
 * Overdue is what two looks in a row have found, while this daemon wrote to Redis and was neither held up nor without answer
 * for two beats: after a time in which Redis stood still, all runs of all workers look lost for a moment.
 *
 *  held ──idle for a lease──▶ seen once ──the next look──▶ overdue ──a poll──▶ reclaimed by the claim of another worker
 *    ▲                           │ a beat                    │ a beat, an end
 *    └───────────────────────────┴───────────────────────────┘
 */
import { decodeRun } from '../job/codec.ts';
import type { EntryId } from '../job/job.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { outageOf } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { RECLAIM_JOBS_MAX } from '../redis/scripts/bytes.ts';
import { isRemote } from '../redis/scripts/claims.ts';
import { withoutBeat } from '../redis/scripts/presence.ts';
import { ensureGroup, idleEntries, proveWritable, readEntries } from '../redis/scripts/ready.ts';

/** Why a run was lost: its worker has no heartbeat, or lives and does not extend it. */
export type LossCause = 'dead' | 'lease';

/** What one worker has lost in one partition, oldest first. */
export interface Overdue {
  readonly owner: string;
  readonly cause: LossCause;
  readonly entries: readonly EntryId[];
}

interface TakeBackParts {
  readonly redis: Redis;
  readonly namespace: string;
  readonly jobLeaseMs: number;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** A look reads so many entries. */
const LOOK_MAX = 200;

export class TakeBack {
  readonly #parts: TakeBackParts;
  /** Of the last look. */
  #seen = new Set<string>();
  #overdue = new Map<PartitionRef, readonly Overdue[]>();

  constructor(parts: TakeBackParts) {
    this.#parts = parts;
  }

  /**
   * Looks into the partitions of a queue. Returns whether anything is overdue.
   *
   * @param isSteady whether this daemon could judge others during the last two beats
   */
  async look(refs: readonly PartitionRef[], isSteady: boolean): Promise<boolean> {
    const seen = new Set<string>();
    const overdue = new Map<PartitionRef, readonly Overdue[]>();
    for (const ref of refs) {
      const idle = await this.#idle(ref);
      for (const { entry } of idle) seen.add(keyOf(ref, entry));
      const lost = isSteady ? idle.filter(({ entry }) => this.#seen.has(keyOf(ref, entry))) : [];
      if (lost.length > 0) overdue.set(ref, await this.#byOwner(lost));
    }
    this.#seen = seen;
    this.#overdue = overdue;
    return overdue.size > 0;
  }

  /**
   * How many of those that come next may go to one worker together: all before the first under which so many workers will have
   * died, or that one alone. None: nothing is overdue.
   */
  async company(
    ref: PartitionRef,
    { most, suspects }: { readonly most: number; readonly suspects: number },
  ): Promise<{ readonly count: number; readonly isSuspect: boolean }> {
    const [first] = this.#overdue.get(ref) ?? [];
    if (!first) return { count: 0, isSuspect: false };
    const entries = first.entries.slice(0, Math.min(most, RECLAIM_JOBS_MAX));
    const crashes = await this.#crashesAfter(ref, first.owner, entries);
    const at = entries.findIndex((entry) => (crashes.get(entry) ?? 0) >= suspects);
    if (at === 0) return { count: 1, isSuspect: true };
    return { count: at < 0 ? entries.length : at, isSuspect: false };
  }

  /** How many crashes each has once it is taken over: one is counted where its owner had started it. */
  async #crashesAfter(ref: PartitionRef, owner: string, entries: readonly EntryId[]) {
    const { redis } = this.#parts;
    const found = await readEntries(redis, ref.keys, entries);
    const members = found.map(({ member }) => member);
    const texts = members.length === 0 ? [] : await redis.hmget(ref.keys.runs, ...members);
    const counts = found.map(({ entry }, at) => {
      const run = decodeRun(texts[at] ?? '');
      const isStarted = run?.entry === entry && run.owner === owner;
      return [entry, (run?.crashes ?? 0) + (isStarted ? 1 : 0)] as const;
    });
    return new Map(counts);
  }

  /** What one worker has lost there, at most so many entries: the caller takes it over. */
  next(ref: PartitionRef, most: number): Overdue | undefined {
    const [first, ...rest] = this.#overdue.get(ref) ?? [];
    if (!first) return undefined;
    const count = Math.min(most, RECLAIM_JOBS_MAX);
    const left = first.entries.slice(count);
    this.#overdue.set(ref, left.length > 0 ? [{ ...first, entries: left }, ...rest] : rest);
    return { ...first, entries: first.entries.slice(0, count) };
  }

  async #idle(ref: PartitionRef) {
    const { redis, jobLeaseMs } = this.#parts;
    try {
      await proveWritable(redis, ref.keys);
      // @idle-for-a-lease
      const found = await idleEntries(redis, ref.keys, { idleMs: jobLeaseMs, limit: LOOK_MAX });
      return found.filter(({ owner }) => isRemote(owner));
    } catch (error) {
      if (outageOf(error) !== 'no-group') throw error;
      await ensureGroup(redis, ref.keys);
      return [];
    }
  }

  async #byOwner(lost: readonly { readonly entry: EntryId; readonly owner: string }[]): Promise<readonly Overdue[]> {
    const { redis, namespace } = this.#parts;
    const entries = new Map<string, EntryId[]>();
    for (const { owner, entry } of lost) entries.set(owner, [...(entries.get(owner) ?? []), entry]);
    const dead = new Set(await withoutBeat(redis, namespace, [...entries.keys()]));
    return [...entries].map(([owner, some]) => ({
      owner,
      cause: dead.has(owner) ? 'dead' : 'lease',
      entries: some,
    }));
  }
}

const keyOf = ({ partition }: PartitionRef, entry: string): string => `${partition} ${entry}`;
