/**
 * The table of transitions: every verb that moves a job, with each state that the verb may leave and the states that it may
 * reach from there. The model fails when it sees another transition, `docs/reference/transitions.md` shows every row, and
 * `test/proof/moves.json` has a list of calls for each.
 */
import type { JobState } from '../../src/job/state.ts';

export interface Transition {
  readonly verb: string;
  /** From a state to any of these; `none` is a job of which nothing is known but, perhaps, a dead letter. */
  readonly moves: Readonly<Partial<Record<JobState | 'none', readonly (JobState | 'none')[]>>>;
}

/**
 * How a settle moves a job. A job whose worker was reclaimed is ready, and a late end of its last start still wins. A
 * bare job that was put again meanwhile stays scheduled, and one for which newer data came has its next life. Without a done window nothing is left of what is over. Who makes room in
 * a gated queue lets the next one through: that is another job.
 */
const settles = (...ends: readonly (JobState | 'none')[]): Transition['moves'] => ({
  running: [...ends, 'scheduled'],
  ready: [...ends, 'scheduled'],
  scheduled: ['scheduled'],
  waiting: ['ready'],
});

/**
 * A retry and a defer go back to scheduled, unless a cancel was requested. In strict order a job that comes back at once has its
 * group, so the room that it leaves may be its own.
 */
const back = ['scheduled', 'ready', 'cancelled', 'none'] as const;
const goesBack: Transition['moves'] = { ...settles(), running: back, ready: back };

/**
 * One row is one verb and one file in `lua/verbs/`. Verbs that only read, and verbs of leaders and processes, have no row;
 * nor do `serve`, `relay` and `hand`, which do to each job what `complete`, `promote` or `start` does. Where `none` leads to
 * `scheduled` in `expire` and `bury`, the job is the one that takes half-done effects back; in `commit`, one of `commitJob`.
 *
 * Some rows need a foreign producer, who may put a bare member while it is ready, runs or is over; some need a consumer
 * group that somebody has destroyed, so that a running job's entry is given to another worker.
 */
export const transitions: readonly Transition[] = [
  {
    verb: 'schedule',
    moves: {
      none: ['scheduled'],
      scheduled: ['scheduled'],
      waiting: ['scheduled', 'waiting'],
      // With mode debounce a job that is due, or runs, gets newer data where it is.
      ready: ['scheduled', 'ready'],
      running: ['running'],
      done: ['scheduled'],
      cancelled: ['scheduled'],
      expired: ['scheduled'],
      dead: ['scheduled'],
    },
  },
  // An instant of a schedule becomes a job, if no job of its id is known.
  { verb: 'fire', moves: { none: ['scheduled'] } },
  {
    verb: 'promote',
    moves: {
      // A bare member that is refused goes back to what it was: over, or ready. In a gated queue jobs wait for their turn.
      scheduled: ['waiting', 'ready', 'dead', 'scheduled', 'done', 'cancelled'],
      waiting: ['ready'],
      running: ['running'],
    },
  },
  // Of a broadcast queue: what is due goes to every subscriber and is over, also what another leader made ready before.
  {
    verb: 'cast',
    moves: {
      // A bare member that is refused goes back to what it was, and one that runs waits for its turn.
      scheduled: ['done', 'expired', 'dead', 'none', 'scheduled', 'cancelled'],
      ready: ['done', 'expired', 'dead', 'none', 'scheduled'],
      running: ['running'],
      // Without a done window the entry that a tombstone waited for takes it along.
      done: ['none'],
      cancelled: ['none'],
      expired: ['none'],
      dead: ['none'],
    },
  },
  {
    verb: 'start',
    moves: {
      // Scheduled: paused, or a record of a later version. Dead: an entry without a record. Ready: an entry is dropped
      // while another worker was given the one that counts.
      ready: ['running', 'scheduled', 'ready', 'cancelled', 'dead', 'none'],
      running: ['running', 'scheduled', 'cancelled', 'none'],
      // A job that was offered ahead is in scheduled until its start takes it out.
      scheduled: ['scheduled', 'running', 'cancelled', 'none'],
      // Without a done window the entry that a tombstone waited for takes it along.
      done: ['none'],
      cancelled: ['none'],
      expired: ['none'],
      dead: ['none'],
    },
  },
  {
    verb: 'expire',
    moves: {
      scheduled: ['expired', 'dead', 'none'],
      waiting: ['ready', 'expired', 'dead', 'none'],
      ready: ['expired', 'dead', 'none'],
      none: ['scheduled'],
    },
  },
  {
    verb: 'release',
    // As in `goesBack`.
    moves: {
      ready: ['scheduled', 'ready'],
      scheduled: ['scheduled'],
      waiting: ['ready'],
      running: ['scheduled', 'running'],
    },
  },
  { verb: 'extend', moves: { running: ['running'] } },
  // Done: an acknowledgement at most once that held its entry lets it go, and without a done window its tombstone.
  { verb: 'complete', moves: { ...settles('done', 'cancelled', 'none'), done: ['none'] } },
  { verb: 'commit', moves: { ...settles('done', 'cancelled', 'dead', 'none'), none: ['scheduled'] } },
  { verb: 'retry', moves: goesBack },
  { verb: 'defer', moves: goesBack },
  { verb: 'bury', moves: { ...settles('dead', 'cancelled', 'none'), none: ['scheduled'] } },
  { verb: 'reclaim', moves: { running: ['ready', 'scheduled'], ready: ['ready'] } },
  // Whoever waits for the end of a job moves it nowhere: its run says so, and it may get one for that.
  {
    verb: 'await',
    moves: { scheduled: ['scheduled'], waiting: ['waiting'], ready: ['ready'], running: ['running'] },
  },
  {
    verb: 'cancel',
    moves: {
      // A bare member that was put again and not adopted yet is taken out; it goes back to what it was.
      scheduled: ['cancelled', 'none', 'done', 'dead', 'ready'],
      waiting: ['cancelled', 'none'],
      ready: ['cancelled'],
      running: ['running'],
    },
  },
  // A job that waits for its time, or was in ready, and gets another due time or another record.
  { verb: 'reschedule', moves: { scheduled: ['scheduled'], waiting: ['scheduled'], ready: ['scheduled'] } },
  // Another priority, or another due time: it is lined up anew.
  {
    verb: 'edit',
    moves: { scheduled: ['scheduled'], waiting: ['waiting', 'scheduled'], ready: ['ready', 'scheduled'] },
  },
  {
    verb: 'replay',
    // An older dead letter may be replayed when a later life of its job is over, or a bare member waits.
    moves: {
      dead: ['scheduled'],
      done: ['scheduled'],
      cancelled: ['scheduled'],
      expired: ['scheduled'],
      ready: ['scheduled'],
      scheduled: ['scheduled'],
    },
  },
  // What is over is forgotten: a tombstone by its age, a dead letter by its own.
  {
    verb: 'sweep',
    moves: { done: ['none'], cancelled: ['none'], expired: ['none'], dead: ['none'], scheduled: ['scheduled'] },
  },
  { verb: 'purge', moves: { dead: ['none'] } },
  { verb: 'repair', moves: { ready: ['scheduled'], running: ['scheduled'] } },
  // Who sets limits takes back what nobody has read; who waits without a place in line is lined up anew.
  { verb: 'limit', moves: { ready: ['scheduled'] } },
  // What ledgers lend rings the bell: one is let through where nobody has anything to read.
  { verb: 'borrow', moves: { waiting: ['ready'] } },
  { verb: 'mend-gates', moves: { waiting: ['scheduled'] } },
  {
    verb: 'remove',
    moves: {
      scheduled: ['none'],
      waiting: ['none'],
      ready: ['none'],
      running: ['none'],
      done: ['none'],
      cancelled: ['none'],
      expired: ['none'],
      dead: ['none'],
    },
  },
];
