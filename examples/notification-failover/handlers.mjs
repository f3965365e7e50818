/**
 * The worker: one step of a chain. Before it tries its own channel it plans the next step, as a net below it; if the
 * channel delivers, the net is taken away. So at no moment does a crash lose the note.
 *
 *     npx duestream worker examples/notification-failover/handlers.mjs
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, Defer, defineHandlers, Unrecoverable } from 'duestream';
import { notes, plan, steps, waitMs } from './steps.mjs';

// It connects at the first job: a worker may start while Redis is away.
const { schedule, cancel, get } = createClient({
  redis: process.env.DUESTREAM_REDIS_URL ?? 'redis://127.0.0.1:6379',
});

/** @type {(job: import('duestream').Job<import('./steps.mjs').Note>, ctx: import('duestream').HandlerContext) => Promise<void>} */
async function step({ name, data, dueMs }, { log, signal }) {
  const { note, fate } = data;
  const next = steps[steps.indexOf(name) + 1];
  const net = next && plan(note, next);
  if (net && !(await hang(net, data, dueMs + waitMs(name)))) {
    log.info({ note, step: name }, 'the chain has moved on');
    return;
  }
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
 * Plans the next step. False when this is a step that runs again after a crash, and the next one began meanwhile or was
 * cancelled because we had delivered. Nothing was sent yet, so trouble here puts the step aside and uses nothing up.
 *
 * @param {ReturnType<typeof plan>} net
 * @param {import('./steps.mjs').Note} data
 * @param {number} dueMs
 */
async function hang(net, data, dueMs) {
  try {
    const hung = await get(notes, net.id);
    if (hung && hung.state !== 'scheduled') return false;
    await schedule(notes, data, { ...net, at: new Date(dueMs) });
    return true;
  } catch (error) {
    throw new Defer(2000, `the next step could not be planned: ${error}`);
  }
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
