/**
 * Sets: jobs that belong together until the last of them is over, when Redis makes one more job, the callback, in the same
 * step. Who is a member is said by a tag of the job, `=set:<name>`; which members are left is what the index of tags says. So
 * a set is found, counted and cancelled as jobs with a tag are. Here a set begins, is sealed, looked at, and removed.
 */
import { memberOf } from '../../job/codec.ts';
import { hasContent, seal } from '../../job/content.ts';
import { dataText } from '../../job/data-json.ts';
import { allOptions } from '../../job/fields.ts';
import type { SetEnds } from '../../job/job.ts';
import { type Carry, callbackId, groupOf, idsOfSet, parseGroup, parseSetName } from '../../job/labels.ts';
import type { Named } from '../../job/option-kinds.ts';
import { jobOptions, type ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { lifeMarkOf } from '../../job/record-header.ts';
import { checkNames, wholeNumber } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';
import { isBroadcast, type PartitionRef } from '../../redis/keys.ts';
import type { SeenSet, SetsAsk } from '../../redis/read/sets.ts';
import type { SetCallback, SetChange, SetReply } from '../../redis/scripts/sets.ts';
import { beginSend } from '../../telemetry/spans.ts';
import type { Calls } from '../calls/calls.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { homeOf, type Layout } from '../calls/layouts.ts';
import { needsOf, refusalOf } from '../calls/needs.ts';
import { countedPlan, limitsOf, planJob } from '../calls/plan.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { Turn } from '../calls/turns.ts';
import { listCursor, parseListCursor } from '../query/cursor.ts';
import { nameIn, type WalkParts } from '../query/walk.ts';
import type { ActParts, ChangingParts } from './act.ts';
import { cancelMeant } from './tags.ts';

/** The callback of a set. Its id is made, it lives where the set does, and it is due when the last member is over. */
export interface SetCallbackOptions
  extends Pick<
    ScheduleOptions,
    | 'name'
    | 'attempts'
    | 'timeout'
    | 'backoff'
    | 'priority'
    | 'cost'
    | 'target'
    | 'tags'
    | 'maxLateness'
    | 'onLate'
    | 'headers'
  > {
  /** How long after the end of the last member it is due. Default: at once. */
  readonly delay?: ScheduleOptions['delay'];
}

/** Of a set in a queue with limits: the group of the set and of all its members. */
export interface SetGroupOption {
  readonly group?: string | undefined;
}

/** What a set leads to. */
export interface SetOptions<Data> extends SetGroupOption, DurabilityOption {
  /** The one job that is made when the set is sealed and its last member is over. Its handler finds the counts in `job.set`. */
  readonly then: SetCallbackOptions & { readonly data: Data };
}

/** What became of a call that begins a set. */
export interface SetMade {
  readonly set: string;
  /**
   * `made`: it is new · `already`: it is there with this very callback, perhaps as the reply to the first call was lost ·
   * `over`: its callback was made, and lives or its end is remembered: nothing was changed.
   */
  readonly status: 'made' | 'already' | 'over';
  /** The id of its callback. */
  readonly callback: string;
}

/** What became of a call that seals a set. */
export interface SetSealed {
  readonly set: string;
  /** `sealed`: from now on the end of its last member makes the callback, perhaps in this very step · `already` · `over`: the callback was made. */
  readonly status: 'sealed' | 'already' | 'over';
  readonly callback: string;
}

/** What became of a call that removes a set. */
export interface SetRemoved {
  readonly set: string;
  /** How many members waited and are cancelled. */
  readonly cancelled: number;
  /** The ids of members that run, at most 100: they were asked to stop. */
  readonly running: readonly string[];
}

/** A set whose callback was not made yet: how many of its members are open, and how the others ended. */
export interface SetView extends SetEnds {
  readonly sealed: boolean;
  /** When it began, in epoch ms by the clock of Redis. */
  readonly madeMs: number;
  /** Members that wait or run. */
  readonly open: number;
  readonly group: string | undefined;
  /** The job that is made when the set is sealed and the last member is over. */
  readonly callback: { readonly id: string; readonly name: string | undefined; readonly delayMs: number };
}

/** Which sets of a queue. */
export interface SetsOptions {
  /** Only these, up to 100. Without it all, by their names within each partition. */
  readonly set?: string | readonly string[] | undefined;
  /** Sets of one page, 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
  /** That of the page before. */
  readonly cursor?: string | undefined;
}

/** A page of sets. */
export interface SetsPage {
  readonly sets: readonly SetView[];
  /** For the next page; undefined when there is none. */
  readonly cursor: string | undefined;
}

/** Jobs with one callback. */
export interface Sets {
  /**
   * Begins a set. Jobs become its members by `schedule(queue, data, { set, id })`, before and after it is sealed, as long as
   * one of them is open. When the set is sealed and the last member is over, done or not, its callback is scheduled in that
   * very step, once. A name is for one set of the queue, whatever its group: use it again only when the end of its callback is
   * forgotten, or when it was removed and none of its members lives.
   *
   * @throws DuestreamError `bad-input` · `exists` when there is a set of this name with another callback or group, or members of an
   * earlier one live
   * @example
   * await client.sets.begin(rows, 'import-7', { then: { data: { file: 7 }, name: 'imported' } });
   * await client.scheduleMany(rows, lines.map((line, at) => ({ data: line, set: 'import-7', id: `row-${at}` })));
   * await client.sets.seal(rows, 'import-7');
   */
  begin<Data>(queue: QueueInput<Data>, set: string, options: SetOptions<NoInfer<Data>>): Promise<SetMade>;
  /**
   * Seals a set: all its members are there, or will be added by members. Until then no callback is made, however long it takes. If none of
   * them is open, the callback is made now.
   *
   * @throws DuestreamError `bad-input` · `not-found` when there is no such set and no end of it is remembered
   * @example const { status } = await client.sets.seal(rows, 'import-7');
   */
  seal(queue: QueueInput<unknown>, set: string, options?: SetGroupOption & DurabilityOption): Promise<SetSealed>;
  /**
   * The sets of a queue whose callbacks were not made yet. Its members are found by the filter `set`.
   *
   * @throws DuestreamError `bad-input`
   * @example
   * const { sets: [one] } = await client.sets.list(rows, { set: 'import-7' });
   * for await (const job of client.list(rows, { set: 'import-7' })) console.log(job.id, job.state);
   */
  list(queue: QueueInput<unknown>, options?: SetsOptions): Promise<SetsPage>;
  /**
   * Removes a set: no callback is made. Then its members are cancelled, and nobody else's; the same call again cancels the rest. Of
   * a set with a group the call names the group.
   *
   * @throws DuestreamError `bad-input` · `not-found` when there is no such set; members with its tag were cancelled all the same
   * @example await client.sets.remove(rows, 'import-7');
   */
  remove(queue: QueueInput<unknown>, set: string, options?: SetGroupOption & DurabilityOption): Promise<SetRemoved>;
}

const CALLBACK_NAMES = [
  ...[
    'data',
    'delay',
    'name',
    'attempts',
    'timeout',
    'backoff',
    'priority',
    'cost',
    'target',
    'tags',
    'maxLateness',
    'onLate',
    'headers',
  ],
] as const;
/** What the callback of a set can be told. */
export const callbackFields: readonly Named[] = allOptions.filter(({ name }) =>
  (CALLBACK_NAMES as readonly string[]).includes(name),
);
const NAMED_MAX = 100;
const PAGE_MAX = 1000;

export function setsOver(settings: ClientSettings, { runChecked }: Pick<Calls<ChangingParts>, 'runChecked'>): Sets {
  const levelIn = createLevels(settings);
  return {
    begin(queue, set, options) {
      // The callback is a job of this call, whenever it is made.
      const span = beginSend(queue);
      const call = () =>
        runChecked(
          () => callbackAsk({ queue, set, options, carry: span?.carry }, settings),
          begin,
          () => levelIn(options),
        );
      return span ? span.through(call) : call();
    },
    seal: (queue, set, options = {}) =>
      runChecked(
        () => namedAsk({ queue, set, options }, 'sets.seal'),
        ({ finding }, ask) => sealNow(finding, ask),
        () => levelIn(options),
      ),
    list: (queue, options = {}) =>
      runChecked(
        () => listAsk(queue, options),
        ({ finding }, ask) => ('named' in ask ? named(finding, ask) : page(finding, ask)),
      ),
    remove: (queue, set, options = {}) =>
      runChecked(
        () => namedAsk({ queue, set, options }, 'sets.remove'),
        ({ finding }, ask, turn) => removeNow(finding, ask, turn),
        () => levelIn(options),
        ({ queue: { name } }) => [{ lane: name, kind: 'cancel' }],
      ),
  };
}

interface NameAsk {
  readonly queue: Queue<unknown>;
  readonly set: string;
  readonly group: string | undefined;
  /** The id of its callback, which leads to its partition. */
  readonly callback: string;
}

/** @throws DuestreamError `bad-input` */
function nameAsk(queue: QueueInput<unknown>, input: string, { group: given }: SetGroupOption): NameAsk {
  const set = parseSetName(input);
  const group = given === undefined ? undefined : parseGroup(given);
  return { queue: queueOf(queue), set, group, callback: callbackId(set, group) };
}

interface Given {
  readonly queue: QueueInput<unknown>;
  readonly set: string;
  readonly options: SetGroupOption & DurabilityOption;
}

/** @throws DuestreamError `bad-input` */
function namedAsk({ queue, set, options }: Given, owner: string): NameAsk {
  checkNames(options, ['group', 'durability'], owner, 'bad-input');
  return nameAsk(queue, set, options);
}

interface CallbackAsk extends NameAsk {
  readonly then: SetOptions<unknown>['then'];
  /** What it is kept as, from its data as it is stored. */
  readonly keep: (data: unknown) => SetCallback;
}

/** @throws DuestreamError `bad-input` */
function callbackAsk(
  {
    queue,
    set,
    options,
    carry,
  }: { queue: QueueInput<unknown>; set: string; options: SetOptions<unknown>; carry: Carry | undefined },
  settings: ClientSettings,
): CallbackAsk {
  checkNames(options, ['then', 'group', 'durability'], 'sets.begin', 'bad-input');
  const { then } = options;
  if (typeof then !== 'object' || then === null) {
    throw new DuestreamError('bad-input', `then is ${show(then)}; allowed: an object with the data of the callback`);
  }
  checkNames(then, CALLBACK_NAMES, 'then', 'bad-input');
  const ask = nameAsk(queue, set, options);
  const { data, delay, ...rest } = snapshot({ ...then, data: dataText(then.data) });
  const delayMs = delay === undefined ? 0 : Math.ceil(jobOptions.delay.check(delay, 'delay'));
  if (delayMs > settings.horizonMs) {
    throw new DuestreamError(
      'bad-input',
      `delay is ${show(delay)}; allowed: 0 to ${settings.horizonMs} ms (the horizon)`,
    );
  }
  const limits = { ...limitsOf(settings), nowMs: 0, newId: () => ask.callback, carry };
  const keep = (data: unknown): SetCallback => {
    const { record } = planJob(data, rest, limits);
    return { member: memberOf(ask.callback), record, delayMs };
  };
  if (!hasContent(ask.queue)) keep(data);
  return { ...ask, then: { ...rest, data }, keep };
}

async function begin({ finding }: ChangingParts, ask: CallbackAsk): Promise<SetMade> {
  const { queue, set, then, callback: id } = ask;
  const other = await sameNamed(finding, ask);
  if (other) {
    const of = other.group === undefined ? 'without a group' : `of group ${show(other.group)}`;
    throw new DuestreamError(
      'exists',
      `queue ${queue.name} has a set ${set} ${of}; nothing was changed. A name is for one set of a queue, whatever its group: take another`,
    );
  }
  const kept = ask.keep(hasContent(queue) ? await seal(queue, then) : then.data);
  let layoutAge: 'remembered' | 'fresh' = 'remembered';
  const gather = (ref: PartitionRef) => {
    checkPlace(ref, ask);
    const callback = ref.gates?.isCounted ? { ...kept, ...countedPlan({ ...kept, id }) } : kept;
    const change: SetChange = { kind: 'gather', name: set, callback, layoutAge };
    // Where the partition has moved, the layout is read again.
    layoutAge = 'fresh';
    return change;
  };
  const { kind } = await inItsPartition(finding, ask, gather, 'declares');
  if (kind === 'exists' && (await isThere(finding, ask, kept))) return { set, status: 'already', callback: id };
  if (kind === 'exists') {
    throw new DuestreamError(
      'exists',
      `queue ${queue.name} has a set ${set} with another callback; nothing was changed. A name is for one set: take another, or remove the set`,
    );
  }
  if (kind === 'lives') {
    throw new DuestreamError(
      'exists',
      `queue ${queue.name} has jobs of an earlier set ${set} that are not over, and would count in this one; nothing was changed. Wait until they are over, or take another name`,
    );
  }
  return { set, status: kind === 'ok' ? 'made' : kind === 'already' ? 'already' : 'over', callback: id };
}

/** Redis compares callbacks byte by byte. Headers make no other callback: those of a trace are new at each call. */
function isThere({ reader, callPartitions }: ActParts, { queue, set, callback }: CallbackAsk, kept: SetCallback) {
  return callPartitions(queue, async (layout, policy) => {
    const read = () => reader.sets(homeOf(layout, callback), { named: [set] });
    const { sets } = await withReadRetry('look at sets', read, policy);
    const markIn = ({ member, record, delayMs }: SetCallback) => `${member} ${delayMs} ${lifeMarkOf(record)}`;
    return sets.some((one) => markIn(one.callback) === markIn(kept));
  });
}

/**
 * A set of this name in another partition, and so of another group. In its own partition the script judges. Two calls at one moment
 * may both find none: then there are two sets of the name, and no call of one of them changes the other.
 */
function sameNamed({ reader, callPartitions }: ActParts, { queue, set, callback }: CallbackAsk) {
  return callPartitions(queue, async (layout, policy) => {
    const home = homeOf(layout, callback);
    const read = (ref: PartitionRef) => withReadRetry('look at sets', () => reader.sets(ref, { named: [set] }), policy);
    // Without another partition nothing is asked.
    const slices = layout.length === 1 ? [] : await Promise.all(layout.map(read));
    const found = slices.map(({ sets: [one] }) => one && viewOf(one));
    return found[home.partition] ? undefined : found.find((one) => one !== undefined);
  });
}

/** @throws DuestreamError `bad-input` where the queue has no sets, or nothing of what the set says means anything there */
function checkPlace(ref: PartitionRef, { queue, set, group, then }: CallbackAsk): void {
  if (isBroadcast(ref)) {
    throw new DuestreamError(
      'bad-input',
      `set ${set} is for queue ${queue.name}, which is a broadcast; allowed: a queue of workers`,
    );
  }
  const refusal = refusalOf(queue.name, needsOf(then, group), ref);
  if (refusal) throw refusal;
}

async function sealNow(finding: ActParts, ask: NameAsk): Promise<SetSealed> {
  const { set, callback } = ask;
  const { kind } = await inItsPartition(finding, ask, () => ({ kind: 'seal', name: set, member: memberOf(callback) }));
  if (kind === 'unknown') throw notThere(ask);
  return { set, status: kind === 'ok' ? 'sealed' : kind === 'already' ? 'already' : 'over', callback };
}

/**
 * The set first: the end of a member that is cancelled makes no callback then. Only its members are meant, whose ids say so: a job
 * with its tag may be of a set of another group that was made at the same moment, or by an older version.
 */
async function removeNow(finding: ActParts, ask: NameAsk, turn: Turn | undefined): Promise<SetRemoved> {
  const { queue, set, group } = ask;
  const { kind } = await inItsPartition(finding, ask, () => ({ kind: 'disband', name: set }));
  const filters = [{ set, idPrefix: idsOfSet(set, group) }];
  const sum = { cancelled: 0, running: [] };
  await cancelMeant(finding, { queue, filters, turn }, sum);
  const { cancelled, running } = sum;
  if (kind === 'unknown' && cancelled + running.length === 0) throw notThere(ask);
  return { set, cancelled, running };
}

function inItsPartition(
  { jobs, callPartitions }: Pick<ActParts, 'jobs' | 'callPartitions'>,
  { queue, callback }: NameAsk,
  changeIn: (ref: PartitionRef) => SetChange,
  use?: 'declares',
): Promise<SetReply> {
  const call = (layout: Layout, policy: RetryPolicy) => {
    const ref = homeOf(layout, callback);
    const change = changeIn(ref);
    return withRetry(change.kind, () => jobs.changeSet(ref, change), policy);
  };
  return callPartitions(queue, call, undefined, use);
}

const notThere = ({ queue, set, group }: NameAsk): DuestreamError =>
  new DuestreamError(
    'not-found',
    `queue ${queue.name} has no set ${set}${group === undefined ? '' : ` of group ${group}`}, and no end of it is remembered`,
  );

interface PageAsk {
  readonly queue: Queue<unknown>;
  readonly limit: number;
  readonly from: { readonly partition: number; readonly after: string | undefined };
}

type ListAsk = PageAsk | { readonly queue: Queue<unknown>; readonly named: readonly string[] };

/** @throws DuestreamError `bad-input` */
function listAsk(given: QueueInput<unknown>, options: SetsOptions): ListAsk {
  checkNames(options, ['set', 'limit', 'cursor'], 'sets.list', 'bad-input');
  const { set, limit = 100, cursor } = options;
  const queue = queueOf(given);
  if (set !== undefined) {
    const names = typeof set === 'string' ? [set] : set;
    if (names.length === 0 || names.length > NAMED_MAX) {
      throw new DuestreamError('bad-input', `set is a list of ${names.length}; allowed: 1 to ${NAMED_MAX} names`);
    }
    return { queue, named: [...new Set(names.map((name) => parseSetName(name)))] };
  }
  const [, partition = '0', after] =
    /^(\d+)(?: (.+))?$/.exec(parseListCursor(cursor, listOf(queue), PLACE) ?? '0') ?? [];
  return {
    queue,
    limit: wholeNumber(limit, { what: 'limit', min: 1, max: PAGE_MAX }),
    from: { partition: Number(partition), after },
  };
}

const PLACE = /^\d{1,4}(?: \S+)?$/;
const listOf = ({ name }: Queue<unknown>): string => `sets ${name}`;

function page({ reader, callPartitions }: WalkParts, { queue, limit, from }: PageAsk): Promise<SetsPage> {
  return callPartitions(queue, async (layout, policy) => {
    const read = (ref: PartitionRef, ask: SetsAsk) => withReadRetry('list sets', () => reader.sets(ref, ask), policy);
    const found: SetView[] = [];
    let { after } = from;
    for (const ref of layout.slice(from.partition)) {
      const slice = await read(ref, { after, limit: limit - found.length });
      found.push(...slice.sets.map(viewOf));
      const isLast = ref.partition === layout.length - 1;
      const place = slice.next === undefined ? `${ref.partition + 1}` : `${ref.partition} ${slice.next}`;
      const isFull = found.length >= limit || slice.next !== undefined;
      if (isFull)
        return {
          sets: found,
          cursor: isLast && slice.next === undefined ? undefined : listCursor(listOf(queue), place),
        };
      after = undefined;
    }
    return { sets: found, cursor: undefined };
  });
}

/** In whatever partition: a set may have a group. */
function named(
  { reader, callPartitions }: WalkParts,
  { queue, named: names }: { readonly queue: Queue<unknown>; readonly named: readonly string[] },
): Promise<SetsPage> {
  return callPartitions(queue, async (layout: Layout, policy) => {
    const read = (ref: PartitionRef) => withReadRetry('look at sets', () => reader.sets(ref, { named: names }), policy);
    const slices = await Promise.all(layout.map(read));
    return { sets: slices.flatMap(({ sets }) => sets.map(viewOf)), cursor: undefined };
  });
}

function viewOf({ isSealed, callback: { member, record, delayMs }, ...seen }: SeenSet): SetView {
  const id = member.slice(2);
  return { ...seen, sealed: isSealed, group: groupOf(id), callback: { id, name: nameIn(record), delayMs } };
}
