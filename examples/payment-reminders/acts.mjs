/**
 * What happens during a run, as one function each: jobs are scheduled, customers pay, a worker and the leader die, and
 * somebody waits for the last mail. Each writes down what happened as events for the report.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { reminder, tagOf } from './plan.mjs';
import { accounts, emails } from './queues.mjs';

/** @typedef {import('duestream').Client} Client */
/** @typedef {import('./stories.mjs').DemoEvent} DemoEvent */
/** @typedef {import('./plan.mjs').Plan} Plan */
/** @typedef {import('./plan.mjs').PlannedJob} PlannedJob */
/** @typedef {import('./plan.mjs').Timetable} Timetable */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./payments.mjs').Reading} Reading */
/** @typedef {(line: string) => void} Say */

/** A client knows the server's clock only so well. */
const DELAY_SLACK_MS = 100;
/** How long to wait for a busy worker, and for the next leader. */
const PATIENCE_MS = 60_000;

/**
 * Everything whose moment is known at the start: reminders and statements.
 *
 * @param {{ client: Client, plan: Plan, events: DemoEvent[] }} act
 */
export async function schedule({ client, plan, events }) {
  const reminders = plan.jobs.filter(({ name }) => name === 'reminder').map(atItsTime);
  const statements = plan.jobs.filter(({ name }) => name === 'statement').map(atItsTime);
  const replies = [
    ...(await client.scheduleMany(emails, reminders)),
    ...(await client.scheduleMany(accounts, statements)),
  ];
  for (const { id, status } of replies) events.push({ kind: 'scheduled', id, status });
  return { reminders: reminders.length, statements: statements.length };
}

/**
 * The rows that came twice are scheduled twice, as a careless importer would. The ids make it harmless.
 *
 * @param {{ client: Client, plan: Plan, duplicates: Reading['duplicates'] }} act
 * @returns {Promise<string>} what was answered
 */
export async function scheduleAgain({ client, plan, duplicates }) {
  const again = duplicates.flatMap(({ payment }) =>
    plan.jobs
      .filter(({ name, id }) => name === 'reminder' && id.startsWith(`reminder:${payment.id}:`))
      .map(({ id, dueMs }) => reminder(payment, /** @type {any} */ (id.slice(-2)), dueMs)),
  );
  const replies = await client.scheduleMany(emails, again.map(atItsTime));
  /** @type {Map<string, number>} */
  const tally = new Map();
  for (const { status } of replies) tally.set(status, (tally.get(status) ?? 0) + 1);
  return [...tally].map(([status, count]) => `${count} ${status}`).join(', ');
}

/**
 * New customers come, and each is to be welcomed after a while: a delay, which begins with the call.
 *
 * @param {{ client: Client, plan: Plan, timetable: Timetable, events: DemoEvent[], signal: AbortSignal }} act
 * @returns {Promise<ReadonlyMap<string, number>>} id of each welcome mail → its due
 */
export async function welcomeCustomers({ client, plan, timetable, events, signal }) {
  /** @type {Map<string, number>} */
  const dueTimes = new Map();
  for (const { job, atMs } of plan.signups) {
    await sleep(Math.max(0, atMs - Date.now()), undefined, { signal });
    const { id, name, data } = job;
    const calledMs = Date.now();
    const { status, dueMs } = await client.schedule(emails, data, { id, name, delay: timetable.welcomeMs });
    if (dueMs < calledMs + timetable.welcomeMs - DELAY_SLACK_MS) throw new Error(`the delay of ${id} was cut short`);
    events.push({ kind: 'scheduled', id, status });
    dueTimes.set(id, dueMs);
  }
  return dueTimes;
}

/**
 * Customers pay: the tag of the payment is closed, so what is left of its reminders is cancelled. Another process has not heard
 * of it, and schedules one more on purpose.
 *
 * @param {{ client: Client, plan: Plan, events: DemoEvent[], signal: AbortSignal }} act
 */
export async function takePayments({ client, plan, events, signal }) {
  const planned = new Map(plan.jobs.map((job) => [job.id, job]));
  for (const { payment, atMs, ids } of plan.paydays) {
    await sleep(Math.max(0, atMs - Date.now()), undefined, { signal });
    const tag = tagOf(payment);
    const { running } = await client.tags.close(emails, tag, { for: '1h', reason: 'paid' });
    const doneMs = Date.now();
    for (const id of ids) {
      const state = (await client.get(emails, id))?.state;
      const isOver = state === 'done' || state === 'dead' || state === undefined;
      const became = running.includes(id) ? 'requested' : isOver ? 'over' : 'cancelled';
      events.push({ kind: 'cancelled', id, status: became, atMs: doneMs });
    }
    const id = `reminder:${payment}:late`;
    const late = { id, name: 'reminder', tags: [tag] };
    const { status } = await client.schedule(emails, planned.get(ids[2] ?? '')?.data, late);
    events.push({ kind: 'late', id, status });
  }
}

/**
 * SIGKILL for a worker that has jobs running, and for the leader of the e-mails. The worker is stopped for a moment
 * first (SIGSTOP), so that what it was doing can be counted exactly.
 *
 * @param {{ stage: Stage, timetable: Timetable, atMs: number, events: DemoEvent[], say: Say, signal: AbortSignal }} act
 */
export async function killTwo({ stage, timetable, atMs, events, say, signal }) {
  const { observer, daemons } = stage;
  await sleep(Math.max(0, atMs - Date.now()), undefined, { signal });
  const { victim, holding } = await catchBusyWorker(stage, signal);
  victim.signal('SIGKILL');
  events.push({ kind: 'worker-killed', atMs: Date.now(), ...holding });
  say(
    `SIGKILL ${victim.name} (pid ${victim.pid}) with ${holding.running.length} jobs running: ${holding.running.slice(0, 3).join(', ')}`,
  );

  const leader = await observer.leaderOf('emails');
  const daemon = daemons.find(({ pid }) => pid === leader?.pid);
  if (!leader || !daemon) throw new Error('nobody leads the e-mails');
  daemon.signal('SIGKILL');
  const killedMs = Date.now();
  events.push({ kind: 'leader-killed', atMs: killedMs, leaseMs: timetable.leases.moverMs });
  say(`SIGKILL ${daemon.name} (pid ${daemon.pid}), the leader of the e-mails, in its term ${leader.epoch}`);

  const successor = await nextLeader({ stage, than: leader.id, signal });
  // Without a next leader there is no such event, and the report says so.
  if (!successor) return say('nobody leads the e-mails any more');
  const backMs = Date.now();
  events.push({ kind: 'leader-back', atMs: backMs });
  say(
    `${successor.name} leads the e-mails in term ${successor.epoch}, ${((backMs - killedMs) / 1000).toFixed(1)} s later`,
  );
}

/** @param {{ stage: Stage, than: string, signal: AbortSignal }} wait until somebody else leads */
async function nextLeader({ stage: { observer, daemons }, than, signal }) {
  for (const untilMs = Date.now() + PATIENCE_MS; Date.now() < untilMs; await sleep(20, undefined, { signal })) {
    const next = await observer.leaderOf('emails');
    const daemon = daemons.find(({ pid }) => pid === next?.pid);
    if (next && daemon && next.id !== than) return { name: daemon.name, epoch: next.epoch };
  }
  return undefined;
}

/**
 * @param {Stage} stage
 * @param {AbortSignal} signal
 */
async function catchBusyWorker({ workers, office, observer }, signal) {
  for (const untilMs = Date.now() + PATIENCE_MS; Date.now() < untilMs; await sleep(10, undefined, { signal })) {
    const [victim] = [...workers].sort((a, b) => office.unansweredBy(b.pid) - office.unansweredBy(a.pid));
    if (!victim || office.unansweredBy(victim.pid) < 2) continue;
    victim.signal('SIGSTOP');
    // What it had sent before it stopped is with Redis by then.
    await sleep(30, undefined, { signal });
    const holding = await observer.holdingOf(victim.pid);
    if (holding.running.length > 0) return { victim, holding };
    victim.signal('SIGCONT');
  }
  throw new Error('no worker was busy enough to be killed');
}

/** @param {PlannedJob} job */
const atItsTime = ({ id, name, data, tags, dueMs }) => ({ id, name, data, tags, at: new Date(dueMs) });
