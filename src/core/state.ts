/**
 * Where a job is, is its state: there is no second status field that could disagree. This table lists every legal
 * transition. One row = one verb = one file in `lua/` = one method in `redis/jobs.ts`.
 *
 *            schedule            promote            XREADGROUP >          start
 *  (none) ────────────▶ scheduled ───────▶ ready ──────────────▶ delivered ──────▶ running(token)
 *                        ▲  │ cancel         │ cancel               │ reclaim/adopt    │  │  │
 *                        │  ▼                ▼ (stub)               └─▶ other consumer │  │  │
 *                        │ (stub)         entry dropped at start                       │  │  │
 *                        └─────── retry (backoff) / defer / release ◀──────────────────┘  │  │
 *                                                  done ◀──── complete ◀──────────────────┘  │
 *                                                  dead ◀──── bury ◀─────────────────────────┘
 *                                                  dead ──── replay ──▶ scheduled
 */

/** Where a job can be seen to be. `delivered` is `ready` to everyone but the worker that holds the entry. */
export type JobState = 'scheduled' | 'ready' | 'running' | 'done' | 'cancelled' | 'expired' | 'dead';

/** How a job that is over ended; the letter stands in its stub. */
export type OverState = Extract<JobState, 'done' | 'cancelled' | 'expired' | 'dead'>;

export const stubLetters: Readonly<Record<string, OverState>> = {
  d: 'done',
  c: 'cancelled',
  e: 'expired',
  x: 'dead',
};

export interface Transition {
  readonly verb: string;
  readonly from: readonly (JobState | 'none')[];
  readonly to: readonly JobState[];
}

/** Every verb that moves a job, with the states it may leave and reach. Read-only and leader verbs are not listed. */
export const transitions: readonly Transition[] = [
  { verb: 'schedule', from: ['none', 'done', 'cancelled', 'expired', 'dead', 'scheduled', 'ready'], to: ['scheduled'] },
  { verb: 'promote', from: ['scheduled'], to: ['ready', 'dead'] },
  { verb: 'start', from: ['ready'], to: ['running', 'scheduled', 'cancelled', 'dead'] },
  { verb: 'expire', from: ['ready'], to: ['expired', 'dead'] },
  { verb: 'release', from: ['ready'], to: ['scheduled'] },
  { verb: 'extend', from: ['running'], to: ['running'] },
  { verb: 'complete', from: ['running'], to: ['done', 'cancelled'] },
  { verb: 'commit', from: ['running'], to: ['done', 'cancelled', 'dead'] },
  { verb: 'retry', from: ['running'], to: ['scheduled', 'cancelled'] },
  { verb: 'defer', from: ['running'], to: ['scheduled', 'cancelled'] },
  { verb: 'bury', from: ['running'], to: ['dead', 'cancelled'] },
  { verb: 'reclaim', from: ['running', 'ready'], to: ['ready'] },
  { verb: 'cancel', from: ['scheduled', 'ready', 'running'], to: ['cancelled', 'running'] },
  { verb: 'replay', from: ['dead'], to: ['scheduled'] },
];
