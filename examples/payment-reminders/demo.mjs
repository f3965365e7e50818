/**
 * `npm run demo`: payment reminders for a day of failed payments, sent on time by real processes while some of them are
 * killed. Ends with a report made from the mail server's journal, and with a failure if one promise was broken.
 *
 *     failed-payments.csv ─▶ client ─▶ Redis ◀─ 2 daemons      3 workers ─▶ SMTP server ─▶ report
 *                                          └──────────────────────▲
 *
 * `--quick` does the same with fewer payments in about ten seconds.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'duestream';
import { killTwo, schedule, scheduleAgain, takePayments, welcomeCustomers } from './acts.mjs';
import { bar, createNarrator } from './narrator.mjs';
import { readPayments } from './payments.mjs';
import { makePlan, TIMETABLES } from './plan.mjs';
import { milliseconds, reportLines } from './print.mjs';
import { ask } from './processes.mjs';
import { makeReport } from './report.mjs';
import { setStage } from './stage.mjs';

/** From the last process being up to the first failure: time to schedule everything. */
const LEAD_MS = 700;
/** So long after the last due time a run counts as stuck. */
const STUCK_MS = 60_000;
/** A mail too many would still come in this time. */
const LISTEN_MS = 400;
const REFUSED_SHOWN = 5;

/** @typedef {import('./stories.mjs').DemoEvent} DemoEvent */

/** What a shell says of a program that Ctrl-C ended. */
const INTERRUPTED = 130;

class Interrupted extends Error {}

const narrator = createNarrator();
const { print, say, detail } = narrator;
const stopping = new AbortController();
/** @type {(() => Promise<unknown> | unknown)[]} */
const closers = [];
let keepsLogs = false;

for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.once(name, () => stopping.abort(new Interrupted(`interrupted by ${name}`)));
}
process.exitCode = await main();

async function main() {
  const quick = process.argv.includes('--quick');
  try {
    return await run(TIMETABLES[quick ? 'quick' : 'full'], stopping.signal);
  } catch (error) {
    const cause = stopping.signal.aborted ? stopping.signal.reason : error;
    keepsLogs = !(cause instanceof Interrupted);
    process.stderr.write(`\nThe demo ended early: ${cause instanceof Error ? cause.message : cause}\n`);
    return keepsLogs ? 1 : INTERRUPTED;
  } finally {
    narrator.endProgress();
    await takeDown();
  }
}

/** Last started, first ended. What cannot be ended holds up nothing else. */
async function takeDown() {
  for (const close of closers.splice(0).reverse()) {
    await Promise.resolve(close()).catch((error) => process.stderr.write(`while taking down: ${error}\n`));
  }
}

/**
 * @param {import('./plan.mjs').Timetable} timetable
 * @param {AbortSignal} signal
 */
async function run(timetable, signal) {
  const reading = introduce(timetable);
  const stage = await setStage({
    timetable,
    onClose: (closer) => closers.push(closer),
    keepsLogs: () => keepsLogs,
    signal,
    onUnexpectedExit: (name) => stopping.abort(new Error(`${name} ended by itself`)),
    say,
  });
  const { observer, office } = stage;
  detail(`to look inside: node dist/main.js ls emails --config ${relative(process.cwd(), stage.config)}`);
  const client = createClient({ redis: stage.url, namespace: stage.namespace });
  closers.push(() => client.close());

  /** @type {DemoEvent[]} */
  const events = [];
  const payments = reading.payments.slice(0, timetable.paymentsMax);
  const known = new Set(payments.map(({ id }) => id));
  const startMs = Date.now() + LEAD_MS;
  const plan = makePlan({ payments, timetable, startMs });
  const { reminders, statements } = await schedule({ client, plan, events });
  say(`scheduled ${reminders} reminders for ${payments.length} payments, and ${statements} statements`);
  const duplicates = reading.duplicates.filter(({ payment }) => known.has(payment.id));
  const answers = await scheduleAgain({ client, plan, duplicates });
  say(`scheduled the ${duplicates.length} repeated rows as well, as a careless importer would: ${answers}`);
  say(`${plan.signups.length} new customers come in the meantime; each welcome mail is delayed by "2 minutes"`);

  const ticker = setInterval(() => narrator.progress(() => progressOf(plan.jobs.length, office.journal, events)), 50);
  closers.push(() => clearInterval(ticker));
  const [dueTimes] = await Promise.all([
    welcomeCustomers({ client, plan, timetable, events, signal }),
    takePayments({ client, plan, events, signal }),
    killTwo({ stage, timetable, atMs: startMs + timetable.killMs, events, say, signal }),
  ]);
  const lastDueMs = Math.max(...plan.jobs.map(({ dueMs }) => dueMs));
  while ((await observer.left()) > 0 && Date.now() < lastDueMs + STUCK_MS) await sleep(50, undefined, { signal });
  await sleep(LISTEN_MS, undefined, { signal });
  clearInterval(ticker);
  narrator.endProgress();
  say('nothing is left to do');

  events.push({ kind: 'lock-conflicts', count: await observer.conflicts() });
  const jobs = plan.jobs.map((job) => ({ ...job, dueMs: dueTimes.get(job.id) ?? job.dueMs }));
  const report = makeReport({ plan: { ...plan, jobs }, received: office.journal, events });
  await tellOneStory(events);
  for (const line of ['', ...reportLines(report)]) print(line);
  keepsLogs = !report.ok;
  if (keepsLogs) print(`The logs of all processes are in ${stage.dir}`);
  return report.ok ? 0 : 1;
}

/**
 * A job that the killed worker was running, as an operator sees it.
 *
 * @param {readonly DemoEvent[]} events
 */
async function tellOneStory(events) {
  const [id = ''] = events.flatMap((event) => (event.kind === 'worker-killed' ? event.running : []));
  say(`one of the jobs that the killed worker was running: duestream show emails ${id}`);
  for (const line of (await ask(['show', 'emails', id])).split('\n')) detail(`  ${line}`.trimEnd());
}

/**
 * Says what is going to happen, and what the file is like.
 *
 * @param {import('./plan.mjs').Timetable} timetable
 */
function introduce({ waits, welcomeMs, leases }) {
  const file = new URL('failed-payments.csv', import.meta.url);
  const reading = readPayments(readFileSync(file, 'utf8'));
  const { rows, payments, duplicates, refused } = reading;
  print(
    'Payment reminders: each failed payment gets a mail after 1 hour, 1 day and 3 days, unless it is paid meanwhile.',
  );
  const stands = Object.entries(waits).map(([step, ms]) => `${step} = ${milliseconds(ms)}`);
  print(
    `Time is scaled: ${stands.join(', ')}, "2 minutes" = ${milliseconds(welcomeMs)}. Leases are shorter than the defaults, too:`,
  );
  print(
    `leader ${milliseconds(leases.moverMs)}, job ${milliseconds(leases.jobMs)}. In the middle, one worker and the leader are killed with SIGKILL.`,
  );
  print('');
  say(
    `failed-payments.csv: ${rows} rows, ${payments.length} payments, ${duplicates.length} repeated, ${refused.length} malformed`,
  );
  for (const { line, reason } of refused.slice(0, REFUSED_SHOWN)) detail(`line ${line}: ${reason}`);
  if (refused.length > REFUSED_SHOWN)
    detail(`... and ${refused.length - REFUSED_SHOWN} more; the rest of the file is not held up`);
  return reading;
}

/**
 * @param {number} planned
 * @param {readonly import('./post-office.mjs').Received[]} journal
 * @param {readonly DemoEvent[]} events
 */
function progressOf(planned, journal, events) {
  const sent = journal.filter(({ code }) => code === 250).length;
  const later = journal.filter(({ code }) => code === 451).length;
  const never = journal.filter(({ code }) => code === 550).length;
  const cancelled = events.filter((event) => event.kind === 'cancelled' && event.status === 'cancelled').length;
  const counts = `${sent} mails accepted, ${later} refused for now, ${never} for good, ${cancelled} cancelled`;
  return `${bar(sent + never + cancelled, planned)} ${counts}`;
}
