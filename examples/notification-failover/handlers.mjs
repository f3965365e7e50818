/**
 * The worker: one step of a chain. Before it tries its own channel it plans the next step, as a net below it; if the
 * channel delivers, the net is taken away. So at no moment does a crash lose the note.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createProducer, defineHandlers, Unrecoverable } from 'duestream';
import { notes, plan, steps, waitMs } from './steps.mjs';

/** @type {Promise<import('duestream').Producer> | undefined} */
let connected;
/** At the first job, not at import: a worker may start while Redis is away. */
function producer() {
  connected ??= createProducer({ redis: process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379' }).catch(
    (error) => {
      connected = undefined;
      throw error;
    },
  );
  return connected;
}

/** @type {(job: import('duestream').Job<import('./steps.mjs').Note>, ctx: import('duestream').HandlerContext) => Promise<void>} */
async function step({ name, data, askedDueMs }, { log, signal }) {
  const { note, fate } = data;
  const { get, schedule, cancel } = await producer();
  const next = steps[steps.indexOf(name) + 1];
  const net = next && plan(note, next);
  const hung = net && (await get(notes, net.id));
  // A step that runs again after a crash: the next one began meanwhile, or was cancelled because we had delivered.
  if (hung && hung.state !== 'scheduled') {
    log.info({ note, step: name }, 'the chain has moved on');
    return;
  }
  if (net) await schedule(notes, data, { ...net, at: new Date(askedDueMs + waitMs(name)) });
  try {
    await deliver(fate[name], signal);
  } catch (error) {
    // Refused: no need to wait until the net is due. When the time was up instead, it is due already.
    if (net && !signal.aborted) await schedule(notes, data, { ...net, at: new Date(), ifExists: 'replace' });
    throw new Unrecoverable(`${name}: ${error instanceof Error ? error.message : error}`);
  }
  log.info({ note, step: name }, 'delivered');
  if (net) await cancel(notes, net.id);
}

/**
 * Stands for all channels. The note itself says what comes of it: `refused`, `silent` (no receipt, ever), else delivered.
 *
 * @param {string | undefined} fate
 * @param {AbortSignal} signal
 */
async function deliver(fate, signal) {
  if (fate === 'refused') throw new Error('unknown device');
  if (fate === 'silent') await sleep(3_600_000, undefined, { signal });
}

export default defineHandlers({ notes: Object.fromEntries(steps.map((name) => [name, step])) }, { queues: [notes] });
