/** The call of one turn: `serve`, or `relay` where it is a leader's pass as well. */
import type { Clock } from '../../kernel/clock.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { LeadersPass, PromoteReply } from '../../redis/scripts/passes.ts';
import type { Served } from '../../redis/scripts/replies.ts';
import type { Completion } from '../run/acknowledgement.ts';
import type { InFlight, InFlightEntry } from '../run/in-flight.ts';

/** What one call asks for. */
export interface Turn {
  readonly over: readonly Completion[];
  readonly given: readonly InFlightEntry[];
  readonly take: number;
  /** The call is a pass of the leader, too. It is given nothing then, and takes something. */
  readonly pass?: LeadersPass;
}

export interface TurnCallParts {
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  readonly suspectCrashes: number;
}

/** The reply of one turn. */
export interface Turned extends Served {
  /** Of a pass. */
  readonly promoted?: PromoteReply;
}

export function callTurn(
  { inFlight, clock, consumer, bytesMax, windowMs, suspectCrashes }: TurnCallParts,
  jobs: Pick<Jobs, 'serve' | 'relay'>,
  ref: PartitionRef,
  { over, given, take, pass }: Turn,
): Promise<Turned> {
  const sentMs = clock.monotonicMs();
  for (const held of given) inFlight.startSent(held, sentMs);
  const ended = over.map((one) => one.ended);
  const settings = { consumer, bytesMax, windowMs, suspects: suspectCrashes };
  if (pass) return jobs.relay(ref, { ended, take, pass }, settings);
  return jobs.serve(ref, { ended, given: given.map(({ delivery }) => delivery), take }, settings);
}
