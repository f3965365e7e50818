/**
 * What became of the past instants of a schedule, the latest first. Nothing is written down per instant: the rule says which
 * there were, `K:fired` how far a leader has handled them, and a job of an instant is known by its id while it lives or Redis
 * remembers its end.
 */
import type { JobReport } from '../client/query/report.ts';
import type { Namespaced } from '../client/queues/refs.ts';
import type { JobState } from '../job/state.ts';
import { inTurns } from '../kernel/steps.ts';
import type { Redis } from '../redis/connection/connect.ts';
import type { PartitionRef } from '../redis/keys.ts';
import { findQueue } from '../redis/scripts/queues.ts';
import { firedOf, partitionOfSchedule } from '../redis/scripts/schedules.ts';
import { instantsBefore, type PreviewRow } from '../schedule/instants.ts';
import { type Fired, firedSince } from '../schedule/progress.ts';
import { fireMember, type Schedule } from '../schedule/schedule.ts';

/**
 * `made`: its job is known · `waits`: its job comes when the job before it is over · `due`: no leader has handled it yet ·
 * `dropped`: a clock change took it away · `missed`: it made no job, because nobody was there in time or an earlier job was not
 * over · `unknown`: Redis remembers no ends from so long ago, so it was missed or its job is forgotten
 */
export const FATES = ['made', 'waits', 'due', 'dropped', 'missed', 'unknown'] as const;
type Fate = (typeof FATES)[number];

/** One instant, and what became of it. */
export interface PastRun extends PreviewRow {
  /**
   * `made`: its job is known · `waits`: its job comes when the job before it is over · `due`: no leader has handled it yet ·
   * `dropped`: a clock change took it away · `missed`: it made no job, because nobody was there in time or an earlier job was
   * not over · `unknown`: Redis remembers no ends from so long ago.
   */
  readonly fate: Fate;
  /** With `made`. */
  readonly job: RunJob | undefined;
}

/** The job of an instant, as far as Redis knows it. */
interface RunJob {
  readonly state: JobState;
  readonly attempts: number;
  /** Its last start. */
  readonly startedMs: number | undefined;
  /** From the due time to the start; undefined for a job that was started more than once, or never. */
  readonly latenessMs: number | undefined;
  readonly overMs: number | undefined;
}

interface RunsAsked {
  readonly schedule: Schedule;
  /** Instants before it; undefined: up to now. */
  readonly beforeMs: number | undefined;
  readonly limit: number;
  readonly nowMs: number;
  readonly job: (id: string) => Promise<JobReport | undefined>;
}

interface PastRuns {
  readonly runs: readonly PastRun[];
  /** Where the next page begins; undefined on the last. */
  readonly beforeMs: number | undefined;
}

/** Jobs that are looked for together. */
const AT_ONCE = 20;
/** Instants that are looked at for one page. */
const LOOKED_MAX = 100;

/**
 * Instants before the rule was changed, or the schedule was paused or resumed, may follow from something else: of them only
 * those are told whose job is known, up to the first page that would have none.
 *
 * @param asked `limit` is at most 100
 */
export async function pastRuns({ redis, namespace }: Namespaced, asked: RunsAsked): Promise<PastRuns> {
  const { schedule, nowMs } = asked;
  const layout = await findQueue(redis, namespace, schedule.queue);
  // Nobody has fired anything into a queue that was never declared.
  if (!layout) return { runs: [], beforeMs: undefined };
  const ref = partitionOfSchedule(namespace, layout, schedule.name);
  const [found] = await firedOf(redis, ref, [schedule.name]);
  const fired = found && firedSince(schedule, found, nowMs);
  const endMs = handledUpTo(schedule, fired, nowMs) + 1;
  const beforeMs = Math.min(asked.beforeMs ?? endMs, endMs);
  const rows = await inTurns(instantsBefore({ ...schedule, sinceMs: 0 }, { beforeMs, count: LOOKED_MAX + 2 }));
  const page = await pageOf(rows, asked);
  // Read after the jobs: what was remembered when they were looked for is then no less than this.
  const rememberedMs = await rememberedSince(redis, ref);
  const runs = page.found.map(({ row, job }) => {
    return { ...row, job: job && runJob(row, job), fate: fateOf(row, { schedule, job, fired, rememberedMs }) };
  });
  return { runs, beforeMs: page.beforeMs };
}

interface Found {
  readonly row: PreviewRow;
  readonly job: JobReport | undefined;
}

/** The first of these rows that are told, and behind which of them the next page begins. */
async function pageOf(
  rows: readonly PreviewRow[],
  asked: RunsAsked,
): Promise<{ readonly found: readonly Found[]; readonly beforeMs: number | undefined }> {
  const { schedule, limit } = asked;
  const isOld = ({ atMs }: PreviewRow): boolean => atMs <= schedule.sinceMs;
  const found: Found[] = [];
  let looked = 0;
  for await (const { row, job } of withJobs(rows.slice(0, LOOKED_MAX), asked)) {
    looked += 1;
    if (job || !isOld(row)) found.push({ row, job });
    // A clock change can drop one time at the instant of another: a page ends behind both.
    if (found.length >= limit && rows[looked]?.atMs !== row.atMs) break;
  }
  const last = rows[looked - 1];
  const hasNone = found.length < limit && last !== undefined && isOld(last) && !found.some(({ row }) => isOld(row));
  return { found, beforeMs: looked === rows.length || hasNone ? undefined : last?.atMs };
}

/** No more than are wanted, and some at once. */
async function* withJobs(rows: readonly PreviewRow[], { limit, job }: RunsAsked): AsyncGenerator<Found> {
  for (let from = 0; from < rows.length; from += Math.min(AT_ONCE, limit)) {
    const some = rows.slice(from, from + Math.min(AT_ONCE, limit));
    const jobs = await Promise.all(some.map(async ({ id }) => (id === undefined ? undefined : job(id))));
    for (const [at, row] of some.entries()) yield { row, job: jobs[at] };
  }
}

/** A schedule that fires no more has missed nothing since. */
function handledUpTo({ paused, maxRuns }: Schedule, fired: Fired | undefined, nowMs: number): number {
  const reachedMs = fired?.reachedMs ?? 0;
  const isOver = maxRuns !== undefined && (fired?.runs ?? 0) >= maxRuns;
  if (paused !== undefined || isOver || fired?.unreadable !== undefined) return reachedMs;
  return Math.max(nowMs, reachedMs);
}

/** The oldest end that is remembered: ends are forgotten in their order, so every later one is remembered too. */
async function rememberedSince(redis: Redis, { keys }: PartitionRef): Promise<number> {
  const [, score] = await redis.zrange(keys.done, '0', '0', 'WITHSCORES');
  return score === undefined ? Number.POSITIVE_INFINITY : Number(score);
}

interface Known {
  readonly schedule: Schedule;
  readonly job: JobReport | undefined;
  readonly fired: Fired | undefined;
  readonly rememberedMs: number;
}

function fateOf({ atMs, dueMs = atMs, dropped }: PreviewRow, { schedule, job, fired, rememberedMs }: Known): Fate {
  if (dropped !== undefined) return 'dropped';
  if (job) return 'made';
  if (fired?.waiting === fireMember(schedule.name, atMs)) return 'waits';
  if (atMs > (fired?.reachedMs ?? 0)) return 'due';
  return rememberedMs < dueMs ? 'missed' : 'unknown';
}

function runJob({ atMs, dueMs = atMs }: PreviewRow, job: JobReport): RunJob {
  const { state, attempts, startedMs, overMs } = job;
  // Of several starts only the last is known, which says nothing of the first.
  const latenessMs = startedMs === undefined || attempts !== 1 ? undefined : Math.max(0, startedMs - dueMs);
  return { state, attempts, startedMs, latenessMs, overMs };
}
