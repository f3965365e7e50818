/**
 * Sends the errands of an enqueuer, many schedules in one call of `fire`, and tells what became of their instants. A call
 * is bounded by jobs and by bytes, so that no other command of Redis waits for long.
 */
import type { Emitter } from '../../job/events.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import type { PartitionRef } from '../../redis/keys.ts';
import { FIRE_BYTES_MAX, FIRE_JOBS_MAX } from '../../redis/scripts/bytes.ts';
import { createJobs } from '../../redis/scripts/jobs.ts';
import { fire, type ScheduleFired } from '../../redis/scripts/schedules.ts';
import type { Fired } from '../../schedule/progress.ts';
import { type Errand, onceMore } from './fire-plan.ts';

export interface FiresParts {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly events: Emitter;
  /** Time of Redis for tests; production leaves it out. */
  readonly nowMs?: (() => number) | undefined;
}

/** An errand whose fire was accepted, and the state after it. */
interface Done {
  readonly errand: Errand;
  readonly fired: Fired;
}

const CALLS_AT_ONCE = 2;
/** How long the tombstone of a replaced job stays. */
const REPLACED_WINDOW_MS = 600_000;

/** Few calls are on their way at a time: the mover of this process shares the connection. */
export async function sendErrands(parts: FiresParts, term: string, errands: readonly Errand[]): Promise<void> {
  const calls = [...callsOf(errands)].reverse();
  const oneByOne = async () => {
    for (let call = calls.pop(); call; call = calls.pop()) {
      await sendCall(parts, term, call).catch((error: unknown) => {
        // The others end with the calls that they have sent.
        calls.length = 0;
        throw error;
      });
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: CALLS_AT_ONCE }, oneByOne));
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}

function callsOf(errands: readonly Errand[]): readonly (readonly Errand[])[] {
  const calls: Errand[][] = [];
  let [jobs, size] = [FIRE_JOBS_MAX, FIRE_BYTES_MAX];
  for (const errand of errands) {
    jobs += Math.max(1, errand.fire.items.length);
    size += errand.size;
    if (jobs > FIRE_JOBS_MAX || size > FIRE_BYTES_MAX) {
      calls.push([]);
      jobs = Math.max(1, errand.fire.items.length);
      size = errand.size;
    }
    calls.at(-1)?.push(errand);
  }
  return calls;
}

async function sendCall(parts: FiresParts, term: string, errands: readonly Errand[]): Promise<void> {
  const done = await sendOnce(parts, term, errands);
  const freed = await makeWay(parts, done);
  if (freed.length > 0) await sendOnce(parts, term, freed);
}

/** Those that nobody else was faster with. */
async function sendOnce(parts: FiresParts, term: string, errands: readonly Errand[]): Promise<readonly Done[]> {
  const { redis, ref, nowMs } = parts;
  const schedules = errands.map((errand) => errand.fire);
  const reply = await fire(redis, ref, { term, schedules, nowMs: nowMs?.() });
  if (reply.kind === 'fenced') return [];
  return reply.schedules.flatMap((one, at) => doneOf(parts, errands[at], one, reply.nowMs));
}

function doneOf(
  { ref, events }: FiresParts,
  errand: Errand | undefined,
  one: ScheduleFired,
  nowMs: number,
): readonly Done[] {
  if (one.kind !== 'fired' || !errand) return [];
  const { queue, partition } = ref;
  const { name: schedule } = errand.look;
  for (const [at, outcome] of one.outcomes.entries()) {
    const atMs = errand.atMs[at] ?? 0;
    events.emit('schedule.fired', { queue, partition, schedule, atMs, outcome, latenessMs: nowMs - atMs });
  }
  return [{ errand, fired: one.fired }];
}

/**
 * Cancels the jobs that are replaced: only when those that replace them are known to Redis, which a full one refuses.
 *
 * @returns errands for those whose way is free already
 */
async function makeWay({ redis, ref }: FiresParts, done: readonly Done[]): Promise<readonly Errand[]> {
  const replacing = done.flatMap(({ errand, fired }) => {
    const { last, waiting } = fired;
    const isReplaced = errand.fire.overlap === 'replace' && waiting !== undefined && last !== undefined;
    return isReplaced ? [{ errand, fired, last }] : [];
  });
  if (replacing.length === 0) return [];
  const members = replacing.map(({ last }) => last);
  const replies = await createJobs(redis).cancel(ref, members, { windowMs: REPLACED_WINDOW_MS });
  if ('kind' in replies) return [];
  return replacing.flatMap(({ errand, fired }, at) =>
    replies[at]?.kind === 'requested' ? [] : onceMore(errand, fired),
  );
}
