/**
 * Dead letters → scheduled jobs with fresh budgets. A replayed dead letter is gone, so a run that was cut short goes on
 * where it stopped when it is repeated; dead letters that die meanwhile are left for the next run.
 */
import { systemClock } from '../core/clock.ts';
import { durationMs } from '../core/duration.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { withRetry } from '../redis/connection/outage.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { everyDeadLetter } from '../redis/pages.ts';
import { createJobs, type Jobs } from '../redis/transitions/jobs.ts';
import type { ReplayReply } from '../redis/transitions/replies.ts';
import { addressOf, findDeadLetter, type Placed } from './dead-letters.ts';
import { type Place, refsOfQueue } from './refs.ts';

/** Which dead letters: those of some addresses, or all there are, or all of a job. */
export type ReplayWhich =
  | { readonly deadLetters: readonly string[] }
  | { readonly deadLetters?: undefined; readonly id?: string | undefined; readonly limit: number };

export interface ReplayOptions {
  /** Of a delay that is too long to be one: how it is called in the error. */
  readonly delay?: { readonly given: string | number; readonly what: string } | undefined;
  readonly onBatch?: ((replayed: number) => void) | undefined;
}

export interface ReplayedLetter {
  readonly deadLetter: string;
  readonly id: string;
  readonly status: ReplayReply['kind'];
}

/** How many are under way at once. */
const AT_ONCE = 50;
const DEAD_LETTERS_MAX = 10_000_000;

/** @throws DuestreamError `not-found` for a queue or an address, `bad-input` for what is no address or no delay */
export async function replayDead(
  place: Place,
  queue: string,
  which: ReplayWhich,
  { delay, onBatch }: ReplayOptions = {},
): Promise<readonly ReplayedLetter[]> {
  const { redis } = place;
  const results: ReplayedLetter[] = [];
  const refs = await refsOfQueue(place, queue);
  const one = replayer(redis, delay);
  let batch: Placed[] = [];
  const flush = async () => {
    const statuses = await Promise.all(batch.map(one));
    results.push(...batch.map((placed, index) => resultOf(placed, refs.length, statuses[index] ?? 'gone')));
    onBatch?.(results.length);
    batch = [];
  };
  for await (const placed of sourceOf(redis, refs, which)) {
    batch.push(placed);
    if (batch.length === AT_ONCE) await flush();
  }
  if (batch.length > 0) await flush();
  return results;
}

async function* sourceOf(redis: Redis, refs: readonly PartitionRef[], which: ReplayWhich): AsyncGenerator<Placed> {
  if (which.deadLetters === undefined) {
    yield* chosen(redis, refs, which);
    return;
  }
  for (const address of which.deadLetters) yield await findDeadLetter(redis, refs, address);
}

async function* chosen(
  redis: Redis,
  refs: readonly PartitionRef[],
  { id, limit }: { readonly id?: string | undefined; readonly limit: number },
): AsyncGenerator<Placed> {
  let taken = 0;
  for (const ref of refs) {
    for await (const deadLetter of everyDeadLetter(redis, ref, DEAD_LETTERS_MAX)) {
      if (id !== undefined && deadLetter.id !== id) continue;
      if (taken === limit) return;
      taken += 1;
      yield { ref, deadLetter };
    }
  }
}

/** The due is fixed before the first call, so that a call whose reply was lost is repeated as it was. */
function replayer(redis: Redis, delay: ReplayOptions['delay']): (placed: Placed) => Promise<ReplayReply['kind']> {
  const jobs: Jobs = createJobs(redis);
  const due = delay === undefined ? {} : { dueMs: systemClock.wallMs() + durationMs(delay.given, delay.what) };
  const policy = { clock: systemClock, budgetMs: 10_000 };
  return async ({ ref, deadLetter }) =>
    (await withRetry('replay', () => jobs.replay(ref, deadLetter.entry, due), policy)).kind;
}

function resultOf(placed: Placed, partitions: number, status: ReplayReply['kind']): ReplayedLetter {
  return { deadLetter: addressOf(placed, partitions), id: placed.deadLetter.id, status };
}
