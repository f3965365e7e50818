/**
 * Jobs that are handed to workers before they are due: who holds some is killed, the leader that offered them is, and clocks are
 * set. No job begins early, none is lost, and each has one start that counts.
 */
import { keyOf } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, failures, lateBy } from '../judge/predicates.mjs';
import { SLOTS } from '../stage/workload.mjs';

/** @typedef {import('../stage/scene.mjs').Scene} Scene */

const LEASE_MS = 1500;
/** The most that there may be: some job is held nearly always. */
const AHEAD_MS = 100;
/**
 * Many jobs of few partitions come due close together, and no worker is busy: then some are held nearly always, for a long while.
 *
 * @type {Partial<import('../stage/workload.mjs').Workload>}
 */
const STEADY = { jobs: 1000, callsMs: 16_000, nearMs: 3000, farMs: 6000, workMs: [5, 30], crashes: 0, poison: 0 };
const PARTITIONS = [0, 1];
/** Nothing more is held then: the machine is slow, or the work is over. */
const PATIENCE_MS = 5000;
const KILLS = 3;
const STEPS = 12;
const STEP_MS = 300;
const HOUR_MS = 3_600_000;

/** @type {readonly import('../stage/run.mjs').Row[]} */
export const aheadRows = [
  {
    id: 'F114',
    title: 'ahead: workers are killed while they hold jobs that are not due',
    how: `ahead ${AHEAD_MS} ms; SIGKILL to a worker that holds a job, ${KILLS} times`,
    wanted: `starts again <= ${SLOTS} per kill`,
    aheadMs: AHEAD_MS,
    workload: STEADY,
    partitions: PARTITIONS.length,
    async inject(scene) {
      const { cast, sleep } = scene;
      let kills = 0;
      for (; kills < KILLS; kills += 1) {
        const [held] = await heldIn(scene);
        const pid = held && (await scene.pidOf(held.owner));
        const holder = cast.living('worker').find((worker) => worker.pid === pid);
        if (!holder) break;
        cast.send(holder, 'SIGKILL');
        await sleep(900);
      }
      return { kills };
    },
    pass: ({ report, effects, noted }) => [
      ...atLeast('kills', noted.kills ?? 0, 1),
      ...atMost('starts again besides failures', report.counts.again - failures(effects), KILLS * SLOTS),
    ],
  },
  {
    id: 'F115',
    title: 'ahead: the leader is killed while jobs are held that it has offered',
    how: `ahead ${AHEAD_MS} ms; SIGKILL to a leader while a job of its partition is held, ${KILLS} times`,
    wanted: 'late <= lease + 1 s; starts again 0',
    aheadMs: AHEAD_MS,
    workload: STEADY,
    partitions: PARTITIONS.length,
    watch: true,
    async inject(scene) {
      const { cast, leaderOf, until } = scene;
      let kills = 0;
      for (; kills < KILLS; kills += 1) {
        // Those that were killed before are back: a busy machine takes seconds to start a process.
        await until(() => cast.isUp(), 'every process is up');
        for (const partition of PARTITIONS) await leaderOf(partition);
        const [held] = await heldIn(scene);
        if (!held) break;
        cast.send(await leaderOf(held.partition), 'SIGKILL');
      }
      return { kills };
    },
    pass: (outcome) => [
      ...atLeast('kills', outcome.noted.kills ?? 0, 1),
      ...lateBy(outcome, LEASE_MS + 1000),
      ...exactly('starts again', outcome.report.counts.again, failures(outcome.effects)),
    ],
  },
  {
    id: 'F116',
    title: 'ahead: the clock of Redis steps back and forth while jobs are held, and no other clock is right',
    how: `ahead ${AHEAD_MS} ms; a clock shim under redis-server: ${STEP_MS} ms back and forth, ${STEPS} times, each while a job is held; ± 1 h under daemons and workers`,
    wanted: `early by the clock that Redis had when it started the job 0; late <= 1 s; steps >= 2`,
    aheadMs: AHEAD_MS,
    workload: STEADY,
    partitions: PARTITIONS.length,
    clocks: (role, nth) =>
      role === 'redis' ? {} : role === 'producer' ? undefined : { offsetMs: nth % 2 === 0 ? HOUR_MS : -HOUR_MS },
    watch: true,
    async inject(scene) {
      const { clockOf, sleep } = scene;
      let steps = 0;
      for (; steps < STEPS && (await heldIn(scene)).length > 0; steps += 1) {
        clockOf('redis').jump(steps % 2 === 0 ? -STEP_MS : 0);
        await sleep(STEP_MS);
      }
      return { steps };
    },
    pass: (outcome) => [
      ...lateBy(outcome, 1000),
      ...atLeast('steps', outcome.noted.steps ?? 0, 2),
      ...exactly('crashes', outcome.crashed, 0),
    ],
  },
];

/** Jobs that are held, as soon as there are some. None: there were none for a while. @param {Pick<Scene, 'redis' | 'sleep'>} scene */
async function heldIn({ redis, sleep }) {
  for (const untilMs = Date.now() + PATIENCE_MS; Date.now() < untilMs; await sleep(2)) {
    for (const partition of PARTITIONS) {
      const runs = await redis.hvals(keyOf(partition, 'runs'));
      const held = runs.map((run) => run.split(' ')).filter(([, , , , , , owner, due]) => owner !== '-' && due !== '-');
      if (held.length > 0) return held.map(([, , , , , , owner = '']) => ({ partition, owner }));
    }
  }
  return [];
}
