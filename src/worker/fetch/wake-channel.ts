/**
 * The calls of a cluster: when jobs became ready, the leader of their partition says so on `K:work` to the workers that
 * subscribed. One subscriber per node carries them for all queues and partitions of a worker. A call is an optimisation:
 * whoever hears none looks by itself, and more often while it is deaf.
 */
import type { Redis } from '../../redis/connection/connect.ts';

export interface Calls {
  /** Hears of this channel until what it returns is called. */
  readonly listen: (channel: string, onCall: () => void) => () => void;
  /** A channel is not subscribed, so its calls are missed. */
  readonly isDeaf: () => boolean;
  /** Subscribes what could not be subscribed before, and looks whether the connections live. */
  readonly mend: () => void;
}

export function createCalls(subscriber: Redis): Calls {
  const listeners = new Map<string, Set<() => void>>();
  const open = new Set<string>();
  const subscribe = (channel: string) => {
    open.add(channel);
    subscriber.ssubscribe(channel).then(
      () => open.delete(channel),
      () => undefined,
    );
  };
  subscriber.on('smessage', (channel: string) => {
    for (const onCall of listeners.get(channel) ?? []) onCall();
  });
  // After a reconnect nothing is subscribed any more, and what was called meanwhile was missed.
  subscriber.on('ready', () => {
    for (const [channel, all] of listeners) {
      subscribe(channel);
      for (const onCall of all) onCall();
    }
  });
  return {
    listen(channel, onCall) {
      const all = listeners.get(channel) ?? new Set();
      listeners.set(channel, all.add(onCall));
      if (all.size === 1) subscribe(channel);
      return () => {
        if (!all.delete(onCall) || all.size > 0) return;
        listeners.delete(channel);
        open.delete(channel);
        subscriber.sunsubscribe(channel).catch(() => undefined);
      };
    },
    isDeaf: () => open.size > 0,
    mend() {
      for (const channel of open) subscribe(channel);
      // Its answer, or that there is none, shows a socket that died in silence.
      subscriber.ping().catch(() => undefined);
    },
  };
}
