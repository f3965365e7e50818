/**
 * The claims of one queue that wait for a job, first come, first served. A poll is asked when it comes, and then when jobs
 * became ready: one ask per wake-up, and while asks bring jobs the next poll is asked. So a wake-up costs one call, however
 * many polls there are.
 *
 *  came ──▶ asking ──jobs──▶ answered
 *             │ ▲
 *      nothing▼ │its turn
 *            waiting ──time over, caller gone, stop, a later claim──▶ answered
 *
 * What must always hold: a poll that is being asked is answered by that ask alone. What Redis has handed to it would be told to
 * nobody otherwise. The ledger would find it, but only for a worker that asks again.
 */
import type { Clock } from '../kernel/clock.ts';

/** One claim of one worker. */
export interface Poll {
  readonly worker: string;
  readonly lane: number;
  /** It grows with each claim of the lane. */
  readonly seq: number;
  /** The call was made before. */
  readonly isAgain: boolean;
}

/** What an ask has found. */
export type Found<Job> =
  | { readonly kind: 'handed' | 'again'; readonly jobs: readonly Job[] }
  /** There is nothing: the poll waits. */
  | { readonly kind: 'empty' }
  /** A later claim was made, or the worker has left. */
  | { readonly kind: 'superseded' };

/** Why a poll got nothing: its time is over, its caller has gone, or the daemon stops. */
type Cause = 'time' | 'gone' | 'stopped' | 'superseded';

/** How a poll was answered. */
export type PollAnswer<Job> =
  | Exclude<Found<Job>, { kind: 'empty' }>
  | { readonly kind: 'empty'; readonly cause: Cause };

interface Waiting<P extends Poll, Job> {
  readonly poll: P;
  readonly answer: (answer: PollAnswer<Job>) => void;
  readonly fail: (error: unknown) => void;
  isAsking: boolean;
  /** It is to get nothing more, once the ask that is under way has ended. */
  cause: Cause | undefined;
  callOff: () => void;
}

interface PollLineParts<P extends Poll, Job> {
  /**
   * Asks all partitions, and stops at the first that has something. `isKnown`: the ledgers of all know that older polls of the
   * lane are to get nothing.
   */
  readonly ask: (poll: P, isKnown: boolean) => Promise<Found<Job>>;
  readonly clock: Pick<Clock, 'timer'>;
  /** How many polls there are now. */
  readonly counted: (polls: number) => void;
}

/** So many lanes are known that need not be asked when they come. */
const LANES_MAX = 10_000;

export class PollLine<P extends Poll, Job> {
  readonly #parts: PollLineParts<P, Job>;
  /** In the order in which they came. */
  readonly #line = new Set<Waiting<P, Job>>();
  /** Lanes whose last claim was sent here once, and asked here: no older poll of them waits anywhere. */
  readonly #clean = new Map<string, number>();
  /** The last ask found nothing, and nothing has become ready since, as far as anybody has told. */
  #isDry = false;
  #isPumping = false;
  #isWanted = false;
  #isStopped = false;

  constructor(parts: PollLineParts<P, Job>) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#line.size;
  }

  /** Resolves when the poll has its answer. @throws what the ask threw */
  claim(
    poll: P,
    { waitMs, signal, mustAsk }: { readonly waitMs: number; readonly signal: AbortSignal; readonly mustAsk: boolean },
  ): Promise<PollAnswer<Job>> {
    this.#supersede(poll);
    return new Promise((resolve, reject) => {
      const end = (cause: Cause) => this.#end(waiting, cause);
      const onGone = () => end(this.#isStopped ? 'stopped' : 'gone');
      const callOffTimer = this.#parts.clock.timer(waitMs, () => end('time'));
      const callOff = () => {
        callOffTimer();
        signal.removeEventListener('abort', onGone);
      };
      const own = { poll, answer: resolve, fail: reject, callOff };
      const waiting: Waiting<P, Job> = { ...own, isAsking: false, cause: undefined };
      signal.addEventListener('abort', onGone, { once: true });
      this.#line.add(waiting);
      this.#parts.counted(this.#line.size);
      const isClean = this.#isClean(poll);
      if (mustAsk || !isClean) void this.#first(waiting, { waitMs, isClean });
      else if (waitMs === 0 && this.#isDry) end('time');
      else if (!this.#isDry) this.wake();
      if (signal.aborted) onGone();
    });
  }

  /** Something may have become ready, or nobody knows. */
  wake(): void {
    this.#isDry = false;
    this.#isWanted = true;
    if (!this.#isPumping) void this.#pump();
  }

  /** From now on nobody waits; polls that are being asked are answered by their asks. */
  stop(): void {
    this.#isStopped = true;
    for (const waiting of [...this.#line]) this.#end(waiting, 'stopped');
  }

  /** The ask of a poll that has just come: it writes the number of the claim into the ledger. */
  async #first(
    waiting: Waiting<P, Job>,
    { waitMs, isClean }: { readonly waitMs: number; readonly isClean: boolean },
  ): Promise<void> {
    const isEmpty = await this.#askFor(waiting, isClean);
    if (isEmpty && waitMs === 0) this.#end(waiting, 'time');
    // What was told while it was asked was told to nobody.
    else if (isEmpty && this.#isWanted && !this.#isPumping) await this.#pump();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      while (this.#isWanted) {
        const next = this.#next();
        // Whoever is being asked looks again when that has brought nothing.
        if (!next) break;
        this.#isWanted = false;
        const isEmpty = await this.#askFor(next, !next.poll.isAgain);
        if (!isEmpty) this.#isWanted = true;
      }
    } finally {
      this.#isPumping = false;
      if (this.#line.size === 0) this.#isWanted = false;
    }
  }

  #next(): Waiting<P, Job> | undefined {
    for (const waiting of this.#line) if (!waiting.isAsking) return waiting;
    return undefined;
  }

  /** Whether it brought nothing, and the poll waits on. */
  async #askFor(waiting: Waiting<P, Job>, isKnown: boolean): Promise<boolean> {
    waiting.isAsking = true;
    try {
      const found = await this.#parts.ask(waiting.poll, isKnown);
      this.#isDry = found.kind === 'empty' && !this.#isWanted;
      if (found.kind !== 'superseded') this.#noteClean(waiting.poll);
      if (found.kind !== 'empty') {
        this.#answer(waiting, found);
        return false;
      }
    } catch (error) {
      this.#leave(waiting);
      waiting.fail(error);
      return true;
    } finally {
      waiting.isAsking = false;
    }
    if (waiting.cause !== undefined) this.#answer(waiting, { kind: 'empty', cause: waiting.cause });
    return true;
  }

  #end(waiting: Waiting<P, Job>, cause: Cause): void {
    if (!this.#line.has(waiting)) return;
    waiting.cause ??= cause;
    if (!waiting.isAsking) this.#answer(waiting, { kind: 'empty', cause: waiting.cause });
  }

  #answer(waiting: Waiting<P, Job>, answer: PollAnswer<Job>): void {
    this.#leave(waiting);
    waiting.answer(answer);
  }

  #leave(waiting: Waiting<P, Job>): void {
    waiting.callOff();
    this.#line.delete(waiting);
    this.#parts.counted(this.#line.size);
  }

  /** An older poll of the lane waits for nobody any more. One of the same number was given up by its caller. */
  #supersede(poll: P): void {
    for (const waiting of [...this.#line]) {
      const { worker, lane, seq } = waiting.poll;
      if (worker !== poll.worker || lane !== poll.lane || seq > poll.seq) continue;
      this.#end(waiting, seq === poll.seq ? 'gone' : 'superseded');
    }
  }

  #isClean({ worker, lane, seq, isAgain }: P): boolean {
    return !isAgain && this.#clean.get(`${worker} ${lane}`) === seq - 1 && this.#noteNext(worker, lane, seq);
  }

  #noteNext(worker: string, lane: number, seq: number): true {
    this.#clean.set(`${worker} ${lane}`, seq);
    return true;
  }

  #noteClean({ worker, lane, seq, isAgain }: P): void {
    const key = `${worker} ${lane}`;
    this.#clean.delete(key);
    if (isAgain) return;
    const [first] = this.#clean.size >= LANES_MAX ? this.#clean.keys() : [];
    if (first !== undefined) this.#clean.delete(first);
    this.#clean.set(key, seq);
  }
}
