/** Dead letters as an application or an admin page uses them: listed, looked at, counted by error, replayed and removed. */

import type { ScheduleOptions } from '../../job/options.ts';
import { type QueueInput, queueOf } from '../../job/queue.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { type DurationInput, durationMs } from '../../kernel/duration.ts';
import { durationIn } from '../../kernel/ranges.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { parseIfMatch } from '../calls/etag.ts';
import { dueOf } from '../calls/plan.ts';
import type { Calls } from '../calls/session.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { parseReplayed, type Replayed, type ReplayOptions, type ReplayTarget } from '../jobs/replay.ts';
import type { ConnectedParts } from '../parts.ts';
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
  /** Replays one dead letter, as `client.replay` does. @example await client.deadLetters.replay(emails, '1763719000000-0'); */
  replay(queue: QueueInput<unknown>, deadLetter: ReplayTarget, options?: ReplayOptions): Promise<Replayed>;
  /**
   * Replays the dead letters that a filter names, newest first, partition by partition: at most `limit`, and the
   * `cursor` goes on with the next, with the ages, the `delay` and the `over` of the call that began. A job that dies again
   * meanwhile is not met again. What was replayed is gone, so the same call may also be repeated without a cursor; it then
   * meets first what has died since.
   *
   * @throws DuestreamError `bad-input` for an empty filter without `all: true`, and for the cursor of another call · `moved`
   * for a cursor from before the queue was resized
   * @example await client.deadLetters.replayMany(emails, { error: 'connect ECONNREFUSED #.#.#.#:#' }, { over: '10m', limit: 5000 });
   */
  replayMany(queue: QueueInput<unknown>, filter: DeadLetterFilter, options?: ReplayMany): Promise<ManyReplayed>;
  /**
   * Removes the dead letters that a filter names for ever, oldest first, partition by partition, at most `limit`. In each
   * partition it ends at the newest that there was when it came there; the `cursor` goes on as in `replayMany`.
   *
   * @throws DuestreamError `bad-input` and `moved` as `replayMany`
   * @example await client.deadLetters.purge(emails, { reason: 'no-handler', olderThan: '7d' }, { dryRun: true });
   */
  purge(
    queue: QueueInput<unknown>,
    filter: DeadLetterFilter,
    options?: DeadLetterWork<ManyPurged>,
  ): Promise<ManyPurged>;
}

/** The methods, over the calls of a client. */
export const deadLettersOver = (settings: ClientSettings, calls: Calls<ConnectedParts>): DeadLetters => ({
  ...looks(settings, calls),
  ...changes(settings, calls),
});

function looks(
  { clock }: ClientSettings,
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
  settings: ClientSettings,
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

/** The due time as it is asked for: of a delay, and of now, the call that began has made an instant. */
function meansOf({ delay, at }: Pick<ScheduleOptions, 'delay' | 'at'>, askedMs: number): unknown {
  if (delay !== undefined) return { delayMs: durationMs(delay, 'delay') };
  return at === undefined ? 'now' : askedMs;
}

async function nowIn({ server, limits }: ConnectedParts, calledMs: number): Promise<number> {
  await server.settle();
  return limits(calledMs).nowMs;
}
