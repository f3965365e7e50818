/** The queue, shared by client and worker: so a job need not carry attempts, backoff and timeout. */
import { defineQueue, exponential } from 'duestream';

/** @typedef {{ to: string, subject: string }} Mail */
/** @type {import('duestream').Queue<Mail>} */
export const emails = defineQueue('emails', {
  attempts: 5,
  backoff: exponential('10s', { max: '1h' }),
  timeout: '30s',
});
