/**
 * Tags that are closed: no job with one of them starts until an end, however it came to be. First every partition of every
 * queue that was named knows of it; from then on a start looks there. Then the jobs that have the tag are cancelled, and those
 * that run are asked to stop.
 */
import { parseTag } from '../../job/labels.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { checkNames, durationIn, wholeNumber, wordsIn } from '../../kernel/checks.ts';
import type { DurationInput } from '../../kernel/duration.ts';
import { DuestreamError, Indeterminate } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { userHere } from '../../redis/audit.ts';
import { type RetryPolicy, withRetry } from '../../redis/connection/outage.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import type { ClosedSlice, ClosedTag } from '../../redis/read/closed.ts';
import type { TagsChange } from '../../redis/scripts/jobs.ts';
import type { CloseTagReply, Moved } from '../../redis/scripts/replies.ts';
import type { Calls } from '../calls/calls.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import type { Layout } from '../calls/layouts.ts';
import { asOne, type CallPartitions, isMoved } from '../calls/partition-calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import type { Claim, Turn } from '../calls/turns.ts';
import { listCursor, parseListCursor } from '../query/cursor.ts';
import type { JobFilter } from '../query/filter.ts';
import type { WalkParts } from '../query/walk.ts';
import type { Act, ActParts, ChangingParts } from './act.ts';
import { filterAskOf, onFilter } from './by-filter.ts';
import { type Cancelled, type CancelTarget, cancelling, foundToCancel } from './cancel.ts';

export type { ClosedTag };

/** For how long tags are closed, and what people read about it. */
export interface CloseTagsOptions extends DurabilityOption {
  /** From now on: a number of ms, `'90d'`, or an ISO 8601 duration; 1 s to 3650 days. The longest end of a tag wins. */
  readonly for: DurationInput;
  /** Why, for people who look at the queue: at most 200 characters. */
  readonly reason?: string | undefined;
  /** Who closes it, for the same people: at most 200 characters. Default: the user of this process. */
  readonly by?: string | undefined;
}

/** What became of a call that closes tags. */
export interface TagsClosed {
  /** How many jobs with these tags waited and are cancelled. */
  readonly cancelled: number;
  /** The ids of those that had a start before, at most 100: they were asked to stop, and a `commit` of theirs has no effect. */
  readonly running: readonly string[];
  /** Epoch ms by the clock of Redis until which they are all closed: later than asked where they were closed for longer. */
  readonly untilMs: number;
  /** Tags that are not closed, since as many as may be (`closedMax`) are. Their jobs were cancelled all the same. */
  readonly full?: readonly string[];
}

/** What became of a call that opens tags. */
export interface TagsOpened {
  /** Those of the tags that were closed. */
  readonly opened: readonly string[];
}

/** Which closed tags. */
export interface ClosedTagsOptions {
  /** Only these, up to 500. Without it all, the soonest end first. */
  readonly tag?: string | readonly string[] | undefined;
  /** Only tags that have this in them. All closed tags are looked through for it, 1,000 a call of Redis. */
  readonly search?: string | undefined;
  /** Tags of one page, 1 to 1000. Default 100. */
  readonly limit?: number | undefined;
  /** That of the page before. */
  readonly cursor?: string | undefined;
}

/** A page of closed tags. */
export interface ClosedTagsPage {
  readonly tags: readonly ClosedTag[];
  /** How many tags of the queue are closed. */
  readonly count: number;
  /** For the next page; undefined when there is none. A tag that is closed or opened meanwhile may move others by a place. */
  readonly cursor: string | undefined;
}

/** Closed tags: no job that has one starts, for example because its invoice was paid. */
export interface Tags {
  /**
   * Closes tags: when the call has resolved, no job with one of them gets a start in these queues until the end, unless Redis
   * loses writes. Jobs that are there are cancelled; `schedule` answers `closed` for what comes later, and what comes on any
   * other way is cancelled when it would start. Jobs with a start from before are in `running`. At the end the leader opens
   * the tags, up to a minute later. The call may be made again: a longer end stands.
   *
   * @throws DuestreamError `bad-input`; and when a partition did not answer, after the tags are closed in all other queues: the
   * same call again closes the rest
   * @example
   * const { cancelled, running } = await client.tags.close(reminders, 'invoice:7', { for: '90d', reason: 'paid' });
   * await client.tags.close(['mail', 'sms'], ['user:42', 'user:43'], { for: '365d' });
   */
  close(
    queue: QueueInput<unknown> | readonly QueueInput<unknown>[],
    tag: string | readonly string[],
    options: CloseTagsOptions,
  ): Promise<TagsClosed>;
  /**
   * Opens tags before their end. Nothing that was cancelled comes back: the same `schedule` call is still answered `already`
   * for as long as its end is remembered.
   *
   * @throws DuestreamError `bad-input`; and when a partition did not answer, after the tags are open in all other queues: the
   * same call again opens the rest
   * @example await client.tags.open(reminders, 'invoice:7');
   */
  open(
    queue: QueueInput<unknown> | readonly QueueInput<unknown>[],
    tag: string | readonly string[],
    options?: DurabilityOption,
  ): Promise<TagsOpened>;
  /**
   * The closed tags of a queue, with their ends and reasons.
   *
   * @throws DuestreamError `bad-input`
   * @example
   * for (const { tag, untilMs, reason } of (await client.tags.list(reminders)).tags) console.log(tag, new Date(untilMs), reason);
   */
  list(queue: QueueInput<unknown>, options?: ClosedTagsOptions): Promise<ClosedTagsPage>;
}

const CLOSE_NAMES = ['for', 'reason', 'by', 'durability'];
const LIST_NAMES = ['tag', 'search', 'limit', 'cursor'];
const FOR_MS = { min: 1000, max: 3650 * 86_400_000 };
/** Tags of one call, and of one call of the script. */
const TAGS_MAX = 500;
const QUEUES_MAX = 100;
const RUNNING_MAX = 100;
const PAGE_MAX = 1000;
/** No partition refuses a tag that the first one has taken. */
const TAKEN_MAX = 1_000_000_000;

export function tagsOver(settings: ClientSettings, { runChecked }: Pick<Calls<ChangingParts>, 'runChecked'>): Tags {
  const levelIn = createLevels(settings);
  const { clock, closedMax } = settings;
  return {
    close: (queue, tag, options) =>
      runChecked(
        () => ({ ...meantBy(queue, tag), ...closeAskOf(options), calledMs: clock.monotonicMs(), most: closedMax }),
        closeAll,
        () => levelIn(options ?? {}),
        claimsOf('cancel'),
      ),
    open: (queue, tag, options = {}) =>
      runChecked(
        () => {
          checkNames(options, ['durability'], 'tags.open', 'bad-input');
          return meantBy(queue, tag);
        },
        ({ finding }, meant) => openAll(finding, meant),
        () => levelIn(options),
        claimsOf('alone'),
      ),
    list: (queue, options = {}) =>
      runChecked(
        () => listAskOf(queue, options),
        ({ finding }, ask) => ('tags' in ask ? namedTags(finding, ask) : pageOfTags(finding, ask)),
      ),
  };
}

/** Any job of these queues may have the tags. */
const claimsOf =
  (kind: Claim['kind']) =>
  ({ queues }: Meant): readonly Claim[] =>
    queues.map(({ name }) => ({ lane: name, kind }));

export interface Meant {
  readonly queues: readonly Queue[];
  readonly tags: readonly string[];
}

export interface CloseAsk extends Meant {
  readonly forMs: number;
  readonly reason: string;
  readonly by: string;
  readonly calledMs: number;
  readonly most: number;
}

/** @throws DuestreamError `bad-input` */
export function meantBy(queue: Parameters<Tags['close']>[0], tag: string | readonly string[]): Meant {
  const queues = isList(queue) ? queue : [queue];
  if (queues.length === 0 || queues.length > QUEUES_MAX) {
    throw new DuestreamError('bad-input', `queue is a list of ${queues.length}; allowed: 1 to ${QUEUES_MAX} queues`);
  }
  const byName = new Map(queues.map((one) => queueOf(one)).map((one) => [one.name, one]));
  return { queues: [...byName.values()], tags: tagsIn(tag) };
}

const isList = <T>(given: T | readonly T[]): given is readonly T[] => Array.isArray(given);

/** @throws DuestreamError `bad-input` */
function tagsIn(given: string | readonly string[]): readonly string[] {
  const tags: readonly unknown[] = isList(given) ? given : [given];
  if (tags.length === 0 || tags.length > TAGS_MAX) {
    throw new DuestreamError('bad-input', `tag is a list of ${tags.length}; allowed: 1 to ${TAGS_MAX} tags`);
  }
  return [...new Set(tags.map((tag) => parseTag(tag)))];
}

/** @throws DuestreamError `bad-input` */
export function closeAskOf(options: CloseTagsOptions): Pick<CloseAsk, 'forMs' | 'reason' | 'by'> {
  checkNames(options, CLOSE_NAMES, 'tags.close', 'bad-input');
  return {
    forMs: durationIn(options.for, 'for', FOR_MS),
    reason: wordsIn(options.reason ?? '', 'reason'),
    by: wordsIn(options.by ?? userHere(), 'by'),
  };
}

/** The end and the text are the same in all partitions, and in every repetition of a call whose reply was lost. */
async function closeAll({ server, limits, finding }: ChangingParts, ask: CloseAsk, turn?: Turn): Promise<TagsClosed> {
  const { queues, tags, forMs, reason, by, most, calledMs } = ask;
  await server.settle();
  const atMs = Math.round(limits(calledMs).nowMs);
  const untilMs = atMs + forMs;
  const text = JSON.stringify({ at: atMs, by, reason });
  // It is to hold for jobs that come later, so their queue is there from now on.
  const calls = asOne(finding.callPartitions, 'declares');
  const full = new Set<string>();
  const ends = new Map<string, number>();
  const { done, failed } = await inEach(queues, async (queue) => {
    const replies = await inAllPartitions({ ...finding, calls }, queue, tags, { mode: 'close', untilMs, text, most });
    for (const [at, reply] of replies) {
      const tag = tags[at] ?? '';
      const endMs = reply.kind === 'already' ? reply.untilMs : untilMs;
      if (reply.kind === 'full') full.add(tag);
      else ends.set(tag, Math.min(ends.get(tag) ?? endMs, endMs));
    }
  });
  const sum = { cancelled: 0, running: [] };
  const filters = tags.map((tag) => ({ tag }));
  const through = await inEach(done, (queue) => cancelMeant(finding, { queue, filters, turn }, sum));
  refuseFailed('close', through.done, [...failed, ...through.failed]);
  const standing = [...ends].flatMap(([tag, endMs]) => (full.has(tag) ? [] : [endMs]));
  return {
    ...sum,
    untilMs: standing.length === 0 ? untilMs : Math.min(...standing),
    ...(full.size > 0 && { full: [...full] }),
  };
}

async function openAll(finding: ActParts, { queues, tags }: Meant): Promise<TagsOpened> {
  const calls = asOne(finding.callPartitions);
  const opened = new Set<string>();
  const { done, failed } = await inEach(queues, async (queue) => {
    for (const [at, { kind }] of await inAllPartitions({ ...finding, calls }, queue, tags, { mode: 'open' })) {
      if (kind === 'opened') opened.add(tags[at] ?? '');
    }
  });
  refuseFailed('open', done, failed);
  return { opened: [...opened] };
}

interface Failed {
  readonly queue: Queue;
  readonly error: unknown;
}

/** One bad queue never stops the others: what is meant for them is done before the call fails. */
async function inEach(
  queues: readonly Queue[],
  act: (queue: Queue) => Promise<void>,
): Promise<{ readonly done: readonly Queue[]; readonly failed: readonly Failed[] }> {
  const done: Queue[] = [];
  const failed: Failed[] = [];
  for (const queue of queues) {
    await act(queue).then(
      () => done.push(queue),
      (error: unknown) => failed.push({ queue, error }),
    );
  }
  return { done, failed };
}

/** A caller must not take the tags for closed everywhere, so the call fails. @throws the first error, with what was done nevertheless */
function refuseFailed(verb: TagsChange['mode'], done: readonly Queue[], [first, ...more]: readonly Failed[]): void {
  if (!first) return;
  const { queue, error } = first;
  if (done.length + more.length === 0 || !(error instanceof DuestreamError)) throw error;
  const others = more.length === 0 ? '' : ` and ${counted(more.length, 'other queue')}`;
  const became = done.length === 0 ? '' : `; it was done in ${counted(done.length, 'queue')}`;
  const text = `${verb}: queue ${queue.name}${others} failed: ${error.message}${became}: repeat the same call`;
  const code = error.code === 'unavailable' && done.length > 0 ? 'indeterminate' : error.code;
  throw code === 'indeterminate'
    ? new Indeterminate(text, { cause: error })
    : new DuestreamError(code, text, { cause: error });
}

type Answers = readonly (readonly [at: number, reply: CloseTagReply])[];
/** Sends some of the tags, by their places, to a partition. */
type SendTags = (ref: PartitionRef, places: readonly number[], change: TagsChange) => Promise<Answers | Moved>;

/** In every partition: jobs with a tag may be in any. Where one has moved, all begin anew with the layout as it is then. */
async function inAllPartitions(
  { jobs, calls }: Pick<ActParts, 'jobs'> & { readonly calls: CallPartitions },
  queue: Queue,
  tags: readonly string[],
  change: TagsChange,
): Promise<Answers> {
  let layoutAge: 'remembered' | 'fresh' = 'remembered';
  return calls(queue, async (layout, policy) => {
    const send: SendTags = async (ref, places, what) => {
      const some = places.map((at) => tags[at] ?? '');
      const answer = await withRetry(change.mode, () => jobs.closeTags(ref, some, { ...what, layoutAge }), policy);
      return isMoved(answer) ? answer : answer.map((reply, nth) => [places[nth] ?? 0, reply]);
    };
    const answers = await sendToAll(layout, [...tags.keys()], change, send);
    const moved = answers.find(isMoved);
    if (moved) {
      layoutAge = 'fresh';
      return moved;
    }
    return answers.flatMap((answer) => (isMoved(answer) ? [] : answer));
  });
}

/**
 * The first partition alone judges how many tags may be closed, before any other is asked: each by itself, two calls with one
 * place left would win some partitions each. What it refuses is closed nowhere; what it takes, the others take.
 */
async function sendToAll(
  [first, ...others]: Layout,
  places: readonly number[],
  change: TagsChange,
  send: SendTags,
): Promise<readonly (Answers | Moved)[]> {
  if (!first) return [];
  const toOthers = (some: readonly number[], what: TagsChange) => others.map((ref) => send(ref, some, what));
  if (change.mode === 'open') return Promise.all([send(first, places, change), ...toOthers(places, change)]);
  const judged = await send(first, places, change);
  if (isMoved(judged)) return [judged];
  const taken = judged.flatMap(([at, { kind }]) => (kind === 'full' ? [] : [at]));
  if (taken.length === 0) return [judged];
  return [judged, ...(await Promise.all(toOthers(taken, { ...change, most: TAKEN_MAX })))];
}

interface MeantSum {
  cancelled: number;
  /** The first ids of those that run. */
  readonly running: string[];
}

/** What was changed in between is cancelled when it would start. @param sum what was done is added, also where the call fails */
export async function cancelMeant(
  finding: ActParts,
  meant: {
    readonly queue: Queue<unknown>;
    readonly filters: readonly JobFilter[];
    readonly turn: Turn | undefined;
  },
  sum: MeantSum,
): Promise<void> {
  const { queue, filters, turn } = meant;
  const cancel = cancelling(finding);
  const act: Act<CancelTarget, Cancelled> = async (jobs, policy: RetryPolicy) => {
    const decided = await cancel(jobs, policy);
    if (isMoved(decided)) return decided;
    const asked = decided.flatMap((one) => (one.outcome === 'requested' && 'result' in one ? [one.result.id] : []));
    sum.running.push(...asked.slice(0, RUNNING_MAX - sum.running.length));
    return decided;
  };
  for (const filter of filters) {
    const asked = filterAskOf({ queue, filter, options: {} }, { owner: 'close' });
    const done = await onFilter(finding, { ...asked, turn, act, itemOf: foundToCancel, means: 'close' });
    sum.cancelled += done.changed;
  }
}

interface Page {
  readonly queue: Queue;
  readonly search: string;
  readonly limit: number;
  /** The place of the first one, by their ends. */
  readonly from: number;
}

type ListAsk = Page | { readonly queue: Queue; readonly tags: readonly string[] };

/** @throws DuestreamError `bad-input` */
function listAskOf(given: QueueInput<unknown>, options: ClosedTagsOptions): ListAsk {
  checkNames(options, LIST_NAMES, 'tags.list', 'bad-input');
  const { tag, search = '', limit = 100, cursor } = options;
  const queue = queueOf(given);
  if (tag !== undefined) return { queue, tags: tagsIn(tag) };
  const from = Number(parseListCursor(cursor, listOf(queue, search), /^\d{1,9}$/) ?? 0);
  return {
    queue,
    search: wordsIn(search, 'search'),
    limit: wholeNumber(limit, { what: 'limit', min: 1, max: PAGE_MAX }),
    from,
  };
}

const listOf = ({ name }: Queue, search: string): string => `closed ${name} ${search}`;

/** All partitions have the same tags, so the first one is read. */
function pageOfTags({ reader, callPartitions }: WalkParts, page: Page): Promise<ClosedTagsPage> {
  return callPartitions(page.queue, async ([ref], policy) => {
    const read = (from: number, limit: number) =>
      ref
        ? withReadRetry('list closed tags', () => reader.closed(ref, { from, limit }), policy)
        : Promise.resolve({ tags: [], count: 0 });
    return searched(page, read);
  });
}

/** Until the page is full, or there are no more tags. */
async function searched(
  { queue, search, limit, from }: Page,
  read: (from: number, limit: number) => Promise<ClosedSlice>,
): Promise<ClosedTagsPage> {
  const step = search === '' ? limit : PAGE_MAX;
  const found: ClosedTag[] = [];
  let next = from;
  let slice = await read(next, step);
  while (slice.tags.length > 0) {
    const left = limit - found.length;
    const fit = slice.tags.flatMap(({ tag }, at) => (tag.includes(search) ? [at] : []));
    const last = fit[left - 1];
    found.push(...slice.tags.filter((_, at) => fit.includes(at) && at <= (last ?? step)));
    next += last === undefined ? slice.tags.length : last + 1;
    if (last !== undefined || slice.tags.length < step) break;
    slice = await read(next, step);
  }
  const cursor = next < slice.count ? listCursor(listOf(queue, search), String(next)) : undefined;
  return { tags: found, count: slice.count, cursor };
}

/** In whatever partition one is closed: a call that did not reach all of them left it so. */
function namedTags(
  { reader, callPartitions }: WalkParts,
  { queue, tags }: { readonly queue: Queue; readonly tags: readonly string[] },
): Promise<ClosedTagsPage> {
  return callPartitions(queue, async (layout, policy) => {
    const read = (ref: PartitionRef) =>
      withReadRetry('look at closed tags', () => reader.closed(ref, { named: tags }), policy);
    const slices = await Promise.all(layout.map(read));
    const found = new Map<string, ClosedTag>();
    for (const one of slices.flatMap((slice) => slice.tags)) {
      if (one.untilMs > (found.get(one.tag)?.untilMs ?? 0)) found.set(one.tag, one);
    }
    return { tags: [...found.values()], count: slices[0]?.count ?? 0, cursor: undefined };
  });
}
