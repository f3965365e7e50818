/**
 * Two clocks through a whole run: that of each server and the wall clock of this machine, against the monotonic clock, which
 * never jumps. A sample says between which two numbers the offset of a server is; a sample that contradicts the one before it by
 * much has seen a clock that was set.
 */
import { type Clock, systemClock } from '../kernel/clock.ts';
import { span } from '../kernel/humanize.ts';
import { membersOf } from '../redis/connection/cluster/members.ts';
import { timeAt } from '../redis/connection/server-clock.ts';
import type { Outcome } from './row.ts';

type Timed = Parameters<typeof timeAt>[0];

interface Seen {
  /** The offset to the monotonic clock is at least and at most. */
  lowMs: number;
  highMs: number;
}

const EVERY_MS = 250;
/** Clocks that are slewed by NTP part by less between two samples. */
const JUMP_MS = 100;
/** As `doctor` has it. */
const OFFSET_MAX_MS = 500;

export class ClockWatch {
  readonly #redis: Timed;
  readonly #clock: Clock;
  readonly #seen = new Map<Timed, Seen>();
  readonly #jumpsMs: number[] = [];
  #wallMs: number | undefined;
  #samples = 0;

  constructor(redis: Timed, clock: Clock = systemClock) {
    this.#redis = redis;
    this.#clock = clock;
  }

  /** Samples until the signal; a server that does not answer is the matter of other rows. */
  async run(signal: AbortSignal): Promise<void> {
    do {
      await this.sample().catch(() => undefined);
    } while (await this.#clock.sleep(EVERY_MS, signal));
  }

  /** One sample of each server. @throws what TIME failed with */
  async sample(): Promise<void> {
    const wallMs = this.#clock.wallMs() - this.#clock.monotonicMs();
    if (this.#wallMs !== undefined && Math.abs(wallMs - this.#wallMs) > JUMP_MS)
      this.#jumpsMs.push(wallMs - this.#wallMs);
    this.#wallMs = wallMs;
    await Promise.all(membersOf(this.#redis).map((node) => this.#look(node)));
    this.#samples += 1;
  }

  async #look(node: Timed): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const serverMs = await timeAt(node);
    const found = { lowMs: serverMs - this.#clock.monotonicMs(), highMs: serverMs - sentMs };
    const known = this.#seen.get(node);
    const gapMs = known === undefined ? 0 : Math.max(found.lowMs - known.highMs, known.lowMs - found.highMs);
    if (known === undefined || gapMs > 0) {
      if (gapMs > JUMP_MS) this.#jumpsMs.push(gapMs);
      this.#seen.set(node, found);
      return;
    }
    known.lowMs = Math.max(known.lowMs, found.lowMs);
    known.highMs = Math.min(known.highMs, found.highMs);
  }

  /** How far a server is ahead of the wall clock of this machine, and by how much that may be wrong. */
  offsetOf(node: Timed): { readonly offsetMs: number; readonly errorMs: number } {
    const { lowMs, highMs } = this.#seen.get(node) ?? { lowMs: 0, highMs: 0 };
    return { offsetMs: (lowMs + highMs) / 2 - (this.#wallMs ?? 0), errorMs: (highMs - lowMs) / 2 };
  }

  outcome(): Outcome {
    const all = [...this.#seen.keys()].map((node) => this.offsetOf(node));
    if (all.length === 0) return { status: 'not tried', saw: 'no server said its time' };
    const { offsetMs, errorMs } = all.reduce((a, b) => (Math.abs(b.offsetMs) > Math.abs(a.offsetMs) ? b : a));
    const jumpMs = Math.max(0, ...this.#jumpsMs.map(Math.abs));
    const figures = {
      offsetMs: Math.round(offsetMs),
      errorMs: Math.ceil(errorMs),
      jumps: this.#jumpsMs.length,
      longestJumpMs: Math.round(jumpMs),
      samples: this.#samples,
    };
    const jumps =
      this.#jumpsMs.length === 0 ? 'no jump' : `${this.#jumpsMs.length} jumps, the longest of ${span(jumpMs)}`;
    const saw = `Redis is ${span(offsetMs)} ${offsetMs < 0 ? 'behind' : 'ahead of'} this machine; ${jumps} in ${this.#samples} samples`;
    if (this.#jumpsMs.length > 0) {
      return {
        status: 'failed',
        saw,
        figures,
        advice: 'let NTP slew both clocks instead of setting them: jobs become due by the clock of Redis',
      };
    }
    if (Math.abs(offsetMs) - errorMs <= OFFSET_MAX_MS) return { status: 'held', saw, figures };
    const advice =
      'set both clocks by NTP: due times count by the clock of Redis, but this machine reads an --at by its own';
    return { status: 'failed', saw, figures, advice };
  }
}
