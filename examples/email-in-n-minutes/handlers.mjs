/**
 * The worker: sends the mail when it is due. Without SMTP_URL a mail is built and goes nowhere.
 *
 *     npx duestream dev examples/email-in-n-minutes/handlers.mjs
 */
import { defineHandlers } from 'duestream';
import nodemailer from 'nodemailer';
import { emails } from './queue.mjs';

const { SMTP_URL: smtp } = process.env;
const transport = smtp ? nodemailer.createTransport(smtp) : nodemailer.createTransport({ jsonTransport: true });

/** @type {import('duestream').Handler<import('./queue.mjs').Mail>} */
const send = async ({ id, data, dueMs }, { log }) => {
  // A worker that dies between the server's "got it" and our "done" sends twice; the receiver knows it by this id.
  const messageId = `<${Buffer.from(id).toString('hex')}@shop.example>`;
  await transport.sendMail({ from: 'shop@example.com', ...data, text: `${data.subject}, as promised.`, messageId });
  log.info({ to: data.to, lateMs: Date.now() - dueMs }, 'mail sent');
};

export default defineHandlers({ emails: send }, { queues: [emails] });
