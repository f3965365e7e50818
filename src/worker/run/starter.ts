/**
 * Entries that this worker was given → started, in as few calls as they fit into. What Redis lets through is executed; a
 * suspect waits in the quarantine; what finds no room, or is not answered in time, is released or left to adoption.
 *
 * What must always hold: an entry is in the in-flight map before `start` is called, and leaves it only on a final reply, or
 * when our own code throws. Then it is left to adoption; the others of its call go on, and none stays here unstarted.
 */

import type { Emitter } from '../../job/events.ts';
import type { Token } from '../../job/job.ts';
import { createAbort } from '../../kernel/abort.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { READ_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Delivery, StartReply, Taken } from '../../redis/scripts/replies.ts';
import type { Turns } from '../fetch/turns.ts';
import type { Acknowledger } from './acknowledgement.ts';
import type { Executor } from './execution.ts';
import type { Expire } from './expiry.ts';
import { startTrustedUntilMs, trustedUntilMs } from './extender.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';
import { createParked, type Parked } from './parked.ts';
import { processQuarantine } from './quarantine.ts';
import { callRelease, callStart } from './start-calls.ts';
import { createUnstarted, type Unstarted } from './unstarted.ts';

export interface StarterParts {
  readonly jobs: Jobs;
  readonly queue: string;
  readonly consumer: string;
  readonly concurrency: number;
  /** Bytes of records per start call. */
  readonly bytesMax: number;
  readonly windowMs: number;
  /** A job under which so many workers died is started alone. */
  readonly suspectCrashes: number;
  readonly jobLeaseMs: number;
  readonly inFlight: InFlight;
  readonly turns: Turns;
  readonly executor: Executor;
  readonly expire: Expire;
  readonly acknowledger: Acknowledger;
  readonly clock: Clock;
  readonly events: Emitter;
}

export interface Starter {
  /** Starts entries of a read, or releases them where there is no room. */
  readonly start: (ref: PartitionRef, deliveries: readonly Delivery[]) => Promise<void>;
  /** The same for entries that another worker had. They wait for a suspect: released, they would only come again. */
  readonly take: (ref: PartitionRef, deliveries: readonly Delivery[]) => Promise<void>;
  /** From now on nothing is started. Resolves when the suspects that waited are released. */
  readonly stop: () => Promise<void>;
  /** Forgets the jobs that were put off. */
  readonly end: () => void;
}

interface Starting extends StarterParts {
  readonly stopping: AbortController;
  readonly parked: Parked;
  readonly tell: Unstarted;
  readonly admit: (held: InFlightEntry, token: Token) => void;
}

/** What becomes of an entry: it waits for the next call, is past its expiry, or needs nothing more from here. */
type Answer = 'later' | 'late' | 'answered';

export function createStarter(parts: StarterParts): Starter {
  const { queue, inFlight, clock, events } = parts;
  const tell = createUnstarted({ queue, inFlight, clock, events });
  const parked = createParked({ queue, clock, events });
  const starting: Starting = {
    ...parts,
    stopping: createAbort(),
    parked,
    tell,
    admit: (held, token) => membership.admit(held, token),
  };
  const underWay = new Set<Promise<void>>();
  const membership = processQuarantine.join({ inFlight, clock, start: (held) => startAlone(starting, held) });
  parts.turns.begin((ref, taken, sentMs) => {
    const left = takeIn(starting, ref, { taken, sentMs });
    if (!left) return;
    underWay.add(left);
    void left.finally(() => underWay.delete(left));
  });
  return {
    start: (ref, deliveries) => start(starting, ref, deliveries),
    async take(ref, deliveries) {
      await inFlight.until(() => inFlight.isOpen(), starting.stopping.signal);
      await start(starting, ref, deliveries);
    },
    async stop() {
      starting.stopping.abort();
      const answered = parts.turns.stop();
      const unstarted = membership.leave();
      tell.suspects();
      await Promise.all(unstarted.map(({ ref, delivery }) => callRelease(starting, ref, [delivery])));
      await answered;
      await Promise.all(underWay);
    },
    end: parked.stop,
  };
}

async function start(starting: Starting, ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
  const { inFlight, stopping } = starting;
  const fresh = deliveries.filter(({ entry }) => !inFlight.has(ref, entry));
  // A read and a take can both have counted on the same free slot. Or a suspect is alone meanwhile.
  const room = stopping.signal.aborted || !inFlight.isOpen() ? 0 : inFlight.free();
  const taken = fresh.slice(0, room).map((delivery) => inFlight.add(ref, delivery));
  // Without a wait where nothing is released: the reader sends what starts the rest together with its next read.
  if (fresh.length > room) await callRelease(starting, ref, fresh.slice(room));
  await startAll(starting, ref, taken);
}

/** Never rejects. */
async function startAll(starting: Starting, ref: PartitionRef, held: readonly InFlightEntry[]): Promise<void> {
  try {
    await startInTurn(starting, ref, held);
  } catch (thrown) {
    leave(starting, held, thrown);
  }
}

/** Those whose start is still under way. */
function leave({ acknowledger }: Starting, held: readonly InFlightEntry[], thrown: unknown): void {
  for (const one of held) if (one.state.phase === 'starting') acknowledger.failed(one, thrown);
}

async function startInTurn(starting: Starting, ref: PartitionRef, held: readonly InFlightEntry[]): Promise<void> {
  const { inFlight, stopping, suspectCrashes } = starting;
  let rest = held;
  while (rest.length > 0 && inFlight.isOpen() && !stopping.signal.aborted) {
    const later = await startSome(starting, rest.slice(0, READ_JOBS_MAX), suspectCrashes);
    rest = [...later, ...rest.slice(READ_JOBS_MAX)];
  }
  const left = rest.map(({ delivery }) => delivery);
  for (const one of rest) inFlight.forgotten(one);
  await callRelease(starting, ref, left);
}

async function startAlone(starting: Starting, held: InFlightEntry): Promise<void> {
  try {
    starting.tell.suspects();
    // Left to adoption, as without a reply.
    for (const late of await startSome(starting, [held], 0)) starting.inFlight.forgotten(late);
  } catch (thrown) {
    leave(starting, [held], thrown);
  }
}

/** Starts what fits into one call; returns what was answered `later`, or too late to run it. */
async function startSome(
  starting: Starting,
  held: readonly InFlightEntry[],
  suspects: number,
): Promise<readonly InFlightEntry[]> {
  const [first] = held;
  if (!first) return [];
  const { ref } = first;
  const answered = suspects > 0 ? await starting.turns.start(ref, held) : undefined;
  const replies = answered ?? (await callStart(starting, held, suspects).catch(() => undefined));
  if (!replies) {
    // Nobody knows whether they were started. Adoption finds them by their idle time and asks again.
    for (const unanswered of held) starting.inFlight.forgotten(unanswered);
    return [];
  }
  const answers = held.map((one, index) => answerOf(starting, one, replies[index]));
  return afterwards(starting, { ref, held, answers, replies });
}

/** Tells what came of a call, ends what is late, and returns what was answered `later`. */
async function afterwards(
  starting: Starting,
  call: {
    readonly ref: PartitionRef;
    readonly held: readonly InFlightEntry[];
    readonly answers: readonly Answer[];
    readonly replies: readonly StartReply[];
  },
): Promise<readonly InFlightEntry[]> {
  const { ref, held, answers, replies } = call;
  starting.tell.suspects();
  starting.parked.saw(ref.partition, replies.filter(({ kind }) => kind === 'parked').length);
  const late = held.filter((_, index) => answers[index] === 'late');
  if (late.length > 0) await expireSome(starting, ref, late);
  return held.filter((_, index) => answers[index] === 'later');
}

/**
 * What a turn delivered and started. After a stop nothing of it is run: it is left to the hand-over. Resolves when also those
 * are started that were not at once, if there are any.
 */
function takeIn(
  starting: Starting,
  ref: PartitionRef,
  { taken, sentMs }: { readonly taken: readonly Taken[]; readonly sentMs: number },
): Promise<void> | undefined {
  const { inFlight, stopping } = starting;
  if (stopping.signal.aborted) return undefined;
  // A group that was made anew delivers what runs here once more, and its start is answered with the token it has.
  const fresh = taken.filter(({ entry }) => !inFlight.has(ref, entry));
  const others = fresh.filter((one) => !runAtOnce(starting, ref, one, sentMs));
  if (others.length === 0) return undefined;
  const held = others.map((one) => inFlight.add(ref, one));
  for (const one of held) inFlight.startSent(one, sentMs);
  const answers = held.map((one, index) => answerOf(starting, one, others[index]));
  return afterwards(starting, { ref, held, answers, replies: others }).then(
    (rest) => startAll(starting, ref, rest),
    (thrown: unknown) => leave(starting, held, thrown),
  );
}

/** What nearly all are: started, and answered soon enough. */
function runAtOnce(
  { inFlight, clock, jobLeaseMs, executor }: Starting,
  ref: PartitionRef,
  one: Taken,
  sentMs: number,
): boolean {
  if (one.kind !== 'run') return false;
  let nowMs: number;
  try {
    nowMs = clock.monotonicMs();
  } catch {
    return false;
  }
  if (nowMs >= startTrustedUntilMs(sentMs, jobLeaseMs)) return false;
  executor.execute(inFlight.addStarted(ref, one, { startedMs: nowMs, leasedMs: sentMs }), one);
  return true;
}

/** What our own code throws at one reply must not cost the others theirs. */
function answerOf(starting: Starting, held: InFlightEntry, reply: StartReply | undefined): Answer {
  try {
    return obey(starting, held, reply);
  } catch (thrown) {
    starting.acknowledger.failed(held, thrown);
    return 'answered';
  }
}

function obey(starting: Starting, held: InFlightEntry, reply: StartReply | undefined): Answer {
  const { inFlight, clock, jobLeaseMs, executor, stopping, admit, tell } = starting;
  switch (reply?.kind) {
    case 'late':
      return 'late';
    case 'later':
      return 'later';
    case 'run':
    case 'again': {
      const nowMs = clock.monotonicMs();
      // Answered so late that others may have it by now: it is asked for again, and the answer says whose it is.
      if (nowMs >= trustedUntilMs(held, { jobLeaseMs, nowMs })) return 'later';
      inFlight.started(held, reply.token, nowMs);
      executor.execute(held, reply);
      return 'answered';
    }
    case 'suspect':
      // The quarantine was left. What is not started is released, as with every answer `later`.
      if (stopping.signal.aborted) return 'later';
      admit(held, reply.token);
      return 'answered';
    case 'cancelled':
      tell.cancelled(held);
      break;
    case 'deadLetter':
      tell.deadLetter(held);
      break;
    case 'dropped':
    case 'released':
    case 'parked':
    case 'lost':
    case undefined:
      break;
  }
  inFlight.forgotten(held);
  return 'answered';
}

/** Jobs past their expiry. One that is not late after all is released and comes again. */
async function expireSome(starting: Starting, ref: PartitionRef, held: readonly InFlightEntry[]): Promise<void> {
  const deliveries = held.map(({ delivery }) => delivery);
  const kept = await starting.expire(ref, deliveries, starting.stopping.signal);
  for (const expired of held) starting.inFlight.forgotten(expired);
  await callRelease(starting, ref, kept);
}
