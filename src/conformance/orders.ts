/** What a run tells a daemon that it forked, what that one says, and the times of a run: short, so that a run is. */
export interface DaemonOrders {
  readonly redis: string;
  readonly namespace: string;
}

export type DaemonSaid =
  | { readonly kind: 'ready'; readonly url: string }
  | { readonly kind: 'failed'; readonly why: string };

/** How long a run is its worker's without a beat. */
export const LEASE_MS = 3000;
export const LEADER_LEASE = '2s';
export const BEAT_TTL = '2s';
export const GRACE = '1s';

/** The queue that delivers at most once. */
export const ONCE_QUEUE = 'once';
/** The queue of a trial that is played again. */
export const againQueue = (queue: string): string => `${queue}-again`;
