/**
 * The wake-ups of a cluster: when jobs became ready, the leader of their partition says so on `K:work` to the workers that
 * subscribed. One subscriber per node carries them for all queues and partitions of a worker. A wake-up is an optimisation: a
 * worker that hears none looks by itself, and more often while it is deaf.
 */
import type { Redis } from '../../redis/connection/connect.ts';

export class WakeChannel {
  readonly #subscriber: Redis;
  readonly #listeners = new Map<string, Set<() => void>>();
  /** Channels that are not subscribed yet. */
  readonly #open = new Set<string>();

  constructor(subscriber: Redis) {
    this.#subscriber = subscriber;
    subscriber.on('smessage', (channel: string) => {
      for (const onWakeUp of this.#listeners.get(channel) ?? []) onWakeUp();
    });
    // After a reconnect nothing is subscribed any more, and wake-ups meanwhile were missed.
    subscriber.on('ready', () => {
      for (const [channel, all] of this.#listeners) {
        this.#subscribe(channel);
        for (const onWakeUp of all) onWakeUp();
      }
    });
  }

  /** Hears of this channel until the returned function is called. */
  listen(channel: string, onWakeUp: () => void): () => void {
    const all = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, all.add(onWakeUp));
    if (all.size === 1) this.#subscribe(channel);
    return () => {
      if (!all.delete(onWakeUp) || all.size > 0) return;
      this.#listeners.delete(channel);
      this.#open.delete(channel);
      this.#subscriber.sunsubscribe(channel).catch(() => undefined);
    };
  }

  /** A channel is not subscribed, so its wake-ups are missed. */
  isDeaf(): boolean {
    return this.#open.size > 0;
  }

  /** Subscribes the channels that could not be subscribed before, and asks whether the connections live. */
  mend(): void {
    for (const channel of this.#open) this.#subscribe(channel);
    // The answer, or that there is none, shows a socket that died in silence.
    this.#subscriber.ping().catch(() => undefined);
  }

  #subscribe(channel: string): void {
    this.#open.add(channel);
    this.#subscriber.ssubscribe(channel).then(
      () => this.#open.delete(channel),
      () => undefined,
    );
  }
}
