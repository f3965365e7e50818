/** Start and release as calls of their own, repeated for a while; then their entries are left to adoption. */
import type { Clock } from '../../kernel/clock.ts';
import { withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Jobs } from '../../redis/scripts/jobs.ts';
import type { Delivery, StartReply } from '../../redis/scripts/replies.ts';
import type { InFlight, InFlightEntry } from './in-flight.ts';

export interface StartCalls {
  readonly jobs: Pick<Jobs, 'start' | 'release'>;
  readonly consumer: string;
  readonly bytesMax: number;
  readonly windowMs: number;
  readonly inFlight: InFlight;
  readonly clock: Clock;
  /** Ends the repetitions. */
  readonly stopping: AbortController;
}

const BUDGET_MS = 10_000;

/** @throws DuestreamError when there was no reply in all that time */
export function callStart(
  calls: StartCalls,
  held: readonly InFlightEntry[],
  suspects: number,
): Promise<readonly StartReply[]> {
  const { jobs, inFlight, consumer, bytesMax, windowMs, clock } = calls;
  const deliveries = held.map(({ delivery }) => delivery);
  const call = async () => {
    const sentMs = clock.monotonicMs();
    for (const one of held) inFlight.startSent(one, sentMs);
    return held[0] ? jobs.start(held[0].ref, deliveries, { consumer, bytesMax, windowMs, suspects }) : [];
  };
  return withRetry('start', call, untilStop(calls));
}

/** Back to scheduled, where another worker finds them. Without a reply they stay ours, and adoption finds them. */
export async function callRelease(
  calls: StartCalls,
  ref: PartitionRef,
  deliveries: readonly Delivery[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const { jobs, consumer } = calls;
  const call = () => jobs.release(ref, deliveries, { consumer });
  await withRetry('release', call, untilStop(calls)).catch(() => undefined);
}

const untilStop = ({ clock, stopping }: StartCalls) => ({ clock, budgetMs: BUDGET_MS, signal: stopping.signal });
