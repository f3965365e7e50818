/**
 * What of a job only some queues can honour, and the refusal where a queue cannot: one rule for each call that makes or changes a job.
 *
 *     group, priority ──▶ a gated queue     cost ──▶ one with costs     target ──▶ one with a target, and its hosts
 *     a priority beside a group ──▶ none in strict order
 */
import type { PartitionGates } from '../../job/gate.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { type JobTargetOptions, parseJobTarget, type QueueTarget, targetOf } from '../../job/target.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** What a job needs, each in words. */
export interface Needs {
  readonly gates?: string | undefined;
  readonly costs?: string | undefined;
  readonly noOrder?: string | undefined;
  readonly target?: JobTargetOptions | undefined;
}

/** What a queue has of it. */
export interface Honours {
  readonly gates?: Pick<PartitionGates, 'isStrict' | 'takesCosts'> | undefined;
  readonly target?: QueueTarget | undefined;
}

/** @returns undefined: any queue will do */
export function needsOf(
  { priority = 'normal', cost = 1, target: own }: Pick<ScheduleOptions, 'priority' | 'cost' | 'target'>,
  group: string | undefined,
): Needs | undefined {
  if (priority === 'normal' && cost === 1 && (own ?? group) === undefined) return undefined;
  const target = own === undefined ? undefined : parseJobTarget(own, 'target');
  const ofPriority = priority === 'normal' ? undefined : `priority ${show(priority)}`;
  const costs = cost === 1 ? undefined : `cost ${show(cost)}`;
  const gates = ofPriority ?? (group === undefined ? undefined : `group ${show(group)}`);
  return { gates, costs, noOrder: group === undefined ? undefined : ofPriority, target };
}

/** Why a queue cannot honour a job; undefined: it can. */
export function refusalOf(
  queue: string,
  needs: Needs | undefined,
  { gates, target }: Honours,
): DuestreamError | undefined {
  if (needs === undefined) return undefined;
  if (needs.gates !== undefined && gates === undefined) {
    return refused(
      `${needs.gates}, and queue ${queue} is not gated`,
      `after "duestream queues set ${queue} --fair", or with fair, rate, concurrency or perGroup in its definition`,
    );
  }
  if (needs.costs !== undefined && !gates?.takesCosts) {
    return refused(
      `${needs.costs}, and each job of queue ${queue} costs one turn`,
      `after "duestream queues set ${queue} --costs", or with costs: true in its definition`,
    );
  }
  if (needs.noOrder !== undefined && gates?.isStrict) {
    return refused(
      `a group and ${needs.noOrder}, and jobs of a group of queue ${queue} are in strict order`,
      'no priority, or no group',
    );
  }
  return needs.target === undefined ? undefined : flawOf(queue, needs.target, target);
}

function flawOf(queue: string, own: JobTargetOptions, target: QueueTarget | undefined): DuestreamError | undefined {
  if (target === undefined) {
    return refused(
      `a target, and queue ${queue} has none`,
      `after "duestream queues set ${queue} --target https://api.example.com/due", or with target in its definition`,
    );
  }
  try {
    targetOf(target, own, 'target');
    return undefined;
  } catch (error) {
    if (error instanceof DuestreamError) return error;
    throw error;
  }
}

const refused = (what: string, allowed: string) =>
  new DuestreamError('bad-input', `the job has ${what}; allowed: ${allowed}`);
