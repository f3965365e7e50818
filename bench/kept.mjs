/**
 * What duestream, BullMQ and pg-boss keep when something breaks: `npm run bench -- kept`, or `npm run chaos -- --peers`. Each
 * system gets the same work and the same faults: its workers are killed or freeze, its server is killed, replies get lost.
 * The judge sees what producers were told and what handlers did. A system that loses a job does not end the run: that is
 * what is to be found out.
 *
 *     --only workers,server       these faults
 *     --systems duestream,BullMQ  these systems
 *     --seed 7                    the same work again
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readEvents } from '../test/chaos/stage/history.mjs';
import { seeded } from '../test/chaos/stage/workload.mjs';
import { faults as everyFault } from './kept/faults.mjs';
import { figuresOf } from './kept/judge.mjs';
import { openStage } from './kept/stage.mjs';
import { absent, systems as everySystem } from './kept/systems.mjs';

const JOBS = 400;
const CALLS_MS = 5000;
const FAR_MS = 4000;
const WORK_MS = /** @type {const} */ ([50, 400]);
/** The fault begins when work has begun. */
const CALM_MS = 1500;
/** When all is done, jobs may still begin again: so long after the last start nobody expects another one. */
const QUIET_MS = 13_000;
/** What has not moved for so long is lost. */
const STILL_MS = 40_000;
const LIMIT_MS = 180_000;

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ binary, chosen, number }) {
  const seed = number('seed', { otherwise: 7, from: 0, to: 1_000_000 });
  const namesOf = (/** @type {readonly { name: string }[]} */ all) => all.map(({ name }) => name);
  const some = { faults: chosen('only', namesOf(everyFault)), systems: chosen('systems', namesOf(everySystem)) };
  const faults = everyFault.filter(({ name }) => some.faults?.includes(name) ?? true);
  const systems = everySystem.filter(({ name }) => some.systems?.includes(name) ?? true);
  const rows = [];
  for (const fault of faults) {
    for (const system of systems) {
      const row = {
        fault: fault.title,
        how: fault.how,
        system: system.title,
        ...(await tried({ fault, system, binary, seed })),
      };
      process.stderr.write(
        `${fault.name.padEnd(8)} ${system.name.padEnd(10)} lost ${row.lost}, again ${row.again}, twice ${row.twice}, ${row.seconds} s\n`,
      );
      rows.push(row);
    }
  }
  const what = `${JOBS} jobs, due within ${FAR_MS / 1000} s of calls that are spread over ${CALLS_MS / 1000} s; 3 workers × 8 handlers, each of ${WORK_MS.join(' to ')} ms`;
  return [
    { name: 'kept', what, seed, systems: systems.map(({ title, settings }) => ({ title, settings })), absent, rows },
  ];
}

/**
 * @param {{ fault: import('./kept/faults.mjs').Fault, system: import('./kept/system.mjs').System, binary: string, seed: number }} cell
 */
async function tried({ fault, system, binary, seed }) {
  const startedMs = performance.now();
  const stage = await openStage({ system, binary, plan: planOf(seeded(seed)) });
  try {
    stage.go();
    await sleep(CALM_MS);
    await fault.inject(stage);
    await stage.producer.exited;
    await drained(stage);
    const figures = figuresOf(seenIn(stage));
    return { ...figures, lostReplies: stage.proxy.lost(), seconds: Math.round((performance.now() - startedMs) / 1000) };
  } finally {
    await stage.close();
  }
}

/** @param {import('./kept/stage.mjs').Stage} stage */
const seenIn = ({ folder }) => ({
  calls: readEvents(join(folder, 'calls.jsonl')),
  effects: readEvents(join(folder, 'effects.jsonl')),
});

/** Waits until all is done and nothing begins again, or until nothing moves any more. @param {import('./kept/stage.mjs').Stage} stage */
async function drained(stage) {
  const limitMs = Date.now() + LIMIT_MS;
  let [count, movedMs] = [0, Date.now()];
  while (Date.now() < limitMs) {
    const seen = seenIn(stage);
    if (seen.effects.length !== count) [count, movedMs] = [seen.effects.length, Date.now()];
    const isDone = figuresOf(seen).lost === 0;
    if (Date.now() - movedMs > (isDone ? QUIET_MS : STILL_MS)) return;
    await sleep(250);
  }
}

/** @param {() => number} random @returns {readonly import('./kept/system.mjs').Planned[]} */
function planOf(random) {
  const [shortest, longest] = WORK_MS;
  return Array.from({ length: JOBS }, (_, at) => ({
    id: `job-${at}`,
    callMs: Math.floor(random() * CALLS_MS),
    delayMs: Math.floor(random() * FAR_MS),
    workMs: Math.round(shortest + random() * (longest - shortest)),
  }));
}
