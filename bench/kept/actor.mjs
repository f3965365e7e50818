/**
 * One process of a run: the producer, a worker or a daemon of one system. What happens to it, it writes down at once, as the
 * actors of the chaos runs do. It ends with its parent.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRecorder } from '../../test/chaos/stage/history.mjs';
import { systems } from './systems.mjs';

const TRIES_MAX = 150;
const REST_MS = 250;

const [, , role = '', name = '', url = '', folder = ''] = process.argv;
const system = systems.find((one) => one.name === name);
if (!system) throw new Error(`there is no system ${name}`);
process.on('disconnect', () => process.exit(1));

const write = createRecorder(join(folder, 'effects.jsonl'), `worker-${process.pid}`);
const note = createRecorder(join(folder, 'calls.jsonl'), 'producer');

if (role === 'daemon') await system.daemon?.(url);
else if (role === 'worker') await system.worker(url, run);
else await produce(await system.producer(url));

/** A handler of the workload. @param {import('./system.mjs').Data} data */
async function run({ id, workMs }) {
  write('start', { id });
  await sleep(workMs);
  write('effect', { id });
  write('finish', { id, how: 'ok' });
}

/** @param {Awaited<ReturnType<import('./system.mjs').System['producer']>>} producer */
async function produce(producer) {
  /** @type {readonly import('./system.mjs').Planned[]} */
  const plan = JSON.parse(readFileSync(join(folder, 'plan.json'), 'utf8'));
  process.send?.('started');
  while (!existsSync(join(folder, 'go'))) await sleep(20);
  const fromMs = Date.now();
  const calls = plan.map(async (job) => {
    await sleep(job.callMs);
    await ask(producer, { ...job, dueMs: fromMs + job.callMs + job.delayMs });
  });
  await Promise.all(calls);
  await producer.close();
  process.exit(0);
}

/**
 * Until it is answered: a call that failed is made again, with the same id.
 *
 * @param {Awaited<ReturnType<import('./system.mjs').System['producer']>>} producer
 * @param {import('./system.mjs').Planned & { dueMs: number }} job
 */
async function ask(producer, { id, dueMs, workMs }) {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    note('enq.call', { id, due: dueMs });
    try {
      await producer.schedule({ id, dueMs, data: { id, workMs } });
      note('enq.ok', { id, due: dueMs });
      return;
    } catch (error) {
      note('enq.unknown', { id, code: error instanceof Error ? error.message.slice(0, 100) : 'unknown' });
    }
    await sleep(REST_MS);
  }
}

process.send?.('started');
