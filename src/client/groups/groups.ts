/** The groups of a queue with limits, as an application or an admin page looks at them: `client.groups`. */
import { parseGroup } from '../../job/labels.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { checkNames, wholeNumber } from '../../kernel/checks.ts';
import type { Clock } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import type { Holder } from '../../redis/read/groups.ts';
import type { Keeper } from '../../redis/read/order.ts';
import type { Calls } from '../calls/calls.ts';
import { isMoved } from '../calls/partition-calls.ts';
import { type Repeating, withReadRetry } from '../calls/retry.ts';
import { listCursor, parseListCursor } from '../query/cursor.ts';
import type { WalkParts } from '../query/walk.ts';
import {
  type CloseOptions,
  type GroupChange,
  type GroupRules,
  groupRulesOver,
  notGated,
  type RuleParts,
} from './rules.ts';
import { type Group, longestGroups, namedGroup, walkGroups } from './walk.ts';

export type { CloseOptions, Group, GroupChange, GroupRules, Holder, Keeper };

/** How a list of groups goes on. */
export interface GroupListOptions {
  /** Groups of one page, 1 to 1000. Default 100; with `top` 10. */
  readonly limit?: number | undefined;
  /** That of the page before. */
  readonly cursor?: string | undefined;
  /**
   * Those with most jobs in line, the longest first, instead of all by name. Every group of the queue is looked at for it: one
   * call of Redis of about 1.5 ms for each 50 groups of a partition, and at most 100,000 groups.
   */
  readonly top?: boolean | undefined;
}

/** A page of groups. */
export interface GroupPage {
  readonly groups: readonly Group[];
  /** Jobs in line that have no group. */
  readonly ungrouped: number;
  /** Groups that were looked at. */
  readonly scanned: number;
  /** When this was so, in epoch ms by the clock of Redis. */
  readonly nowMs: number;
  /** For the next page; undefined when there is none. With `top` the next page has the longest of the groups that were not looked at. */
  readonly cursor: string | undefined;
}

/** A group, and the jobs that hold its limit. */
export interface GroupReport extends Group {
  /** In the order in which they were let through, at most 100 of each partition. */
  readonly holders: readonly Holder[];
  /** In strict order, the job that has the group until it is over, or the dead letter that holds it; undefined: nobody. */
  readonly keeper: Keeper | undefined;
  /** When this was so, in epoch ms by the clock of Redis. */
  readonly nowMs: number;
}

/** The groups of queues with limits. All methods reject with a `DuestreamError`, as those of the client do. */
export interface Groups extends GroupRules {
  /**
   * The groups that have somebody in line or running, by name. A group is in one page, whatever comes and goes meanwhile. A list is
   * no picture of one moment: a job that is let through meanwhile may count twice or not at all.
   *
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   * @example
   * const { groups } = await client.groups.list(mail, { top: true });
   * for (const { group, waiting, waitMs } of groups) console.log(group, waiting, waitMs);
   */
  list(queue: QueueInput<unknown>, options?: GroupListOptions): Promise<GroupPage>;
  /**
   * One group, with the jobs that hold its limit. A group that nobody is in has zeros.
   *
   * @throws DuestreamError `bad-input`, also for a queue that is not gated
   * @example for (const { id, owner, startedMs } of (await client.groups.get(mail, 'acme')).holders) console.log(id, owner, startedMs);
   */
  get(queue: QueueInput<unknown>, group: string): Promise<GroupReport>;
}

const LIST_NAMES = ['limit', 'cursor', 'top'];
const PAGE_MAX = 1000;
const HOLDERS_MAX = 100;

interface GroupParts {
  readonly finding: WalkParts;
  readonly rules: RuleParts;
}

export function groupsOver(
  { runChecked }: Pick<Calls<GroupParts>, 'runChecked'>,
  steps: () => Repeating,
  clock: Clock,
): Groups {
  return {
    ...groupRulesOver({
      runChecked: (read, work) => runChecked(read, ({ rules }, input) => work(rules, input)),
      steps,
      clock,
    }),
    list: (queue, options = {}) =>
      runChecked(
        () => askOf(queue, options),
        ({ finding }, ask) => (ask.top ? longest(finding, ask) : page(finding, ask)),
      ),
    get: (queue, group) =>
      runChecked(
        () => ({ queue: queueOf(queue), group: parseGroup(group) }),
        ({ finding }, ask) => report(finding, ask),
      ),
  };
}

interface Ask {
  readonly queue: Queue;
  readonly top: boolean;
  readonly limit: number;
  /** The group before the first one; '': from the beginning. */
  readonly after: string;
}

function askOf(queue: QueueInput<unknown>, options: GroupListOptions): Ask {
  checkNames(options, LIST_NAMES, 'list', 'bad-input');
  const { top = false, cursor } = options;
  if (typeof top !== 'boolean') throw new DuestreamError('bad-input', `top is ${show(top)}; allowed: true, false`);
  const limit = wholeNumber(options.limit ?? (top ? 10 : 100), { what: 'limit', min: 1, max: PAGE_MAX });
  const to = queueOf(queue);
  return { queue: to, top, limit, after: parseListCursor(cursor, listOf(to, top), /^[!-~]{1,64}$/) ?? '' };
}

const listOf = ({ name }: Queue, top: boolean): string => `groups ${name}${top ? ' top' : ''}`;

/** The next groups by name. */
function page(parts: WalkParts, { queue, limit, after }: Ask): Promise<GroupPage> {
  return parts.callPartitions(queue, async (layout, policy) => {
    const groups: Group[] = [];
    let isMore = false;
    const walked = await walkGroups({ reader: parts.reader, layout, policy }, { after, limit: limit + 1 }, (group) => {
      isMore = groups.length === limit;
      if (!isMore) groups.push(group);
      return !isMore;
    });
    if (isMoved(walked)) return walked;
    const { isGated, ungrouped, nowMs } = walked;
    if (!isGated) throw notGated(queue);
    const last = isMore ? groups.at(-1)?.group : undefined;
    const cursor = last === undefined ? undefined : listCursor(listOf(queue, false), last);
    return { groups, ungrouped, scanned: groups.length, nowMs, cursor };
  });
}

/** Those with most jobs in line. */
function longest(parts: WalkParts, { queue, limit, after }: Ask): Promise<GroupPage> {
  return parts.callPartitions(queue, async (layout, policy) => {
    const found = await longestGroups({ reader: parts.reader, layout, policy }, { after, limit });
    if (isMoved(found)) return found;
    const { isGated, last, ...page } = found;
    if (!isGated) throw notGated(queue);
    return { ...page, cursor: last === undefined ? undefined : listCursor(listOf(queue, true), last) };
  });
}

function report(
  { reader, callPartitions }: WalkParts,
  { queue, group }: { readonly queue: Queue; readonly group: string },
): Promise<GroupReport> {
  return callPartitions(queue, async (layout, policy) => {
    const found = await namedGroup({ reader, layout, policy }, group);
    if (isMoved(found)) return found;
    const { isGated, ungrouped: _, nowMs, ...counts } = found;
    if (!isGated) throw notGated(queue);
    const read = (ref: (typeof layout)[number]) =>
      withReadRetry('get a group', () => reader.holders(ref, { group, limit: HOLDERS_MAX }), policy);
    const holders = counts.running === 0 ? [] : await Promise.all(layout.map(read));
    const keep = (ref: (typeof layout)[number]) =>
      withReadRetry('get a group', () => reader.keeper(ref, group), policy);
    const [keeper] = (await Promise.all(layout.map(keep))).flatMap((one) => one ?? []);
    return { ...counts, holders: holders.flat().toSorted((one, other) => one.sinceMs - other.sinceMs), keeper, nowMs };
  });
}
