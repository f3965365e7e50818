/**
 * A worker's turns at its partitions. A turn is one call: what is over is completed, entries that were read are started,
 * and where more wait, the next are delivered and started at once, as many as there are free slots.
 *
 *  blocking read ──entries──▶ turn ──▶ handlers run ──▶ over ──▶ turn, which brings the next ──▶ handlers run ──▶ …
 *        ▲                                                                     │
 *        └──────────────────── a turn that brought less than it asked for ◀────┘
 *
 * So a busy worker asks once per batch, and an idle one waits in its blocking read. At most half of the slots are asked
 * for at a time: while Redis works for one half, the handlers of the other run.
 *
 * What is over waits up to 5 ms for a turn while nothing else needs one: at low rates completions travel together, or
 * with the start of the next job. A call that fails is not repeated as a whole. Its completions and its starts are, each
 * as a call of its own; entries that it may have delivered are left to adoption, as after a lost read.
 */
import type { PartitionRef } from '../redis/keys.ts';
import { READ_JOBS_MAX } from '../redis/transitions/bytes.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { Delivery, Served, StartReply, Taken } from '../redis/transitions/replies.ts';
import { type Completions, type CompletionsParts, claimWithMark } from './completions.ts';
import type { Ended } from './conclude.ts';
import type { Held } from './inflight.ts';

export interface TurnsParts extends CompletionsParts {
  readonly completions: Pick<Completions, 'settled' | 'repeat'>;
  /** The same calls on the connection of the reader. */
  readonly readerJobs: Pick<Jobs, 'serve'>;
  readonly concurrency: number;
  readonly bytesMax: number;
  readonly suspectCrashes: number;
}

/** Takes in what a turn delivered and started; the call was sent at `sentMs`. */
export type TakeIn = (ref: PartitionRef, taken: readonly Taken[], sentMs: number) => void;

export interface Turns {
  /** Who takes in what turns bring. */
  readonly begin: (takeIn: TakeIn) => void;
  /** Nothing more is asked for; what is over still travels. Resolves when nothing more can come. */
  readonly stop: () => Promise<void>;
  /** A job is over. It travels with the next turn of its partition. */
  readonly complete: (ended: Ended) => void;
  /** Starts entries of one partition, which are in the in-flight map. Undefined: there was no reply. */
  readonly start: (ref: PartitionRef, given: readonly Held[]) => Promise<readonly StartReply[] | undefined>;
  /** Turns that are sent while this runs go out on the connection of the reader, which must not be waiting there. */
  readonly throughReader: (send: () => void) => void;
  /** While this says so, what is over asks for nothing new: the slots are for a look into other partitions. */
  readonly yieldWhile: (isLookDue: () => boolean) => void;
  /** A read brought as much as it asked for, so there may be more. */
  readonly expectMore: (ref: PartitionRef) => void;
  /** Whether any partition may have more. */
  readonly hasMore: () => boolean;
  /** One turn at the partition whose turn it is. Rejects when it had no reply. */
  readonly next: () => Promise<void>;
  /** One turn at this partition, unless no slot is free; whether it may have more. Rejects with no reply or a refusal. */
  readonly at: (ref: PartitionRef) => Promise<boolean>;
}

/** A partition. */
interface Line {
  readonly ref: PartitionRef;
  over: Ended[];
  /** New entries may wait there. */
  hasMore: boolean;
  /** Calls off the turn that what is over waits for. */
  callOff: (() => void) | undefined;
}

interface Taking extends TurnsParts {
  readonly lines: Map<PartitionRef, Line>;
  /** Calls that may bring new entries. */
  readonly underWay: Set<Promise<unknown>>;
  takeIn: TakeIn;
  isLookDue: () => boolean;
  isOpen: boolean;
  isThroughReader: boolean;
}

/** What one call asks for. */
interface Turn {
  readonly over: readonly Ended[];
  readonly given: readonly Held[];
  readonly take: number;
}

/** Most completions per call: Redis serves nobody else meanwhile, and frees a record for each. */
const OVER_MAX = 100;
/** How long completions wait for company. */
const GATHER_MS = 5;

export function createTurns(parts: TurnsParts): Turns {
  const own = { lines: new Map(), underWay: new Set<Promise<unknown>>(), takeIn: () => undefined };
  const taking: Taking = { ...parts, ...own, isLookDue: () => false, isOpen: false, isThroughReader: false };
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
    complete: (ended) => complete(taking, ended),
    start: (ref, given) => start(taking, lineOf(taking, ref), given),
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
      lineOf(taking, ref).hasMore = true;
    },
    hasMore: () => linesWithMore(taking).length > 0,
    next: () => next(taking),
    at: (ref) => at(taking, lineOf(taking, ref)),
  };
}

function lineOf({ lines }: Taking, ref: PartitionRef): Line {
  let line = lines.get(ref);
  if (!line) {
    line = { ref, over: [], hasMore: false, callOff: undefined };
    lines.set(ref, line);
  }
  return line;
}

const linesWithMore = ({ lines }: Taking) => [...lines.values()].filter(({ hasMore }) => hasMore);

function complete(taking: Taking, ended: Ended): void {
  const line = lineOf(taking, ended.held.ref);
  line.over.push(ended);
  if (taking.isOpen && !line.hasMore) soon(taking, line);
  else atOnce(taking, line);
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
    const take = taking.isLookDue() ? 0 : roomFor(taking, line);
    turn(taking, line, { over: overOf(taking, line), given: [], take }).catch(() => undefined);
  }
}

/** What the next call takes with it. What is too much for one follows at once. */
function overOf(taking: Taking, line: Line): readonly Ended[] {
  line.callOff?.();
  line.callOff = undefined;
  const over = line.over.splice(0, OVER_MAX);
  if (line.over.length > 0) atOnce(taking, line);
  return over;
}

/** New entries that a turn may ask for: a share of the free slots, where several partitions have more. */
function roomFor(taking: Taking, line: Line): number {
  const { inflight, concurrency, isOpen } = taking;
  if (!line.hasMore || !isOpen || !inflight.isOpen()) return 0;
  const share = Math.ceil(inflight.free(concurrency) / linesWithMore(taking).length);
  return Math.min(share, Math.ceil(concurrency / 2), READ_JOBS_MAX);
}

async function start(taking: Taking, line: Line, given: readonly Held[]): Promise<readonly StartReply[] | undefined> {
  const served = await turn(taking, line, { over: overOf(taking, line), given, take: 0 }).catch(() => undefined);
  if (!served) return undefined;
  const replies = new Map(served.taken.map((one) => [one.entry, one]));
  return given.flatMap(({ delivery }) => replies.get(delivery.entry) ?? []);
}

async function next(taking: Taking): Promise<void> {
  const [line] = linesWithMore(taking);
  if (!line) return;
  // The last from now on: each has its turn.
  taking.lines.delete(line.ref);
  taking.lines.set(line.ref, line);
  await turn(taking, line, { over: overOf(taking, line), given: [], take: roomFor(taking, line) });
}

async function at(taking: Taking, line: Line): Promise<boolean> {
  const take = roomFor(taking, line);
  if (take === 0) return true;
  const { refusal } = await turn(taking, line, { over: overOf(taking, line), given: [], take });
  if (refusal !== undefined) throw new Error(refusal);
  return line.hasMore;
}

/** One call. @throws what it failed with, after everything that must be repeated is on its way. */
function turn(taking: Taking, line: Line, asked: Turn): Promise<Served> {
  const { inflight, underWay } = taking;
  if (asked.take === 0) return send(taking, line, asked);
  inflight.keep(asked.take);
  // Given back when what it brought is there: nobody may take the slots for free in between, or the worker for idle.
  const call = send(taking, line, asked).finally(() => {
    inflight.keep(-asked.take);
    underWay.delete(call);
  });
  underWay.add(call);
  return call;
}

async function send(taking: Taking, line: Line, { over, given, take }: Turn): Promise<Served> {
  const { inflight, clock, consumer, bytesMax, windowMs, suspectCrashes, completions } = taking;
  const { ref } = line;
  const jobs = taking.isThroughReader ? taking.readerJobs : taking.jobs;
  const sentMs = clock.monotonicMs();
  for (const held of given) inflight.startSent(held, sentMs);
  const ended = over.map((one) => claimWithMark(one, windowMs));
  const deliveries = given.map(({ delivery }) => delivery);
  const settings = { consumer, bytesMax, windowMs, suspects: suspectCrashes };
  let served: Served;
  try {
    served = await jobs.serve(ref, { ended, given: deliveries, take }, settings);
  } catch (error) {
    line.hasMore &&= take === 0;
    completions.repeat(ref, over);
    throw error;
  }
  if (take > 0) line.hasMore = served.delivered >= take;
  for (const [index, one] of over.entries()) completions.settled(one, served.completed?.[index] ?? 'ok');
  const fresh = given.length === 0 ? served.taken : freshOf(served, deliveries);
  if (fresh.length > 0) taking.takeIn(ref, fresh, sentMs);
  return served;
}

function freshOf({ taken }: Served, given: readonly Delivery[]): readonly Taken[] {
  const known = new Set(given.map(({ entry }) => entry));
  return taken.filter(({ entry }) => !known.has(entry));
}
