/**
 * Virtual time. What the parts of duestream wait for is a list of alarms; time goes from one alarm to the next, and only
 * when it is told to. Between two alarms everything that has begun comes to rest: calls are answered, handlers have ended.
 *
 *  alarms    due times, ends of runs, time-outs: time stops at each of them
 *  rounds    of the leader: what it looks after beside the promotion. Time does not stop for them; they are made when it
 *            stops for an alarm, or has come to where it was sent
 *  looks     that repeat for ever, such as heartbeats: they are made before time passes and afterwards
 */
import { type Clock, setImmediate, turn } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';

interface Alarm {
  atMs: number;
  readonly who: string;
  readonly order: number;
  act: (() => void) | undefined;
}

/** A chain of jobs that schedule each other for now would never end. */
const ALARMS_MAX = 1_000_000;
/** So many turns of the event loop in which nothing happens are rest. */
const CALM_TURNS = 3;
const BREATH_MS = 100;
const LONG_MS = 1000;
/** No look rests for longer: as leases of the kit never end, some would rest for ever. */
const LOOK_MS = 30_000;
/** So many looks one after the other come to an end. */
const LOOKS_MAX = 1000;

export class VirtualTime {
  readonly clock: Clock;
  #nowMs: number;
  #order = 0;
  #activity = 0;
  #isPassing = false;
  readonly #alarms = new Alarms();
  readonly #rounds = new Alarms();
  readonly #looks = new Alarms();
  readonly #afterEach: () => void;
  /** What goes on in real time: handlers. */
  readonly #busy = new Set<Promise<unknown>>();
  readonly #held: (() => void)[] = [];
  #isOpen = true;

  /** @param afterEach called when all has come to rest after an alarm */
  constructor(startMs: number, afterEach: () => void) {
    this.#afterEach = afterEach;
    this.#nowMs = startMs;
    const timer = (ms: number, act: () => void) => this.at(this.#nowMs + ms, act);
    this.clock = {
      wallMs: () => this.#nowMs,
      monotonicMs: () => this.#nowMs,
      timer,
      rest: (who, ms, act) => this.#rest(who, ms, act),
      // Pauses before something is tried again: Redis is never away here, and who calls does not let time pass meanwhile.
      sleep: async (_ms, signal) => {
        await turn();
        return !signal?.aborted;
      },
    };
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Something has happened. */
  stir(): void {
    this.#activity += 1;
  }

  at(atMs: number, act: () => void): () => void {
    return this.#set(this.#alarms, atMs, act);
  }

  #set(alarms: Alarms, atMs: number, act: () => void, who = ''): () => void {
    this.#activity += 1;
    this.#order += 1;
    const alarm: Alarm = { atMs: Math.ceil(atMs), order: this.#order, who, act };
    alarms.push(alarm);
    return () => {
      alarm.act = undefined;
    };
  }

  #rest(who: string, ms: number, act: () => void): () => void {
    if (ms <= 0) {
      this.#activity += 1;
      let isOff = false;
      setImmediate(() => isOff || act());
      return () => {
        isOff = true;
      };
    }
    // It looks ten times a second while somebody is in line, and would make a day of that: in the kit nobody tells what held a line.
    if (/^surveyor of /.test(who)) return () => undefined;
    if (/^(mover|enqueuer) of /.test(who)) return this.at(this.#nowMs + ms, act);
    // Somebody is in line for a limit that queues share; where nobody is, the job that comes wakes it.
    if (/^borrower of /.test(who)) return ms < LONG_MS ? this.at(this.#nowMs + ms, act) : () => undefined;
    // A short rest means that there is more to do.
    const restMs = ms <= BREATH_MS ? 0 : Math.min(ms, LOOK_MS);
    const isRound = /^(janitor|expirer|gatekeeper|weigher) of /.test(who);
    return this.#set(isRound ? this.#rounds : this.#looks, this.#nowMs + restMs, act, who);
  }

  /** Time does not pass before this has settled. */
  busy(work: Promise<unknown>): void {
    this.#activity += 1;
    this.#busy.add(work);
    const over = () => {
      this.#activity += 1;
      this.#busy.delete(work);
    };
    work.then(over, over);
  }

  /** What arrives while time stands still is heard when it passes. */
  hear(act: () => void): void {
    if (this.#isOpen) act();
    else this.#held.push(act);
  }

  /** @param but what goes on around the caller: a handler whose call waits for this */
  async quiet(but: ReadonlySet<Promise<unknown>> = NONE): Promise<void> {
    const others = () => [...this.#busy].filter((work) => !but.has(work));
    let seen = -1;
    for (let calm = 0; calm < CALM_TURNS; calm += 1) {
      for (const work of others()) await work.catch(() => undefined);
      await turn();
      if (this.#activity !== seen || others().length > 0) calm = -1;
      seen = this.#activity;
    }
  }

  /** Lets happen what is due now, also while a handler waits for it. */
  async settle(work: () => Promise<unknown>): Promise<void> {
    const around = new Set(this.#busy);
    const wasOpen = this.#isOpen;
    await this.open(around);
    await work();
    await this.quiet(around);
    while ((this.#alarms.next()?.atMs ?? Number.POSITIVE_INFINITY) <= this.#nowMs) {
      this.#alarms.take()?.act?.();
      await this.quiet(around);
    }
    if (!wasOpen) this.close();
  }

  /** Whatever waits to be heard is heard. */
  async open(but?: ReadonlySet<Promise<unknown>>): Promise<void> {
    this.#isOpen = true;
    for (const act of this.#held.splice(0)) act();
    await this.quiet(but);
  }

  /** What was changed by hand is seen by all, as in production half a minute later. */
  lookSoon(): void {
    this.#looks.hasten(this.#nowMs, (who) => /^(heartbeat of |registry$)/.test(who));
  }

  close(): void {
    this.#isOpen = false;
  }

  nextMs(): number | undefined {
    return this.#alarms.next()?.atMs;
  }

  async advanceTo(untilMs: number): Promise<void> {
    if (this.#isPassing)
      throw new DuestreamError('bad-input', 'advance was called while time passes; allowed: one call at a time');
    this.#isPassing = true;
    try {
      // What was changed by hand holds for what comes due now.
      await this.#ringAll(this.#looks);
      await this.open();
      await this.#pass(untilMs);
      await this.#ringAll(this.#looks);
    } finally {
      this.#isPassing = false;
      this.close();
    }
  }

  async #pass(untilMs: number): Promise<void> {
    for (let count = 0; ; count += 1) {
      if (count >= ALARMS_MAX)
        throw new DuestreamError('failed', `more than ${ALARMS_MAX} jobs or instants became due in one call`);
      const next = this.#alarms.next();
      this.#nowMs = Math.max(this.#nowMs, Math.min(untilMs, next?.atMs ?? untilMs));
      const looked = await this.#ringAll(this.#rounds);
      if (next && next.atMs <= this.#nowMs) await this.#ring(this.#alarms);
      else if (!looked) return;
    }
  }

  async #ring(alarms: Alarms): Promise<void> {
    this.#activity += 1;
    alarms.take()?.act?.();
    await this.quiet();
    const before = this.#activity;
    this.#afterEach();
    if (this.#activity !== before) await this.quiet();
  }

  /** @returns whether there was any */
  async #ringAll(alarms: Alarms): Promise<boolean> {
    const isDue = () => (alarms.next()?.atMs ?? Number.POSITIVE_INFINITY) <= this.#nowMs;
    const isAny = isDue();
    for (let looks = 0; looks < LOOKS_MAX && isDue(); looks += 1) await this.#ring(alarms);
    return isAny;
  }

  skipTo(untilMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }
}

const NONE: ReadonlySet<Promise<unknown>> = new Set();

/** A heap, the soonest first; of the same moment the one that was set first. */
class Alarms {
  readonly #heap: Alarm[] = [];

  push(alarm: Alarm): void {
    const heap = this.#heap;
    heap.push(alarm);
    for (let at = heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swap(parent, at)) return;
      at = parent;
    }
  }

  /** The first that was not called off. */
  next(): Alarm | undefined {
    while (this.#heap[0] && !this.#heap[0].act) this.#pop();
    return this.#heap[0];
  }

  /** Some come now. */
  hasten(nowMs: number, whose: (who: string) => boolean): void {
    for (const alarm of this.#heap.splice(0)) {
      if (alarm.act && whose(alarm.who)) alarm.atMs = Math.min(alarm.atMs, nowMs);
      if (alarm.act) this.push(alarm);
    }
  }

  take(): Alarm | undefined {
    const first = this.next();
    this.#pop();
    return first;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0, child = this.#sooner(0); this.#swap(at, child); at = child, child = this.#sooner(at));
  }

  #sooner(at: number): number {
    const [left, right] = [this.#heap[2 * at + 1], this.#heap[2 * at + 2]];
    return 2 * at + (left && right && isSooner(right, left) ? 2 : 1);
  }

  #swap(parent: number, child: number): boolean {
    const [a, b] = [this.#heap[parent], this.#heap[child]];
    if (!a || !b || !isSooner(b, a)) return false;
    this.#heap[parent] = b;
    this.#heap[child] = a;
    return true;
  }
}

const isSooner = (one: Alarm, other: Alarm): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
