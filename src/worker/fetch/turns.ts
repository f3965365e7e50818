/**
 * A worker's turns at its partitions. A turn is one call: what is over is completed, entries that were read are started,
 * and where more wait, the next are delivered and started at once, as many as there are free slots.
 *
 *  blocking read ──entries──▶ turn ──▶ handlers run ──▶ over ──▶ turn, which brings the next ──▶ handlers run ──▶ …
 *        ▲                                                                     │
 *        └──────────────────── a turn that brought less than it asked for ◀────┘
 *
 * A busy worker asks once per batch, an idle one waits in its blocking read. At most half of the slots are asked for at
 * a time: while Redis works for one half, the handlers of the other run.
 *
 * A leader in this process makes its passes a part of these turns (`relay`) where this is the only worker.
 *
 * What is over waits up to 5 ms for a turn while nothing else needs one: at low rates completions travel together, or
 * with the start of the next job. A call that fails, also because our own code throws, is not repeated as a whole. Its
 * completions and its starts are, each as a call of its own; entries that it may have delivered are left to adoption, as
 * after a lost read.
 */
import type { Clock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { READ_JOBS_MAX, RELAY_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { LeadersPass, Passed, Relay } from '../../redis/scripts/passes.ts';
import type { Served, StartReply, Taken } from '../../redis/scripts/replies.ts';
import type { Acknowledger, Completion, EndedAttempt } from '../run/acknowledgement.ts';
import type { InFlight, InFlightEntry } from '../run/in-flight.ts';
import { type Line, type Lines, lineOf, linesWithMore } from './lines.ts';
import { callTurn, type Turn, type Turned } from './turn-call.ts';

export interface TurnsParts {
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly consumer: string;
  readonly windowMs: number;
  readonly jobs: Pick<Jobs, 'serve' | 'relay'>;
  readonly acknowledger: Acknowledger;
  /** The same calls on the connection of the reader. */
  readonly readerJobs: Pick<Jobs, 'serve' | 'relay'>;
  readonly concurrency: number;
  readonly bytesMax: number;
  readonly suspectCrashes: number;
}

/** What a turn delivered and started; it was sent at `sentMs`. */
export type TakeIn = (ref: PartitionRef, taken: readonly Taken[], sentMs: number) => void;

export interface Turns {
  /** Who takes in what turns bring. */
  readonly begin: (takeIn: TakeIn) => void;
  /** Nothing more is asked for; what is over still travels. Resolves when nothing more can come. */
  readonly stop: () => Promise<void>;
  /** A job is over. It travels with the next turn of its partition. */
  readonly complete: (attempt: EndedAttempt) => void;
  /** Starts entries of one partition, which are in the in-flight map. Undefined: there was no reply. */
  readonly start: (ref: PartitionRef, given: readonly InFlightEntry[]) => Promise<readonly StartReply[] | undefined>;
  /** Turns that are sent while this runs go out on the connection of the reader, which must not be waiting there. */
  readonly throughReader: (send: () => void) => void;
  /** While this says so, what is over asks for nothing new: the slots are for a look into other partitions. */
  readonly yieldWhile: (isLookDue: () => boolean) => void;
  /** A read brought as much as it asked for, so there may be more. */
  readonly expectMore: (ref: PartitionRef) => void;
  readonly hasMore: () => boolean;
  /** One turn at the partition whose turn it is. Rejects when it had no reply. */
  readonly next: () => Promise<void>;
  /** One turn at this partition, unless no slot is free; whether it may have more. Rejects with no reply or a refusal. */
  readonly at: (ref: PartitionRef) => Promise<boolean>;
  /** A turn that is a pass as well, for a leader in this process that has no other worker: it starts what it promotes. */
  readonly relay: Relay;
  readonly isRelayed: () => boolean;
  /** The read that is under way may bring so many entries. */
  readonly readsUpTo: (count: number) => void;
}

interface Taking extends TurnsParts {
  readonly lines: Lines;
  readonly underWay: Set<Promise<unknown>>;
  takeIn: TakeIn;
  isLookDue: () => boolean;
  isOpen: boolean;
  isThroughReader: boolean;
  reserved: number;
  /** Monotonic ms at which a leader wished for a relay last. */
  relayedMs: number;
}

/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
const OVER_MAX = 100;
/** How long completions wait for company. */
const GATHER_MS = 5;
/** After that somebody else leads, or has other workers. */
const RELAYED_MS = 15_000;

export function createTurns(parts: TurnsParts): Turns {
  const taking: Taking = {
    ...parts,
    lines: new Map(),
    underWay: new Set<Promise<unknown>>(),
    takeIn: () => undefined,
    isLookDue: () => false,
    isOpen: false,
    isThroughReader: false,
    reserved: 0,
    relayedMs: Number.NEGATIVE_INFINITY,
  };
  return {
    begin(takeIn) {
      taking.takeIn = takeIn;
      taking.isOpen = true;
    },
    async stop() {
      taking.isOpen = false;
      for (const line of taking.lines.values()) flush(taking, line);
      await Promise.allSettled(taking.underWay);
    },
    complete: (attempt) => complete(taking, attempt),
    start: (ref, given) => start(taking, lineOf(taking.lines, ref), given),
    throughReader(send) {
      taking.isThroughReader = true;
      try {
        send();
      } finally {
        taking.isThroughReader = false;
      }
    },
    yieldWhile(isLookDue) {
      taking.isLookDue = isLookDue;
    },
    expectMore(ref) {
      lineOf(taking.lines, ref).hasMore = true;
    },
    hasMore: () => linesWithMore(taking.lines).length > 0,
    next: () => next(taking),
    at: (ref) => at(taking, lineOf(taking.lines, ref)),
    relay: (ref, pass) => relay(taking, lineOf(taking.lines, ref), pass),
    isRelayed: () => taking.clock.monotonicMs() - taking.relayedMs < RELAYED_MS,
    readsUpTo(count) {
      taking.reserved = count;
    },
  };
}

function complete(taking: Taking, attempt: EndedAttempt): void {
  const line = lineOf(taking.lines, attempt.entry.ref);
  const over = taking.acknowledger.completionOf(attempt);
  if (taking.isOpen && !line.hasMore) soon(taking, line);
  else atOnce(taking, line);
  // Last of all: of a job whose completion fails here, nothing is on its way.
  line.over.push(over);
}

function soon(taking: Taking, line: Line): void {
  line.callOff ??= taking.clock.timer(GATHER_MS, () => flush(taking, line));
}

function atOnce(taking: Taking, line: Line): void {
  if (line.callOff) return;
  const immediate = setImmediate(() => flush(taking, line));
  line.callOff = () => clearImmediate(immediate);
}

/** Everything that is over at this partition, in as many calls as it takes; each brings more where more may be. */
function flush(taking: Taking, line: Line): void {
  while (line.over.length > 0) {
    // Told by the calls of the reader if Redis does not answer.
    turn(taking, line, { over: takeOver(taking, line), given: [], take: roomNow(taking, line) }).catch(() => undefined);
  }
}

/** What is over travels although nobody can tell whether there is room for more. */
function roomNow(taking: Taking, line: Line): number {
  try {
    return taking.isLookDue() ? 0 : roomFor(taking, line);
  } catch {
    return 0;
  }
}

/** What the next call takes with it. What is too much for one follows at once. */
function takeOver(taking: Taking, line: Line, most = OVER_MAX): readonly Completion[] {
  line.callOff?.();
  line.callOff = undefined;
  const over = line.over.splice(0, most);
  if (line.over.length > 0) atOnce(taking, line);
  return over;
}

/** New entries that a turn may ask for: a share of the free slots, where several partitions have more. */
function roomFor(taking: Taking, line: Line): number {
  const { inFlight, concurrency, isOpen } = taking;
  if (!line.hasMore || !isOpen || !inFlight.isOpen()) return 0;
  const share = Math.ceil(inFlight.free() / linesWithMore(taking.lines).length);
  return Math.min(share, Math.ceil(concurrency / 2), READ_JOBS_MAX);
}

async function start(
  taking: Taking,
  line: Line,
  given: readonly InFlightEntry[],
): Promise<readonly StartReply[] | undefined> {
  const served = await turn(taking, line, { over: takeOver(taking, line), given, take: 0 }).catch(() => undefined);
  if (!served) return undefined;
  const replies = new Map(served.taken.map((one) => [one.entry, one]));
  return given.flatMap(({ delivery }) => replies.get(delivery.entry) ?? []);
}

async function next(taking: Taking): Promise<void> {
  const [line] = linesWithMore(taking.lines);
  if (!line) return;
  // The last from now on: each has its turn.
  taking.lines.delete(line.ref);
  taking.lines.set(line.ref, line);
  await turn(taking, line, { over: takeOver(taking, line), given: [], take: roomFor(taking, line) });
}

async function at(taking: Taking, line: Line): Promise<boolean> {
  const take = roomFor(taking, line);
  if (take === 0) return true;
  const { refusal } = await turn(taking, line, { over: takeOver(taking, line), given: [], take });
  if (refusal !== undefined) throw new Error(refusal);
  return line.hasMore;
}

/** Where turns are busy with what waits already, the leader passes by itself, and moves as much as it may. */
function relay(taking: Taking, line: Line, pass: LeadersPass): Promise<Passed> | undefined {
  const { inFlight, clock, isOpen } = taking;
  taking.relayedMs = clock.monotonicMs();
  const take = Math.min(inFlight.free() - taking.reserved, RELAY_JOBS_MAX, pass.limit);
  if (!isOpen || !inFlight.isOpen() || line.hasMore || take <= 0) return undefined;
  return relayed(taking, line, { ...pass, limit: take });
}

async function relayed(taking: Taking, line: Line, pass: LeadersPass): Promise<Passed> {
  const over = takeOver(taking, line, RELAY_JOBS_MAX);
  const { promoted, receivedMs } = await turn(taking, line, { over, given: [], take: pass.limit, pass });
  return { reply: promoted ?? { kind: 'fenced' }, receivedMs, limit: pass.limit };
}

/** One call. @throws what it failed with, when what must be repeated is on its way. */
function turn(taking: Taking, line: Line, asked: Turn): ReturnType<typeof send> {
  const { inFlight, underWay } = taking;
  if (asked.take === 0) return send(taking, line, asked);
  inFlight.reserve(asked.take);
  const call = send(taking, line, asked).finally(() => {
    inFlight.reserve(-asked.take);
    underWay.delete(call);
  });
  underWay.add(call);
  return call;
}

async function send(taking: Taking, line: Line, asked: Turn): Promise<Turned & { readonly receivedMs: number }> {
  const { clock, acknowledger } = taking;
  const { over, given, take } = asked;
  const { ref } = line;
  let served: Turned;
  let sentMs: number;
  let receivedMs: number;
  try {
    sentMs = clock.monotonicMs();
    served = await callTurn(taking, taking.isThroughReader ? taking.readerJobs : taking.jobs, ref, asked);
    receivedMs = clock.monotonicMs();
  } catch (error) {
    line.hasMore &&= take === 0;
    acknowledger.repeat(ref, over);
    throw error;
  }
  if (take > 0) line.hasMore = served.delivered >= take;
  for (const [index, { attempt }] of over.entries()) acknowledger.completed(attempt, served.completed?.[index] ?? 'ok');
  const fresh = given.length === 0 ? served.taken : freshOf(served, given);
  if (fresh.length > 0) taking.takeIn(ref, fresh, sentMs);
  return { ...served, receivedMs };
}

function freshOf({ taken }: Served, given: readonly InFlightEntry[]): readonly Taken[] {
  const known = new Set(given.map(({ delivery }) => delivery.entry));
  return taken.filter(({ entry }) => !known.has(entry));
}
