/**
 * What must hold of a run, one function per promise. Each says what it looked at, so that a green line means something
 * and a red one tells where to look.
 */
import { earlyOf, groupBy, isCancelled, lostOf, runningAtKill, surplusOf } from './stories.mjs';
import { reminderMail, statementMail, welcomeMail } from './texts.mjs';

/** @typedef {import('./stories.mjs').Story} Story */
/** @typedef {import('./report.mjs').Check} Check */
/** @typedef {import('./stories.mjs').DemoEvent} DemoEvent */
/** @typedef {import('./post-office.mjs').Received} Received */
/** @typedef {{ stories: ReadonlyMap<string, Story>, received: readonly Received[], events: readonly DemoEvent[] }} Evidence */

/** The promise: a dead leader is replaced within its lease and one second. */
const PROMISE_MS = 1000;

/**
 * @param {Evidence} evidence
 * @returns {readonly Check[]}
 */
export function checksOf(evidence) {
  const all = [...evidence.stories.values()];
  return [
    nothingLost(all),
    nothingEarly(all, evidence.received.length),
    duplicatesBounded(all, evidence.events),
    cancelledStaySilent(all),
    lateAreClosed(evidence),
    refusedAreRetried(all),
    goneAreDead(all, evidence.events),
    onlyThePlan(evidence),
    ownLanguage(all),
    oneAtATime(all),
    tokensGrow(all),
    leaderReplaced(evidence.events),
  ];
}

/** @param {readonly Story[]} stories */
function nothingLost(stories) {
  const lost = lostOf(stories);
  const due = stories.filter((story) => story.job.fate.kind !== 'refused' && !isCancelled(story)).length;
  return check(
    'no mail is lost',
    lost.length === 0,
    `${due - lost.length} of ${due} arrived${examples(lost.map(idOf))}`,
  );
}

/**
 * @param {readonly Story[]} stories
 * @param {number} mails
 */
function nothingEarly(stories, mails) {
  const early = earlyOf(stories);
  return check(
    'no mail is early',
    early.length === 0,
    `${early.length} of ${mails} came before their due time${examples(early.map(({ id }) => id))}`,
  );
}

/**
 * @param {readonly Story[]} stories
 * @param {readonly DemoEvent[]} events
 */
function duplicatesBounded(stories, events) {
  const running = runningAtKill(events);
  const surplus = surplusOf(stories).map(({ id }) => id);
  const stray = surplus.filter((id) => !running.has(id));
  const ok = stray.length === 0 && surplus.length <= running.size;
  const detail = `${surplus.length} mails twice, ${running.size} jobs ran in the killed worker${examples(stray)}`;
  return check('duplicates only where a worker died', ok, detail);
}

/** @param {readonly Story[]} stories */
function cancelledStaySilent(stories) {
  const cancelled = stories.filter(({ cancel }) => cancel?.status === 'cancelled');
  const late = cancelled.filter(({ accepted, cancel }) =>
    accepted.some(({ receivedMs }) => receivedMs > (cancel?.atMs ?? 0)),
  );
  return check(
    'who has paid is left alone',
    late.length === 0,
    `${late.length} of ${cancelled.length} cancelled mails went out${examples(late.map(idOf))}`,
  );
}

/** @param {Evidence} evidence one more step was scheduled after each payment, on purpose */
function lateAreClosed({ received, events }) {
  const late = events.flatMap((event) => (event.kind === 'late' ? [event] : []));
  const open = late.filter(({ id, status }) => status !== 'closed' || received.some((mail) => mail.id === id));
  return check(
    'a step after the payment is not taken',
    open.length === 0,
    `${late.length - open.length} of ${late.length} were answered closed${examples(open.map(({ id }) => id))}`,
  );
}

/** @param {readonly Story[]} stories */
function refusedAreRetried(stories) {
  const refused = stories.filter((story) => story.job.fate.kind === 'refused-first' && !isCancelled(story));
  const arrived = refused.filter(({ accepted }) => accepted.length > 0);
  return check(
    'refused for now is tried again',
    arrived.length === refused.length,
    `${arrived.length} of ${refused.length} arrived in the end`,
  );
}

/**
 * @param {readonly Story[]} stories
 * @param {readonly DemoEvent[]} events
 */
function goneAreDead(stories, events) {
  const running = runningAtKill(events);
  const gone = stories.filter((story) => story.job.fate.kind === 'refused' && !isCancelled(story));
  const wrong = gone.filter(
    ({ job, accepted, refused }) =>
      accepted.length > 0 || !(refused.length === 1 || (refused.length === 2 && running.has(job.id))),
  );
  return check(
    'refused for good is not tried again',
    wrong.length === 0,
    `${gone.length - wrong.length} of ${gone.length} were tried once${examples(wrong.map(idOf))}`,
  );
}

/** @param {Evidence} evidence */
function onlyThePlan({ stories, received }) {
  const strange = received.filter(({ id }) => !stories.has(id));
  return check(
    'nothing else was sent',
    strange.length === 0,
    `${strange.length} mails that nobody planned${examples(strange.map(({ id }) => id))}`,
  );
}

/** @param {readonly Story[]} stories */
function ownLanguage(stories) {
  const sent = stories.filter(({ accepted }) => accepted.length > 0);
  const wrong = sent.filter(({ job, accepted }) => accepted.some(({ subject }) => subject !== subjectOf(job)));
  const locales = new Set(sent.flatMap(({ job }) => job.locale ?? []));
  return check(
    "each mail speaks its customer's language",
    wrong.length === 0,
    `${locales.size} locales, ${wrong.length} wrong subjects${examples(wrong.map(idOf))}`,
  );
}

/** @param {Story['job']} job */
function subjectOf({ name, data }) {
  const facts = /** @type {any} */ (data);
  if (name === 'reminder') return reminderMail(facts, facts.step).subject;
  return name === 'welcome' ? welcomeMail(facts).subject : statementMail(facts).subject;
}

/** @param {readonly Story[]} stories two statements of an account must not be on their way at the same time */
function oneAtATime(stories) {
  const mails = stories.flatMap(({ job, accepted }) => accepted.map((mail) => ({ ...mail, account: job.account })));
  const byAccount = groupBy(
    mails.filter(({ account }) => account !== undefined),
    ({ account }) => account,
  );
  const clashes = [...byAccount.values()].flatMap((list) => {
    const inOrder = list.sort((a, b) => a.receivedMs - b.receivedMs);
    return inOrder.filter((mail, at) => at > 0 && mail.receivedMs < (inOrder[at - 1]?.answeredMs ?? 0));
  });
  return check(
    'one statement of an account at a time',
    clashes.length === 0,
    `${clashes.length} clashes in ${byAccount.size} accounts${examples(clashes.map(({ id }) => id))}`,
  );
}

/** @param {readonly Story[]} stories */
function tokensGrow(stories) {
  const again = stories.filter(({ accepted, refused }) => accepted.length + refused.length > 1);
  const wrong = again.filter(({ accepted, refused }) => {
    const tokens = [...accepted, ...refused]
      .sort((a, b) => a.receivedMs - b.receivedMs)
      .map(({ token }) => BigInt(token || 0));
    return tokens.some((token, at) => at > 0 && token <= (tokens[at - 1] ?? 0n));
  });
  return check(
    'a later start has a higher token',
    wrong.length === 0,
    `${again.length - wrong.length} of ${again.length} jobs that were started again${examples(wrong.map(idOf))}`,
  );
}

/** @param {readonly DemoEvent[]} events */
function leaderReplaced(events) {
  const killed = events.find((event) => event.kind === 'leader-killed');
  const back = events.find((event) => event.kind === 'leader-back');
  const tookMs = (back?.atMs ?? Number.POSITIVE_INFINITY) - (killed?.atMs ?? 0);
  const limit = (killed?.leaseMs ?? 0) + PROMISE_MS;
  const detail = Number.isFinite(tookMs) ? `after ${tookMs} ms; promised: ${limit} ms` : 'nobody took over';
  return check('the killed leader was replaced in time', tookMs <= limit, detail);
}

/** @param {Story} story */
const idOf = ({ job }) => job.id;

/** @param {readonly string[]} ids the first few of what is wrong */
const examples = (ids) => (ids.length === 0 ? '' : `: ${ids.slice(0, 3).join(', ')}${ids.length > 3 ? ', ...' : ''}`);

/**
 * @param {string} name
 * @param {boolean} ok
 * @param {string} detail
 * @returns {Check}
 */
const check = (name, ok, detail) => ({ name, ok, detail });
