/**
 * What of a job only some queues can honour, and the refusal where a queue cannot: one rule for each call that makes or changes a job.
 *
 *     group, priority ──▶ a gated queue     cost ──▶ one with costs     a priority beside a group ──▶ none in strict order
 */
import type { PartitionGates } from '../../job/gate.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';

/** What a job needs, each in words. */
export interface Needs {
  readonly gates?: string | undefined;
  readonly costs?: string | undefined;
  readonly noOrder?: string | undefined;
}

/** What a queue has of it. */
export interface Honours {
  readonly gates?: Pick<PartitionGates, 'isStrict' | 'takesCosts'> | undefined;
}

/** @returns undefined: any queue will do */
export function needsOf(
  { priority = 'normal', cost = 1 }: Pick<ScheduleOptions, 'priority' | 'cost'>,
  group: string | undefined,
): Needs | undefined {
  if (priority === 'normal' && cost === 1 && group === undefined) return undefined;
  const ofPriority = priority === 'normal' ? undefined : `priority ${show(priority)}`;
  const costs = cost === 1 ? undefined : `cost ${show(cost)}`;
  const gates = ofPriority ?? (group === undefined ? undefined : `group ${show(group)}`);
  return { gates, costs, noOrder: group === undefined ? undefined : ofPriority };
}

/** Why a queue cannot honour a job; undefined: it can. */
export function refusalOf(queue: string, needs: Needs | undefined, { gates }: Honours): DuestreamError | undefined {
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
  return undefined;
}

const refused = (what: string, allowed: string) =>
  new DuestreamError('bad-input', `the job has ${what}; allowed: ${allowed}`);
