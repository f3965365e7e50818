/**
 * All partitions of a gated queue, each with a leader and a clock of its own, under random steps of everybody: jobs go where their
 * ids say, workers serve all partitions, and new limits come to one partition after the other.
 */
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import { Keepers } from './gates-keepers.ts';
import { GatesWorld, randomFrom, type WalkedQueue, type WorldOptions } from './gates-world.ts';

interface QueueOptions extends WorldOptions {
  readonly seed: number;
}

export class GatesQueue {
  readonly #random: () => number;
  readonly #worlds: readonly GatesWorld[];

  constructor(redis: Redis, refs: readonly PartitionRef[], { seed, ...options }: QueueOptions) {
    const random = randomFrom(seed);
    const worlds: GatesWorld[] = [];
    const names = Array.from({ length: 1 + Math.floor(random() * 6) }, (_, nth) => `g${nth}`);
    const queue: WalkedQueue = { random, keepers: new Keepers(), worlds, groups: ['', ...names], limits: undefined };
    worlds.push(...refs.map((ref) => new GatesWorld(redis, { ref, queue }, options)));
    this.#random = random;
    this.#worlds = worlds;
  }

  /** Jobs that were let through. */
  get through(): number {
    return this.#worlds.reduce((sum, { through }) => sum + through, 0);
  }

  /** How often somebody waited for a job that has its group and waits itself. */
  get kept(): number {
    return this.#worlds.reduce((sum, { kept }) => sum + kept, 0);
  }

  async begin(): Promise<void> {
    for (const world of this.#worlds) await world.begin();
  }

  /** So many random steps. What is wrong after one of them; undefined: nothing. */
  async walk(steps: number): Promise<string | undefined> {
    for (let step = 0; step < steps; step += 1) {
      const { length } = this.#worlds;
      const at = length === 1 ? 0 : Math.floor(this.#random() * length);
      const name = await this.#worlds[at]?.step();
      // A step of one partition must do nothing to another, and some are of all.
      for (const [partition, world] of this.#worlds.entries()) {
        const wrong = await world.judge(partition === at ? name : undefined);
        if (wrong !== undefined) return `step ${step}, ${name} of partition ${at}; partition ${partition} ${wrong}`;
      }
    }
    for (const world of this.#worlds) {
      const wrong = await world.drain();
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }
}
