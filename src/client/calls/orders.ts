/**
 * The orders of the debounce calls of one client. A call has the ms of its moment; where that was used for its id already, the
 * next number, so that of two calls in one ms the second is the newer. An id is forgotten when its last order has passed.
 */

const IDS_KEPT = 10_000;

export class Orders {
  readonly #last = new Map<string, number>();
  #most = IDS_KEPT;

  /** @param nowMs the clock of Redis at the moment of the call */
  readonly next = (id: string, nowMs: number): number => {
    const order = Math.max(Math.floor(nowMs), (this.#last.get(id) ?? 0) + 1);
    this.#last.set(id, order);
    if (this.#last.size > this.#most) this.#forget(nowMs);
    return order;
  };

  #forget(nowMs: number): void {
    for (const [id, order] of this.#last) if (order < nowMs) this.#last.delete(id);
    this.#most = 2 * this.#last.size + IDS_KEPT;
  }
}

/**
 * Those of calls that are newer than what Redis has, and said so with a lower order, because clocks differ. Of several calls
 * for one id, in one reply, each comes after the ones before it.
 */
export class Overtaken {
  readonly #after = new Map<string, number>();

  /** @param last the order that Redis has */
  orderAfter(member: string, last: number): number {
    const order = Math.max(last, this.#after.get(member) ?? 0) + 1;
    this.#after.set(member, order);
    return order;
  }
}
