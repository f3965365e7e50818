/**
 * What decides how the jobs of a queue are tried again, as data that processes can compare. Of workers over HTTP it is the daemon that
 * decides, and any daemon answers any call: where two of them have other policies, chance decides.
 */
import type { DeliveryMode, Queue } from './queue.ts';

export interface QueuePolicy {
  readonly attempts: number;
  readonly crashes: number;
  /** As JSON; a function has no other text than that it is one. */
  readonly backoff: string;
  readonly timeoutMs: number;
  readonly delivery: DeliveryMode;
}

/** Of one process: queues that its configuration names, and all others. */
export interface QueuePolicies {
  readonly named: Readonly<Record<string, QueuePolicy>>;
  readonly others: QueuePolicy;
}

/** A heartbeat is read by everybody, so it names so many queues at most. */
export const POLICIES_MAX = 100;

export const policyOf = ({
  attempts,
  crashes,
  backoff,
  timeoutMs,
  delivery,
}: Pick<Queue, 'attempts' | 'crashes' | 'backoff' | 'timeoutMs' | 'delivery'>): QueuePolicy => ({
  attempts,
  crashes,
  backoff: typeof backoff === 'function' ? 'a function' : JSON.stringify(backoff),
  timeoutMs,
  delivery,
});

/** The policy of a queue in a process that says these. */
export const policyIn = ({ named, others }: QueuePolicies, queue: string): QueuePolicy =>
  (Object.hasOwn(named, queue) ? named[queue] : undefined) ?? others;

/** What differs between policies of one queue, with the values in the order of the policies. */
export function differencesOf(
  policies: readonly QueuePolicy[],
): readonly { readonly field: keyof QueuePolicy; readonly values: readonly (string | number)[] }[] {
  return FIELDS.flatMap((field) => {
    const values = policies.map((policy) => policy[field]);
    return new Set(values).size > 1 ? [{ field, values }] : [];
  });
}

const FIELDS = ['attempts', 'crashes', 'backoff', 'timeoutMs', 'delivery'] as const;
