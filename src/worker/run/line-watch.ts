/**
 * What leaders have seen of the lines of partitions from which this worker starts jobs, for the accounts of those that were late. It is read
 * once a second and partition at most, and only where a job was late: no job costs a command.
 */
import type { LineLook } from '../../job/account.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { readLooks } from '../../redis/read/looks.ts';

const NOTHING: readonly LineLook[] = [];
const FRESH_MS = 1000;

interface Seen {
  looks: readonly LineLook[];
  readMs: number;
}

export class LineWatch {
  readonly #redis: Redis;
  readonly #clock: Clock;
  /** By the key of the partition: its settings may change. */
  readonly #seen = new Map<string, Seen>();

  constructor(redis: Redis, clock: Clock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  looksOf(ref: PartitionRef): readonly LineLook[] {
    return this.#seen.get(ref.keys.looks)?.looks ?? NOTHING;
  }

  /** A job from its line was late. Never fails: without an answer less is told. */
  async read(ref: PartitionRef, nowMs: number): Promise<void> {
    const seen = this.#seen.get(ref.keys.looks) ?? { looks: NOTHING, readMs: Number.NEGATIVE_INFINITY };
    this.#seen.set(ref.keys.looks, seen);
    const atMs = this.#clock.monotonicMs();
    if (atMs - seen.readMs < FRESH_MS) return;
    seen.readMs = atMs;
    const last = seen.looks.at(-1);
    const fromMs = last === undefined ? 0 : last.toMs + 1;
    const more = await readLooks(this.#redis, ref, { fromMs, toMs: Math.ceil(nowMs) }).catch(() => NOTHING);
    // A second is written after its end, so the last one is found again.
    const news = more.filter(({ toMs }) => toMs >= fromMs);
    seen.looks = [...seen.looks, ...news].slice(-LOOKS_MAX);
  }
}

/** A worker remembers a quarter of an hour. */
const LOOKS_MAX = 900;
