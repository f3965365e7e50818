/**
 * The judge of limits. Pure, and it shares no code with the product: what handlers wrote down, and what Redis held of leases
 * at some moments, → where a limit of the queue was not kept.
 *
 *  OVER-QUEUE  a job was started while as many ran as the queue may run
 *  OVER-GROUP  the same of its group
 *  OVER-RATE   more were started in some stretch of time than the rate allows
 *  DISORDER    of two jobs of one lane the later one was started first
 *
 * A handler runs within the lease of its job: the lease begins before the first line of the handler and ends after its last.
 * So handlers that overlap are leases that overlap, and no slow log makes a sound run look wrong. A job whose worker was
 * killed keeps its lease until it is started again, or for a while: who takes it over and has no room hands it back.
 */
import { isForgotten, isNewer, isWithin, madeUs, startsOf } from './starts.mjs';

/** @typedef {import('../stage/history.mjs').Event} Event */
/** @typedef {import('./starts.mjs').Start} Start */
/** @typedef {import('./checker.mjs').Anomaly} Anomaly */
/** @typedef {{ concurrency: number, perGroup: number, rate: number }} Limits 0 for no such limit; the rate per second */
/** @typedef {Limits & { fromUs: number, toUs: number }} Change limits that somebody set: the call began and ended then */
/** @typedef {{ us: number, running: readonly string[] }} Look jobs of one partition with a lease, at a moment before this one */
/**
 * @typedef {object} GatedStory
 * @property {Limits} limits from the beginning on
 * @property {readonly Change[]} changes
 * @property {readonly Event[]} calls
 * @property {readonly Event[]} effects
 * @property {readonly Look[]} looks
 * @property {number} partitions among which the limits are divided
 * @property {boolean} inOrder whether the order in a lane is judged
 * @property {number} steps of the clock of Redis: each gives one more burst
 * @property {readonly { fromUs: number, toUs: number }[]} unheld stretches in which holds were missing: no group is judged
 * @property {readonly { pid: number, fromUs: number, toUs: number }[]} [pauses] when a worker stood still
 * @property {readonly { pid: number, us: number }[]} [exits] of workers
 * @property {import('./starts.mjs').Loss | undefined} [loss]
 */

/** A rate allows so much more than its share of a time. */
const TOLERANCE_S = 0.05;
/** A worker that stands still for longer may have lost what it held. */
const STILL_US = 2_000_000;
/** A lease of 3 s is extended each second: nobody takes a job over so soon after its worker was killed. */
const KEPT_US = 2_000_000;
/** A start line comes so long after its start at the most, where nothing stands still. */
const AT_ONCE_US = 5_000_000;

/** @param {string} id */
export const groupOf = (id) => /^\{([^{}]+)\}/.exec(id)?.[1] ?? '';

/** @param {GatedStory} story @returns {readonly Anomaly[]} */
export function judgeGates(story) {
  const leases = leasesOf(story);
  return [...tooMany(story, leases), ...tooManySeen(story), ...tooFast(story, leases), ...disorder(story)];
}

/**
 * What was started, in the order of the first lines of the handlers. A handler that was told to stop had lost its lease some
 * time before. Not judged are leases that Redis forgot, those of a worker that stood still, and a handler that began when its
 * job had been started once more.
 *
 * @param {GatedStory} story
 */
function leasesOf({ effects, loss, pauses = [], exits = [] }) {
  const story = /** @type {import('./checker.mjs').Story} */ ({ loss });
  return [...startsOf(effects)]
    .flatMap(([id, starts]) => {
      const inOrder = [...starts].sort((a, b) => a.us - b.us);
      return inOrder.map((start, at) => {
        const nextUs = inOrder[at + 1]?.us ?? Number.POSITIVE_INFINITY;
        const exitUs = exits.find(({ pid, us }) => pid === start.pid && us > start.us)?.us ?? nextUs;
        const ended = start.finish?.how === 'aborted' ? undefined : start.finish;
        const endUs = start.finish?.how === 'aborted' ? start.us : (start.finish?.us ?? exitUs + KEPT_US);
        const before = inOrder[at - 1];
        return {
          id,
          group: groupOf(id),
          us: start.us,
          madeUs: madeUs(start),
          // A handler that came to its end is not over before, whatever became of its job meanwhile.
          endUs: ended?.us ?? Math.min(endUs, nextUs),
          /** The job had its turn before: this start took it over from a worker that was lost. */
          isTakenOver: before !== undefined && before.finish?.how !== 'error',
          isLost:
            (loss !== undefined && (isForgotten(start, story) || isWithin(loss, madeUs(start)))) ||
            inOrder.slice(0, at).some(({ token }) => isNewer(token, start.token)) ||
            pauses.some(({ pid, fromUs, toUs }) => {
              const isLong = toUs - fromUs > STILL_US;
              return isLong && pid === start.pid && fromUs < endUs && toUs > madeUs(start);
            }),
        };
      });
    })
    .sort((a, b) => a.us - b.us);
}

/** @typedef {ReturnType<typeof leasesOf>[number]} Lease */

/** @param {GatedStory} story @param {readonly Lease[]} leases */
function* tooMany(story, leases) {
  /** @type {Set<Lease>} */
  let running = new Set();
  for (const lease of leases) {
    if (lease.isLost) continue;
    running = new Set([...running].filter(({ endUs }) => endUs > lease.us));
    running.add(lease);
    const { concurrency, perGroup } = allowed(story, lease);
    if (running.size > concurrency)
      yield anomaly('OVER-QUEUE', lease.id, `${running.size} had a lease, allowed ${concurrency}`);
    const siblings = [...running].filter(({ group }) => group !== '' && group === lease.group);
    if (siblings.length > perGroup && !isUnheld(story, lease))
      yield anomaly('OVER-GROUP', lease.id, `${siblings.length} of ${lease.group} had a lease, allowed ${perGroup}`);
  }
}

/** The same at the moments at which somebody looked at Redis; only where the limits stay. @param {GatedStory} story */
function* tooManySeen({ limits, looks, changes, partitions, unheld }) {
  const most = allowedOf(limits);
  const share = Math.ceil(most.concurrency / partitions);
  for (const { us, running } of changes.length > 0 ? [] : looks) {
    if (running.length > share)
      yield anomaly('OVER-QUEUE', 'runs', `${running.length} were leased at once, allowed ${share}`);
    /** @type {Map<string, number>} */
    const groups = new Map();
    for (const group of running.map(groupOf)) groups.set(group, (groups.get(group) ?? 0) + 1);
    for (const [group, count] of groups) {
      // What began while its hold was missing goes on beyond that.
      const isJudged = group !== '' && !unheld.some(({ fromUs }) => fromUs <= us);
      if (isJudged && count > most.perGroup)
        yield anomaly('OVER-GROUP', group, `${count} were leased at once, allowed ${most.perGroup}`);
    }
  }
}

/**
 * Of a stretch between any two starts. What was let through before it and started in it is in `slack`: as much as may run.
 *
 * @param {GatedStory} story @param {readonly Lease[]} leases
 */
function* tooFast(story, leases) {
  const all = [story.limits, ...story.changes];
  const rate = Math.max(...all.map((limits) => limits.rate));
  if (all.some((limits) => limits.rate === 0)) return;
  const most = Math.max(...all.map((limits) => allowedOf(limits).concurrency));
  const slack = (1 + story.steps) * (TOLERANCE_S * rate + story.partitions) + (Number.isFinite(most) ? most : 1000);
  let least = Number.POSITIVE_INFINITY;
  let count = 0;
  for (const { id, us } of leases.filter((lease) => !lease.isTakenOver && !lease.isLost)) {
    const ahead = count - turnsBy(story, us);
    least = Math.min(least, ahead);
    count += 1;
    if (ahead - least + 1 > slack) {
      yield anomaly('OVER-RATE', id, `${Math.round(ahead - least + 1 - slack)} starts more than ${rate}/s allows`);
      least = ahead;
    }
  }
}

/** How many turns the rate has given until then. @param {GatedStory} story @param {number} us */
function turnsBy({ limits, changes }, us) {
  let [turns, fromUs, rate] = [0, 0, limits.rate];
  for (const change of changes.filter((one) => one.fromUs < us)) {
    turns += (rate * (change.fromUs - fromUs)) / 1e6;
    // While it is being set, the larger of the two counts.
    const isBetween = us < change.toUs;
    const untilUs = isBetween ? us : change.toUs;
    turns += (Math.max(rate, change.rate) * (untilUs - change.fromUs)) / 1e6;
    [fromUs, rate] = [untilUs, change.rate];
  }
  return turns + (rate * (us - fromUs)) / 1e6;
}

/**
 * A job that Redis had before a later one of its lane was due is started first. How they go on is not judged: a retry
 * gives its place up.
 *
 * @param {GatedStory} story
 */
function* disorder({ inOrder, calls, effects, limits, loss }) {
  if (!inOrder || limits.perGroup !== 1) return;
  const takenMs = new Map(calls.filter(({ ev }) => ev === 'enq.ok').map(({ id = '', ms }) => [id, ms]));
  const asked = new Map(calls.filter(({ ev }) => ev === 'enq.call').map((call) => [call.id ?? '', call]));
  const first = new Map([...startsOf(effects)].map(([id, starts]) => [id, firstOf(starts)]));
  /** @type {Map<string, { id: string, due: number }[]>} */
  const lanes = new Map();
  for (const [id, call] of asked) {
    const start = first.get(id);
    if (groupOf(id) === '' || !start || isWithin(loss, call.us) || isWithin(loss, start.us)) continue;
    const lane = `${call.priority ?? 'normal'} ${groupOf(id)}`;
    lanes.set(lane, [...(lanes.get(lane) ?? []), { id, due: start.due ?? 0 }]);
  }
  for (const [lane, jobs] of lanes) {
    const sorted = jobs.sort((a, b) => a.due - b.due || (a.id < b.id ? -1 : 1));
    for (const [at, later] of sorted.entries()) {
      const overtaken = sorted.slice(0, at).find(({ id, due }) => {
        const [mine, other] = [first.get(id), first.get(later.id)];
        const wasThere = due < later.due && (takenMs.get(id) ?? Number.POSITIVE_INFINITY) < later.due;
        return wasThere && mine && other && isNewer(mine.token, other.token) && mine.us > other.us;
      });
      if (overtaken) yield anomaly('DISORDER', later.id, `it was started before ${overtaken.id} of its lane, ${lane}`);
    }
  }
}

/** Its first life alone: a retry has another due time. @param {readonly Start[]} starts */
function firstOf(starts) {
  const start = starts.find(({ attempt }) => attempt === 1);
  return start && starts.every(({ us }) => us >= start.us) ? start : undefined;
}

/** @param {Limits} limits */
const allowedOf = ({ concurrency, perGroup }) => ({
  concurrency: concurrency || Number.POSITIVE_INFINITY,
  perGroup: perGroup || Number.POSITIVE_INFINITY,
});

/** The largest limits that were there between the start of a job and its first line. @param {GatedStory} story @param {Lease} lease */
function allowed({ limits, changes }, lease) {
  const fromUs = lease.us - lease.madeUs > AT_ONCE_US ? lease.us : lease.madeUs;
  /** @type {readonly Change[]} */
  const all = [{ ...limits, fromUs: 0, toUs: 0 }, ...changes];
  const there = all.filter((one, at) => {
    const endUs = all[at + 1]?.toUs ?? Number.POSITIVE_INFINITY;
    return one.fromUs <= lease.us && endUs >= fromUs;
  });
  const each = there.map(allowedOf);
  return {
    concurrency: Math.max(...each.map((one) => one.concurrency)),
    perGroup: Math.max(...each.map((one) => one.perGroup)),
  };
}

/** @param {GatedStory} story @param {Lease} lease */
const isUnheld = ({ unheld }, lease) => unheld.some(({ fromUs, toUs }) => fromUs <= lease.us && toUs >= lease.madeUs);

/** @param {string} kind @param {string} id @param {string} detail @returns {Anomaly} */
const anomaly = (kind, id, detail) => ({ kind, id, detail });
