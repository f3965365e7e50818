/**
 * What our own code throws at one job ends at that job: its slot comes back, and no other job hears of it.
 *
 *  a step of one job throws ──▶ it is a dead letter `unjudged` ──cannot be written──▶ it is left to adoption
 *
 * A step of one job is its start, the end of its handler, its outcome on the way to Redis, and what a reply for many says of
 * it. Whoever runs a step gives what it throws to `caught`, and goes on with the next job. Of a job that is over in Redis
 * already, because it is delivered at most once, only its failure is told.
 *
 * The burial says nothing that the job or its handler brought, because that may be what threw. What is left to adoption is
 * still pending in Redis: the adopter of this worker starts it once more, with the same token. The log tells of both.
 */
import { encodeAttempted, idOf } from '../../job/codec.ts';
import { DEFAULT_NAME } from '../../job/job.ts';
import { UNJUDGED, whyOf } from '../../job/judgement.ts';
import type { Attempted } from '../../job/outcome.ts';
import type { Log } from '../../kernel/log.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import { type ConcludeParts, conclude, named, persist, tellUnhappy } from './conclude.ts';
import { claimOf, type InFlightEntry, isCompletedEarly } from './in-flight.ts';

export interface FaultsParts extends ConcludeParts {
  readonly jobs: Pick<Jobs, 'bury'>;
  readonly windowMs: number;
  readonly log: Log;
}

/** As far as it is known. */
interface Known {
  readonly name?: string;
  readonly attempt?: number;
  /** It was over in Redis before its handler. */
  readonly isOver?: boolean;
}

export interface Faults {
  /** Our own code threw at this job, whose handler does not run or was overtaken. Never throws. */
  readonly caught: (held: InFlightEntry, thrown: unknown, known?: Known) => void;
}

interface Catching extends FaultsParts {
  /** A fault in the end of a faulty job is no further one. */
  readonly seen: WeakSet<InFlightEntry>;
}

export function createFaults(parts: FaultsParts): Faults {
  const catching: Catching = { ...parts, seen: new WeakSet() };
  return {
    caught(held, thrown, known = {}) {
      if (catching.seen.has(held) || (held.state.phase === 'gone' && !known.isOver)) return;
      catching.seen.add(held);
      void endOf(catching, held, { ...known, thrown });
    },
  };
}

type Fault = Known & { readonly thrown: unknown };

async function endOf(catching: Catching, held: InFlightEntry, fault: Fault): Promise<void> {
  try {
    if (fault.isOver || isCompletedEarly(held)) fail(catching, held, fault);
    else if (isSettled(catching, held)) await bury(catching, held, fault);
    else leave(catching, held, fault.thrown);
  } catch (thrown) {
    leave(catching, held, thrown);
  }
}

/** Whether it has a token, so that its outcome can be written down. Its handler has ended, or was overtaken. */
function isSettled({ inFlight }: Catching, held: InFlightEntry): boolean {
  const { phase } = held.state;
  if (phase === 'started') inFlight.refused(held);
  if (phase === 'running') inFlight.handlerEnded(held);
  return phase === 'started' || phase === 'running' || phase === 'overtaken' || phase === 'acknowledging';
}

async function bury(catching: Catching, held: InFlightEntry, fault: Fault): Promise<void> {
  const { jobs, windowMs, log } = catching;
  const error = errorOf(catching, held, fault);
  const ended = endedOf(held, fault);
  log.error({ job: named(ended).id, error: error.message }, 'duestream failed at a job, which becomes a dead letter');
  const line = encodeAttempted(error);
  const burial = { reason: UNJUDGED, windowMs, error: line };
  const reply = await persist(catching, 'bury', () => jobs.bury(held.ref, claimOf(held), burial));
  if (reply === 'ok') tellUnhappy(catching, ended, { kind: 'dead', reason: UNJUDGED, error });
  conclude(catching, ended, 'bury', reply);
}

/** It was over before its handler began. */
function fail(catching: Catching, held: InFlightEntry, fault: Fault): void {
  const error = errorOf(catching, held, fault);
  const { inFlight, events, log } = catching;
  inFlight.abandoned(held);
  const ended = endedOf(held, fault);
  log.error({ job: named(ended).id, error: error.message }, 'duestream failed at a job that is delivered at most once');
  events.emit('job.failed', { ...named(ended), tookMs: 0, error });
}

function leave({ inFlight, log }: Catching, held: InFlightEntry, thrown: unknown): void {
  inFlight.abandoned(held);
  log.error(
    { job: idIn(held), error: whyOf(thrown, held.ref) },
    'duestream failed at a job, which is left to adoption',
  );
}

const endedOf = (held: InFlightEntry, { name = DEFAULT_NAME }: Fault) => ({ held, name, record: '', tookMs: 0 });

function errorOf({ clock }: Catching, held: InFlightEntry, { attempt = 0, thrown }: Fault): Attempted {
  const message = `duestream failed at this job: ${whyOf(thrown, held.ref)}`;
  return { atMs: clock.wallMs(), attempt, kind: 'refused', message };
}

/** What names it may be what threw. */
function idIn({ delivery }: InFlightEntry): string {
  try {
    return idOf(delivery.member).id;
  } catch {
    return delivery.member;
  }
}
