/**
 * Everything that a queue of this worker has in flight: entries that Redis gave to it and that are not finally answered.
 * An entry is added **before** the call that starts it, and leaves on a final reply after its handler has ended. Adoption
 * compares these entries with those that Redis has for this consumer: an entry that is not here came in a lost reply.
 *
 * Each entry is in one state of a closed union. `InFlight` alone changes it, by one method per event; an event that cannot
 * happen in a state is a bug, and throws. Two events may come late and then change nothing: the reply of an extension, and an
 * order to abort the handler. Code that reads the state of an entry must read it anew after a wait.
 *
 *            start sent            reply: run, again          handler began            time is up
 *  ──▶ starting ──────▶ starting ───────────────▶ started ──────────────────▶ running ───────────▶ overtaken
 *      │  ▲  │                                     │    │                       │                     │
 *      │  │  └──suspected──▶ suspected             │    └──refused──┐           │ handler ended       │ handler ended
 *      │  └─────starts alone────┘ │                │                ▼           ▼                     │
 *      └───────forgotten──────────┤                │           acknowledging ◀────────────────────────┘
 *                                 ▼                │ answered       │ answered        (or gone, when Redis has answered)
 *                                gone ◀────────────┴────────────────┘
 *
 *  at once          an entry that Redis delivered and started in one call is started as soon as it is here.
 *  completed early  started: the job is over in Redis before its handler begins, because it is delivered at most once.
 *                   From here on Redis owes one answer more, which removes the entry; the entry is the proof until then.
 *  answered         the final reply of Redis. It ends an entry that is acknowledging, and a start whose early completion
 *                   Redis refused. While the handler runs on (overtaken, or running and completed early), the answer is
 *                   noted, and Redis owes nothing any more.
 *  overtaken        the time of the handler is up. Its outcome is decided, and waits until the handler has ended: the lease is
 *                   extended meanwhile, so the job keeps its place in a limit, and nothing starts it a second time.
 *  slot lost        overtaken: the handler did not end in the time that it was given after that. Its outcome waits no longer.
 *  abandoned        completed early, and our own code failed at the entry (`Acknowledger.failed`).
 *  extended         running, overtaken: the lease was renewed. A reply that comes after the handler ended changes nothing.
 */
import type { Emitter } from '../../job/events.ts';
import type { Token } from '../../job/job.ts';
import type { AbortReason } from '../../job/outcome.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Claim, Delivery } from '../../redis/scripts/replies.ts';
import type { LogBook } from './log-book.ts';

export interface InFlightEntry {
  readonly ref: PartitionRef;
  readonly delivery: Delivery;
  readonly state: EntryState;
}

/** The reply with which Redis started the entry. */
interface Start {
  readonly token: Token;
  /** Monotonic ms at which the reply came. */
  readonly startedMs: number;
  /** Monotonic ms at which the call was sent: the lease cannot have begun much earlier. */
  readonly leasedMs: number;
}

interface Begun {
  readonly start: Start;
  /** Delivered at most once: the job is over in Redis although its handler is still to end. */
  readonly completedEarly: boolean;
}

/** A handler that runs: it can be told to stop, and says how far it is. */
export interface RunningHandler {
  readonly abort: (why: AbortReason) => void;
  /** How far it said last that it is, as a line of the history of its job, until Redis knows. */
  readonly unsent: string | undefined;
  /** Redis knows. */
  readonly sent: (line: string) => void;
  /** What it said of its job. Undefined: nothing. */
  readonly book: LogBook | undefined;
}

interface Handled extends Begun {
  /** Redis still has to give its final reply. */
  readonly owed: boolean;
  readonly handler: RunningHandler;
}

/** The entry was read, and its start is under way. */
interface Starting {
  readonly phase: 'starting';
  /** Monotonic ms at which the last call was sent that would start the entry. */
  readonly leasedMs: number | undefined;
}

/** The entry waits in the quarantine until it can be started alone. */
interface Suspected {
  readonly phase: 'suspected';
}

/** Redis started the entry, and its handler is still to begin. */
interface Started extends Begun {
  readonly phase: 'started';
}

/** The handler runs in its time. */
interface Running extends Handled {
  readonly phase: 'running';
  /** Monotonic ms at which the last call was sent that extended the lease. */
  readonly extendedMs: number | undefined;
}

/** The handler runs on although its time was up, and keeps its slot. Its outcome waits for its end, until its slot is lost. */
interface Overtaken extends Handled {
  readonly phase: 'overtaken';
  /** Monotonic ms at which the last call was sent that extended the lease. */
  readonly extendedMs: number | undefined;
  /** The handler did not end in the time that it was given after that: nobody waits for it any more. */
  readonly slotLost: boolean;
}

/** The handler ended or never ran, and the outcome is on its way to Redis. */
interface Acknowledging extends Begun {
  readonly phase: 'acknowledging';
}

/** The entry is in flight no more. */
interface Gone {
  readonly phase: 'gone';
}

type EntryState = Starting | Suspected | Started | Running | Overtaken | Acknowledging | Gone;

const GONE: Gone = { phase: 'gone' };
const READ: Starting = { phase: 'starting', leasedMs: undefined };
const SUSPECTED: Suspected = { phase: 'suspected' };

/** `InFlight` alone may write the state. */
interface Own extends InFlightEntry {
  state: EntryState;
}

interface InFlightListeners {
  /** An entry goes that may still be this worker's in Redis. */
  readonly leftBehind?: () => void;
  readonly handlerBegan?: () => void;
}

export class InFlight {
  /** How many jobs of the queue are run at once. */
  readonly concurrency: number;
  /** Entry by id, in the place of its partition. */
  readonly #entries: Map<string, Own>[] = [];
  readonly #count = { starting: 0, suspected: 0, started: 0, running: 0, overtaken: 0, acknowledging: 0, gone: 0 };
  /** Conditions that callers of `until` wait for. */
  readonly #waiting = new Set<() => void>();
  #isOpen = true;
  #isPaused = false;
  #reserved = 0;
  #aside = 0;
  #spare = 0;
  #hadSpare = false;
  readonly #on: InFlightListeners;

  constructor(concurrency: number, on: InFlightListeners = {}) {
    this.concurrency = concurrency;
    this.#on = on;
  }

  find(ref: PartitionRef, entry: string): InFlightEntry | undefined {
    return this.#entries[ref.partition]?.get(entry);
  }

  has(ref: PartitionRef, entry: string): boolean {
    return this.#entries[ref.partition]?.has(entry) ?? false;
  }

  all(): readonly InFlightEntry[] {
    return this.#entries.flatMap((entries) => [...entries.values()]);
  }

  size(): number {
    return this.#entries.reduce((sum, entries) => sum + entries.size, 0);
  }

  /** Slots in use. An entry that is acknowledging uses none, so reading goes on meanwhile. */
  busy(): number {
    const { starting, started, running, overtaken } = this.#count;
    return starting + started + running + overtaken;
  }

  /** Slots for something new: none while the worker is paused. */
  free(): number {
    return this.#isPaused ? 0 : this.vacant();
  }

  /**
   * Slots that have no job and are not reserved. A slot is reserved for each entry that a call under way may bring, and for
   * each suspect that waits, which starts without asking for one. Of entries that Redis has given to this worker already also a
   * paused one asks for these: nobody else would start them.
   */
  vacant(): number {
    const taken = this.busy() + this.#count.suspected + this.#reserved + this.#aside;
    return Math.max(0, this.concurrency + this.#spare - taken);
  }

  /** A job is held: one more may be read, because a job that is due gets its slot. */
  spare(isHeld: boolean): void {
    const before = this.#spare;
    this.#spare = isHeld ? 1 : 0;
    this.#hadSpare ||= isHeld;
    if (before < this.#spare) this.#notify();
  }

  /** A job is held now. */
  hasSpare(): boolean {
    return this.#spare > 0;
  }

  /** More may have been read than there are slots. */
  hadSpare(): boolean {
    return this.#hadSpare;
  }

  /** Reserves slots for entries that a call may bring, or with a negative count gives them back. */
  reserve(count: number): void {
    this.#reserved += count;
    if (count < 0) this.#notify();
  }

  /** Sets slots aside that a batch leaves empty while it runs, or with a negative count gives them back. */
  setAside(count: number): void {
    this.#aside += count;
    if (count < 0) this.#notify();
  }

  /** A call under way may bring entries. */
  isExpecting(): boolean {
    return this.#reserved > 0;
  }

  /** How many suspects wait to start alone. */
  suspects(): number {
    return this.#count.suspected;
  }

  /** How many handlers run on although their time was up. */
  overdue(): number {
    return this.#count.overtaken;
  }

  /** How many slots have a handler that ignores its order to stop. */
  lost(): number {
    return this.#count.overtaken === 0 ? 0 : this.all().filter(hasLostSlot).length;
  }

  isOpen(): boolean {
    return this.#isOpen;
  }

  /** Paused, it takes nothing new, and goes on with what it has. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.#notify();
  }

  /** Closed, nothing more is to be started. */
  setOpen(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#notify();
  }

  /** It is open, a slot is free and few entries are acknowledging. */
  mayRead(): boolean {
    return this.#isOpen && this.free() > 0 && this.#count.acknowledging < 2 * this.concurrency;
  }

  /** Resolves when `mayRead`, or when the signal aborts. */
  whenFree(signal: AbortSignal): Promise<void> {
    return this.until(() => this.mayRead(), signal);
  }

  /** Resolves when nothing is in flight but lost slots whose outcome Redis has answered, or when the signal aborts. */
  whenEmpty(signal: AbortSignal): Promise<void> {
    return this.until(() => this.#count.overtaken === this.size() && this.all().every(isLeftAlone), signal);
  }

  /** Resolves when this holds, tested after every change, or when the signal aborts. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(test);
        signal.removeEventListener('abort', test);
        resolve();
      };
      const test = () => {
        if (holds() || signal.aborted) end();
      };
      this.#waiting.add(test);
      signal.addEventListener('abort', test);
      test();
    });
  }

  add(ref: PartitionRef, delivery: Delivery): InFlightEntry {
    return this.#put({ ref, delivery, state: READ });
  }

  /** Redis delivered and started the entry in one call, which was sent at `leasedMs` and answered at `startedMs`. */
  addStarted(
    ref: PartitionRef,
    delivery: Delivery & { readonly token: Token },
    { startedMs, leasedMs }: Omit<Start, 'token'>,
  ): InFlightEntry {
    const start = { token: delivery.token, startedMs, leasedMs };
    return this.#put({ ref, delivery, state: { phase: 'started', start, completedEarly: false } });
  }

  /** A call is sent that starts the entry. It may be sent again. */
  startSent(entry: InFlightEntry, leasedMs: number): void {
    const { state } = entry;
    if (state.phase !== 'starting') throw illegal('start sent', state);
    this.#change(entry, { phase: 'starting', leasedMs });
  }

  /** Workers died under the entry: it waits until it can be started alone. */
  suspected(entry: InFlightEntry): void {
    if (entry.state.phase !== 'starting') throw illegal('suspected', entry.state);
    this.#change(entry, SUSPECTED);
  }

  /** Nothing young runs beside the suspect now. */
  startsAlone(entry: InFlightEntry): void {
    if (entry.state.phase !== 'suspected') throw illegal('starts alone', entry.state);
    this.#change(entry, READ);
  }

  /** This worker does not start the entry: it is released, is over, or is left to adoption. */
  forgotten(entry: InFlightEntry): void {
    const { phase } = entry.state;
    if (phase !== 'starting' && phase !== 'suspected') throw illegal('forgotten', entry.state);
    this.#change(entry, GONE);
    this.#on.leftBehind?.();
  }

  /** Redis started the entry for this worker. */
  started(entry: InFlightEntry, token: Token, startedMs: number): void {
    const { state } = entry;
    if (state.phase !== 'starting' || state.leasedMs === undefined) throw illegal('started', state);
    const start = { token, startedMs, leasedMs: state.leasedMs };
    this.#change(entry, { phase: 'started', start, completedEarly: false });
  }

  /** Redis completed the job before its handler begins. */
  completedEarly(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase !== 'started' || state.completedEarly) throw illegal('completed early', state);
    this.#change(entry, { ...state, completedEarly: true });
  }

  /** The start has an outcome without a handler. */
  refused(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase !== 'started' || state.completedEarly) throw illegal('refused', state);
    this.#change(entry, { phase: 'acknowledging', start: state.start, completedEarly: false });
  }

  handlerBegan(entry: InFlightEntry, handler: RunningHandler): void {
    const { state } = entry;
    if (state.phase !== 'started') throw illegal('handler began', state);
    const { start, completedEarly } = state;
    this.#change(entry, { phase: 'running', start, completedEarly, owed: true, extendedMs: undefined, handler });
    this.#on.handlerBegan?.();
  }

  /** The lease begins anew. A handler that ended while the call was under way has none any more. */
  extended(entry: InFlightEntry, extendedMs: number): void {
    const { state } = entry;
    if (state.phase === 'running' || state.phase === 'overtaken') this.#change(entry, { ...state, extendedMs });
  }

  /** The time of the handler is up. */
  overtaken(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase !== 'running') throw illegal('overtaken', state);
    this.#change(entry, { ...state, phase: 'overtaken', slotLost: false });
  }

  slotLost(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase !== 'overtaken' || state.slotLost) throw illegal('slot lost', state);
    this.#change(entry, { ...state, slotLost: true });
  }

  handlerEnded(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase !== 'running' && state.phase !== 'overtaken') throw illegal('handler ended', state);
    const { start, completedEarly, owed } = state;
    this.#change(entry, owed ? { phase: 'acknowledging', start, completedEarly } : GONE);
  }

  /** Redis gave its final reply, or the worker gives up asking for it. */
  answered(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase === 'acknowledging' || (state.phase === 'started' && !state.completedEarly)) {
      this.#change(entry, GONE);
    } else if ((state.phase === 'overtaken' || (state.phase === 'running' && state.completedEarly)) && state.owed) {
      this.#change(entry, { ...state, owed: false });
    } else throw illegal('answered', state);
  }

  /** Our own code failed at the entry, whose job is over in Redis. An overtaken handler keeps its slot until it ends. */
  abandoned(entry: InFlightEntry): void {
    const { state } = entry;
    if (state.phase === 'gone') return;
    this.#change(entry, state.phase === 'overtaken' ? { ...state, owed: false } : GONE);
    this.#on.leftBehind?.();
  }

  #put(entry: Own): InFlightEntry {
    this.#in(entry.ref).set(entry.delivery.entry, entry);
    this.#count[entry.state.phase] += 1;
    return entry;
  }

  /** The only place where an entry changes. */
  #change(entry: Own, next: EntryState): void {
    this.#count[entry.state.phase] -= 1;
    entry.state = next;
    if (next.phase === 'gone') this.#in(entry.ref).delete(entry.delivery.entry);
    else this.#count[next.phase] += 1;
    this.#notify();
  }

  #notify(): void {
    if (this.#waiting.size > 0) for (const test of this.#waiting) test();
  }

  #in({ partition }: PartitionRef): Map<string, Own> {
    const entries = this.#entries;
    while (entries.length <= partition) entries.push(new Map());
    return entries[partition] ?? new Map();
  }
}

function illegal(event: string, state: EntryState): Error {
  return new Error(`bug: "${event}" cannot happen to an entry in the phase ${state.phase}`);
}

const hasLostSlot = ({ state }: InFlightEntry) => state.phase === 'overtaken' && state.slotLost;
const isLeftAlone = ({ state }: InFlightEntry) => state.phase === 'overtaken' && state.slotLost && !state.owed;

/** The handler runs, and the lease is to be extended. A job that is over in Redis, or whose outcome is on its way, needs none. */
export const isLeased = ({ state }: InFlightEntry): boolean =>
  (state.phase === 'running' && !state.completedEarly) || isKept(state);

/** The time of the handler is up, and the outcome waits for its end. */
const isKept = (state: EntryState): boolean =>
  state.phase === 'overtaken' && state.owed && !state.slotLost && !state.completedEarly;

/** The job is over in Redis, and its handler is still to end. */
export const isCompletedEarly = ({ state }: InFlightEntry): boolean =>
  'completedEarly' in state && state.completedEarly;

/** Redis still has to give its final reply. */
export const isOwed = ({ state }: InFlightEntry): boolean => ('owed' in state ? state.owed : state.phase !== 'gone');

/** How far the handler is, if it has said so since Redis was told. */
export const unsentOf = ({ state }: InFlightEntry): string | undefined =>
  state.phase === 'running' ? state.handler.unsent : undefined;

/** Redis was told. A handler that has said more since keeps that. */
export function sent({ state }: InFlightEntry, line: string | undefined): void {
  if (line !== undefined && state.phase === 'running') state.handler.sent(line);
}

/** What the handler said of its job, and Redis may not know. */
export const bookOf = ({ state }: InFlightEntry): LogBook | undefined =>
  state.phase === 'running' || state.phase === 'overtaken' ? state.handler.book : undefined;

/** Tells the handler to stop. An entry whose handler does not run hears nothing. */
export function abort({ state }: InFlightEntry, why: AbortReason): void {
  if (state.phase === 'running' || state.phase === 'overtaken') state.handler.abort(why);
}

/** The start that an acknowledgement or an extension addresses. */
export function claimOf({ delivery: { entry, member }, state }: InFlightEntry): Claim {
  if ('start' in state) return { entry, member, token: state.start.token };
  throw new Error(`bug: entry ${entry} is ${state.phase} and has no token to be acknowledged with`);
}

export interface LostSlotsParts {
  readonly inFlight: InFlight;
  readonly queue: string;
  readonly abortGraceMs: number;
  /** 0 = never. */
  readonly recycleAtPercent: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

/**
 * Slots that handlers keep although their time was up. A handler cannot be ended from outside: one that ignores its signal
 * costs its slot until the process ends. So it is given a moment to clean up, then the slot counts as lost, and an event
 * says so. When a share of all slots is lost, the worker says that it is exhausted: the owner of the process ends it in
 * order, and a supervisor starts it anew with all its slots.
 */
export class LostSlots {
  readonly #parts: LostSlotsParts;
  readonly #most: number;
  #isExhaustedTold = false;

  constructor(parts: LostSlotsParts) {
    const { inFlight, recycleAtPercent } = parts;
    this.#parts = parts;
    this.#most =
      recycleAtPercent === 0 ? Number.POSITIVE_INFINITY : Math.ceil((inFlight.concurrency * recycleAtPercent) / 100);
  }

  /** The handler of this job was told that its time is up. The returned function calls the watch off. */
  watch(entry: InFlightEntry, id: string, onLost: () => void): () => void {
    const { inFlight, clock, abortGraceMs } = this.#parts;
    return clock.timer(abortGraceMs, () => {
      inFlight.slotLost(entry);
      this.tell(id);
      onLost();
    });
  }

  /** The slot of this job was lost, or its handler ended after all. */
  tell(id: string): void {
    const { inFlight, queue, events } = this.#parts;
    const lost = inFlight.lost();
    const { concurrency } = inFlight;
    events.emit('slots.lost', { queue, id, lost, concurrency });
    if (lost < this.#most || this.#isExhaustedTold) return;
    this.#isExhaustedTold = true;
    events.emit('worker.exhausted', { queue, lost, concurrency });
  }

  /** Too many are lost for this process to go on. */
  isExhausted(): boolean {
    return this.#parts.inFlight.lost() >= this.#most;
  }
}
