/**
 * The order of the calls of one client: calls on one job take effect in the order in which they were made, awaited or not, and
 * so do calls on one schedule.
 *
 *   lane of a queue    phase ────▶ phase ────▶ phase       a phase begins when all of the one before it are over
 *   made first         schedule a   cancel by   schedule a
 *     │                schedule b   a filter    edit c
 *     ▼                cancel a                             within one, calls on the same job go one after the other
 *
 * A call that names its jobs shares a phase with all others that do. A call by filter may mean any job of its queue, so it waits
 * for those before it, and those after it wait for it; calls by filter of one kind that commute share a phase too. A call waits
 * only for calls that were made before it, so none waits for ever. Where nothing is under way a call costs two look-ups and
 * waits for nothing, not even for a promise. A single call of `schedule` is its own place in line (`batch.ts`), and is sent
 * together with others of its id. Calls that only read have no turn.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '../../kernel/clock.ts';
import { DuestreamError, Indeterminate } from '../../kernel/errors.ts';

/** What a call means to change. */
export interface Claim {
  /** A queue, or what else has an order of its own. */
  readonly lane: string;
  /** `jobs`: those of the keys · `alone`: any, and no other call goes beside it · else a kind of calls by filter that commute. */
  readonly kind: 'jobs' | 'alone' | 'cancel' | 'run-now' | 'letters';
  /** The members of jobs, or the names of schedules. */
  readonly keys?: readonly string[] | undefined;
}

/** The lane of all schedules; no queue has such a name. */
export const SCHEDULES = '\0schedules';

/** A walk through more places than this holds nobody up any longer: a million jobs take a minute, and others schedule meanwhile. */
export const HELD_PLACES_MAX = 1000;

/** A place in the line of one job. */
export interface Place {
  isOver: boolean;
  /** What waits until it is over. */
  behind: (() => void)[] | undefined;
}

interface TurnsParts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** How long one call is repeated in an outage. */
  readonly budgetMs: number;
}

const LANES_MAX = 10_000;

export class Turns {
  readonly #lanes = new Map<string, Lane>();
  readonly #parts: TurnsParts;
  /** The turn in which code of the user runs. There is none as long as nobody has a middleware. */
  #inside: AsyncLocalStorage<Turn> | undefined;

  /** The last call that ended had given up, because Redis was away. */
  #isAway = false;

  constructor(parts: TurnsParts) {
    this.#parts = parts;
  }

  lane(name: string): Lane {
    const found = this.#lanes.get(name);
    if (found) return found;
    if (this.#lanes.size >= LANES_MAX) this.#forget();
    const made = new Lane();
    this.#lanes.set(name, made);
    return made;
  }

  /** Every lane that there is. */
  names(): readonly string[] {
    return [...this.#lanes.keys()];
  }

  /** A turn of a call. Of a call that code makes inside of another call, for example a middleware, nobody knows whether that waits for it: it has no order. */
  take(claims: readonly Claim[]): Turn {
    const turn = new Turn();
    if (!this.isInside()) for (const claim of claims) turn.enter(this.lane(claim.lane), claim);
    return turn;
  }

  /**
   * Waits until it is the turn of the call, makes it, and ends the turn. Behind calls that gave up because Redis is away, a call
   * that has waited for longer than its budget gives up as well: else the last of many would learn of an outage after as many
   * budgets.
   */
  async run<T>(turn: Turn, work: () => Promise<T>): Promise<T> {
    const { clock, budgetMs } = this.#parts;
    try {
      if (turn.ready) {
        const fromMs = clock.monotonicMs();
        await turn.ready;
        if (this.#isAway && clock.monotonicMs() - fromMs > budgetMs) throw neverSent();
      }
      const done = await work();
      this.#isAway = false;
      return done;
    } catch (error) {
      this.#isAway = isOutage(error);
      throw error;
    } finally {
      turn.end();
    }
  }

  /** Code of the user runs in this turn. */
  inside<T>(turn: Turn, work: () => T): T {
    this.#inside ??= new AsyncLocalStorage();
    return this.#inside.run(turn, work);
  }

  isInside(): boolean {
    return this.#inside?.getStore()?.isOver === false;
  }

  #forget(): void {
    for (const [name, lane] of this.#lanes) if (lane.isIdle()) this.#lanes.delete(name);
  }
}

/** The order of one queue, or of all schedules. */
export class Lane {
  /** The last call of each job that a call under way names. */
  readonly places = new Map<string, Place>();
  #last = new Phase('jobs', true);

  /** The phase of a call that is made now. Whoever joins it leaves it again. */
  join(kind: Claim['kind']): Phase {
    const last = this.#last;
    if (last.isIdle()) last.kind = kind;
    else if (last.kind !== kind || kind === 'alone') {
      this.#last = new Phase(kind, false);
      last.next = this.#last;
    }
    this.#last.live += 1;
    return this.#last;
  }

  isIdle(): boolean {
    return this.#last.isIdle();
  }

  /** The job has no call under way, unless a later one has taken the place. */
  leave(key: string, place: Place): void {
    if (this.places.get(key) === place) this.places.delete(key);
  }
}

/** Calls that go beside each other. */
export class Phase {
  kind: Claim['kind'];
  isOpen: boolean;
  /** Calls that are not over. */
  live = 0;
  next: Phase | undefined;
  /** What waits until it opens. */
  readonly waiting: (() => void)[] = [];

  constructor(kind: Claim['kind'], isOpen: boolean) {
    this.kind = kind;
    this.isOpen = isOpen;
  }

  isIdle(): boolean {
    return this.live === 0 && this.isOpen;
  }

  leave(): void {
    this.live -= 1;
    this.#goOn();
  }

  #open(): void {
    this.isOpen = true;
    for (const begin of this.waiting.splice(0)) begin();
    this.#goOn();
  }

  #goOn(): void {
    const { next } = this;
    if (!next || next.isOpen || !this.isIdle()) return;
    next.#open();
  }
}

/** The turn of one call that may have to wait. */
export class Turn implements Place {
  isOver = false;
  behind: (() => void)[] | undefined;
  #ready: Promise<void> | undefined;
  #begin: (() => void) | undefined;
  #waits = 0;
  readonly #phases: Phase[] = [];
  readonly #places: { readonly lane: Lane; readonly key: string }[] = [];

  enter(lane: Lane, { kind, keys = [] }: Claim): void {
    const arrive = () => this.#arrive();
    const phase = lane.join(kind);
    this.#phases.push(phase);
    if (!phase.isOpen) phase.waiting.push(this.#waiting(arrive));
    for (const key of keys) {
      const before = lane.places.get(key);
      if (before === this) continue;
      if (before && !before.isOver) waitBehind(before, this.#waiting(arrive));
      lane.places.set(key, this);
      this.#places.push({ lane, key });
    }
  }

  /** When it is its turn; undefined: now. */
  get ready(): Promise<void> | undefined {
    return this.#waits === 0 ? undefined : this.#ready;
  }

  /** What comes after it may go on: the call has ended, or goes on without an order. Twice is fine. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const { lane, key } of this.#places) lane.leave(key, this);
    for (const begin of this.behind?.splice(0) ?? []) begin();
    for (const phase of this.#phases) phase.leave();
  }

  #waiting(arrive: () => void): () => void {
    this.#waits += 1;
    this.#ready ??= new Promise((resolve) => {
      this.#begin = resolve;
    });
    return arrive;
  }

  #arrive(): void {
    this.#waits -= 1;
    if (this.#waits === 0) this.#begin?.();
  }
}

export function waitBehind(place: Place, begin: () => void): void {
  const behind = place.behind ?? [];
  behind.push(begin);
  place.behind = behind;
}

/** Of a call that was not sent, because the calls before it had waited for as long as one may. */
export const neverSent = () =>
  new DuestreamError('unavailable', 'Redis is not available and the call waited too long; nothing was sent');

const isOutage = (error: unknown): boolean =>
  error instanceof DuestreamError && (error.code === 'unavailable' || error instanceof Indeterminate);
