/**
 * Payments → what is to happen: which jobs are due when, who pays meanwhile, and what the mail server will make of each
 * mail. The report compares this with what arrived. Pure: the same payments and the same start give the same plan.
 *
 *     payment fails ──1 h──▶ reminder ──1 d──▶ reminder ──3 d──▶ last reminder        a payment closes its tag
 *
 * Three days have to pass in half a minute, so each wait has a stand-in. They keep their order, not their proportion:
 * at one scale either the hour would be gone in a blink or the demo would take all morning.
 */
import { chanceOf } from './chance.mjs';

/** @typedef {import('./payments.mjs').Payment} Payment */
/** @typedef {import('./texts.mjs').Step} Step */
/**
 * @typedef {object} Timetable all in ms
 * @property {number} spreadMs the working day over which payments fail
 * @property {Readonly<Record<Step, number>>} waits stand-ins for 1 h, 1 d and 3 d
 * @property {number} welcomeMs stand-in for 2 minutes
 * @property {number} statementsMs after the start: when the books are closed, all at once
 * @property {number} killMs after the start: when processes die
 * @property {{ moverMs: number, jobMs: number, beatMs: number, graceMs: number }} leases
 * @property {number} statements per account
 * @property {number} paymentsMax
 */
/**
 * @typedef {object} PlannedJob
 * @property {string} id
 * @property {'emails' | 'accounts'} queue
 * @property {'reminder' | 'welcome' | 'statement'} name
 * @property {number} dueMs epoch ms
 * @property {Readonly<Record<string, unknown>>} data
 * @property {string} [locale]
 * @property {string} [account]
 * @property {readonly string[]} [tags] by which a payment stops what is left
 * @property {Fate} fate
 */
/** @typedef {{ readonly kind: 'accepted' } | { readonly kind: 'refused-first', readonly times: number } | { readonly kind: 'refused' }} Fate */
/** @typedef {{ readonly payment: string, readonly atMs: number, readonly ids: readonly string[] }} Payday */
/** @typedef {{ readonly job: PlannedJob, readonly atMs: number }} Signup a new customer comes, and is to be welcomed later */
/**
 * @typedef {object} Plan
 * @property {readonly PlannedJob[]} jobs
 * @property {readonly Signup[]} signups in the order of time
 * @property {readonly Payday[]} paydays in the order of time
 */

/** @type {Readonly<Record<'full' | 'quick', Timetable>>} */
export const TIMETABLES = {
  full: {
    spreadMs: 8000,
    waits: { '1h': 3000, '1d': 13_000, '3d': 24_000 },
    welcomeMs: 2500,
    statementsMs: 9000,
    killMs: 16_500,
    leases: { moverMs: 2000, jobMs: 3000, beatMs: 2000, graceMs: 1000 },
    statements: 5,
    paymentsMax: Number.POSITIVE_INFINITY,
  },
  quick: {
    spreadMs: 1600,
    waits: { '1h': 500, '1d': 2600, '3d': 5000 },
    welcomeMs: 700,
    statementsMs: 900,
    killMs: 3300,
    leases: { moverMs: 1000, jobMs: 1500, beatMs: 1000, graceMs: 500 },
    statements: 2,
    paymentsMax: 75,
  },
};

/** @type {readonly Step[]} */
export const STEPS = ['1h', '1d', '3d'];

/**
 * @param {{ payments: readonly Payment[], timetable: Timetable, startMs: number }} input
 * @returns {Plan}
 */
export function makePlan({ payments, timetable, startMs }) {
  const failures = compress(payments, timetable, startMs);
  const reminders = failures.flatMap(({ payment, failedMs }) =>
    STEPS.map((step) => reminder(payment, step, failedMs + timetable.waits[step])),
  );
  const signups = failures
    .filter(({ payment }) => payment.isNew)
    .map(({ payment, failedMs }) => ({ job: welcome(payment, failedMs + timetable.welcomeMs), atMs: failedMs }));
  const accounts = [...new Set(payments.map(({ account }) => account))].sort();
  const statements = accounts.flatMap((account) =>
    Array.from({ length: timetable.statements }, (_, at) =>
      statement(account, at + 1, startMs + timetable.statementsMs),
    ),
  );
  const paydays = failures.flatMap(({ payment, failedMs }) => payday(payment, failedMs, timetable));
  return {
    jobs: [...reminders, ...signups.map(({ job }) => job), ...statements],
    signups: signups.sort((a, b) => a.atMs - b.atMs),
    paydays: paydays.sort((a, b) => a.atMs - b.atMs),
  };
}

/**
 * A whole day of failures, squeezed into the spread.
 *
 * @param {readonly Payment[]} payments
 * @param {Timetable} timetable
 * @param {number} startMs
 */
function compress(payments, { spreadMs }, startMs) {
  const times = payments.map(({ failedAtMs }) => failedAtMs);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const scale = spreadMs / Math.max(1, last - first);
  return payments.map((payment) => ({
    payment,
    failedMs: startMs + Math.round((payment.failedAtMs - first) * scale),
  }));
}

/**
 * @param {Payment} payment
 * @param {Step} step
 * @param {number} dueMs
 * @returns {PlannedJob}
 */
export function reminder(payment, step, dueMs) {
  const id = `reminder:${payment.id}:${step}`;
  const data = { ...payment, step };
  return {
    id,
    queue: 'emails',
    name: 'reminder',
    dueMs,
    data,
    locale: payment.locale,
    tags: [tagOf(payment.id)],
    fate: fateOf(id, payment.email),
  };
}

/** @param {string} payment its reminders have this tag */
export const tagOf = (payment) => `payment:${payment}`;

/**
 * @param {Payment} payment
 * @param {number} dueMs
 * @returns {PlannedJob}
 */
function welcome(payment, dueMs) {
  const id = `welcome:${payment.id}`;
  const fate = fateOf(id, payment.email);
  return { id, queue: 'emails', name: 'welcome', dueMs, data: { ...payment }, locale: payment.locale, fate };
}

/**
 * @param {string} account
 * @param {number} number
 * @param {number} dueMs
 * @returns {PlannedJob}
 */
function statement(account, number, dueMs) {
  const id = `statement:${account}:${number}`;
  const email = `${account.toLowerCase()}@books.example`;
  const data = { account, number, email };
  return { id, queue: 'accounts', name: 'statement', dueMs, data, account, fate: { kind: 'accepted' } };
}

/**
 * One customer in six pays before the second reminder, one in twelve before the third.
 *
 * @param {Payment} payment
 * @param {number} failedMs
 * @param {Timetable} timetable
 * @returns {readonly Payday[]}
 */
function payday({ id }, failedMs, { waits }) {
  const chance = chanceOf(`pays ${id}`);
  if (chance >= 1 / 4) return [];
  const [after, before] = chance < 1 / 6 ? [waits['1h'], waits['1d']] : [waits['1d'], waits['3d']];
  const part = 0.25 + chanceOf(`when ${id}`) / 2;
  const atMs = Math.round(failedMs + after + (before - after) * part);
  return [{ payment: id, atMs, ids: STEPS.map((step) => `reminder:${id}:${step}`) }];
}

/**
 * What the mail server answers: 550 to addresses that are gone, 451 once or twice to some mails, else 250.
 *
 * @param {string} id
 * @param {string} email
 * @returns {Fate}
 */
export function fateOf(id, email) {
  if (email.endsWith('@gone.example')) return { kind: 'refused' };
  const chance = chanceOf(`refuse ${id}`);
  if (chance < 0.1 && !id.startsWith('statement:')) return { kind: 'refused-first', times: chance < 0.025 ? 2 : 1 };
  return { kind: 'accepted' };
}
