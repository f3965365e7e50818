/** The demo's judge: a clean run passes, and each kind of damage fails the check that is there for it. */
import { describe, expect, test } from 'vitest';
import { readPayments } from '../../../examples/payment-reminders/payments.mjs';
import { makePlan, type Plan, TIMETABLES } from '../../../examples/payment-reminders/plan.mjs';
import type { Received } from '../../../examples/payment-reminders/post-office.mjs';
import { reportLines } from '../../../examples/payment-reminders/print.mjs';
import { makeReport } from '../../../examples/payment-reminders/report.mjs';
import type { DemoEvent } from '../../../examples/payment-reminders/stories.mjs';
import { reminderMail, statementMail, welcomeMail } from '../../../examples/payment-reminders/texts.mjs';
import { read } from '../../support/repository.ts';

const START_MS = 1_772_000_000_000;
const { payments } = readPayments(read('examples/payment-reminders/failed-payments.csv'));
const plan: Plan = makePlan({ payments, timetable: TIMETABLES.quick, startMs: START_MS });
const KILL_MS = START_MS + 3300;

/** A job that is accepted at once and that nobody cancels. */
const paid = new Set(plan.paydays.flatMap(({ ids }) => ids));
const [plain = '', other = ''] = plan.jobs
  .filter(({ id, name, fate }) => name === 'reminder' && fate.kind === 'accepted' && !paid.has(id))
  .map(({ id }) => id);
const dueOf = (id: string) => plan.jobs.find((job) => job.id === id)?.dueMs ?? 0;

let token = 1000;
function mail(id: string, receivedMs: number, code: Received['code'] = 250): Received {
  token += 1;
  const job = plan.jobs.find((planned) => planned.id === id);
  const facts = job?.data as never;
  const { subject } =
    job?.name === 'reminder'
      ? reminderMail(facts, id.slice(-2) as '1h')
      : job?.name === 'welcome'
        ? welcomeMail(facts)
        : statementMail(facts);
  const claimedDueMs = job?.dueMs ?? 0;
  const base = { id, token: String(token), claimedDueMs, worker: '1', to: '', subject };
  return { ...base, receivedMs, answeredMs: receivedMs + 50, code };
}

/** A run as it should be: nobody paid, one worker died with one job running that was sent twice. */
function cleanRun() {
  const received: Received[] = plan.jobs.flatMap(({ id, name, dueMs, fate }, index) => {
    // The statements of an account are due at once and written one after the other.
    const at = dueMs + (name === 'statement' ? 100 * index : 4);
    if (fate.kind === 'refused') return [mail(id, at, 550)];
    const refusals = fate.kind === 'refused-first' ? fate.times : 0;
    const before = Array.from({ length: refusals }, (_, nth) => mail(id, at + nth * 400, 451));
    return [...before, mail(id, at + refusals * 400)];
  });
  received.push(mail(plain, dueOf(plain) + 3000));
  const events: DemoEvent[] = [
    ...plan.jobs.map(({ id }): DemoEvent => ({ kind: 'scheduled', id, status: 'scheduled' })),
    { kind: 'worker-killed', atMs: KILL_MS, running: [plain], held: [plain] },
    { kind: 'leader-killed', atMs: KILL_MS, leaseMs: 1000 },
    { kind: 'leader-back', atMs: KILL_MS + 900 },
    { kind: 'lock-conflicts', count: 7 },
  ];
  return { received, events };
}

const judge = ({ received, events }: ReturnType<typeof cleanRun>) => makeReport({ plan, received, events });
const failed = (run: ReturnType<typeof cleanRun>) =>
  judge(run).checks.flatMap(({ ok, name, detail }) => (ok ? [] : [`${name}: ${detail}`]));

describe('a clean run', () => {
  const report = judge(cleanRun());

  test('passes every check', () => {
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(report.ok).toBe(true);
  });

  test('is counted from the mails, not from what anybody claims', () => {
    const dead = plan.jobs.filter(({ fate }) => fate.kind === 'refused').length;
    expect(report.counts).toEqual({
      scheduled: plan.jobs.length,
      sent: plan.jobs.length - dead,
      cancelled: 0,
      retried: plan.jobs.filter(({ fate }) => fate.kind === 'refused-first').length,
      dead,
      conflicts: 7,
      duplicates: 1,
      runningAtKill: 1,
      early: 0,
      lost: 0,
    });
  });

  test('tells lateness on a good day from lateness while processes were dead', () => {
    const { healthy, failover, takenOver } = report.lateness;
    expect([healthy.p50, healthy.max]).toEqual([4, 4]);
    expect(failover.count).toBeGreaterThan(10);
    expect([takenOver.count, takenOver.max]).toEqual([1, 3000]);
  });

  test('prints plain ASCII no wider than a terminal', () => {
    const lines = reportLines(report);
    expect(lines.filter((line) => /[^ -~]/.test(line) || line.length > 120)).toEqual([]);
    expect(lines.at(-1)).toBe('All checks passed.');
  });
});

describe('damage is seen', () => {
  test('a lost mail', () => {
    const run = cleanRun();
    const received = run.received.filter(({ id }) => id !== other);
    expect(failed({ ...run, received })).toEqual([expect.stringMatching(`^no mail is lost: .*: ${other}$`)]);
    expect(reportLines(judge({ ...run, received })).at(-1)).toBe('1 of 12 checks FAILED.');
  });

  test('a mail that was early by one millisecond', () => {
    const run = cleanRun();
    const received = run.received.map((one) => (one.id === other ? { ...one, receivedMs: dueOf(other) - 1 } : one));
    expect(failed({ ...run, received })).toEqual([expect.stringMatching(`^no mail is early: 1 of .*: ${other}$`)]);
  });

  test('a retry before its time', () => {
    const run = cleanRun();
    const received = run.received.map((one) => (one.id === other ? { ...one, claimedDueMs: one.receivedMs + 1 } : one));
    expect(failed({ ...run, received })).toEqual([expect.stringMatching('^no mail is early: 1 of')]);
  });

  test('a mail that came twice although nothing died under it', () => {
    const run = cleanRun();
    run.received.push(mail(other, dueOf(other) + 500));
    expect(failed(run)).toEqual([
      expect.stringMatching(`^duplicates only where a worker died: 2 mails twice.*${other}`),
    ]);
  });

  test('a third copy of a mail whose worker died once', () => {
    const run = cleanRun();
    run.received.push(mail(plain, dueOf(plain) + 5000));
    expect(failed(run)).toEqual([expect.stringMatching('^duplicates only where a worker died')]);
  });

  test('a mail to somebody whose payment had cancelled it', () => {
    const run = cleanRun();
    run.events.push({ kind: 'cancelled', id: other, status: 'cancelled', atMs: dueOf(other) });
    expect(failed(run)).toEqual([expect.stringMatching('^who has paid is left alone: 1 of 1')]);
  });

  test.each([
    ['was scheduled', { status: 'scheduled' }],
    ['went out', { status: 'closed', isSent: true }],
  ])('a step after the payment that %s', (_, { status, ...late }) => {
    const run = cleanRun();
    const id = 'reminder:P-1:late';
    run.events.push({ kind: 'late', id: 'reminder:P-2:late', status: 'closed' }, { kind: 'late', id, status });
    if ('isSent' in late) run.received.push({ ...mail(plain, KILL_MS), id });
    const wanted = expect.stringMatching(`^a step after the payment is not taken: 1 of 2 .*${id}$`);
    expect(failed(run)).toEqual([
      wanted,
      ...('isSent' in late ? [expect.stringMatching(/^nothing else was sent/)] : []),
    ]);
  });

  test('a cancelled mail that stays away is fine', () => {
    const run = cleanRun();
    run.events.push({ kind: 'cancelled', id: other, status: 'cancelled', atMs: dueOf(other) - 100 });
    expect(failed({ ...run, received: run.received.filter(({ id }) => id !== other) })).toEqual([]);
  });

  test('a hopeless mail that was tried again', () => {
    const run = cleanRun();
    const gone = run.received.find(({ code }) => code === 550);
    run.received.push(mail(gone?.id ?? '', KILL_MS, 550));
    expect(failed(run)).toEqual([expect.stringMatching('^refused for good is not tried again')]);
  });

  test('a mail that nobody planned', () => {
    const run = cleanRun();
    run.received.push({ ...mail(other, KILL_MS), id: 'spam' });
    expect(failed(run)).toEqual(['nothing else was sent: 1 mails that nobody planned: spam']);
  });

  test('a mail in another language', () => {
    const run = cleanRun();
    const received = run.received.map((one) => (one.id === other ? { ...one, subject: 'Hej' } : one));
    expect(failed({ ...run, received })).toEqual([expect.stringMatching("^each mail speaks its customer's language")]);
  });

  test('two statements of one account at the same time', () => {
    const run = cleanRun();
    const first = run.received.find(({ id }) => id === 'statement:ACC-01:1')?.receivedMs ?? 0;
    const received = run.received.map((one) =>
      one.id === 'statement:ACC-01:2' ? { ...one, receivedMs: first + 10 } : one,
    );
    expect(failed({ ...run, received })).toEqual([expect.stringMatching('^one statement of an account at a time')]);
  });

  test('a later start with an older token', () => {
    const run = cleanRun();
    const received = run.received.map((one, at) => (at === run.received.length - 1 ? { ...one, token: '1' } : one));
    expect(failed({ ...run, received })).toEqual([expect.stringMatching('^a later start has a higher token')]);
  });

  test('a leader that nobody replaced, or too late', () => {
    const run = cleanRun();
    const events = run.events.filter(({ kind }) => kind !== 'leader-back');
    const name = 'the killed leader was replaced in time';
    expect(failed({ ...run, events })).toEqual([`${name}: nobody took over`]);
    events.push({ kind: 'leader-back', atMs: KILL_MS + 2001 });
    expect(failed({ ...run, events })).toEqual([`${name}: after 2001 ms; promised: 2000 ms`]);
  });
});
