/** Removes what a tag names, such as all that is stored of a person. One connection, made at the first call. */

import { type QueueInput, queueOf, wholeNumber } from '../../job/queue.ts';
import { parseTag } from '../../job/tags.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { checkNames } from '../../kernel/option-names.ts';
import { audit, userHere } from '../../redis/audit.ts';
import { createCalls } from '../calls/session.ts';
import { type ProducerOptions, settingsOf } from '../calls/settings.ts';
import { BEGINNING, parseCursor, parseQueueCursor } from './cursor.ts';
import { type Erased, eraseTag, type Note, withCursor } from './erase.ts';
import { type ErasedEverywhere, type ErasedQueue, eraseEverywhere } from './erase-all.ts';

export type { Erased, ErasedEverywhere, ErasedQueue };

/** As of a producer. */
export type ErasureOptions = Pick<ProducerOptions, 'redis' | 'namespace' | 'retryBudget' | 'doneWindow' | 'clock'>;

/** What is to be erased. */
export interface EraseFilter {
  /** Jobs, dead letters and records of the history that have this tag. */
  readonly tag: string;
}

/** How an erase goes on. */
export interface EraseOptions<Progress> {
  /** Removes nothing, and counts. */
  readonly dryRun?: boolean | undefined;
  /** Ends after so many jobs, dead letters and records were looked at: 1 to 1,000,000,000. Default: none, all of them. */
  readonly scanMax?: number | undefined;
  /** Goes on where an earlier call with the same tag and queues has ended. */
  readonly cursor?: string | undefined;
  /** Called after each step of at most 1,000. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Ends the call after the step under way; the result has a cursor then. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Removes what a tag names. All methods reject with a `DuestreamError`, as those of a producer do.
 *
 * Stop what schedules such jobs first. What a call removed is gone, so one that was cut short may be made again, from its
 * `cursor` or from the beginning.
 */
export interface Erasure {
  /**
   * Cancels the jobs of a queue that have the tag, removes their dead letters, and their records from the history. A job
   * that runs is asked to stop and counted as `running`: erase again when it has ended.
   *
   * @throws DuestreamError `bad-input` · `moved` when the queue was resized meanwhile: begin again without a cursor
   * @example
   * const { jobs, deadLetters, history, left } = await erasure.erase(mail, { tag: 'user:42' });
   */
  erase(queue: QueueInput<unknown>, filter: EraseFilter, options?: EraseOptions<Erased>): Promise<Erased>;
  /**
   * The same for every queue of the namespace, or those that are named, by their names.
   *
   * @example const { queues, left } = await erasure.eraseEverywhere({ tag: 'user:42' }, { dryRun: true });
   */
  eraseEverywhere(
    filter: EraseFilter,
    options?: EraseOptions<ErasedQueue> & { readonly queues?: readonly string[] | undefined },
  ): Promise<ErasedEverywhere>;
  /** Connects unless that has happened. Optional: the first call does the same. */
  ready(): Promise<void>;
  /** Refuses new calls, waits until running calls have settled, and closes the connection. You may call it twice. */
  stop(): Promise<void>;
  /** `stop`, for `await using erasure = createErasure(…)`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Erases by tag in a namespace. It connects when it is first used.
 *
 * @throws DuestreamError `bad-config` for an option that there is not, or one outside its range.
 * @example
 * const erasure = createErasure({ redis: 'redis://127.0.0.1:6379' });
 * const { left } = await erasure.eraseEverywhere({ tag: 'user:42' });
 * if (left > 0) console.log('some jobs run: erase again when they have ended');
 * await erasure.stop();
 */
export function createErasure(options: ErasureOptions): Erasure {
  return createErasureOf(options, toAudit);
}

/** The audit names the user of this process. That it cannot be written undoes nothing. */
const toAudit: Note = (place, gone) =>
  audit(place, { who: userHere(), way: 'program', verb: 'erase', ...gone }).catch(() => undefined);

/** The same for the HTTP API and the command line, which know better who asks: they note it themselves. */
export function createErasureOf(options: ErasureOptions, note?: Note): Erasure {
  checkNames(options, ERASURE_OPTIONS, 'createErasure');
  const settings = settingsOf({ ...options, name: 'erase' });
  const { runChecked, check, connected, stop } = createCalls(settings);
  const policy = { clock: settings.clock, budgetMs: settings.budgetMs };
  return {
    erase: (queue, filter, given = {}) =>
      runChecked(
        () => {
          const asked = askedOf(filter, given, ERASE_OPTIONS);
          const { cursor } = given;
          const from = cursor === undefined ? BEGINNING : parseCursor(cursor, asked.tag);
          const to = { queue: queueOf(queue), onProgress: quietly('onProgress', given.onProgress) };
          return { ...asked, ...to, from, note };
        },
        async ({ erasing }, ask) => withCursor(await eraseTag(erasing, ask), ask.tag),
      ),
    eraseEverywhere: (filter, given = {}) =>
      runChecked(
        () => {
          const asked = askedOf(filter, given, [...ERASE_OPTIONS, 'queues']);
          const { cursor, queues } = given;
          const wanted = namesIn(queues);
          const from = cursor === undefined ? undefined : parseQueueCursor(cursor, { tag: asked.tag, wanted });
          return {
            ...asked,
            from,
            note,
            policy,
            wanted,
            onProgress: quietly('onProgress', given.onProgress),
          };
        },
        ({ erasing }, ask) => eraseEverywhere(erasing, ask),
      ),
    async ready() {
      check();
      await (await connected()).fit();
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

const ERASURE_OPTIONS: readonly string[] = Object.keys({
  redis: 0,
  namespace: 0,
  retryBudget: 0,
  doneWindow: 0,
  clock: 0,
} satisfies Record<keyof ErasureOptions, number>);
const ERASE_OPTIONS: readonly string[] = ['dryRun', 'scanMax', 'cursor', 'onProgress', 'signal'];
const SCAN_MAX = 1_000_000_000;

function askedOf(filter: EraseFilter, given: EraseOptions<never>, names: readonly string[]) {
  checkNames(filter, ['tag'], 'the filter of erase', 'bad-input');
  checkNames(given, names, 'erase', 'bad-input');
  const { dryRun = false, scanMax = SCAN_MAX, signal } = given;
  return {
    tag: parseTag(filter.tag),
    scanMax: wholeNumber(scanMax, { what: 'scanMax', min: 1, max: SCAN_MAX }),
    dryRun,
    signal,
  };
}

/** Each is checked, and left out if there is none of its name. */
function namesIn(queues: readonly string[] | undefined): readonly string[] | undefined {
  if (queues === undefined) return undefined;
  if (Array.isArray(queues)) return queues.map((name) => queueOf(name).name);
  throw new DuestreamError('bad-input', `queues is ${show(queues)}; allowed: a list of names`);
}
