/**
 * What is said on the channels of partitions, over one subscriber (of a cluster: one per node): jobs became ready (`K:work`),
 * to the workers of a cluster; a job ended (`K:over`), to who waits for it. A message is an optimisation: who hears none looks
 * again after a while, and more often while it is deaf.
 */
import { isCluster } from './connection/cluster/members.ts';
import type { Redis } from './connection/connect.ts';
import { inParts } from './scripts/bytes.ts';

/** `undefined`: what was said before was missed, and from now on it is heard. */
export type Listener = (message: string | undefined) => void;

export class Channels {
  readonly #subscriber: Redis;
  readonly #listeners = new Map<string, Set<Listener>>();
  /** Channels that are not subscribed yet. */
  readonly #open = new Set<string>();

  constructor(subscriber: Redis) {
    this.#subscriber = subscriber;
    subscriber.on('smessage', (channel: string, message: string) => this.#tell(channel, message));
    // After a reconnect nothing is subscribed any more, and messages meanwhile were missed.
    subscriber.on('ready', () => {
      for (const channel of this.#listeners.keys()) {
        this.#subscribe(channel);
        this.#tell(channel, undefined);
      }
    });
  }

  /** Hears of this channel until the returned function is called. */
  listen(channel: string, listener: Listener): () => void {
    const all = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, all.add(listener));
    if (all.size === 1) this.#subscribe(channel);
    return () => {
      if (!all.delete(listener) || all.size > 0) return;
      this.#listeners.delete(channel);
      this.#open.delete(channel);
      this.#subscriber.sunsubscribe(channel).catch(() => undefined);
    };
  }

  /** A channel is not subscribed, so its messages are missed. */
  isDeaf(channel?: string): boolean {
    return channel === undefined ? this.#open.size > 0 : this.#open.has(channel);
  }

  /** Subscribes the channels that could not be subscribed before, and asks whether the connections live. */
  mend(): void {
    for (const channel of this.#open) this.#subscribe(channel);
    // The answer, or that there is none, shows a socket that died in silence.
    this.#subscriber.ping().catch(() => undefined);
  }

  #tell(channel: string, message: string | undefined): void {
    for (const listener of this.#listeners.get(channel) ?? []) listener(message);
  }

  #subscribe(channel: string): void {
    this.#open.add(channel);
    this.#subscriber.ssubscribe(channel).then(
      () => {
        if (this.#open.delete(channel)) this.#tell(channel, undefined);
      },
      () => undefined,
    );
  }
}

/** A few commands, or in a cluster one for each channel: each is in the slot of its partition. */
export async function subscribeAll(subscriber: Redis, channels: readonly string[]): Promise<void> {
  if (isCluster(subscriber)) await Promise.all(channels.map((channel) => subscriber.ssubscribe(channel)));
  else await inParts(channels, async (some) => [await subscriber.ssubscribe(...some)]);
}
