/**
 * How often everything looks that waits: the one place where a bound of a promise is made longer or shorter. A nudge, a
 * message or a reconnect wakes nearly all of it at once, so most of these times count only where such a sign was lost.
 * `docs/decisions/0025-*.md` says why each promise still holds.
 *
 *  a sign came ──▶ at once      no sign came ──▶ after the time below
 */

export const PROFILES = ['default', 'quiet'] as const;
export type Profile = (typeof PROFILES)[number];

export const isProfile = (given: unknown): given is Profile => PROFILES.some((profile) => profile === given);

export interface Rhythm {
  /** `mover.lease`. A leader that died is replaced within this time and a second. */
  readonly leaseMs: number;
  /** A leader looks for due jobs without a nudge. So late at most is the first job of a producer that does not nudge, or of a nudge that was lost on its way. */
  readonly safetyTickMs: number;
  /** So many looks are made in a safety tick where a producer is known that does not nudge: its jobs are so much less late. */
  readonly foreignLooks: number;
  /** While no job is due, a pass is made this often: it tells of a key of another type, and advertises the wake-up anew. */
  readonly wholePassMs: number;
  /** A look at the schedules. Bounds a lost message that a schedule was put, and a clock of Redis that was set. */
  readonly firesMs: number;
  /** A sweep while nothing was old and nothing was promoted. So much longer than its retention something may be kept. */
  readonly sweepMs: number;
  /** A look after sets whose last end was cut off. Their callbacks come so much later at most. */
  readonly tendMs: number;
  /** Between two slices of the walk that looks for damaged indexes, 1000 records each, where nothing is promoted. */
  readonly walkMs: number;
  /** The same once a walk found nothing and the counts agree: a loss shows in the counts. */
  readonly walkedMs: number;
  /** A daemon looks whether Redis may evict keys. */
  readonly evictionMs: number;
  /** How long a heartbeat of a daemon is valid. It sends one every third of this time. */
  readonly daemonBeatTtlMs: number;
  /** A daemon reads who lives and which queues there are, and pings its subscriptions, with one of so many heartbeats. */
  readonly registryBeats: number;
  /** `worker.beatTtl`. A dead worker is missed after this time, and its jobs are taken over a grace later. */
  readonly beatTtlMs: number;
  /** `worker.grace`. */
  readonly graceMs: number;
  /** A worker reads its queues' layouts and the clock of Redis with one of so many heartbeats. Bounds a resize. */
  readonly layoutBeats: number;
  /** How long a blocking read waits for data. A connection that died in silence is noticed three seconds later. */
  readonly blockMs: number;
  /** The longest gap between two passes that the rate of jobs may ask for. */
  readonly passGapMs: number;
  /** How long completions wait for company, beside what their queue lingers; 0: they wait for nothing. */
  readonly gatherMs: number;
  /** A look for entries that this worker was given and never saw, while every call had its reply. */
  readonly adoptMs: number;
}

const MINUTE_MS = 60_000;

export const RHYTHMS: Readonly<Record<Profile, Rhythm>> = {
  default: {
    leaseMs: 5000,
    safetyTickMs: 1000,
    foreignLooks: 10,
    wholePassMs: MINUTE_MS,
    firesMs: 30_000,
    sweepMs: MINUTE_MS,
    tendMs: 45_000,
    walkMs: 40_000,
    walkedMs: MINUTE_MS,
    evictionMs: 9000,
    daemonBeatTtlMs: 15_000,
    registryBeats: 3,
    beatTtlMs: 10_000,
    graceMs: 5000,
    layoutBeats: 5,
    blockMs: 5000,
    passGapMs: 5,
    gatherMs: 5,
    adoptMs: 30_000,
  },
  quiet: {
    leaseMs: MINUTE_MS,
    safetyTickMs: MINUTE_MS,
    foreignLooks: 1,
    wholePassMs: 4 * MINUTE_MS,
    firesMs: 2 * MINUTE_MS,
    sweepMs: 10 * MINUTE_MS,
    tendMs: 10 * MINUTE_MS,
    walkMs: 4 * MINUTE_MS,
    walkedMs: 10 * MINUTE_MS,
    evictionMs: 2 * MINUTE_MS,
    daemonBeatTtlMs: 3 * MINUTE_MS,
    registryBeats: 1,
    beatTtlMs: 3 * MINUTE_MS,
    graceMs: MINUTE_MS,
    layoutBeats: 1,
    blockMs: MINUTE_MS,
    passGapMs: 5,
    gatherMs: 5,
    adoptMs: 2 * MINUTE_MS,
  },
};
