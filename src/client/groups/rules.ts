/** What a group may have is changed, and groups are closed and opened: by people, and by programs that were told to wait. */
import { isGated } from '../../job/gate.ts';
import { parseGroup } from '../../job/labels.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import {
  type GroupLimits,
  type GroupSettings,
  parseGroupLimits,
  parseGroupName,
  type QueueSettingOptions,
  type SettingsChange,
} from '../../job/queue-settings.ts';
import { checkNames, durationIn, wordsIn } from '../../kernel/checks.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { type DurationInput, show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { close } from '../../redis/scripts/gates.ts';
import type { Overriding } from '../../redis/scripts/overrides.ts';
import { setGroup } from '../../redis/scripts/queues.ts';
import type { CallPartitions } from '../calls/partition-calls.ts';
import type { Repeating } from '../calls/retry.ts';
import { type ByOption, byIn, overridingOf, type SettingReason } from '../queues/settings.ts';

/** For how long nobody of a group is let through, and why. */
export interface CloseOptions {
  /** From now on: a number of ms, `'30s'`, or an ISO 8601 duration; 1 ms to 365 days. The longest closing of a group wins. */
  readonly for: DurationInput;
  /** For people who look at the group, at most 200 characters. */
  readonly reason?: string | undefined;
  /** At most 200 characters. Default: the user of this process. */
  readonly by?: string | undefined;
}

/** What became of a call that changes a group. */
export interface GroupChange {
  /** `same`: it was so already, or the group is closed for longer. */
  readonly status: 'changed' | 'same';
  /** Of limits that were set or taken back: what the group had of its own, and what it has. */
  readonly before?: GroupLimits | undefined;
  readonly after?: GroupLimits | undefined;
}

export interface GroupRules {
  /**
   * Gives a group limits that differ from those of all groups, or all groups whose names begin so: `'pro-*'`. They take the place
   * of those that it had, and hold at once, also for what waits, until `unset`: whatever a definition says of the group in
   * `groups`. They make the queue gated.
   *
   * @throws DuestreamError `bad-input`, also for more than 1,000 names · `not-found` for a queue that is not declared
   * @example await client.groups.set('calls', 'acme', { concurrency: 10, rate: '20/s', maxPending: 1000, weight: 3 });
   */
  set(queue: QueueInput<unknown>, group: string, limits: GroupLimits, options?: SettingReason): Promise<GroupChange>;
  /**
   * The group has what the definition says of it in `groups`, or the limits of all groups again.
   *
   * @throws DuestreamError `bad-input` · `not-found` for a queue that is not declared
   */
  unset(queue: QueueInput<unknown>, group: string, options?: SettingReason): Promise<GroupChange>;
  /**
   * Lets nobody of a group through for some time. Jobs that were let through before start all the same; what is in line waits.
   *
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   * @example await client.groups.close('calls', 'acme', { for: '30s', reason: 'their API says 429' });
   */
  close(queue: QueueInput<unknown>, group: string, options: CloseOptions): Promise<GroupChange>;
  /**
   * The closing ends now.
   *
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   */
  open(queue: QueueInput<unknown>, group: string, options?: ByOption): Promise<GroupChange>;
}

/** At once. @throws DuestreamError `bad-input` */
export function parseOpening(options: ByOption = {}): { readonly until: 0; readonly by: string } {
  checkNames(options, ['by'], 'open', 'bad-input');
  return { until: 0, by: byIn(options) };
}
const CLOSED_MS = { min: 1, max: 365 * 86_400_000 };

/** @throws DuestreamError `bad-input` */
export function parseClosing(
  options: CloseOptions,
  clock: Clock = systemClock,
): {
  readonly until: { readonly forMs: number; readonly calledMs: number };
  readonly why: string;
  readonly by: string;
} {
  if (typeof options !== 'object' || options === null) {
    throw new DuestreamError('bad-input', `close is given ${show(options)}; allowed: { for, reason, by }`);
  }
  checkNames(options, ['for', 'reason', 'by'], 'close', 'bad-input');
  const until = { forMs: durationIn(options.for, 'for', CLOSED_MS), calledMs: clock.monotonicMs() };
  return { until, why: wordsIn(options.reason ?? '', 'reason'), by: byIn(options) };
}

/** What these calls stand on. */
export interface RuleParts {
  readonly setGroup: (
    queue: string,
    of: { readonly group: string; readonly limits?: GroupSettings; readonly by?: Overriding },
    steps: Repeating,
  ) => Promise<SettingsChange | undefined>;
  readonly close: (queue: Queue, of: Closing) => Promise<'ok' | 'same' | 'ungated'>;
}

/** @param group '' = the queue; `until` as the script has it: 0 = it opens */
export interface Closing {
  readonly group: string;
  readonly until: Parameters<typeof close>[2]['until'];
  readonly why?: string;
  readonly by?: string;
}

/** Closes or opens it in each of these partitions: others may have put jobs of a group anywhere. */
export async function closeIn(
  redis: Redis,
  refs: readonly PartitionRef[],
  of: Closing,
  policy: RetryPolicy,
): Promise<'ok' | 'same' | 'ungated'> {
  const call = (ref: PartitionRef) => async (mayHaveRun: boolean) => {
    const reply = await close(redis, ref, of);
    return mayHaveRun && reply === 'same' ? 'ok' : reply;
  };
  const replies = await Promise.all(refs.map((ref) => withRetry('close', call(ref), policy)));
  return replies.find((reply) => reply !== 'same') ?? 'same';
}

/** In Redis. */
export const rulesIn = (
  { redis, namespace }: { readonly redis: Redis; readonly namespace: string },
  callPartitions: CallPartitions,
): RuleParts => ({
  setGroup: (queue, of, steps) => steps.write(() => setGroup(redis, { namespace, queue, ...of })),
  // A closing is to hold for jobs that come: a queue that its definition makes gated is there from now on.
  close: (queue, of) =>
    callPartitions(
      queue,
      (layout, policy) => closeIn(redis, layout, of, policy),
      undefined,
      isGated(queue) ? 'declares' : undefined,
    ),
});

/** The methods, for `client.groups`. */
export function groupRulesOver(parts: {
  readonly runChecked: <Input, T>(
    read: () => Input,
    work: (rules: RuleParts, input: Input) => Promise<T>,
  ) => Promise<T>;
  readonly steps: () => Repeating;
  readonly clock: Clock;
}): GroupRules {
  const { runChecked, steps, clock } = parts;
  const put = (
    queue: QueueInput<unknown>,
    group: string,
    wanted: (name: string) => { readonly limits?: GroupSettings; readonly by?: Overriding },
  ) =>
    runChecked(
      () => {
        const name = parseGroupName(group);
        return { to: queueOf(queue), group: name, ...wanted(name) };
      },
      async (rules, { to, ...of }) => {
        const change = await rules.setGroup(to.name, of, steps());
        const own = (settings: QueueSettingOptions | undefined) => settings?.groups?.[of.group];
        return { ...changeOf(change !== undefined), before: own(change?.before), after: own(change?.after) };
      },
    );
  const shut = (queue: QueueInput<unknown>, group: string, untilOf: () => Omit<Closing, 'group'>) =>
    runChecked(
      () => ({ to: queueOf(queue), of: { group: parseGroup(group), ...untilOf() } }),
      async (rules, { to, of }) => {
        const reply = await rules.close(to, of);
        if (reply === 'ungated') throw notGated(to);
        return changeOf(reply === 'ok');
      },
    );
  return {
    set: (queue, group, limits, options = {}) =>
      put(queue, group, (name) => ({
        limits: parseGroupLimits(name, limits),
        by: overridingOf(options, 'groups.set'),
      })),
    unset: (queue, group, options = {}) => put(queue, group, () => ({ by: overridingOf(options, 'groups.unset') })),
    close: (queue, group, options) => shut(queue, group, () => parseClosing(options, clock)),
    open: (queue, group, options) => shut(queue, group, () => parseOpening(options)),
  };
}

const changeOf = (isChanged: boolean): GroupChange => ({ status: isChanged ? 'changed' : 'same' });

export const notGated = ({ name }: Pick<Queue, 'name'>) =>
  new DuestreamError(
    'bad-input',
    `queue ${name} is not gated, so no job of it waits in line; allowed: a queue with rate, concurrency, perGroup or fair. "duestream queues set ${name} --fair" makes one of it`,
  );
