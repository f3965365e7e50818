/**
 * Keeps what this worker runs its own: extends the lease of every running entry well within the time after which
 * others may take it, and learns of cancel requests that way. An entry that was not extended in time may be started by
 * another worker, so its handler is told to stop: the worker fences itself. A timer does that and not the failure of
 * the call, because a line that goes silent lets a call hang for its whole time-out.
 *
 * The rule, for each entry by itself. Redis lets others take it once it has been idle for a whole lease, and it was not
 * idle when Redis carried out the last call that extended it, so later than that call was sent:
 *
 *  call sent ──▶ carried out ────────────── lease ───────────────▶ others may take it
 *      └────────────────── lease − margin ──▶ the handler is told
 *
 * So it is told before another can have its job, and not before that but for the margin: a tenth of the lease, one half
 * of it for a clock that goes 5 % slower than that of Redis, the other for a timer that rings late and a handler that has
 * to hear of it. A call that is answered until then is in time. Whoever wakes up later than that is told at once.
 *
 * After the event loop stood still, timers ring before anything that has arrived is read. So what rings here lets the
 * loop read first, and a reply that came meanwhile counts. No stall moves the end of the trust, which counts from the
 * last call that was answered; and one that is longer than the time-out of a command also fails the call under way.
 *
 * What handlers say of their progress goes with the extension of their entries. The first word is sent at once, and what
 * comes after it is sent together, a second later: a pass between two extensions of everything asks for these entries alone.
 *
 * Log lines of handlers go before the extension of their entries, in the same pipeline (`log-book.ts`), and never have a pass of
 * their own.
 *
 * A handler whose time is up and that goes on is extended as well: its job stays its own, and keeps its place in a limit, until
 * the handler has ended or its slot counts as lost.
 */

import type { Emitter } from '../../job/events.ts';
import { type Clock, clearImmediate, setImmediate } from '../../kernel/clock.ts';
import { createLoop, type Idle, idle } from '../../kernel/loop.ts';
import { pauseAfter } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { EXTEND_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { ExtendReply } from '../../redis/scripts/replies.ts';
import { abort, bookOf, claimOf, type InFlight, type InFlightEntry, isLeased, sent, unsentOf } from './in-flight.ts';
import { sendLines } from './log-book.ts';

export interface ExtenderParts {
  readonly jobs: Pick<Jobs, 'extend' | 'log'>;
  /** Asks Redis for a sign of life. */
  readonly probe: () => Promise<unknown>;
  /** Of each queue of the worker. */
  readonly inFlights: readonly InFlight[];
  readonly consumer: string;
  /** Their names. */
  readonly queue: string;
  readonly extendEveryMs: number;
  readonly jobLeaseMs: number;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Extender {
  readonly start: () => void;
  readonly stop: () => Promise<void>;
  /** After a reconnect: go on at once. */
  readonly wake: () => void;
  /** A handler has said how far it is. */
  readonly reported: () => void;
  /** Extends everything that runs. Returns milliseconds until the next time. */
  readonly pass: () => Promise<number | Idle>;
}

/** The part of a lease that is not trusted. */
const MARGIN = 1 / 10;
/**
 * `start` makes older entries young again, and leaves this age to the others. Of a lease below 4 s a quarter has to do,
 * or it would be over before the first extension: there an entry that waited longer for its start is told too late.
 */
const AGE_AT_START_MS = 1000;
const AGE_AT_START = 1 / 4;

/** How often Redis hears of progress at most. */
const REPORT_EVERY_MS = 1000;

interface Extending extends ExtenderParts {
  /** Calls off the next look at whose time is up. */
  disarm: () => void;
  /** Monotonic ms at which everything is to be extended. */
  dueMs: number;
  /** Monotonic ms at which Redis heard of progress. */
  reportedMs: number;
  /** Some handler said how far it is, and Redis was not told since. */
  hasReports: boolean;
}

export function createExtender(parts: ExtenderParts): Extender {
  const { extendEveryMs, probe, clock, events } = parts;
  const never = Number.NEGATIVE_INFINITY;
  const extending: Extending = {
    ...parts,
    disarm: () => undefined,
    dueMs: never,
    reportedMs: never,
    hasReports: false,
  };
  const loop = createLoop({
    who: `extender of ${parts.queue}`,
    pass: () => turn(extending),
    probe,
    clock,
    events,
    // Never longer than usual: what fails may be one partition, and the others are to be extended in time.
    pauseAfter: (...failed) => Math.min(extendEveryMs, pauseAfter(...failed)),
    onError: () => fence(extending),
  });
  return {
    start: loop.start,
    async stop() {
      await loop.stop();
      extending.disarm();
    },
    wake() {
      extending.dueMs = never;
      loop.wake();
    },
    reported() {
      if (extending.hasReports) return;
      extending.hasReports = true;
      loop.wake();
    },
    pass() {
      extending.dueMs = never;
      return turn(extending);
    },
  };
}

async function turn(extending: Extending): Promise<number | Idle> {
  const { clock, extendEveryMs } = extending;
  const isDue = clock.monotonicMs() >= extending.dueMs;
  let hasAsked = false;
  if (isDue || clock.monotonicMs() >= extending.reportedMs + REPORT_EVERY_MS) {
    hasAsked = await extendThose(extending, isDue ? isLeased : hasUnsent);
    if (isDue) extending.dueMs = clock.monotonicMs() + extendEveryMs;
  }
  const reportMs = extending.hasReports ? extending.reportedMs + REPORT_EVERY_MS : Number.POSITIVE_INFINITY;
  const waitMs = Math.max(0, Math.ceil(Math.min(extending.dueMs, reportMs) - clock.monotonicMs()));
  return hasAsked ? waitMs : idle(waitMs);
}

const hasUnsent = (entry: InFlightEntry): boolean => isLeased(entry) && unsentOf(entry) !== undefined;

/** Whether there were such entries. */
async function extendThose(extending: Extending, isMeant: (entry: InFlightEntry) => boolean): Promise<boolean> {
  const { inFlights } = extending;
  fence(extending);
  extending.hasReports = false;
  let hasMeant = false;
  // One partition that cannot be extended must not cost those behind it their jobs.
  const failures: unknown[] = [];
  for (const inFlight of inFlights) {
    const meant = inFlight.all().filter(isMeant);
    hasMeant ||= meant.length > 0;
    for (const [ref, entries] of byPartition(meant)) {
      await extendAll(extending, inFlight, { ref, entries }).catch((error: unknown) => void failures.push(error));
    }
  }
  fence(extending);
  if (failures.length === 0) return hasMeant;
  extending.hasReports = true;
  throw failures[0];
}

interface OfPartition {
  readonly ref: PartitionRef;
  readonly entries: readonly InFlightEntry[];
}

async function extendAll(extending: Extending, inFlight: InFlight, { ref, entries }: OfPartition): Promise<void> {
  const { jobs, consumer, clock } = extending;
  for (let from = 0; from < entries.length; from += EXTEND_JOBS_MAX) {
    // Some handlers may have ended while the calls before this one were under way.
    const leased = entries.slice(from, from + EXTEND_JOBS_MAX).filter(isLeased);
    if (leased.length === 0) continue;
    const sentMs = clock.monotonicMs();
    const claims = leased.map((entry) => ({ ...claimOf(entry), progress: unsentOf(entry) }));
    if (claims.some(({ progress }) => progress !== undefined)) extending.reportedMs = sentMs;
    const speakers = leased.map((entry) => ({ claim: claimOf(entry), book: bookOf(entry) }));
    sendLines(extending, ref, speakers);
    const replies = await jobs.extend(ref, claims, consumer);
    for (const [index, entry] of leased.entries()) {
      const reply = replies[index];
      if (reply === 'ok' || reply === 'cancel') inFlight.extended(entry, sentMs);
      // Where it is refused, nobody will ever know.
      sent(entry, claims[index]?.progress);
      abortAfter(entry, reply);
    }
  }
}

/** The handler may have ended while the call was under way; then its own acknowledgement tells the rest. */
function abortAfter(entry: InFlightEntry, reply: ExtendReply | undefined): void {
  if (reply === 'cancel') abort(entry, 'cancelled');
  if (reply === 'fenced' || reply === 'gone') abort(entry, 'lease lost');
}

/** Tells those whose time is up, and comes back when it is up for the next. What is over in Redis needs no lease. */
function fence(extending: Extending): void {
  const { inFlights, clock, jobLeaseMs } = extending;
  extending.disarm();
  const nowMs = clock.monotonicMs();
  let nextMs = Number.POSITIVE_INFINITY;
  for (const entry of inFlights.flatMap((one) => one.all())) {
    const untilMs = trustedUntilMs(entry, { jobLeaseMs, nowMs });
    if (nowMs >= untilMs) abort(entry, 'lease lost');
    else nextMs = Math.min(nextMs, untilMs);
  }
  // A timer may fire up to a millisecond early.
  if (nextMs < Number.POSITIVE_INFINITY) {
    extending.disarm = clock.timer(nextMs - nowMs + 1, () => readFirst(extending));
  }
}

/** The reply that makes it needless may lie in the socket: what has arrived is read before an immediate. */
function readFirst(extending: Extending): void {
  const immediate = setImmediate(() => fence(extending));
  extending.disarm = () => clearImmediate(immediate);
}

/**
 * Until when, by the clock of this process, no other worker may start the entry. An entry that no call was sent for yet has
 * its whole lease. An entry whose job is over in Redis, or whose outcome is on the way, is trusted for ever.
 */
export function trustedUntilMs(
  entry: InFlightEntry,
  { jobLeaseMs, nowMs }: { readonly jobLeaseMs: number; readonly nowMs: number },
): number {
  const { state } = entry;
  switch (state.phase) {
    case 'starting':
      return startTrustedUntilMs(state.leasedMs ?? nowMs, jobLeaseMs);
    case 'started':
      return state.completedEarly ? Number.POSITIVE_INFINITY : startTrustedUntilMs(state.start.leasedMs, jobLeaseMs);
    case 'running':
    case 'overtaken':
      if (!isLeased(entry)) return Number.POSITIVE_INFINITY;
      if (state.extendedMs === undefined) return startTrustedUntilMs(state.start.leasedMs, jobLeaseMs);
      return state.extendedMs + leaseOf(jobLeaseMs);
    case 'suspected':
    case 'acknowledging':
    case 'gone':
      return Number.POSITIVE_INFINITY;
  }
}

/** The same for a start whose call was sent at `leasedMs`: its entry may have been idle for a while by then. */
export const startTrustedUntilMs = (leasedMs: number, jobLeaseMs: number): number =>
  leasedMs - Math.min(AGE_AT_START_MS, jobLeaseMs * AGE_AT_START) + leaseOf(jobLeaseMs);

const leaseOf = (jobLeaseMs: number) => jobLeaseMs * (1 - MARGIN);

function byPartition(entries: readonly InFlightEntry[]): Map<PartitionRef, InFlightEntry[]> {
  const groups = new Map<PartitionRef, InFlightEntry[]>();
  for (const one of entries) {
    const group = groups.get(one.ref);
    if (group) group.push(one);
    else groups.set(one.ref, [one]);
  }
  return groups;
}
