/** The demo's mail: real SMTP between the sender of the handlers and the mail server that keeps the journal. */
import { createTransport } from 'nodemailer';
import { afterEach, expect, test } from 'vitest';
import { deliver, verdictOn } from '../../../examples/payment-reminders/deliver.mjs';
import { headersOf } from '../../../examples/payment-reminders/headers.mjs';
import { fateOf } from '../../../examples/payment-reminders/plan.mjs';
import { openPostOffice } from '../../../examples/payment-reminders/post-office.mjs';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function open(refuseFirst = 0) {
  const office = await openPostOffice({
    fateOf: (id, email) => (refuseFirst > 0 ? { kind: 'refused-first', times: refuseFirst } : fateOf(id, email)),
  });
  const transport = createTransport(`${office.url}?pool=true`);
  closers.push(() => transport.close(), office.close);
  const send = (address: string, subject = 'Hello') =>
    deliver({
      transport,
      job: { id: 'statement:x:1', dueMs: 1_772_000_000_000 },
      token: '42',
      attempt: 2,
      to: { name: '佐藤 "花子"', address },
      mail: { subject, text: 'Guten Tag' },
    });
  return { office, send };
}

test('a mail is in the journal with the start of the job that sent it', async () => {
  const { office, send } = await open();
  const beforeMs = Date.now();
  await send('a@example.com', 'Último aviso: 1.204,90 € お知らせ:￥49,484 が未払いです');
  expect(office.journal).toHaveLength(1);
  expect(office.journal[0]).toMatchObject({
    id: 'statement:x:1',
    token: '42',
    claimedDueMs: 1_772_000_000_000,
    worker: String(process.pid),
    subject: 'Último aviso: 1.204,90 € お知らせ:￥49,484 が未払いです',
    code: 250,
  });
  expect(office.journal[0]?.receivedMs).toBeGreaterThanOrEqual(beforeMs);
});

test('a mail that waits for its answer is in the journal already, and counted for its worker', async () => {
  const { office, send } = await open();
  const sending = send('a@example.com');
  await expect.poll(() => office.journal.length, { interval: 2 }).toBe(1);
  expect(office.unansweredBy(process.pid)).toBe(1);
  await sending;
  expect(office.unansweredBy(process.pid)).toBe(0);
});

test('a refusal for now is worth another try, and the next one is accepted', async () => {
  const { office, send } = await open(1);
  const error = await send('a@example.com').catch((thrown: unknown) => thrown);
  expect(verdictOn(error)).toBe('later');
  await send('a@example.com');
  expect(office.journal.map(({ code }) => code)).toEqual([451, 250]);
});

test('a mailbox that does not exist is not worth another try', async () => {
  const { office, send } = await open();
  const error = await send('customer@gone.example').catch((thrown: unknown) => thrown);
  expect(verdictOn(error)).toBe('never');
  expect(office.journal.map(({ code }) => code)).toEqual([550]);
});

test('a mail server that is away is worth another try', async () => {
  const { office, send } = await open();
  await office.close();
  expect(verdictOn(await send('a@example.com').catch((thrown: unknown) => thrown))).toBe('later');
});

test('headers are unfolded and encoded words joined, also where a character was cut in two', () => {
  const mail =
    'Subject: =?UTF-8?Q?a=C3?=\r\n =?UTF-8?Q?=A9_b?= and\r\n\tmore\r\nX-Job-Id: j\r\nX-Job-Id: k\r\n\r\nX-Body: no';
  const headers = headersOf(Buffer.from(mail));
  expect([...headers]).toEqual([
    ['subject', 'aé b and more'],
    ['x-job-id', 'j'],
  ]);
});
