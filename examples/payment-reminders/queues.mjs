/** The two queues of the demo. The client and the workers share these definitions, so a job need not carry them. */
import { defineQueue, exponential } from 'duestream';

/** A mail server that says "later" is asked again after about 0.4 s, 0.8 s, 1.6 s; in real life write minutes. */
export const emails = defineQueue('emails', {
  attempts: 5,
  backoff: exponential(400, { max: '3s', jitter: 'equal' }),
  timeout: '20s',
});

/** One statement of an account at a time. With only 2 attempts: putting a job aside for a lock uses up none. */
export const accounts = defineQueue('accounts', { attempts: 2, backoff: exponential(400), timeout: '20s' });
