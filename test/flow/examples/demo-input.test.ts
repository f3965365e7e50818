/** The demo's input: the file and its generator, rows that cannot be understood, the plan, and what customers read. */
import { describe, expect, test } from 'vitest';
import { makeCsv } from '../../../examples/payment-reminders/generate.mjs';
import { readPayments } from '../../../examples/payment-reminders/payments.mjs';
import { makePlan, TIMETABLES } from '../../../examples/payment-reminders/plan.mjs';
import { reminderMail, timeOf, welcomeMail } from '../../../examples/payment-reminders/texts.mjs';
import { read } from '../../support/repository.ts';

const file = read('examples/payment-reminders/failed-payments.csv');
const HEADER = file.slice(0, file.indexOf('\n'));
const GOOD = 'P-1,2026-03-02T07:01:52+01:00,12.90,EUR,Zoé,zoe@example.com,fr-FR,Europe/Paris,ACC-03,no';

/** What is said about one row. */
const verdict = (row: string) => readPayments(`${HEADER}\n${row}\n`).refused.map(({ reason }) => reason);

describe('failed-payments.csv', () => {
  test('is what its generator makes', () => {
    expect(makeCsv()).toBe(file);
  });

  test('has more than 300 rows of many currencies, zones and languages, with broken and repeated ones among them', () => {
    const { rows, payments, duplicates, refused } = readPayments(file);
    expect(rows).toBeGreaterThanOrEqual(300);
    expect(rows).toBe(payments.length + duplicates.length + refused.length);
    expect([duplicates.length, refused.length]).toEqual([12, 15]);
    const kinds = (key: 'currency' | 'zone' | 'locale') => new Set(payments.map((payment) => payment[key])).size;
    expect([kinds('currency'), kinds('zone'), kinds('locale')]).toEqual([12, 16, 14]);
  });
});

describe('reading a row', () => {
  test('gives the moment of the failure, and the amount as it was written', () => {
    expect(readPayments(`${HEADER}\n${GOOD}`).payments).toEqual([
      {
        id: 'P-1',
        failedAtMs: Date.UTC(2026, 2, 2, 6, 1, 52),
        amount: '12.90',
        currency: 'EUR',
        name: 'Zoé',
        email: 'zoe@example.com',
        locale: 'fr-FR',
        zone: 'Europe/Paris',
        account: 'ACC-03',
        isNew: false,
      },
    ]);
  });

  test.each([
    ['an amount with a letter', GOOD.replace('12.90', '"12,5O"'), 'bad amount in EUR: "12,5O"'],
    ['an amount of nothing', GOOD.replace('12.90', '0.00'), 'bad amount in EUR: "0.00"'],
    ['half a yen', GOOD.replace('12.90,EUR', '480.50,JPY'), 'bad amount in JPY: "480.50"'],
    ['a missing e-mail address', GOOD.replace('zoe@example.com', ''), 'email is missing'],
    ['a second recipient in the address', GOOD.replace('zoe@', 'a@b.example;zoe@'), /^bad email/],
    ['an unknown zone', GOOD.replace('Europe/Paris', 'Mars/Olympus'), 'bad zone: "Mars/Olympus"'],
    ['a day that does not exist', GOOD.replace('03-02', '02-30'), /^bad failed_at \(there is no such moment\)/],
    ['a time without offset', GOOD.replace('+01:00', ''), /^bad failed_at \(it has no offset\)/],
    ['a quote that is never closed', GOOD.replace('Zoé', '"Zoé'), 'the quotes do not match'],
    ['text behind a quote', GOOD.replace('Zoé', '"Zoé" Esq.'), 'the quotes do not match'],
    ['too few columns', 'P-1,2026-03-02T07:01:52+01:00', '2 columns, not 10'],
  ])('refuses %s', (_, row, reason) => {
    expect(verdict(row)).toEqual([typeof reason === 'string' ? reason : expect.stringMatching(reason)]);
  });

  test('goes on after a bad row, and counts lines as an editor does', () => {
    const { payments, refused, duplicates } = readPayments(`${HEADER}\n"broken\n\n${GOOD}\n${GOOD}\n`);
    expect(refused.map(({ line }) => line)).toEqual([2]);
    expect(payments).toHaveLength(1);
    expect(duplicates).toMatchObject([{ line: 5, firstLine: 4 }]);
  });

  test('stops at a file of another kind', () => {
    expect(() => readPayments('a,b\n1,2\n')).toThrow('the first line must be payment,failed_at');
  });
});

describe('the plan', () => {
  const { payments } = readPayments(file);
  const plan = makePlan({ payments, timetable: TIMETABLES.full, startMs: 1000 });

  test('has three reminders for each payment, in their order', () => {
    const reminders = plan.jobs.filter(({ name }) => name === 'reminder');
    expect(reminders).toHaveLength(payments.length * 3);
    const dueTimes = ['1h', '1d', '3d'].map(
      (step) => reminders.find(({ id }) => id === `reminder:P-10001:${step}`)?.dueMs,
    );
    expect(dueTimes).toEqual([4000, 14_000, 25_000]);
  });

  test('ends within a minute, and no payment cancels a mail before the first reminder was due', () => {
    expect(Math.max(...plan.jobs.map(({ dueMs }) => dueMs))).toBeLessThan(40_000);
    const due = new Map(plan.jobs.map(({ id, dueMs }) => [id, dueMs]));
    expect(plan.paydays.length).toBeGreaterThan(50);
    for (const { ids, atMs } of plan.paydays) expect(atMs).toBeGreaterThan(due.get(ids[0] ?? '') ?? 0);
  });

  test('gives every job one id of its own', () => {
    expect(new Set(plan.jobs.map(({ id }) => id)).size).toBe(plan.jobs.length);
  });
});

describe('what customers read', () => {
  const facts = readPayments(`${HEADER}\n${GOOD}`).payments[0];
  if (!facts) throw new Error('the good row was refused');

  test.each([
    ['de-CH', 'CHF', '1204.90', /^Zur Erinnerung: CHF 1['’]204.90 sind noch offen$/],
    ['en-IN', 'INR', '1204567.90', 'A reminder: ₹12,04,567.90 is still open'],
    ['ja-JP', 'JPY', '49484', 'お知らせ:￥49,484 が未払いです'],
    ['sv-SE', 'KWD', '911.397', /^A reminder: 911,397.KWD is still open$/],
  ])('follows the customs of %s', (locale, currency, amount, subject) => {
    const mail = reminderMail({ ...facts, locale, currency, amount }, '1d');
    expect(mail.subject.replaceAll('\u00a0', ' ')).toMatch(subject);
  });

  test('the time is the one on the wall of the customer', () => {
    expect(timeOf({ ...facts, zone: 'Pacific/Chatham', locale: 'en-NZ' })).toContain('7:46');
    expect(timeOf({ ...facts, zone: 'America/New_York', locale: 'en-US' })).toMatch(/Mar 2, 2026, 1:01\sAM EST/);
  });

  test('a name with braces and quotes is text, not a template', () => {
    expect(welcomeMail({ ...facts, locale: 'en-GB', name: '{amount} $& "x"' }).subject).toBe(
      'Welcome, {amount} $& "x"',
    );
  });
});
