/** Entries that are driven to the state in which their handler runs. */
import type { Token } from '../../src/job/job.ts';
import type { AbortReason } from '../../src/job/outcome.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import type { Delivery } from '../../src/redis/scripts/replies.ts';
import type { Held, Inflight } from '../../src/worker/run/inflight.ts';

interface Began {
  readonly token?: string;
  /** Monotonic ms at which the call was sent that started it, and answered. */
  readonly leasedMs?: number;
  readonly acknowledged?: boolean;
  readonly abort?: (why: AbortReason) => void;
}

/** An entry that was just added, or whose turn came, is started. */
export function start(inflight: Inflight, held: Held, { token = '1', leasedMs = 0, acknowledged }: Began = {}): void {
  inflight.startSent(held, leasedMs);
  inflight.started(held, token as Token, leasedMs);
  if (acknowledged) inflight.acknowledged(held);
}

export function begin(inflight: Inflight, held: Held, began: Began = {}): void {
  start(inflight, held, began);
  inflight.handlerBegan(held, { abort: began.abort ?? (() => undefined) });
}

export function running(
  inflight: Inflight,
  { ref, delivery, ...began }: Began & { readonly ref: PartitionRef; readonly delivery: Delivery },
): Held {
  const held = inflight.add(ref, delivery);
  begin(inflight, held, began);
  return held;
}

/** Its handler ends, and Redis answers for its outcome. */
export function end(inflight: Inflight, held: Held): void {
  inflight.handlerEnded(held);
  inflight.answered(held);
}
