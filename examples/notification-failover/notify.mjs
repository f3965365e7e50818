/** The client: begins a chain (`notify.mjs n1 push=silent sms=refused`) or tells how it went (`notify.mjs n1`). */
import { createClient } from 'duestream';
import { notes, plan, steps } from './steps.mjs';

const [note = 'n1', ...fates] = process.argv.slice(2);
const [first = ''] = steps;
const { schedule, get, close } = createClient({
  redis: process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379',
});
if (fates.length > 0) {
  const fate = Object.fromEntries(fates.map((pair) => pair.split('=')));
  await schedule(notes, { note, text: 'Your parcel is here', fate }, plan(note, first));
}
const views = await Promise.all(steps.map((step) => get(notes, plan(note, step).id)));
steps.forEach((step, index) => {
  console.log(`${plan(note, step).id.padEnd(20)} ${views[index]?.state ?? 'never planned'}`);
});
await close();
