/**
 * A list of jobs → results in order. All are read and checked before the first is sent; then a few slices are on the way at a
 * time, and an outage stops what was not sent yet. The error then says what Redis has confirmed and what it has not.
 */
import { turn } from '../../kernel/clock.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError, Indeterminate, messageOf } from '../../kernel/errors.ts';
import { type Answers, CHUNK_BYTES_MAX, CHUNK_JOBS_MAX } from '../calls/batch.ts';
import type { Plan } from '../calls/plan.ts';
import { type Scheduled, sameKind, Unconfirmed, type UnconfirmedJob } from '../calls/scheduled.ts';

/** Enough to keep Redis and the line busy; what was sent when the outage breaks is then at most 1,000 jobs. */
const SLICES_IN_FLIGHT = 4;
/** Checking goes on for about 2 ms before others have their turn. */
const TURN_JOBS = 500;

/**
 * What is made of each job of a list, or nothing of any.
 *
 * @throws DuestreamError `bad-input` that names the job by its place
 */
export function eachJob<T, Made>(jobs: readonly T[], make: (job: T) => Made): readonly Made[] {
  return jobs.map((job, index) => {
    try {
      checkJob(job);
      return make(job);
    } catch (error) {
      throw atPlace(error, index);
    }
  });
}

/**
 * The same of a list that was read before, where a schema or a codec may take its time.
 *
 * @throws DuestreamError `bad-input` that names the job by its place
 */
export async function eachInTurns<T, Made>(
  jobs: readonly T[],
  make: (job: T) => Made | Promise<Made>,
): Promise<readonly Made[]> {
  const all: Made[] = [];
  for (const [index, job] of jobs.entries()) {
    if (index % TURN_JOBS === TURN_JOBS - 1) await turn();
    try {
      all.push(await make(job));
    } catch (error) {
      throw atPlace(error, index);
    }
  }
  return all;
}

/** @throws DuestreamError `bad-input` for what is no job of a list */
export function checkJob(job: unknown): void {
  if (typeof job === 'object' && job !== null) return;
  throw new DuestreamError('bad-input', `the job is ${show(job)}; allowed: an object with data and options`);
}

/** What is wrong with a job of a list, with its place. */
export function atPlace(error: unknown, index: number): unknown {
  if (!(error instanceof DuestreamError)) return error;
  return new DuestreamError(error.code, `jobs[${index}]: ${error.message}; nothing was sent`, { cause: error });
}

/** Whether all of them go in one slice, so that each is sent before anything else can be asked. */
export const isOneSlice = (plans: readonly Plan[]): boolean => sliceEnd(plans, 0) === plans.length;

/** Sends all plans. @throws DuestreamError whose cause is `Unconfirmed` */
export async function scheduleAll(
  plans: readonly Plan[],
  send: (slice: readonly Plan[]) => Promise<Answers>,
): Promise<readonly Scheduled[]> {
  const results: (Scheduled | undefined)[] = plans.map(() => undefined);
  const errors = new Map<number, unknown>();
  let next = 0;
  let storm = false;

  async function feed(): Promise<void> {
    while (next < plans.length && !storm) {
      const from = next;
      next = sliceEnd(plans, from);
      const answers = await send(plans.slice(from, next));
      answers.results.forEach((scheduled, at) => {
        results[from + at] = scheduled;
      });
      for (const [at, error] of answers.errors) {
        errors.set(from + at, error);
        storm ||= !isRefusal(error);
      }
    }
  }

  await Promise.all(Array.from({ length: SLICES_IN_FLIGHT }, feed));
  if (errors.size > 0) throw failure(plans, results, errors);
  return results.filter((scheduled) => scheduled !== undefined);
}

function sliceEnd(plans: readonly Plan[], from: number): number {
  let bytes = 0;
  let end = from;
  while (end < plans.length && end - from < CHUNK_JOBS_MAX) {
    bytes += plans[end]?.bytes ?? 0;
    if (bytes > CHUNK_BYTES_MAX && end > from) break;
    end += 1;
  }
  return end;
}

/** One job was refused; it says nothing about the others. */
const isRefusal = (error: unknown) =>
  error instanceof DuestreamError && ['exists', 'bad-input', 'queue-full', 'group-full', 'no-set'].includes(error.code);

/** The error that matters most: what may have happened before what did not, and the outage before a refusal. */
function failure(
  plans: readonly Plan[],
  results: readonly (Scheduled | undefined)[],
  errors: ReadonlyMap<number, unknown>,
): unknown {
  const all = [...errors].sort(([a], [b]) => a - b);
  const [index, error] =
    all.find(([, one]) => one instanceof Indeterminate) ?? all.find(([, one]) => !isRefusal(one)) ?? all[0] ?? [];
  const confirmed = results.filter((scheduled) => scheduled !== undefined);
  const unconfirmed = plans.flatMap(({ id, dueMs }, at): readonly UnconfirmedJob[] =>
    results[at] ? [] : [{ index: at, id, dueMs, ...(errors.has(at) ? { error: errors.get(at) } : {}) }],
  );
  const cause = new Unconfirmed({ confirmed, unconfirmed, cause: error });
  const message = `jobs[${index}]: ${messageOf(error)}; ${confirmed.length} of ${plans.length} jobs are confirmed`;
  if (!(error instanceof DuestreamError)) return new Error(message, { cause });
  // `unavailable` says that nothing of a call was carried out.
  const isPartly = error.code === 'unavailable' && confirmed.length > 0;
  return isPartly
    ? new Indeterminate(message.replace('; nothing was sent', ''), { cause })
    : sameKind(error, message, cause);
}
