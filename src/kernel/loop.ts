/**
 * The one shape of everything that runs for long: a `pass()` that does one step and says how many milliseconds until
 * the next, and a loop around it that can be woken early and stopped once or often. Outage is handled here and nowhere
 * else in a service: a failed pass is told once per change of state, waits with a growing jittered pause, and repeats.
 */
import { type Clock, clearImmediate, setImmediate } from './clock.ts';
import { DuestreamError } from './errors.ts';
import { reasonOf } from './reason.ts';

export interface Loop {
  readonly start: () => void;
  /** Ends after the pass that is under way. */
  readonly stop: () => Promise<void>;
  /** Cuts the current wait short; a wake during a pass is remembered. */
  readonly wake: () => void;
  /** Monotonic ms of the last pass that succeeded: what readiness is judged by. */
  readonly lastProgressMs: () => number;
  /** Monotonic ms of the last pass that ended at all. Every command has a time-out, so a loop that does not turn is stuck. */
  readonly lastTurnMs: () => number;
}

/** What a pass answers that asked Redis nothing: it did not fail, and it does not show that Redis is there. */
export interface Idle {
  /** Milliseconds until the next pass. */
  readonly idleMs: number;
}

export const idle = (idleMs: number): Idle => ({ idleMs });

/** What a loop tells of an outage, by the names that listeners know. An emitter of events is one. */
export interface LoopEvents {
  emit(name: 'redis.away', payload: { readonly who: string; readonly why: string; readonly answered: boolean }): void;
  emit(
    name: 'redis.back',
    payload: { readonly who: string; readonly awayMs: number; readonly stopped?: boolean },
  ): void;
  emit(name: 'schema.refused', payload: { readonly who: string; readonly why: string }): void;
}

export interface LoopParts {
  readonly who: string;
  /** One step. Returns milliseconds until the next; 0 = at once, after the event loop had its turn. */
  readonly pass: () => Promise<number | Idle>;
  /**
   * Asks Redis for a sign of life. Called after an idle pass while this loop has told that Redis is away: a loop that has
   * nothing to ask any more would otherwise tell it for ever.
   */
  readonly probe?: () => Promise<unknown>;
  readonly clock: Clock;
  readonly events: LoopEvents;
  /** Called after a failed pass, for example to repair. */
  readonly onError?: (error: unknown) => void | Promise<void>;
  /** How long to wait after so many failed passes in a row. Default: 25 ms, growing to a second. */
  readonly pauseAfter?: (error: unknown, failures: number, random: number) => number;
  readonly random?: () => number;
}

const PAUSE_MAX_MS = 1000;
const TELL_EVERY_MS = 5000;
/** A wake cuts the pause after a failure short, but not below this: nudges must not make a failing loop a hot one. */
const UNDISTURBED_MS = 250;

interface Looping extends LoopParts {
  readonly pauseAfter: Required<LoopParts>['pauseAfter'];
  readonly random: () => number;
  /** Waits between passes. */
  readonly waiter: Waiter;
  /** Waits after a failed pass, which no nudge cuts short. */
  readonly breather: Waiter;
  stopping: boolean;
  running: Promise<void> | undefined;
  progressMs: number;
  turnMs: number;
  failures: number;
  awaySinceMs: number;
  toldMs: number;
  /** What was told: the first word of an answer, '' for silence. LOADING after silence is news, more silence is not. */
  told: string | undefined;
}

export function createLoop(parts: LoopParts): Loop {
  const { clock, pauseAfter = growing, random = Math.random } = parts;
  const nowMs = clock.monotonicMs();
  const looping: Looping = {
    ...parts,
    pauseAfter,
    random,
    waiter: createWaiter(restOf(parts)),
    breather: createWaiter(restOf(parts)),
    stopping: false,
    running: undefined,
    progressMs: nowMs,
    turnMs: nowMs,
    failures: 0,
    awaySinceMs: 0,
    toldMs: Number.NEGATIVE_INFINITY,
    told: undefined,
  };
  return {
    start() {
      if (looping.stopping || looping.running) return;
      looping.turnMs = clock.monotonicMs();
      looping.running = forever(looping);
    },
    stop: () => stop(looping),
    wake: looping.waiter.wake,
    lastProgressMs: () => looping.progressMs,
    lastTurnMs: () => looping.turnMs,
  };
}

async function stop(looping: Looping): Promise<void> {
  looping.stopping = true;
  looping.breather.wake();
  looping.waiter.wake();
  await looping.running;
  tellBack(looping, true);
}

async function step(looping: Looping): Promise<number> {
  const { pass, probe, clock, pauseAfter, random, breather } = looping;
  try {
    const said = await pass();
    const isIdle = typeof said !== 'number';
    const heard = !isIdle || (looping.told !== undefined && probe !== undefined && !looping.stopping);
    if (isIdle && heard) await probe?.();
    looping.progressMs = clock.monotonicMs();
    if (heard) {
      looping.failures = 0;
      tellBack(looping);
    }
    return isIdle ? said.idleMs : said;
  } catch (error) {
    looping.failures += 1;
    tellAway(looping, error);
    await repairing(looping, error);
    const waitMs = pauseAfter(error, looping.failures, random());
    if (!looping.stopping) await breather.wait(Math.min(waitMs, UNDISTURBED_MS));
    return Math.max(1, waitMs - UNDISTURBED_MS);
  }
}

function tellBack(looping: Looping, stopped = false): void {
  const { clock, events, who } = looping;
  if (looping.told === undefined) return;
  looping.told = undefined;
  const awayMs = Math.round(clock.monotonicMs() - looping.awaySinceMs);
  events.emit('redis.back', { who, awayMs, ...(stopped ? { stopped } : {}) });
}

/** Once per change of state, and not more often than every few seconds when the state flaps. */
function tellAway(looping: Looping, error: unknown): void {
  const { clock, events, who } = looping;
  const nowMs = clock.monotonicMs();
  const why = reasonOf(error);
  // No outage, and nothing that passes: whoever runs this loop stops.
  if (error instanceof DuestreamError && error.code === 'wrong-schema') {
    events.emit('schema.refused', { who, why });
    return;
  }
  const answered = error instanceof Error && error.name === 'ReplyError';
  const news = answered ? why.slice(0, 40).split(' ', 1).join() : '';
  if (looping.told === news || nowMs - looping.toldMs < TELL_EVERY_MS) return;
  if (looping.told === undefined) looping.awaySinceMs = nowMs;
  looping.toldMs = nowMs;
  looping.told = news;
  events.emit('redis.away', { who, why, answered });
}

async function repairing(looping: Looping, error: unknown): Promise<void> {
  const { onError } = looping;
  try {
    await onError?.(error);
  } catch {
    // Healing needs Redis as well; the next pass tells whether it is back.
  }
}

async function forever(looping: Looping): Promise<void> {
  const { clock, waiter } = looping;
  while (!looping.stopping) {
    let waitMs = PAUSE_MAX_MS;
    try {
      waitMs = await step(looping);
      looping.turnMs = clock.monotonicMs();
    } catch {
      // Our own code threw around the pass. A loop that ended here would end what every job of its process needs.
    }
    if (!looping.stopping) await waiter.wait(waitMs);
  }
}

function growing(_error: unknown, failures: number, random: number): number {
  return Math.min(PAUSE_MAX_MS, 25 * 2 ** Math.min(failures, 6)) * (0.5 + random / 2);
}

interface Waiter {
  readonly wait: (ms: number) => Promise<void>;
  readonly wake: () => void;
}

type Rest = (ms: number, callback: () => void) => () => void;

const restOf = ({ clock, who }: LoopParts): Rest => (clock.rest ? clock.rest.bind(clock, who) : realRest);

/** Node fires a longer timer at once; a wait that ends after 24.8 days is one pass too many and nothing else. */
function realRest(ms: number, callback: () => void): () => void {
  if (ms > 0) {
    const timer = setTimeout(callback, Math.min(ms, 2 ** 31 - 1));
    return () => clearTimeout(timer);
  }
  const immediate = setImmediate(callback);
  return () => clearImmediate(immediate);
}

/** A wait that can be cut short. A wake without a wait is remembered for the next one. */
export function createWaiter(rest: Rest = realRest): Waiter {
  let pending: (() => void) | undefined;
  let woken = false;
  return {
    wait(ms) {
      if (woken) {
        woken = false;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        const callOff = rest(ms, done);
        function done() {
          pending = undefined;
          callOff();
          resolve();
        }
        pending = done;
      });
    },
    wake() {
      if (pending) pending();
      else woken = true;
    },
  };
}
