/**
 * The client: a mail in N minutes that can be taken back until then. The id says what the mail is, so a double click
 * or a repeated request plans one mail and not two.
 *
 *     node send-later.mjs receipt:1042 ada@example.com 2m
 *     node send-later.mjs --undo receipt:1042
 */
import { createClient } from 'duestream';
import { emails } from './queue.mjs';

const [first = '', second = '', delay = '2m'] = process.argv.slice(2);
if (second === '') {
  console.error('usage: send-later.mjs <id> <address> [delay] | --undo <id>');
  process.exit(64);
}
const client = createClient({ redis: process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379' });
try {
  if (first === '--undo') {
    const { status } = await client.cancel(emails, second);
    console.log(`${second} ${status}`);
  } else {
    const mail = { to: second, subject: `Your ${first}` };
    const { status, dueMs } = await client.schedule(emails, mail, { id: first, delay });
    console.log(`${first} ${status}, due ${new Date(dueMs).toISOString()}`);
  }
} finally {
  await client.close();
}
