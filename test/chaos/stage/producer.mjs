/**
 * A process that schedules its part of the workload, each job at its moment, and writes down what it asked for and what
 * it was told. What failed or stayed open is asked again with the same id and due, as the library tells its users to.
 * It begins when it is given the word, so that all can start while nothing is asked of them yet, and ends when every call
 * has settled.
 */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, DuestreamError, defineQueue, fixed } from 'duestream';
import { PARTITIONS } from '../judge/dump.mjs';
import { createRecorder } from './history.mjs';
import { TIMEOUTS_MS } from './workload.mjs';

const { CHAOS_PLAN = '', CHAOS_HISTORY = '', CHAOS_ACTOR = '', CHAOS_GO = '' } = process.env;
const { CHAOS_PARTITIONS = PARTITIONS.length, DUESTREAM_REDIS_URL = '', CHAOS_DURABILITY } = process.env;
/** @type {Readonly<Record<'concurrency' | 'perGroup', number>> | {}} */
const gates = JSON.parse(process.env.CHAOS_GATES ?? '{}');
const TRIES_MAX = 150;
const REST_MS = 250;
const AGAIN = new Set(['indeterminate', 'unavailable', 'out-of-memory', 'refused']);

/** @type {readonly import('./workload.mjs').PlannedJob[]} */
const plan = JSON.parse(readFileSync(CHAOS_PLAN, 'utf8'));
const note = createRecorder(CHAOS_HISTORY, CHAOS_ACTOR);
const queue = defineQueue('chaos', { partitions: Number(CHAOS_PARTITIONS), ...gates });
const durability = CHAOS_DURABILITY === 'replicated' ? CHAOS_DURABILITY : 'memory';
const producer = createClient({ redis: DUESTREAM_REDIS_URL, durability });
console.log(JSON.stringify({ msg: 'started' }));
while (!existsSync(CHAOS_GO)) await sleep(20);
const startedMs = Date.now();

const calls = [];
for (const job of plan) {
  const early = startedMs + job.callMs - Date.now();
  if (early > 0) await sleep(early);
  calls.push(schedule(job));
}
await Promise.all(calls);
await producer.close();
note('end');

/** @param {import('./workload.mjs').PlannedJob} job */
async function schedule({ id, delayMs, kind, workMs, padBytes, priority }) {
  const dueMs = Date.now() + delayMs;
  const [, group, own = id] = /^\{(.+?)\}(.+)$/.exec(id) ?? [];
  const data = { kind, workMs, ...(padBytes > 0 ? { pad: 'x'.repeat(padBytes) } : {}) };
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    note('enq.call', { id, due: dueMs, priority });
    try {
      const { status, dueMs: due } = await producer.schedule(queue, data, {
        id: own,
        group,
        priority,
        at: new Date(dueMs),
        backoff: fixed('300ms'),
        timeout: TIMEOUTS_MS[kind],
      });
      note('enq.ok', { id, due, status });
      return;
    } catch (error) {
      const code = error instanceof DuestreamError ? error.code : 'unknown';
      note(code === 'indeterminate' ? 'enq.unknown' : 'enq.fail', { id, code });
      if (!AGAIN.has(code)) return;
    }
    await sleep(REST_MS);
  }
}
