/**
 * Jobs as columns of numbers, about 13 bytes each, so that a million of them is played in a few megabytes; and what is counted
 * of them.
 */

/** Priorities by number, as a lane has them: 0 = high, 1 = normal, 2 = low. */
export type PriorityNumber = 0 | 1 | 2;

/** Jobs with their due times, groups and priorities. */
export class JobColumns {
  dueMs: Float64Array = new Float64Array(FIRST_LENGTH);
  group: Int32Array = new Int32Array(FIRST_LENGTH);
  priority: Uint8Array = new Uint8Array(FIRST_LENGTH);
  count = 0;
  /** Where stretches begin in which due times only grow. Who reads jobs in order makes few of them. */
  readonly stretches: number[] = [];

  add(dueMs: number, group: number, priority: PriorityNumber): void {
    const at = this.count;
    if (at === this.dueMs.length) this.#grow();
    if (at === 0 || dueMs < (this.dueMs[at - 1] ?? 0)) this.stretches.push(at);
    this.dueMs[at] = dueMs;
    this.group[at] = group;
    this.priority[at] = priority;
    this.count = at + 1;
  }

  #grow(): void {
    const length = this.dueMs.length * 2;
    const [dueMs, group, priority] = [new Float64Array(length), new Int32Array(length), new Uint8Array(length)];
    dueMs.set(this.dueMs);
    group.set(this.group);
    priority.set(this.priority);
    [this.dueMs, this.group, this.priority] = [dueMs, group, priority];
  }
}

const FIRST_LENGTH = 4096;

/** Groups by number. A group is of one partition; the jobs of a partition that have no group are one group more, without a name. */
export class GroupTable {
  readonly names: string[] = [];
  readonly partitions: number[] = [];
  readonly #known: readonly Map<string, number>[];

  constructor(partitions: number) {
    this.#known = Array.from({ length: partitions }, () => new Map<string, number>());
    for (let partition = 0; partition < partitions; partition += 1) this.numberOf(partition, '');
  }

  get count(): number {
    return this.names.length;
  }

  /** As many as there are groups without a name: these come first. */
  get partitionCount(): number {
    return this.#known.length;
  }

  numberOf(partition: number, name: string): number {
    const known = this.#known[partition];
    const found = known?.get(name);
    if (found !== undefined) return found;
    const number = this.names.length;
    this.names.push(name);
    this.partitions.push(partition);
    known?.set(name, number);
    return number;
  }
}

/** Numbers in the order of their keys, the least first. */
export class Heap {
  #keys = new Float64Array(64);
  #values = new Int32Array(64);
  size = 0;

  /** The least key; infinite where there is none. */
  get first(): number {
    return this.size === 0 ? Number.POSITIVE_INFINITY : (this.#keys[0] ?? 0);
  }

  push(key: number, value: number): void {
    if (this.size === this.#keys.length) this.#grow();
    const [keys, values] = [this.#keys, this.#values];
    let at = this.size;
    this.size += 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if ((keys[above] ?? 0) <= key) break;
      keys[at] = keys[above] ?? 0;
      values[at] = values[above] ?? 0;
      at = above;
    }
    keys[at] = key;
    values[at] = value;
  }

  /** The value of the least key, which goes. */
  pop(): number {
    const [keys, values] = [this.#keys, this.#values];
    const found = values[0] ?? 0;
    this.size -= 1;
    const [key, value] = [keys[this.size] ?? 0, values[this.size] ?? 0];
    let at = 0;
    for (let below = 1; below < this.size; below = 2 * at + 1) {
      if (below + 1 < this.size && (keys[below + 1] ?? 0) < (keys[below] ?? 0)) below += 1;
      if ((keys[below] ?? 0) >= key) break;
      keys[at] = keys[below] ?? 0;
      values[at] = values[below] ?? 0;
      at = below;
    }
    keys[at] = key;
    values[at] = value;
    return found;
  }

  #grow(): void {
    const [keys, values] = [new Float64Array(this.size * 2), new Int32Array(this.size * 2)];
    keys.set(this.#keys);
    values.set(this.#values);
    [this.#keys, this.#values] = [keys, values];
  }
}

/** Times in 32 parts per power of two: a share of them is known to within 2 %. */
export class Spread {
  count = 0;
  maxMs = 0;
  readonly #counts = new Uint32Array(PARTS * POWERS);

  add(ms: number): void {
    this.count += 1;
    this.maxMs = Math.max(this.maxMs, ms);
    const at = partOf(ms);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  /** The time within which a share of the times are; undefined where there are none. */
  within(share: number): number | undefined {
    let left = Math.ceil(share * this.count);
    if (left === 0) return undefined;
    for (const [at, times] of this.#counts.entries()) {
      left -= times;
      if (left <= 0) return Math.min(this.maxMs, Math.round(middleOf(at)));
    }
    return this.maxMs;
  }
}

const PARTS = 32;
/** 2^45 ms are a thousand years. */
const POWERS = 41;

/** Times below 32 ms stand for themselves. */
function partOf(ms: number): number {
  const whole = Math.max(0, Math.floor(ms));
  if (whole < PARTS) return whole;
  const power = Math.min(POWERS + 3, Math.floor(Math.log2(whole)));
  return (power - 4) * PARTS + Math.min(PARTS - 1, Math.floor((whole / 2 ** power - 1) * PARTS));
}

function middleOf(part: number): number {
  if (part < PARTS) return part;
  const power = Math.floor(part / PARTS) + 4;
  return 2 ** power * (1 + ((part % PARTS) + 0.5) / PARTS);
}
