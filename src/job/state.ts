/**
 * Where a job is, is its state: there is no second status field that could disagree. The picture shows the way of a job, and
 * the script of each step, a file in `lua/verbs/`. `docs/reference/transitions.md` lists every transition that can be seen;
 * the model test fails when it sees another one.
 *
 *            schedule            promote            XREADGROUP >          start
 *  (none) ────────────▶ scheduled ───────▶ ready ──────────────▶ delivered ──────▶ running(token)
 *                        ▲  │ cancel         │ cancel               │ reclaim/adopt    │  │  │
 *                        │  ▼                ▼ (tombstone)          └─▶ other consumer │  │  │
 *                        │ (tombstone)         entry dropped at start                  │  │  │
 *                        └─────── retry (backoff) / defer / release ◀──────────────────┘  │  │
 *                                                  done ◀──── complete ◀──────────────────┘  │
 *                                                  dead ◀──── bury ◀─────────────────────────┘
 *                                                  dead ──── replay ──▶ scheduled
 */

/** In the order in which a job goes through them. */
export const JOB_STATES = ['scheduled', 'waiting', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'] as const;
/** Where a job can be seen to be. `delivered` is `ready` to everyone but the worker that holds the entry. */
export type JobState = (typeof JOB_STATES)[number];

/** Where a job can be that is not over. */
export const LIVE_STATES = ['scheduled', 'waiting', 'ready', 'running'] as const satisfies readonly JobState[];
export type LiveState = (typeof LIVE_STATES)[number];

/** Whether a job in this state is not over. */
export const isLiveState = (state: JobState): state is LiveState => LIVE_STATES.some((live) => live === state);

/** How a job that is over ended. */
export type OverState = Extract<JobState, 'done' | 'cancelled' | 'expired' | 'dead'>;

/** No worker holds a job for longer; `lua/lib/held.lua` has it too. */
const HELD_MS_MAX = 10_000;

/** Whether a worker holds the job that it was given, which has this due time in its run, as `lua/lib/held.lua` says it. */
export const isHeldAt = (nextDueMs: number | undefined, nowMs: number): boolean =>
  nextDueMs !== undefined && nextDueMs > nowMs && nextDueMs <= nowMs + HELD_MS_MAX;

/**
 * In words, of a job that Redis started before it was due: its worker holds it, and its handler begins when it is due. Undefined: it
 * is not held, or not any more.
 */
export function heldText(
  job: {
    readonly state: JobState;
    readonly dueMs?: number | undefined;
    readonly startedMs?: number | undefined;
    readonly nextLifeMs?: number | undefined;
  },
  nowMs: number,
): string | undefined {
  const { state, dueMs, startedMs, nextLifeMs } = job;
  if (state !== 'running' || dueMs === undefined || startedMs === undefined || nextLifeMs !== undefined)
    return undefined;
  const isHeld = dueMs > nowMs && dueMs > startedMs && dueMs <= startedMs + HELD_MS_MAX;
  return isHeld ? `held until ${new Date(dueMs).toISOString()}` : undefined;
}

/** The letter of each end in a tombstone. */
export const outcomeLetters: Readonly<Record<string, OverState>> = {
  d: 'done',
  c: 'cancelled',
  e: 'expired',
  x: 'dead',
};
