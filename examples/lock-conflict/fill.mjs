/** The client: as many bookings as it is told, for three accounts, all due now. `node fill.mjs 12` */
import { createClient } from 'duestream';

const [count = '12', batch = String(Date.now())] = process.argv.slice(2);
const client = createClient({ redis: process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379' });
const jobs = Array.from({ length: Number(count) }, (_, index) => ({
  id: `booking:${batch}:${index}`,
  data: { account: `account-${index % 3}`, amount: 100 + index },
}));
const scheduled = await client.scheduleMany('bookings', jobs);
console.log(`${scheduled.length} bookings for 3 accounts`);
await client.close();
