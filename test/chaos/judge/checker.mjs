/**
 * The judge. Pure: what everybody wrote down and what Redis holds in the end → everything that is wrong with it. It
 * shares no code with the product, so that the two cannot be wrong in the same way.
 *
 *  LOST            Redis took the job, and it neither ended nor can it ever run
 *  UNEXPECTED      a job ran that nobody asked for
 *  DUP-ENQ         one id lives twice
 *  DUP-START       a start that no failure, no death and no freeze of a worker explains
 *  DUP-STRAY       such a start of a job that was not under way when the fault was on
 *  DUP-EFFECT      two effects under one token, or one after a newer start had begun and was let through
 *  OVERLAP         two starts ran at once, and the end of the older one counted
 *  ZOMBIE          a start after the end that counted
 *  EARLY           a start before its due
 *  TOKEN-REGRESS   two starts with one token, or a process that was given an older one
 *  ATTEMPT-REGRESS a newer token with an attempt that is not larger
 *  TWO-LEADERS     a term promoted after a newer one had
 *  UNDULY-DEAD     a dead letter of a job that did not deserve it
 *  STUCK           a job that could run and did not
 *  REPAIRED          a job was lost inside Redis, and only the repairer found it again
 *  LEAK            something is left that belongs to no job
 */

import { countsOf } from './counts.mjs';
import { excusedIn, hasEnded, takenOutside } from './loss.mjs';
import { hasDied, isExplained, isForgotten, isNewer, isUnderway, isWithin, madeUs, startsOf } from './starts.mjs';

/** @typedef {import('../stage/history.mjs').Event} Event */
/**
 * @typedef {object} Member what Redis holds of one job in the end
 * @property {string} id
 * @property {number} partition
 * @property {boolean} live it has a record
 * @property {boolean} indexed it is scheduled or ready
 * @property {string} outcome of its tombstone: `d` done, `x` dead …; empty while it lives
 * @property {string} token of its tombstone
 * @property {number} [attempts] of its dead letter: its starts, the one that only buried it among them
 */
/**
 * @typedef {object} Story
 * @property {ReadonlyMap<string, string>} kinds id → what its handler was told to do
 * @property {readonly Event[]} calls of the producers, in the order of time
 * @property {readonly Event[]} effects in the order of the log
 * @property {readonly { pid: number, us: number, signal?: string | null }[]} exits of workers, and by which signal
 * @property {readonly { pid: number, fromUs: number, toUs: number }[]} pauses
 * @property {readonly { fromUs: number, toUs: number }[]} [stalls] when Redis answered nobody
 * @property {readonly { pid: number, us: number }[]} [dismissals] who was asked to end, and when
 * @property {readonly import('./starts.mjs').Cut[]} [cuts]
 * @property {ReadonlyMap<string, number>} [timeouts] id → ms after which its handler is told to stop
 * @property {readonly { partition: number, epoch: number }[]} passes promotions that were carried out, in their order
 * @property {readonly Member[]} members
 * @property {Readonly<Record<string, number>>} left what should be empty in the end → how much is in it
 * @property {number} [repaired] jobs that the repairer put right
 * @property {boolean} [ranOut] nobody waited for the end of what is left, so it is neither stuck nor lost
 * @property {{ fromUs: number, toUs: number }} [fault] when it was on
 * @property {import('./starts.mjs').Loss | undefined} [loss] what Redis was told in this time may be gone: it was declared
 */
/** @typedef {{ kind: string, id: string, detail: string }} Anomaly */
/** @typedef {import('./starts.mjs').Start} Start */

/** After so many starts under which its worker ended, a job is dead. */
const CRASHES_MAX = 3;

/** @param {Story} story */
export function check(story) {
  const starts = startsOf(story.effects);
  const members = new Map(story.members.map((member) => [member.id, member]));
  const seen = { story, starts, members };
  const anomalies = [
    ...lost(seen),
    ...strange(seen),
    ...twice(seen),
    ...doubled(seen),
    ...fenced(seen),
    ...growth(seen),
    ...ruled(story),
    ...undulyDead(seen),
    ...left(seen),
  ];
  return { anomalies, counts: countsOf(seen), excused: new Set(excusedIn(seen)) };
}

/** @typedef {{ story: Story, starts: ReadonlyMap<string, readonly Start[]>, members: ReadonlyMap<string, Member> }} Seen */

/** @param {Seen} seen */
function* lost({ story, starts, members }) {
  for (const id of takenOutside(story)) {
    const member = members.get(id);
    const ended = hasEnded(starts, id);
    if (!member && !ended) yield anomaly('LOST', id, 'Redis took it, and nothing is left of it');
    if (member?.outcome === 'd' && !ended) yield anomaly('LOST', id, 'it is done, and never ran to its end');
  }
  for (const { id } of story.ranOut ? [] : story.members.filter(({ live, indexed }) => live && !indexed)) {
    yield anomaly('LOST', id, 'it has a record and is neither scheduled nor ready');
  }
}

/** @param {Seen} seen */
function* strange({ story, starts }) {
  const asked = new Map(story.calls.filter(({ ev }) => ev === 'enq.call').map(({ id = '', due = 0 }) => [id, due]));
  for (const [id, of] of starts) {
    if (!asked.has(id)) yield anomaly('UNEXPECTED', id, 'it ran, and nobody asked for it');
    for (const { ms, due = 0, attempt } of of) {
      const notBefore = attempt === 1 ? Math.max(due, asked.get(id) ?? 0) : due;
      if (ms < notBefore) yield anomaly('EARLY', id, `it started ${notBefore - ms} ms before its due`);
    }
  }
}

/** @param {Seen} seen */
function* twice({ story }) {
  const places = new Map();
  for (const { id, partition } of story.members.filter(({ live }) => live)) {
    if (places.has(id)) yield anomaly('DUP-ENQ', id, `it lives in the partitions ${places.get(id)} and ${partition}`);
    places.set(id, partition);
  }
}

/** @param {Seen} seen */
function* doubled({ story, starts, members }) {
  for (const [id, of] of starts) {
    const unexplained = of.filter((start) => !isExplained(start, story));
    // One start needs no explanation: the one that counted, or the one that still will.
    if (unexplained.length <= 1) continue;
    if (story.fault && !unexplained.some((start) => isUnderway(start, story.fault))) {
      yield anomaly('DUP-STRAY', id, 'it started again, and was not under way when the fault was on');
    }
    const winner = unexplained.find(({ token }) => token === members.get(id)?.token) ?? unexplained[0];
    for (const { token } of unexplained.filter((start) => start !== winner)) {
      yield anomaly('DUP-START', id, `nothing explains its start ${token}`);
    }
  }
}

/** @param {Seen} seen */
function* fenced({ starts, members }) {
  for (const [id, of] of starts) {
    for (const { token, effectCount } of of) {
      if (effectCount > 1) yield anomaly('DUP-EFFECT', id, `${effectCount} effects under the token ${token}`);
    }
    const { token, outcome } = members.get(id) ?? {};
    const counted = of.find((start) => start.token === token);
    if (outcome === 'd' && counted) yield* after(id, counted, of);
  }
}

/**
 * What began under a newer token although an older one had the last word.
 *
 * @param {string} id
 * @param {Start} counted
 * @param {readonly Start[]} of
 */
function* after(id, counted, of) {
  const endedUs = counted.finish?.us ?? Number.POSITIVE_INFINITY;
  for (const { us, token, effectCount } of of.filter((start) => isNewer(start.token, counted.token))) {
    if (us < endedUs) yield anomaly('OVERLAP', id, `${counted.token} counted although ${token} ran already`);
    else yield anomaly('ZOMBIE', id, `it started as ${token} after it had ended as ${counted.token}`);
    if (effectCount > 0) yield anomaly('DUP-EFFECT', id, `an effect of ${token} besides that of ${counted.token}`);
  }
}

/** @param {Seen} seen */
function* growth({ story, starts }) {
  for (const [id, of] of starts) {
    const sorted = [...of].sort((a, b) => (a.token === b.token ? a.us - b.us : isNewer(a.token, b.token) ? 1 : -1));
    for (const [at, start] of sorted.entries()) {
      const before = sorted[at - 1];
      if (before) yield* regress(id, before, start, story);
    }
  }
}

/**
 * Two starts that follow each other by their tokens. One process is never given an older start after a newer one; two
 * processes may write their lines in any order.
 *
 * @param {string} id
 * @param {Start} before
 * @param {Start} start
 * @param {Story} story
 */
function* regress(id, before, start, story) {
  // Where Redis forgot how a start had ended, its worker finds it under its own name and goes on with it.
  const isSame = before.pid === start.pid && isForgotten(before, story);
  if (before.token === start.token) {
    if (!isSame) yield anomaly('TOKEN-REGRESS', id, `two starts with the token ${start.token}`);
  } else if ((start.attempt ?? 0) <= (before.attempt ?? 0) && !isWithin(story.loss, madeUs(before))) {
    yield anomaly('ATTEMPT-REGRESS', id, `attempt ${start.attempt} after attempt ${before.attempt}`);
  }
  // A newer start that Redis forgot was, for Redis, never given.
  if (before.pid === start.pid && before.us > start.us && !isWithin(story.loss, madeUs(start))) {
    yield anomaly('TOKEN-REGRESS', id, `${before.token} was given after ${start.token}`);
  }
}

/** @param {Story} story */
function* ruled({ passes }) {
  const newest = new Map();
  for (const { partition, epoch } of passes) {
    const last = newest.get(partition) ?? 0;
    if (epoch < last) yield anomaly('TWO-LEADERS', `partition ${partition}`, `epoch ${epoch} promoted after ${last}`);
    newest.set(partition, Math.max(epoch, last));
  }
}

/** @param {Seen} seen */
function* undulyDead({ story, starts, members }) {
  for (const { id, outcome, attempts = 0 } of members.values()) {
    if (outcome !== 'x' || story.kinds.get(id) === undefined) continue;
    const of = starts.get(id) ?? [];
    const died = of.filter((start) => hasDied(start, story)).length + diedUnseen(of, { attempts, story });
    if (died < CRASHES_MAX) yield anomaly('UNDULY-DEAD', id, `dead after ${died} starts under which its worker ended`);
  }
}

/**
 * A worker may end between a start and the first line of its handler. Such a start left a gap in the attempts, and a
 * worker ended in the time of that gap: one for each gap, and none that ended under a start that was seen. The last
 * attempt is the one that buried the job.
 *
 * @param {readonly Start[]} of
 * @param {{ attempts: number, story: Story }} where
 */
function diedUnseen(of, { attempts, story }) {
  const seen = new Map(of.map(({ attempt = 0, us }) => [attempt, us]));
  const gaps = Array.from({ length: Math.max(0, attempts - 1) }, (_, at) => at + 1).filter((at) => !seen.has(at));
  const exits = story.exits.filter((exit) => !of.some((start) => hasDied(start, { ...story, exits: [exit] })));
  return gaps.filter((gap) => {
    const fromUs = Math.max(0, ...[...seen].flatMap(([attempt, us]) => (attempt < gap ? [us] : [])));
    const toUs = Math.min(
      ...[...seen].flatMap(([attempt, us]) => (attempt > gap ? [us] : [])),
      Number.POSITIVE_INFINITY,
    );
    const at = exits.findIndex(({ us }) => us > fromUs && us < toUs);
    if (at !== -1) exits.splice(at, 1);
    return at !== -1;
  }).length;
}

/** @param {Seen} seen */
function* left({ story }) {
  if (story.repaired) yield anomaly('REPAIRED', 'jobs', `${story.repaired} had to be found again`);
  if (story.ranOut) return;
  for (const { id, live, indexed } of story.members) {
    if (live && indexed) yield anomaly('STUCK', id, 'it could have run and did not');
  }
  for (const [place, count] of Object.entries(story.left)) {
    if (count > 0) yield anomaly('LEAK', place, `${count} are left`);
  }
}

/**
 * @param {string} kind
 * @param {string} id
 * @param {string} detail
 * @returns {Anomaly}
 */
function anomaly(kind, id, detail) {
  return { kind, id, detail };
}
