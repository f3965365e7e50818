/**
 * Orders to stop: somebody asked a job to stop while its handler runs, and its worker hears of it at once.
 *
 *  cancel ─▶ the run in Redis says so ─▶ a message on `K:stop` ─▶ the signal of the handler aborts
 *                       └──▶ the next extension of the lease says it as well: the guarantee
 *
 * And orders to let go: a job that is held until it is due, or all of them (`holds.ts`).
 *
 * A worker that waits in reads has no connection that hears messages. It opens one when a handler has run for a moment: a handler
 * that is over sooner needs no order, so a worker of short jobs opens none. One that polls has such a connection anyway.
 */
import type { Clock } from '../../kernel/clock.ts';
import type { Channels } from '../../redis/channels.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { Holds } from './holds.ts';
import { abort, claimOf, type InFlight, isLeased } from './in-flight.ts';

export interface StopOrdersParts {
  readonly inFlight: InFlight;
  readonly holds: Pick<Holds, 'letGo' | 'letAllGo'>;
  /** All partitions of the queue. */
  readonly refs: readonly PartitionRef[];
  readonly consumer: string;
  /** Opens a connection for messages, if there is none. */
  readonly channels: () => Channels;
  /** What was said until now was not heard. */
  readonly onMissed: () => void;
  readonly clock: Clock;
}

/** A handler that has run for so long is worth a connection. */
const LISTEN_AFTER_MS = 100;
const LET_GO = 'let-go ';

export class StopOrders {
  readonly #parts: StopOrdersParts;
  /** Calls off the look whether a handler runs for long. */
  #disarm: (() => void) | undefined = undefined;
  #forgets: (() => void)[] = [];
  /** It listens already, or was stopped. */
  #isSettled = false;

  constructor(parts: StopOrdersParts) {
    this.#parts = parts;
  }

  stop(): void {
    this.#isSettled = true;
    this.#disarm?.();
    for (const forget of this.#forgets) forget();
  }

  /** Nobody else can take it back. */
  held(): void {
    if (this.#isSettled) return;
    this.#disarm?.();
    this.#listen();
  }

  handlerBegan(): void {
    if (this.#disarm || this.#isSettled) return;
    this.#disarm = this.#parts.clock.timer(LISTEN_AFTER_MS, () => this.#look());
  }

  #look(): void {
    const { inFlight, clock } = this.#parts;
    this.#disarm = undefined;
    const leased = inFlight.all().filter(isLeased);
    const sinceMs = clock.monotonicMs() - LISTEN_AFTER_MS;
    // A timer may ring up to a millisecond early.
    if (leased.some(({ state }) => 'start' in state && state.start.startedMs <= sinceMs + 1)) this.#listen();
    else if (leased.length > 0) this.handlerBegan();
  }

  #listen(): void {
    const { refs, channels, onMissed } = this.#parts;
    this.#isSettled = true;
    const heard = channels();
    this.#forgets = refs.map((ref) =>
      heard.listen(ref.keys.stop, (order) => (order === undefined ? onMissed() : this.#heard(ref, order))),
    );
  }

  /** The start that is named, and no other: an order may come late, or before the reply that tells this worker of the start. */
  #heard(ref: PartitionRef, order: string): void {
    const { inFlight, holds, consumer, clock, onMissed } = this.#parts;
    if (order.startsWith(LET_GO)) {
      this.#letGo(ref, order.slice(LET_GO.length));
      return;
    }
    const [owner, entry, token] = order.split(' ');
    if (owner !== consumer || entry === undefined) return;
    const ours = inFlight.find(ref, entry);
    const isOurs = ours && 'start' in ours.state && claimOf(ours).token === token;
    if (isOurs && holds.letGo(ours)) return;
    if (isOurs && isLeased(ours)) abort(ours, 'cancelled');
    else clock.timer(LISTEN_AFTER_MS, onMissed);
  }

  /** `*`: a pause or a closed tag is meant for all that have not begun. */
  #letGo(ref: PartitionRef, named: string): void {
    const { inFlight, holds, consumer } = this.#parts;
    const [owner, entry, token] = named.split(' ');
    if (owner === '*') holds.letAllGo();
    if (owner !== consumer || entry === undefined) return;
    const ours = inFlight.find(ref, entry);
    if (ours && 'start' in ours.state && claimOf(ours).token === token) holds.letGo(ours);
  }
}
