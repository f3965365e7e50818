/**
 * What the workers do: `duestream worker examples/payment-reminders/handlers.mjs`. Three kinds of mail in two queues.
 *
 *     250 done · 451 thrown: retry with backoff · 550 Unrecoverable: dead at once · lock taken: Defer, no attempt used
 */
import { Defer, defineHandlers, Unrecoverable } from 'duestream';
import { Redis } from 'ioredis';
import nodemailer from 'nodemailer';
import { withAccount, withoutScheme } from './account-lock.mjs';
import { deliver, verdictOn } from './deliver.mjs';
import { accounts, emails } from './queues.mjs';
import { reminderMail, statementMail, welcomeMail } from './texts.mjs';

const {
  DEMO_SMTP_URL: smtpUrl = 'smtp://127.0.0.1:2525',
  DEMO_REDIS_URL: redisUrl = 'redis://127.0.0.1:6379',
  DEMO_LOCK_PREFIX: prefix = 'demo',
} = process.env;
const transport = nodemailer.createTransport(`${smtpUrl}?pool=true&maxConnections=12&maxMessages=100000`);
const redis = new Redis(withoutScheme(redisUrl));
redis.on('error', (error) => console.error(`the lock's connection: ${error.message}`));

/** Much longer than a statement takes, even on a busy machine; so long does a killed worker keep an account locked. */
const LOCK_MS = 5000;

/** @typedef {import('duestream').Job<import('./payments.mjs').Payment & { step: import('./texts.mjs').Step }>} ReminderJob */
/** @typedef {import('duestream').Job<import('./payments.mjs').Payment>} WelcomeJob */
/** @typedef {import('duestream').Job<{ account: string, number: number, email: string }>} StatementJob */
/** @typedef {import('duestream').HandlerContext} Context */

/**
 * @param {ReminderJob} job
 * @param {Context} ctx
 */
async function reminder(job, ctx) {
  await send(job, ctx, { to: job.data, mail: reminderMail(job.data, job.data.step) });
}

/**
 * @param {WelcomeJob} job
 * @param {Context} ctx
 */
async function welcome(job, ctx) {
  await send(job, ctx, { to: job.data, mail: welcomeMail(job.data) });
}

/**
 * @param {StatementJob} job
 * @param {Context} ctx
 */
async function statement(job, ctx) {
  const { account, email } = job.data;
  const outcome = await withAccount({ redis, prefix, account, ttlMs: LOCK_MS }, () =>
    send(job, ctx, { to: { name: account, email }, mail: statementMail(job.data) }),
  );
  if (outcome === 'taken') throw new Defer(300, `account ${account} is locked`);
}

/**
 * @param {{ id: string, dueMs: number }} job
 * @param {Context} ctx
 * @param {{ to: { name: string, email: string }, mail: { subject: string, text: string } }} dead letter
 */
async function send(job, ctx, { to, mail }) {
  const address = { name: to.name, address: to.email };
  try {
    await deliver({ transport, job, token: ctx.token, attempt: ctx.attempt, to: address, mail });
  } catch (error) {
    if (verdictOn(error) === 'later') throw error;
    throw new Unrecoverable(error instanceof Error ? error.message : String(error));
  }
}

export default defineHandlers(
  { emails: { reminder, welcome }, accounts: { statement } },
  { queues: [emails, accounts] },
);
