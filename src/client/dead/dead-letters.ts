/** Dead letters as an application or an admin page uses them: listed, looked at, counted by error, replayed and removed. */

import { memberOf } from '../../job/codec.ts';
import type { ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { checkNames, durationIn, wholeNumber } from '../../kernel/checks.ts';
import { type DurationInput, durationMs } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { snapshot } from '../../kernel/snapshot.ts';
import type { CallClock, Calls } from '../calls/calls.ts';
import { createLevels } from '../calls/durability.ts';
import { dueOf } from '../calls/plan.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { checkList, checkTargetOptions, type TargetKind } from '../calls/target.ts';
import type { Claim } from '../calls/turns.ts';
import { namesIn } from '../query/filter.ts';
import { type DeadLetterFilter, FILTER_OPTIONS, parseFilter } from './filter.ts';
import type { DeadLetterGroup, DeadLetterGroups } from './groups.ts';
import type { DeadLetterPage, Letters } from './letters.ts';
import { type DeadLetterTarget, type Named, type OneLetterOptions, parseDeadLetterId, parseNamed } from './locate.ts';
import type {
  DeadLetterKind,
  DeadLetterOverview,
  DeadLetterShare,
  DeadLetterShares,
  OverviewAsk,
  OverviewParts,
} from './overview.ts';
import type { Removed, RemovedLetters } from './remove.ts';
import type { RefusedReplay, ReplayDue, Replayed, ReplayedLetters, ReplayOptions, ReplaySkipReason } from './replay.ts';
import type { DeadLetterRow, DeadLetterView } from './view.ts';
import { begin, type SearchAsk } from './walk.ts';

export type {
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroups,
  DeadLetterKind,
  DeadLetterOverview,
  DeadLetterPage,
  DeadLetterRow,
  DeadLetterShare,
  DeadLetterShares,
  DeadLetterTarget,
  DeadLetterView,
  OneLetterOptions,
  RefusedReplay,
  Removed,
  RemovedLetters,
  ReplayDue,
  Replayed,
  ReplayedLetters,
  ReplayOptions,
  ReplaySkipReason,
};

/** Bounds of one call, and where it begins. */
export interface DeadLetterBounds {
  /** Dead letters that may match: 1 to 1,000 of `list` (default 100), to 100,000 of the others (default 1,000). */
  readonly limit?: number | undefined;
  /** Dead letters that may be looked at: 1 to 1,000,000. Default 10,000 of `list`, else 100,000. */
  readonly scanMax?: number | undefined;
  /** Where the call before ended, with the same filter and options. Its ages and its `delay` still count from when it began. */
  readonly cursor?: string | undefined;
}

/** Which dead letters an overview means, and how many it looks at. */
export interface DeadLetterOverviewOptions extends DeadLetterFilter {
  /** Default: all. */
  readonly queues?: readonly QueueInput<unknown>[] | undefined;
  /** Dead letters that may be looked at: 1 to 1,000,000. Default 10,000. */
  readonly scanMax?: number | undefined;
}

/** Options of a change of all that a filter means. */
export interface DeadLetterWork<Progress> extends DeadLetterBounds {
  /** Needed where the filter names nothing: then every dead letter is meant. */
  readonly all?: boolean | undefined;
  /** Only count what matches. */
  readonly dryRun?: boolean | undefined;
  /** Called after each batch, with what was done so far. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** How all that a filter means is replayed. */
export type ReplayFilterOptions = DeadLetterWork<ReplayedLetters> &
  ReplayDue & {
    /** They become due over this time, spread by a hash, and not all at once: 0 (default) to `30d`. */
    readonly over?: DurationInput | undefined;
  };

/** The dead letters of queues: `client.deadLetters`. All methods reject with a `DuestreamError`, as those of the client do. */
export interface DeadLetters {
  /**
   * A page of dead letters, newest first, without the data of their jobs. A filter may leave little of what was looked
   * at: `scanned` says how many that were, and the `cursor` goes on behind them.
   *
   * @example
   * const { deadLetters, cursor } = await client.deadLetters.list(emails, { name: 'welcome', newerThan: '1d' }, { limit: 20 });
   */
  list(queue: QueueInput<unknown>, filter?: DeadLetterFilter, bounds?: DeadLetterBounds): Promise<DeadLetterPage>;
  /**
   * One dead letter with the data of its job, or undefined. `partition` is needed only where two partitions have one of
   * this id.
   *
   * @example const data = (await client.deadLetters.get(emails, '1763719000000-0'))?.data;
   */
  get<Data>(
    queue: QueueInput<Data>,
    deadLetter: string,
    options?: { readonly partition?: number | undefined },
  ): Promise<DeadLetterView<Data> | undefined>;
  /**
   * How many died alike: by reason, last error (without numbers and ids) and name, the largest group first.
   *
   * @example for (const { count, reason, error } of (await client.deadLetters.groups(emails)).groups) console.log(count, reason, error);
   */
  groups(
    queue: QueueInput<unknown>,
    filter?: DeadLetterFilter,
    bounds?: Omit<DeadLetterBounds, 'limit'>,
  ): Promise<DeadLetterGroups>;
  /**
   * What jobs of all queues died of, or of those that are named: by reason and last error, the kind that died last first, with how
   * many died when and what they share. The newest dead letters are looked at, 10,000 unless `scanMax` says otherwise.
   *
   * @example
   * const { kinds } = await client.deadLetters.overview({ newerThan: '1d' });
   * for (const { count, error, shares } of kinds) console.log(count, error, shares.queue, shares.host);
   */
  overview(options?: DeadLetterOverviewOptions): Promise<DeadLetterOverview>;
  /**
   * Makes one dead letter a scheduled job again, with fresh budgets; due now unless `delay` or `at` says otherwise. It is
   * named by its own id, or as the newest one of a job. Without one the status is `gone`; with `ifMatch`, where it is another
   * one than you have seen, `changed`. `partition` is needed only where two partitions have a dead letter of the same id.
   *
   * @example
   * await client.deadLetters.replay(emails, '1763719000000-0');
   * await client.deadLetters.replay(emails, { job: `welcome:${user}` }, { delay: '5m' });
   */
  replay(queue: QueueInput<unknown>, deadLetter: DeadLetterTarget, options?: ReplayOptions): Promise<Replayed>;
  /** The same for a list, such as the rows of `list`, with results in its order. */
  replay(
    queue: QueueInput<unknown>,
    deadLetters: readonly DeadLetterTarget[],
    options?: ReplayDue,
  ): Promise<readonly Replayed[]>;
  /**
   * Replays the dead letters that a filter means, newest first, partition by partition: at most `limit`, and the
   * `cursor` goes on with the next, with the ages, the `delay` and the `over` of the call that began. A job that dies again
   * meanwhile is not met again. What was replayed is gone, so the same call may also be repeated without a cursor; it then
   * meets first what has died since.
   *
   * @throws DuestreamError `bad-input` for an empty filter without `all: true`, and for the cursor of another call · `moved`
   * for a cursor from before the queue was resized
   * @example
   * await client.deadLetters.replay(emails, { error: 'connect ECONNREFUSED #.#.#.#:#' }, { over: '10m', limit: 5000 });
   */
  replay(queue: QueueInput<unknown>, filter: DeadLetterFilter, options?: ReplayFilterOptions): Promise<ReplayedLetters>;
  /** Removes one dead letter for ever. @example await client.deadLetters.remove(emails, '1763719000000-0'); */
  remove(queue: QueueInput<unknown>, deadLetter: DeadLetterTarget, options?: OneLetterOptions): Promise<Removed>;
  /** The same for a list, such as the rows of `list`, with results in its order. */
  remove(queue: QueueInput<unknown>, deadLetters: readonly DeadLetterTarget[]): Promise<readonly Removed[]>;
  /**
   * Removes the dead letters that a filter means for ever, oldest first, partition by partition, at most `limit`. In each
   * partition it ends at the newest that there was when it came there; the `cursor` goes on as in `replay`.
   *
   * @throws DuestreamError `bad-input` and `moved` as `replay`
   * @example await client.deadLetters.remove(emails, { reason: 'no-handler', olderThan: '7d' }, { dryRun: true });
   */
  remove(
    queue: QueueInput<unknown>,
    filter: DeadLetterFilter,
    options?: DeadLetterWork<RemovedLetters>,
  ): Promise<RemovedLetters>;
}

interface LetterParts extends CallClock {
  readonly letters: Letters;
  /** Where the queues are listed. @throws DuestreamError `wrong-schema` */
  readonly place: () => Promise<Pick<OverviewParts, 'redis' | 'namespace'>>;
}

/** The methods, over the calls of a client. */
export const deadLettersOver = (settings: ClientSettings, calls: Calls<LetterParts>): DeadLetters => ({
  ...looks(settings, calls),
  ...replays(settings, calls),
  ...removals(settings, calls),
});

function looks(
  { clock, budgetMs }: ClientSettings,
  { runChecked }: Calls<LetterParts>,
): Pick<DeadLetters, 'list' | 'get' | 'groups' | 'overview'> {
  const asked = (queue: QueueInput<unknown>, search: SearchAsk) => ({
    to: queueOf(queue),
    search,
    calledMs: clock.monotonicMs(),
  });
  return {
    list: (queue, filter = {}, bounds = {}) =>
      runChecked(
        () => asked(queue, searchOf(filter, bounds, PAGE)),
        async (parts, { to, search, calledMs }) =>
          parts.letters.page(to, begin(search, { means: PAGE.method, nowMs: await nowIn(parts, calledMs) })),
      ),
    get: (queue, deadLetter, given = {}) =>
      runChecked(
        () => ({
          to: queueOf(queue),
          named: parseNamed(parseDeadLetterId(deadLetter), { partition: given.partition }),
        }),
        ({ letters }, { to, named }) => letters.one(to, named),
      ),
    groups: (queue, filter = {}, bounds = {}) =>
      runChecked(
        () => asked(queue, searchOf(filter, bounds, GROUPS)),
        async (parts, { to, search, calledMs }) =>
          parts.letters.groups(to, begin(search, { means: GROUPS.method, nowMs: await nowIn(parts, calledMs) })),
      ),
    overview: (options = {}) =>
      runChecked(
        () => ({ ...overviewAskOf(options), calledMs: clock.monotonicMs() }),
        async (parts, { calledMs, ...ask }) =>
          parts.letters.overview(
            { ...(await parts.place()), clock, budgetMs },
            { ...ask, nowMs: await nowIn(parts, calledMs) },
          ),
      ),
  };
}

function overviewAskOf({ queues, scanMax, ...filter }: DeadLetterOverviewOptions): Omit<OverviewAsk, 'nowMs'> {
  return {
    filter: parseFilter(filter, 'overview'),
    wanted: queues && namesIn(queues),
    scanMax: wholeNumber(scanMax ?? PAGE.scanMax, { what: 'scanMax', min: 1, max: SCAN_MAX }),
  };
}

type Target = DeadLetterTarget | readonly DeadLetterTarget[] | DeadLetterFilter;

const isList = (target: Target): target is readonly DeadLetterTarget[] => Array.isArray(target);

/** A dead letter is an object with its id, or with that of its job; a filter has neither. */
const isOne = (target: Target): target is DeadLetterTarget =>
  typeof target !== 'object' || target === null || 'deadLetter' in target || 'job' in target;

function kindOf(target: Target): TargetKind {
  if (isList(target)) return 'ids';
  return isOne(target) ? 'id' : 'filter';
}

function namedIn(list: readonly DeadLetterTarget[]): readonly Named[] {
  checkList(list, 'deadLetters');
  return list.map((one) => parseNamed(one));
}

/** Nobody knows which dead letters a filter means. */
const claimOf = ({ to }: { readonly to: Queue }, named?: readonly Named[]): Claim => ({
  lane: to.name,
  kind: named ? 'letters' : 'alone',
  keys: named?.map(({ target }) =>
    target.deadLetterId === undefined ? memberOf(target.id, target) : target.deadLetterId,
  ),
});

/** A call for one dead letter has one result. */
const first = async <T>(results: Promise<readonly T[]>): Promise<T | undefined> => (await results)[0];

function replays(settings: ClientSettings, { runChecked }: Calls<LetterParts>): Pick<DeadLetters, 'replay'> {
  const levelIn = createLevels(settings);
  const names = {
    id: ['delay', 'at', 'durability', 'partition', 'ifMatch'],
    ids: ['delay', 'at', 'durability'],
    filter: REPLAY.options,
  };
  function read(queue: QueueInput<unknown>, target: Target, given: ReplayFilterOptions & OneLetterOptions) {
    checkTargetOptions(given, names, { kind: kindOf(target), owner: REPLAY.method });
    const asked = { to: queueOf(queue), given: snapshot(given), calledMs: settings.clock.monotonicMs() };
    if (isList(target)) {
      const all = namedIn(target);
      return { claim: claimOf(asked, all), go: (parts: LetterParts) => replayNamed(parts, { ...asked, all }) };
    }
    if (isOne(target)) {
      const all = [parseNamed(target, given)];
      return { claim: claimOf(asked, all), go: (parts: LetterParts) => first(replayNamed(parts, { ...asked, all })) };
    }
    const search = searchOf(target, given, REPLAY);
    const overMs = durationIn(given.over ?? 0, 'over', { min: 0, max: OVER_MS_MAX });
    return { claim: claimOf(asked), go: (parts: LetterParts) => replaySearched(parts, { ...asked, search, overMs }) };
  }
  return {
    // The kind of the target is the only witness of the type of the result.
    replay: ((queue: QueueInput<unknown>, target: Target, given = {}) =>
      runChecked(
        () => read(queue, target, given),
        (parts, { go }): Promise<unknown> => go(parts),
        () => levelIn(given),
        ({ claim }) => [claim],
      )) as DeadLetters['replay'],
  };
}

interface Replaying {
  readonly to: Queue;
  readonly given: ReplayFilterOptions;
  /** Monotonic: a delay counts from then. */
  readonly calledMs: number;
}

async function replayNamed(
  { server, limits, letters }: LetterParts,
  { to, all, given, calledMs }: Replaying & { readonly all: readonly Named[] },
): Promise<readonly Replayed[]> {
  await server.settle();
  const dueMs = dueOf(given, limits(calledMs));
  return letters.replayNamed(
    to,
    all.map((named) => ({ ...named, dueMs })),
  );
}

async function replaySearched(
  parts: LetterParts,
  { to, search, given, calledMs, overMs }: Replaying & { readonly search: SearchAsk; readonly overMs: number },
): Promise<ReplayedLetters> {
  const nowMs = await nowIn(parts, calledMs);
  const { dryRun = false } = given;
  const onProgress = quietly('onProgress', given.onProgress);
  const askedMs = dueOf(given, parts.limits(calledMs));
  const means = [REPLAY.method, meansOf(given, askedMs), overMs];
  const begun = begin(search, { means, nowMs, dueMs: askedMs });
  const dueMs = begun.dueMs ?? askedMs;
  return parts.letters.replayAll(to, begun, { dueMs, overMs, dryRun, onProgress });
}

function removals({ clock }: ClientSettings, { runChecked }: Calls<LetterParts>): Pick<DeadLetters, 'remove'> {
  const names = { id: ['partition', 'ifMatch'], ids: [], filter: REMOVE.options };
  function read(queue: QueueInput<unknown>, target: Target, given: DeadLetterWork<RemovedLetters> & OneLetterOptions) {
    checkTargetOptions(given, names, { kind: kindOf(target), owner: REMOVE.method });
    const to = queueOf(queue);
    if (isList(target)) {
      const all = namedIn(target);
      return { claim: claimOf({ to }, all), go: ({ letters }: LetterParts) => letters.removeNamed(to, all) };
    }
    if (isOne(target)) {
      const all = [parseNamed(target, given)];
      return { claim: claimOf({ to }, all), go: ({ letters }: LetterParts) => first(letters.removeNamed(to, all)) };
    }
    const search = searchOf(target, given, REMOVE);
    const calledMs = clock.monotonicMs();
    const { dryRun = false } = given;
    const onProgress = quietly('onProgress', given.onProgress);
    const go = async (parts: LetterParts) => {
      const begun = begin(search, { means: REMOVE.method, nowMs: await nowIn(parts, calledMs) });
      return parts.letters.removeAll(to, begun, { dryRun, onProgress });
    };
    return { claim: claimOf({ to }), go };
  }
  return {
    remove: ((queue: QueueInput<unknown>, target: Target, given: DeadLetterWork<RemovedLetters> = {}) =>
      runChecked(
        () => read(queue, target, given),
        (parts, { go }): Promise<unknown> => go(parts),
        undefined,
        ({ claim }) => [claim],
      )) as DeadLetters['remove'],
  };
}

/** The due time as it is asked for: of a delay, and of now, the call that began has made an instant. */
function meansOf({ delay, at }: Pick<ScheduleOptions, 'delay' | 'at'>, askedMs: number): unknown {
  if (delay !== undefined) return { delayMs: durationMs(delay, 'delay') };
  return at === undefined ? 'now' : askedMs;
}

async function nowIn({ server, limits }: LetterParts, calledMs: number): Promise<number> {
  await server.settle();
  return limits(calledMs).nowMs;
}

/** What one method takes. */
interface Takes {
  readonly method: string;
  readonly options: readonly string[];
  /** The defaults, and the most that may be asked for. */
  readonly limit: number;
  readonly limitMax: number;
  readonly scanMax: number;
  /** It changes what it finds. */
  readonly isWork: boolean;
}

const BOUNDS = ['limit', 'scanMax', 'cursor'];
const WORK = [...BOUNDS, 'all', 'dryRun', 'onProgress'];
const EVERY = Number.MAX_SAFE_INTEGER;
const MANY = { limit: 1000, limitMax: 100_000, scanMax: 100_000, isWork: true };
const PAGE: Takes = {
  method: 'list',
  options: BOUNDS,
  limit: 100,
  limitMax: 1000,
  scanMax: 10_000,
  isWork: false,
};
const GROUPS: Takes = {
  method: 'groups',
  options: ['scanMax', 'cursor'],
  limit: EVERY,
  limitMax: EVERY,
  scanMax: 100_000,
  isWork: false,
};
const REPLAY: Takes = { ...MANY, method: 'replay', options: [...WORK, 'delay', 'at', 'over', 'durability'] };
const REMOVE: Takes = { ...MANY, method: 'remove', options: WORK };
const SCAN_MAX = 1_000_000;
const OVER_MS_MAX = 30 * 86_400_000;

/** @throws DuestreamError `bad-input` */
function searchOf(
  input: DeadLetterFilter,
  bounds: DeadLetterBounds & { readonly all?: boolean | undefined },
  { method, options, limit, limitMax, scanMax, isWork }: Takes,
): SearchAsk {
  const filter = parseFilter(input, `the filter of ${method}`);
  checkNames(bounds, options, method, 'bad-input');
  if (isWork && filter.isAll && bounds.all !== true) {
    throw new DuestreamError(
      'bad-input',
      `the filter of ${method} names nothing; allowed: at least one of ${FILTER_OPTIONS.join(', ')}, or all: true`,
    );
  }
  return {
    filter,
    cursor: bounds.cursor,
    limit: wholeNumber(bounds.limit ?? limit, { what: 'limit', min: 1, max: limitMax }),
    scanMax: wholeNumber(bounds.scanMax ?? scanMax, { what: 'scanMax', min: 1, max: SCAN_MAX }),
  };
}
