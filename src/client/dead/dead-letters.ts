/**
 * Dead letters as an application or an admin page uses them: listed, looked at, counted by error, replayed and removed. One
 * connection, made at the first call; every promise settles.
 */

import type { ScheduleOptions } from '../../job/options.ts';
import { type QueueInput, queueOf } from '../../job/queue.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { type DurationInput, durationMs } from '../../kernel/duration.ts';
import { checkNames } from '../../kernel/option-names.ts';
import { durationIn } from '../../kernel/ranges.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { parseIfMatch } from '../calls/etag.ts';
import { dueOf } from '../calls/plan.ts';
import { type Calls, createCalls } from '../calls/session.ts';
import { type ProducerOptions, type ProducerSettings, settingsOf } from '../calls/settings.ts';
import { parseReplayed, type Replayed, type ReplayOptions, type ReplayTarget } from '../jobs/replay.ts';
import type { ConnectedParts } from '../producer-parts.ts';
import type { DeadLetterFilter } from './filter.ts';
import type { DeadLetterGroup, DeadLetterGroups } from './groups.ts';
import type { DeadLetterPage } from './letters.ts';
import type { ManyPurged } from './purge-many.ts';
import type { ManyReplayed, RefusedReplay } from './replay-many.ts';
import {
  type DeadLetterBounds,
  GROUPS,
  OVER_MS_MAX,
  PAGE,
  PURGE,
  parseDeadLetterId,
  REPLAY,
  searchOf,
} from './requests.ts';
import { begin, type SearchAsk } from './scan.ts';
import type { DeadLetterRow, DeadLetterView } from './view.ts';

export type {
  DeadLetterBounds,
  DeadLetterFilter,
  DeadLetterGroup,
  DeadLetterGroups,
  DeadLetterPage,
  DeadLetterRow,
  DeadLetterView,
  ManyPurged,
  ManyReplayed,
  RefusedReplay,
};

/** As of a producer. */
export type DeadLettersOptions = Pick<
  ProducerOptions,
  'redis' | 'namespace' | 'horizon' | 'retryBudget' | 'durability' | 'durabilityTimeout' | 'clock'
>;

/** Of calls that change many. */
export interface DeadLetterWork<Progress> extends DeadLetterBounds {
  /** Needed where the filter names nothing: then every dead letter is meant. */
  readonly all?: boolean | undefined;
  /** Only count what matches. */
  readonly dryRun?: boolean | undefined;
  /** Called after each batch, with what was done so far. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** How many dead letters are replayed: which, when, and over what time. */
export type ReplayMany = DeadLetterWork<ManyReplayed> &
  Pick<ScheduleOptions, 'delay' | 'at'> &
  DurabilityOption & {
    /** They become due over this time, spread by a hash, and not all at once: 0 (default) to `30d`. */
    readonly over?: DurationInput | undefined;
  };

/**
 * Dead letters of queues. All methods reject with a `DuestreamError`, as those of a producer do.
 */
export interface DeadLetters {
  /**
   * A page of dead letters, newest first, without the data of their jobs. A filter may leave little of what was looked
   * at: `scanned` says how many that were, and the `cursor` goes on behind them.
   *
   * @example
   * const { deadLetters, cursor } = await dead.list(emails, { name: 'welcome', newerThan: '1d' }, { limit: 20 });
   */
  list(queue: QueueInput<unknown>, filter?: DeadLetterFilter, bounds?: DeadLetterBounds): Promise<DeadLetterPage>;
  /**
   * One dead letter with the data of its job, or undefined. `partition` is needed only where two partitions have one of
   * this id.
   *
   * @example const data = (await dead.get(emails, '1763719000000-0'))?.data;
   */
  get<Data>(
    queue: QueueInput<Data>,
    deadLetter: string,
    options?: { readonly partition?: number | undefined },
  ): Promise<DeadLetterView<Data> | undefined>;
  /**
   * How many died alike: by reason, last error (without numbers and ids) and name, the largest group first.
   *
   * @example for (const { count, reason, error } of (await dead.groups(emails)).groups) console.log(count, reason, error);
   */
  groups(
    queue: QueueInput<unknown>,
    filter?: DeadLetterFilter,
    bounds?: Omit<DeadLetterBounds, 'limit'>,
  ): Promise<DeadLetterGroups>;
  /** Replays one dead letter, as `producer.replay` does. @example await dead.replay(emails, '1763719000000-0'); */
  replay(queue: QueueInput<unknown>, deadLetter: ReplayTarget, options?: ReplayOptions): Promise<Replayed>;
  /**
   * Replays the dead letters that a filter names, newest first, partition by partition: at most `limit`, and the
   * `cursor` goes on with the next, with the ages, the `delay` and the `over` of the call that began. A job that dies again
   * meanwhile is not met again. What was replayed is gone, so the same call may also be repeated without a cursor; it then
   * meets first what has died since.
   *
   * @throws DuestreamError `bad-input` for an empty filter without `all: true`, and for the cursor of another call · `moved`
   * for a cursor from before the queue was resized
   * @example await dead.replayMany(emails, { error: 'connect ECONNREFUSED #.#.#.#:#' }, { over: '10m', limit: 5000 });
   */
  replayMany(queue: QueueInput<unknown>, filter: DeadLetterFilter, options?: ReplayMany): Promise<ManyReplayed>;
  /**
   * Removes the dead letters that a filter names for ever, oldest first, partition by partition, at most `limit`. In each
   * partition it ends at the newest that there was when it came there; the `cursor` goes on as in `replayMany`.
   *
   * @throws DuestreamError `bad-input` and `moved` as `replayMany`
   * @example await dead.purge(emails, { reason: 'no-handler', olderThan: '7d' }, { dryRun: true });
   */
  purge(
    queue: QueueInput<unknown>,
    filter: DeadLetterFilter,
    options?: DeadLetterWork<ManyPurged>,
  ): Promise<ManyPurged>;
  /** Connects unless that has happened. Optional: the first call does the same. */
  ready(): Promise<void>;
  /** Refuses new calls, waits until running calls have settled, and closes the connection. You may call it twice. */
  stop(): Promise<void>;
  /** `stop`, for `await using dead = createDeadLetters(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Dead letters of a namespace. It connects when it is first used.
 *
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const dead = createDeadLetters({ redis: 'redis://127.0.0.1:6379' });
 * const { deadLetters } = await dead.list('emails', { reason: 'attempts-exhausted' });
 * await dead.stop();
 */
export function createDeadLetters(options: DeadLettersOptions): DeadLetters {
  checkNames(options, DEAD_LETTERS_OPTIONS, 'createDeadLetters');
  const settings = settingsOf({ ...options, name: 'dead' });
  const calls = createCalls(settings);
  const { check, connected, stop } = calls;
  return {
    ...looks(settings, calls),
    ...changes(settings, calls),
    async ready() {
      check();
      await (await connected(settings.level)).fit();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function looks(
  { clock }: ProducerSettings,
  { runChecked }: Calls<ConnectedParts>,
): Pick<DeadLetters, 'list' | 'get' | 'groups'> {
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
        () => ({ to: queueOf(queue), id: parseDeadLetterId(deadLetter) }),
        ({ letters }, { to, id }) => letters.one(to, id, given.partition),
      ),
    groups: (queue, filter = {}, bounds = {}) =>
      runChecked(
        () => asked(queue, searchOf(filter, bounds, GROUPS)),
        async (parts, { to, search, calledMs }) =>
          parts.letters.groups(to, begin(search, { means: GROUPS.method, nowMs: await nowIn(parts, calledMs) })),
      ),
  };
}

function changes(
  settings: ProducerSettings,
  { runChecked }: Calls<ConnectedParts>,
): Pick<DeadLetters, 'replay' | 'replayMany' | 'purge'> {
  const levelIn = createLevels(settings);
  const calledMs = () => settings.clock.monotonicMs();
  return {
    replay: (queue, deadLetter, given = {}) =>
      runChecked(
        () => ({
          to: queueOf(queue),
          target: parseReplayed(deadLetter),
          calledMs: calledMs(),
          ifMatch: parseIfMatch(given.ifMatch),
        }),
        async (parts, { to, target, calledMs, ifMatch }) => {
          await parts.server.settle();
          const dueMs = dueOf(given, parts.limits(calledMs));
          return parts.replay(to, { target, dueMs, partition: given.partition, ifMatch });
        },
        () => levelIn(given, ['delay', 'at', 'partition', 'ifMatch']),
      ),
    replayMany: (queue, filter, given = {}) =>
      runChecked(
        () => ({
          to: queueOf(queue),
          search: searchOf(filter, given, REPLAY),
          calledMs: calledMs(),
          overMs: durationIn(given.over ?? 0, 'over', { min: 0, max: OVER_MS_MAX }),
        }),
        async (parts, { to, search, calledMs, overMs }) => {
          const nowMs = await nowIn(parts, calledMs);
          const { dryRun = false } = given;
          const onProgress = quietly('onProgress', given.onProgress);
          const askedMs = dueOf(given, parts.limits(calledMs));
          const means = [REPLAY.method, meansOf(given, askedMs), overMs];
          const begun = begin(search, { means, nowMs, dueMs: askedMs });
          const dueMs = begun.dueMs ?? askedMs;
          return parts.letters.replay(to, begun, { dueMs, overMs, dryRun, onProgress });
        },
        () => levelIn(given, REPLAY.options),
      ),
    purge: (queue, filter, given = {}) =>
      runChecked(
        () => ({ to: queueOf(queue), search: searchOf(filter, given, PURGE), calledMs: calledMs() }),
        async (parts, { to, search, calledMs }) => {
          const { dryRun = false } = given;
          const onProgress = quietly('onProgress', given.onProgress);
          const begun = begin(search, { means: PURGE.method, nowMs: await nowIn(parts, calledMs) });
          return parts.letters.purge(to, begun, { dryRun, onProgress });
        },
      ),
  };
}

const DEAD_LETTERS_OPTIONS: readonly string[] = Object.keys({
  redis: 0,
  namespace: 0,
  horizon: 0,
  retryBudget: 0,
  durability: 0,
  durabilityTimeout: 0,
  clock: 0,
} satisfies Record<keyof DeadLettersOptions, number>);

/** The due time as it is asked for: of a delay, and of now, the call that began has made an instant. */
function meansOf({ delay, at }: Pick<ScheduleOptions, 'delay' | 'at'>, askedMs: number): unknown {
  if (delay !== undefined) return { delayMs: durationMs(delay, 'delay') };
  return at === undefined ? 'now' : askedMs;
}

async function nowIn({ server, limits }: ConnectedParts, calledMs: number): Promise<number> {
  await server.settle();
  return limits(calledMs).nowMs;
}
