/** What a check of `doctor` is handed, and what it says. One bad queue hides what is found of no other: a check answers for the others, and fails with its name and its reason. */
import type { DoneLimits } from '../../config/options.ts';
import type { SharedLimitOptions } from '../../job/shared-limit.ts';
import { show } from '../../kernel/duration.ts';
import { askAll } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { timeAt } from '../../redis/connection/server-clock.ts';
import { naming } from '../../redis/connection/wrong-type.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { type Answered, askEach, type UnreadQueue } from '../../redis/read/each-queue.ts';
import { listQueues, partitionsOf } from '../../redis/scripts/queues.ts';

export interface Finding {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly saw: string;
  /** What to do; undefined when all is well. */
  readonly advice?: string;
}

/** INFO as names and values. */
export type Info = ReadonlyMap<string, string>;

export interface Subject {
  readonly redis: Redis;
  /** Empty when INFO is forbidden. */
  readonly info: Info;
  readonly namespace: string;
  readonly horizonMs: number;
  /** How long ends are to be remembered. */
  readonly done: DoneLimits;
  /** How many tags of a queue may be closed. */
  readonly closedMax: number;
  /** Names of `targets.secrets`, where the one who asks has them. */
  readonly secrets?: readonly string[] | undefined;
  /** Limits that several queues share, as the file of whoever asks says them. */
  readonly sharedLimits?: Readonly<Record<string, SharedLimitOptions>> | undefined;
}

export interface Check {
  readonly name: string;
  /** Says nothing without INFO. */
  readonly needsInfo?: boolean;
  /** Looks at one server: in a cluster, at each master. */
  readonly perServer?: boolean;
  readonly look: (subject: Subject) => Promise<Finding> | Finding;
}

/** What a check asks each partition. @param atOnce as of `askEach` */
export const askPartitions = <Answer>(
  redis: Redis,
  refs: readonly PartitionRef[],
  ask: (ref: PartitionRef) => Promise<Answer>,
  atOnce?: number,
): Promise<Answered<Answer>> =>
  askEach({ all: refs, unread: [] }, (ref) => naming(redis, [ref.keys], ask(ref)), atOnce);

export function leavingOut(finding: Finding, unread: readonly UnreadQueue[]): Finding {
  if (unread.length === 0) return finding;
  const names = unread.slice(0, EXAMPLES_MAX).map(({ queue, why }) => `${show(queue)} cannot be read: ${why}`);
  const more = unread.length > EXAMPLES_MAX ? [`and ${unread.length - EXAMPLES_MAX} more`] : [];
  const advice = 'mend what cannot be read, then run this again';
  return {
    status: 'fail',
    saw: [...names, ...more, `of the others: ${finding.saw}`].join('; '),
    advice: finding.advice === undefined ? advice : `${advice}; ${finding.advice}`,
  };
}

const PARTITIONS_MAX = 256;
export const EXAMPLES_MAX = 5;

/** By the clock of the server that is ahead. */
export const latestMs = async (redis: Redis): Promise<number> => Math.floor(Math.max(...(await askAll(redis, timeAt))));

export async function refsOf(redis: Redis, namespace: string): Promise<readonly PartitionRef[]> {
  const queues = await listQueues(redis, namespace);
  return queues.flatMap((layout) => partitionsOf(namespace, layout)).slice(0, PARTITIONS_MAX);
}

export const sum = (counts: readonly number[]): number => counts.reduce((total, one) => total + one, 0);
