/**
 * Faults of workers over HTTP and of the daemons that hand jobs to them, in a queue with limits: processes are killed, and others
 * freeze for longer than a lease, one after the other.
 */
import { atLeast } from '../judge/predicates.mjs';
import { whyNoPython } from '../stage/remote.mjs';
import { DAEMONS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('../stage/cast.mjs').Actor} Actor */

const MINUTE_MS = 60_000;
/** A frozen process is away for longer than the lease of its jobs, which is 3 s, and than that of a leader. */
const FROZEN_MS = 4500;
/** Between two faults; what a killed worker held is free again after its lease. */
const REST_MS = 2000;
const JOBS_PER_S = 12;
/** Runs of a worker. */
const RUNS = 4;
const TURNS = /** @type {const} */ (['daemon', 'worker']);
const REVERSE_TURNS = /** @type {const} */ (['worker', 'daemon']);

/** @type {readonly Row[]} */
export const remoteRows = [{ ...remote(0.5), lasting: remote }];

/** @param {number} minutes @returns {Row} */
function remote(minutes) {
  const forMs = minutes * MINUTE_MS;
  const faults = Math.ceil(forMs / REST_MS);
  return {
    id: 'F117',
    title: 'workers over HTTP: daemons and workers are killed, and freeze for longer than a lease',
    how: `workers for Python and Go; for ${minutes < 1 ? '30 s' : `${minutes} minutes (\`--minutes ${minutes}\`)`} SIGKILL to each daemon and each worker in turn, SIGSTOP for ${FROZEN_MS / 1000} s to one of them meanwhile; 8 at a time, one of each group`,
    wanted: 'a token runs twice 0; never more than 8 at a time, nor one more of a group; every invariant holds',
    remote: true,
    impossible: whyNoPython,
    gates: { concurrency: 8, perGroup: 1, rate: 400, inOrder: false },
    partitions: 1,
    whole: true,
    // Its end may be on the way when a daemon freezes or dies: then nobody knows of it.
    allow: { 'DUP-START': faults * RUNS },
    workload: {
      jobs: Math.round((JOBS_PER_S * forMs) / 1000),
      callsMs: forMs,
      nearMs: 800,
      farMs: 2000,
      groups: 60,
      workMs: [50, 400],
    },
    limitMs: forMs + 5 * MINUTE_MS,
    inject: (scene) => breakAll(scene, forMs),
    pass: ({ noted: { daemonsKilled = 0, workersKilled = 0, daemonsFrozen = 0, workersFrozen = 0 } }) => [
      ...atLeast('daemons that were killed', daemonsKilled, DAEMONS),
      ...atLeast('workers that were killed', workersKilled, WORKERS),
      ...atLeast('daemons that were frozen', daemonsFrozen, 1),
      ...atLeast('workers that were frozen', workersFrozen, 1),
    ],
  };
}

/** @param {Scene} scene @param {number} forMs */
async function breakAll(scene, forMs) {
  const { cast, sleep, until } = scene;
  const counts = { daemonsKilled: 0, workersKilled: 0, daemonsFrozen: 0, workersFrozen: 0 };
  /** @type {Set<Actor>} */
  const frozen = new Set();
  // Whoever has lived longest: so each has its turn.
  const next = (/** @type {'daemon' | 'worker'} */ role) =>
    cast.living(role).find((actor) => actor.isUp() && !frozen.has(actor));
  const freeze = async (/** @type {Actor} */ actor) => {
    frozen.add(actor);
    cast.send(actor, 'SIGSTOP');
    await sleep(FROZEN_MS);
    cast.send(actor, 'SIGCONT');
    frozen.delete(actor);
  };
  /** @type {Promise<void>[]} */
  const thawed = [];
  const untilMs = Date.now() + forMs;
  for (let nth = 0; Date.now() < untilMs; nth += 1) {
    const [role, other] = nth % 2 === 0 ? TURNS : REVERSE_TURNS;
    const victim = next(role);
    if (victim) {
      cast.send(victim, 'SIGKILL');
      counts[`${role}sKilled`] += 1;
      await victim.exited;
    }
    const cold = nth % 3 === 0 ? next(other) : undefined;
    if (cold) {
      counts[`${other}sFrozen`] += 1;
      thawed.push(freeze(cold));
    }
    await sleep(REST_MS * (1 + scene.random()));
  }
  await Promise.all(thawed);
  await until(() => cast.isUp(), 'all processes are up again');
  return counts;
}
