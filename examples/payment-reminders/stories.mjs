/**
 * Plan, journal of the mail server and events → the story of each planned job, and the questions that the report asks of
 * these stories. Pure.
 */

/** @typedef {import('./plan.mjs').Plan} Plan */
/** @typedef {import('./plan.mjs').PlannedJob} PlannedJob */
/** @typedef {import('./post-office.mjs').Received} Received */
/**
 * @typedef {(
 *   | { kind: 'scheduled', id: string, status: string }
 *   | { kind: 'cancelled', id: string, status: string, atMs: number }
 *   | { kind: 'late', id: string, status: string }
 *   | { kind: 'worker-killed', atMs: number, running: readonly string[], held: readonly string[] }
 *   | { kind: 'leader-killed', atMs: number, leaseMs: number }
 *   | { kind: 'leader-back', atMs: number }
 *   | { kind: 'lock-conflicts', count: number }
 * )} DemoEvent `running`: started and not ended; `held`: those and the ones only delivered
 */
/**
 * @typedef {object} Story everything known about one planned job
 * @property {PlannedJob} job
 * @property {readonly Received[]} accepted
 * @property {readonly Received[]} refused
 * @property {{ readonly status: string, readonly atMs: number } | undefined} cancel
 */

/**
 * @param {Plan} plan
 * @param {readonly Received[]} received
 * @param {readonly DemoEvent[]} events
 * @returns {ReadonlyMap<string, Story>}
 */
export function storiesOf(plan, received, events) {
  const mails = groupBy(
    [...received].sort((a, b) => a.receivedMs - b.receivedMs),
    ({ id }) => id,
  );
  /** @type {Map<string, { status: string, atMs: number }>} */
  const cancels = new Map();
  for (const event of events) if (event.kind === 'cancelled') cancels.set(event.id, event);
  return new Map(
    plan.jobs.map((job) => {
      const own = mails.get(job.id) ?? [];
      const accepted = own.filter(({ code }) => code === 250);
      const refused = own.filter(({ code }) => code !== 250);
      return [job.id, { job, accepted, refused, cancel: cancels.get(job.id) }];
    }),
  );
}

/** @param {Story} story taken back before it was sent */
export const isCancelled = ({ accepted, cancel }) =>
  accepted.length === 0 && (cancel?.status === 'cancelled' || cancel?.status === 'requested');

/**
 * Mails that should have arrived and did not.
 *
 * @param {readonly Story[]} stories
 */
export const lostOf = (stories) =>
  stories.filter((story) => story.job.fate.kind !== 'refused' && !isCancelled(story) && story.accepted.length === 0);

/**
 * Mails, also refused ones, that came before their time: the planned due, or the later one of a retry.
 *
 * @param {readonly Story[]} stories
 */
export const earlyOf = (stories) =>
  stories.flatMap(({ job, accepted, refused }) =>
    [...accepted, ...refused].filter((mail) => mail.receivedMs < job.dueMs || mail.receivedMs < mail.claimedDueMs),
  );

/**
 * Every mail after the first accepted one of a job.
 *
 * @param {readonly Story[]} stories
 */
export const surplusOf = (stories) => stories.flatMap(({ accepted }) => accepted.slice(1));

/**
 * @param {readonly DemoEvent[]} events
 * @returns {ReadonlySet<string>}
 */
export const runningAtKill = (events) =>
  new Set(events.flatMap((event) => (event.kind === 'worker-killed' ? event.running : [])));

/**
 * @template T, K
 * @param {readonly T[]} list
 * @param {(item: T) => K} keyOf
 * @returns {Map<K, T[]>}
 */
export function groupBy(list, keyOf) {
  /** @type {Map<K, T[]>} */
  const groups = new Map();
  for (const item of list) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
