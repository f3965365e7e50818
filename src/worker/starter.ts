/**
 * Entries that this worker was given → started, in as few calls as they fit into. What Redis lets through is executed; a
 * suspect waits in the quarantine; what finds no room, or is not answered in time, is released or left to adoption.
 *
 * What must always hold: an entry is in the in-flight map before `start` is called, and leaves it only on a final reply.
 */
import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import type { Token } from '../core/job.ts';
import { withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { READ_JOBS_MAX } from '../redis/transitions/bytes.ts';
import type { Jobs } from '../redis/transitions/jobs.ts';
import type { Delivery, StartReply } from '../redis/transitions/replies.ts';
import type { Execute } from './execute.ts';
import type { Expire } from './expiry.ts';
import { trustedUntilMs } from './extender.ts';
import type { Held, Inflight } from './inflight.ts';
import { createParked, type Parked } from './parked.ts';
import { processQuarantine } from './quarantine.ts';
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
  readonly inflight: Inflight;
  readonly execute: Execute;
  readonly expire: Expire;
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
  readonly admit: (held: Held, token: Token) => void;
}

/** What becomes of an entry: it waits for the next call, is past its expiry, or needs nothing more from here. */
type Answer = 'later' | 'late' | 'answered';

/** How long a start or a release is repeated before its entries are left to adoption. */
const START_BUDGET_MS = 10_000;

export function createStarter(parts: StarterParts): Starter {
  const { queue, inflight, clock, events } = parts;
  const tell = createUnstarted({ queue, inflight, clock, events });
  const parked = createParked({ queue, clock, events });
  const starting: Starting = {
    ...parts,
    ...{ stopping: new AbortController(), parked, tell },
    admit: (held, token) => membership.admit(held, token),
  };
  const membership = processQuarantine.join({ inflight, clock, start: (held) => startAlone(starting, held) });
  return {
    start: (ref, deliveries) => start(starting, ref, deliveries),
    async take(ref, deliveries) {
      await inflight.until(inflight.isOpen, starting.stopping.signal);
      await start(starting, ref, deliveries);
    },
    async stop() {
      starting.stopping.abort();
      const unstarted = membership.leave();
      tell.suspects();
      await Promise.all(unstarted.map(({ ref, delivery }) => release(starting, ref, [delivery])));
    },
    end: parked.stop,
  };
}

async function start(starting: Starting, ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
  const { inflight, stopping, concurrency, suspectCrashes } = starting;
  const fresh = deliveries.filter(({ entry }) => !inflight.has(ref, entry));
  // A read and a take can both have counted on the same free slot. Or a suspect is alone meanwhile.
  const room = stopping.signal.aborted || !inflight.isOpen() ? 0 : inflight.free(concurrency);
  let rest: readonly Held[] = fresh.slice(0, room).map((delivery) => inflight.add(ref, delivery));
  await release(starting, ref, fresh.slice(room));
  while (rest.length > 0 && inflight.isOpen() && !stopping.signal.aborted) {
    const later = await startSome(starting, rest.slice(0, READ_JOBS_MAX), suspectCrashes);
    rest = [...later, ...rest.slice(READ_JOBS_MAX)];
  }
  const left = rest.map(({ delivery }) => delivery);
  for (const held of rest) inflight.forgotten(held);
  await release(starting, ref, left);
}

async function startAlone(starting: Starting, held: Held): Promise<void> {
  starting.tell.suspects();
  // Left to adoption, as without a reply.
  for (const late of await startSome(starting, [held], 0)) starting.inflight.forgotten(late);
}

/** Starts what fits into one call; returns what was answered `later`, or too late to run it. */
async function startSome(starting: Starting, held: readonly Held[], suspects: number): Promise<readonly Held[]> {
  const [first] = held;
  if (!first) return [];
  const { ref } = first;
  const replies = await callStart(starting, held, suspects).catch(() => undefined);
  if (!replies) {
    // Nobody knows whether they were started. Adoption finds them by their idle time and asks again.
    for (const unanswered of held) starting.inflight.forgotten(unanswered);
    return [];
  }
  const answers = held.map((one, index) => obey(starting, one, replies[index]));
  starting.tell.suspects();
  starting.parked.saw(ref.partition, replies.filter(({ kind }) => kind === 'parked').length);
  const late = held.filter((_, index) => answers[index] === 'late');
  if (late.length > 0) await expireSome(starting, ref, late);
  return held.filter((_, index) => answers[index] === 'later');
}

function callStart(starting: Starting, held: readonly Held[], suspects: number): Promise<readonly StartReply[]> {
  const { jobs, inflight, consumer, bytesMax, windowMs, clock } = starting;
  const deliveries = held.map(({ delivery }) => delivery);
  const call = async () => {
    const sentMs = clock.monotonicMs();
    for (const one of held) inflight.startSent(one, sentMs);
    return held[0] ? jobs.start(held[0].ref, deliveries, { consumer, bytesMax, windowMs, suspects }) : [];
  };
  return withRetry('start', call, untilStop(starting));
}

function obey(starting: Starting, held: Held, reply: StartReply | undefined): Answer {
  const { inflight, clock, jobLeaseMs, execute, stopping, admit, tell } = starting;
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
      inflight.started(held, reply.token, nowMs);
      execute(held, reply);
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
  inflight.forgotten(held);
  return 'answered';
}

/** Jobs past their expiry. One that is not late after all is released and comes again. */
async function expireSome(starting: Starting, ref: PartitionRef, held: readonly Held[]): Promise<void> {
  const deliveries = held.map(({ delivery }) => delivery);
  const kept = await starting.expire(ref, deliveries, starting.stopping.signal);
  for (const expired of held) starting.inflight.forgotten(expired);
  await release(starting, ref, kept);
}

/** Back to scheduled, where another worker finds them. Without a reply they stay ours, and adoption finds them. */
async function release(starting: Starting, ref: PartitionRef, deliveries: readonly Delivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  const { jobs, consumer } = starting;
  const call = () => jobs.release(ref, deliveries, { consumer });
  await withRetry('release', call, untilStop(starting)).catch(() => undefined);
}

const untilStop = ({ clock, stopping }: Starting) => ({ clock, budgetMs: START_BUDGET_MS, signal: stopping.signal });
