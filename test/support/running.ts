/** Entries that are driven to the state in which their handler runs. */
import type { Token } from '../../src/job/job.ts';
import type { AbortReason } from '../../src/job/outcome.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import type { Delivery } from '../../src/redis/scripts/replies.ts';
import type { InFlight, InFlightEntry, RunningHandler } from '../../src/worker/run/in-flight.ts';

interface Began {
  readonly token?: string;
  /** Monotonic ms at which the call was sent that started it, and answered. */
  readonly leasedMs?: number;
  readonly acknowledged?: boolean;
  readonly abort?: (why: AbortReason) => void;
  /** In the place of `abort`. */
  readonly handler?: RunningHandler;
}

/** An entry that was just added, or whose turn came, is started. */
export function start(
  inFlight: InFlight,
  held: InFlightEntry,
  { token = '1', leasedMs = 0, acknowledged }: Began = {},
): void {
  inFlight.startSent(held, leasedMs);
  inFlight.started(held, token as Token, leasedMs);
  if (acknowledged) inFlight.completedEarly(held);
}

export function begin(inFlight: InFlight, held: InFlightEntry, began: Began = {}): void {
  start(inFlight, held, began);
  inFlight.handlerBegan(held, began.handler ?? handlerOf(began));
}

/** A handler that has said of its progress what `unsent` says. */
export function handlerOf({
  abort = () => undefined,
  unsent,
}: Pick<Began, 'abort'> & { readonly unsent?: string } = {}): RunningHandler & { unsent: string | undefined } {
  const handler = {
    abort,
    unsent,
    book: undefined,
    sent(line: string) {
      if (handler.unsent === line) handler.unsent = undefined;
    },
  };
  return handler;
}

export function running(
  inFlight: InFlight,
  { ref, delivery, ...began }: Began & { readonly ref: PartitionRef; readonly delivery: Delivery },
): InFlightEntry {
  const held = inFlight.add(ref, delivery);
  begin(inFlight, held, began);
  return held;
}

/** Its handler ends, and Redis answers for its outcome. */
export function end(inFlight: InFlight, held: InFlightEntry): void {
  inFlight.handlerEnded(held);
  inFlight.answered(held);
}
