/** Removes what a tag names, such as all that is stored of a person, from one queue after the other by their names. */

import { parseTag } from '../../job/labels.ts';
import { queueOf } from '../../job/queue.ts';
import { quietly } from '../../kernel/callbacks.ts';
import { checkNames, wholeNumber } from '../../kernel/checks.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError, type ErrorCode } from '../../kernel/errors.ts';
import type { UnreadQueue } from '../../redis/read/each-queue.ts';
import type { Calls } from '../calls/calls.ts';
import { withReadRetry } from '../calls/retry.ts';
import type { ClientSettings } from '../calls/settings.ts';
import { HELD_PLACES_MAX, type Turn } from '../calls/turns.ts';
import { BEGINNING, cursorOf, parseCursor, type QueueSpot } from './cursor.ts';
import { type EraseAsk, type ErasedQueue, type ErasingParts, eraseTag, erasingAsOne } from './erase.ts';

export type { ErasedQueue };

/** What was removed, or of a dry run, what would be. */
export interface Erased {
  readonly dryRun: boolean;
  /** The queues that were looked at, by name. */
  readonly queues: readonly ErasedQueue[];
  /** How many jobs run, were asked to stop, or are there still. Nothing is left where this is 0, there is no `cursor`, and `failed` is empty. */
  readonly left: number;
  /** Queues in which not all was removed, each with the reason, because they did not answer: erase again when they do. */
  readonly failed: readonly UnreadQueue[];
  /** Where to go on if this is not the end. */
  readonly cursor: string | undefined;
}

/** What is to be erased. */
export interface EraseFilter {
  /** Jobs, dead letters, records of the history and log lines of jobs that have this tag. */
  readonly tag: string;
}

/** How an erase goes on. */
export interface EraseOptions {
  /** Only of these queues, by their names. Default: all. */
  readonly queues?: readonly string[] | undefined;
  /** Removes nothing, and counts. */
  readonly dryRun?: boolean | undefined;
  /** Ends after so many jobs, dead letters and records were looked at: 1 to 1,000,000,000. Default: none, all of them. */
  readonly scanMax?: number | undefined;
  /** Goes on where an earlier call with the same tag and queues has ended. */
  readonly cursor?: string | undefined;
  /** Called after each step of at most 1,000. */
  readonly onProgress?: ((progress: ErasedQueue) => void) | undefined;
  /** Ends the call after the step under way; the result has a cursor then. */
  readonly signal?: AbortSignal | undefined;
}

/** `client.erase`, as the client says it. */
export type Erase = (filter: EraseFilter, options?: EraseOptions) => Promise<Erased>;

export const eraseOver =
  ({ clock, budgetMs }: ClientSettings, { runChecked, turns }: Calls<{ readonly erasing: ErasingParts }>): Erase =>
  (filter, given = {}) =>
    runChecked(
      () => {
        const asked = askedOf(filter, given);
        const { cursor, queues } = given;
        const wanted = namesIn(queues);
        return {
          ...asked,
          wanted,
          policy: { clock, budgetMs },
          from: cursor === undefined ? undefined : parseCursor(cursor, { tag: asked.tag, wanted }),
          onProgress: quietly('onProgress', given.onProgress),
        };
      },
      ({ erasing }, ask, turn) => eraseAll(erasing, { ...ask, onProgress: lettingGo(turn, ask.onProgress) }),
      undefined,
      ({ wanted = turns.names() }) => wanted.map((lane) => ({ lane, kind: 'alone' })),
    );

/** A walk through a whole namespace holds nobody up for long. */
const lettingGo =
  (turn: Turn | undefined, onProgress: EraseOptions['onProgress']): EraseOptions['onProgress'] =>
  (progress) => {
    if (progress.scanned >= HELD_PLACES_MAX) turn?.end();
    onProgress?.(progress);
  };

const ERASE_OPTIONS: readonly string[] = ['dryRun', 'scanMax', 'cursor', 'onProgress', 'signal', 'queues'];
const SCAN_MAX = 1_000_000_000;

function askedOf(filter: EraseFilter, given: EraseOptions) {
  checkNames(filter, ['tag'], 'the filter of erase', 'bad-input');
  checkNames(given, ERASE_OPTIONS, 'erase', 'bad-input');
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

interface EraseAllAsk extends Omit<EraseAsk, 'queue' | 'from'> {
  readonly from: QueueSpot | undefined;
  /** Which queues; undefined: all. */
  readonly wanted: readonly string[] | undefined;
  readonly policy: Parameters<typeof withReadRetry>[2];
}

async function eraseAll(given: ErasingParts, ask: EraseAllAsk): Promise<Erased> {
  const parts = erasingAsOne(given);
  const { from, wanted, policy, dryRun, tag, signal } = ask;
  const isMeant = (queue: string) => (!wanted || wanted.includes(queue)) && (!from || queue >= from.queue);
  const known = await withReadRetry('list queues', parts.queues, policy);
  const meant = known.filter((one) => isMeant(one.queue));
  const queues: ErasedQueue[] = [];
  const failed: UnreadQueue[] = meant.flatMap(({ queue, why }) => (why === undefined ? [] : [{ queue, why }]));
  const told = (next: QueueSpot | undefined): Erased => ({
    dryRun,
    queues,
    failed,
    cursor: next && cursorOf(next, { tag, wanted }),
    left: queues.reduce((sum, { running, left }) => sum + Math.max(running, left), 0),
  });
  let scanMax = ask.scanMax;
  let first: DuestreamError | undefined;
  for (const { queue } of meant.filter(({ why }) => why === undefined)) {
    const begin = from?.queue === queue ? from.spot : BEGINNING;
    if (scanMax <= 0 || signal?.aborted) return told({ queue, spot: begin });
    const asked = { ...ask, scanMax, from: begin, queue: queueOf(queue) };
    const done = await eraseTag(parts, asked).catch(ofQueue);
    if (done instanceof DuestreamError) {
      failed.push({ queue, why: done.message });
      first ??= done;
      continue;
    }
    queues.push(done.erased);
    scanMax -= done.erased.scanned;
    if (done.spot) return told({ queue, spot: done.spot });
  }
  if (first && queues.length === 0) throw first;
  return told(undefined);
}

/** What Redis says of one queue stops no other; anything else does. */
function ofQueue(error: unknown): DuestreamError {
  if (error instanceof DuestreamError && OF_QUEUE.has(error.code)) return error;
  throw error;
}

const OF_QUEUE: ReadonlySet<ErrorCode> = new Set(['unavailable', 'indeterminate', 'refused', 'out-of-memory']);
