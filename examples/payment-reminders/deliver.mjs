/**
 * One mail by SMTP, with headers that say which start of which job sent it. A receiver that keeps the highest token it
 * has seen of each job can drop what an older start sends late.
 */

const SENDER = { name: 'Billing', address: 'billing@shop.example' };

/** @typedef {import('nodemailer').Transporter} Transporter */
/** @typedef {{ id: string, dueMs: number }} JobFacts */
/** @typedef {{ subject: string, text: string }} Mail */

/**
 * Resolves when the mail server has taken the mail.
 *
 * @param {{ transport: Pick<Transporter, 'sendMail'>, job: JobFacts, token: string, attempt: number, to: { name: string, address: string }, mail: Mail }} dead letter
 */
export async function deliver({ transport, job, token, attempt, to, mail }) {
  await transport.sendMail({
    from: SENDER,
    to,
    subject: mail.subject,
    text: mail.text,
    // The same for every start of a job: mail programs show one message even if two arrive.
    messageId: `<${Buffer.from(job.id).toString('hex')}@shop.example>`,
    headers: {
      'X-Job-Id': job.id,
      'X-Job-Token': token,
      'X-Job-Attempt': String(attempt),
      'X-Job-Due': String(job.dueMs),
      'X-Worker-Pid': String(process.pid),
    },
  });
}

/**
 * Whether trying again can help. 4xx means later, 5xx means never; a connection that breaks has no code, and is later.
 *
 * @param {unknown} error
 * @returns {'later' | 'never'}
 */
export function verdictOn(error) {
  const code = typeof error === 'object' && error !== null && 'responseCode' in error ? Number(error.responseCode) : 0;
  return code >= 500 && code < 600 ? 'never' : 'later';
}
