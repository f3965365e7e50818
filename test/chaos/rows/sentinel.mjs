/** Faults of a primary with two replicas and three Sentinels. */
import { deposed, holdBack, replaced } from '../faults/failover.mjs';
import { atMost, exactly, failedNone, forgot, goesOn } from '../judge/predicates.mjs';
import { GRACE_TO_DIAL, STEADY } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */

/** A replica is behind by less than this, and so what was acknowledged earlier is never lost. */
const LAG_MS = 1000;
const HELD_BACK_MS = 1500;
const BLIND_MS = 4000;
/** So long the network is cut in two, which is longer than a failover takes. */
const PARTED_MS = 6000;
/** A primary that hears of no replica for longer than this takes no writes; it looks once a second. */
const HEARD_S = 2;
const REFUSES_MS = HEARD_S * 1000 + 1200;
/** Work goes on beyond the time for which the network is cut. */
const LASTING = { ...STEADY, jobs: 1500, callsMs: 11_000, farMs: 6000 };
/**
 * Nothing is on disk: what a failover forgets is gone for good.
 *
 * @type {Pick<Row, 'topology' | 'mode' | 'workload' | 'env' | 'severs'>}
 */
const COMMON = {
  // Longer than a busy machine keeps a healthy server waiting: a failover that nobody asked for loses what it likes.
  topology: { kind: 'sentinel', downAfterMs: 3000 },
  mode: 'none',
  workload: STEADY,
  env: GRACE_TO_DIAL,
  severs: true,
};

/**
 * Twice: acknowledged in memory, as the control that may lose jobs, and when all replicas have them, which may not.
 *
 * @type {Pick<Row, 'variants' | 'declaredLossMs'>}
 */
const ASYNCHRONOUS = { variants: ['none', 'replicated'], declaredLossMs: { none: LAG_MS, replicated: LAG_MS } };

/** @type {readonly Row[]} */
export const sentinelRows = [
  {
    ...COMMON,
    id: 'F47',
    title: 'Sentinel: the master is killed while its replicas lag',
    how: `SIGSTOP to the replicas, their links closed; ${HELD_BACK_MS / 1000} s later SIGKILL to the master, SIGCONT`,
    wanted:
      'some are lost, only of those acknowledged since 1.0 s before the lag; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    whole: true,
    async inject(scene) {
      const master = await scene.theSentinels().master();
      const replicas = scene.theSentinels().nodes.filter((node) => node !== master);
      scene.note('loss.begin');
      await holdBack(master, replicas);
      await scene.sleep(HELD_BACK_MS);
      await master.kill();
      scene.note('loss.end');
      for (const replica of replicas) replica.signal('SIGCONT');
      await replaced(scene, master);
      await master.restart();
      await deposed(scene, master);
    },
    pass: (outcome) => [...goesOn(outcome), ...forgot(outcome)],
  },
  {
    ...COMMON,
    id: 'F48',
    title: 'Sentinel: the master and all clients are cut off from the replicas and the Sentinels',
    how: `relays before all servers hold what crosses the network, for ${PARTED_MS / 1000} s and until another one is master`,
    wanted:
      'some are lost, only of those acknowledged from 1.0 s before the cut until the old one is deposed; replicated: lost 0; each partition goes on <= 5 s',
    topology: { kind: 'parted', downAfterMs: 3000 },
    workload: LASTING,
    ...ASYNCHRONOUS,
    whole: true,
    async inject(scene) {
      const master = await scene.theSentinels().master();
      scene.note('loss.begin');
      await parted(scene, master, async () => {});
      scene.note('loss.end');
    },
    pass: (outcome) => [...goesOn(outcome), ...forgot(outcome)],
  },
  {
    ...COMMON,
    id: 'F49',
    title: 'Sentinel: the master freezes, and wakes up when another one is master',
    how: 'SIGSTOP to the master; SIGCONT when the Sentinels have named another one',
    wanted:
      'lost only from 1.0 s before until the old one is deposed; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    async inject(scene) {
      const master = await scene.theSentinels().master();
      scene.note('loss.begin');
      master.signal('SIGSTOP');
      await replaced(scene, master);
      master.signal('SIGCONT');
      await deposed(scene, master);
      scene.note('loss.end');
    },
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F50',
    title: 'Sentinel: a failover by command',
    how: 'SENTINEL FAILOVER, and until the old master is a replica',
    wanted:
      'lost only from 1.0 s before until the old one is deposed; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    async inject(scene) {
      const { name, sentinels } = scene.theSentinels();
      const master = await scene.theSentinels().master();
      scene.note('loss.begin');
      await sentinels[0]?.ask('SENTINEL', 'FAILOVER', name);
      await replaced(scene, master);
      await deposed(scene, master);
      scene.note('loss.end');
    },
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F51',
    title: 'Sentinel: all sentinels are away for 4 seconds',
    how: 'SIGKILL to all sentinels, a new start 4 s later',
    wanted: 'lost 0; calls that fail 0; workers believed dead 0; each partition goes on <= 5 s',
    severs: false,
    async inject(scene) {
      const { sentinels } = scene.theSentinels();
      await Promise.all(sentinels.map((node) => node.kill()));
      await scene.sleep(BLIND_MS);
      await Promise.all(sentinels.map((node) => node.restart()));
    },
    pass: (outcome) => [
      ...goesOn(outcome),
      ...failedNone(outcome),
      ...exactly('workers believed dead', outcome.crashed, 0),
    ],
  },
  {
    ...COMMON,
    id: 'F96',
    title: 'Sentinel: the master is killed',
    how: 'SIGKILL to the master; started again when the Sentinels have named another one',
    wanted: 'lost only what was acknowledged in the 1.0 s before; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    async inject(scene) {
      const master = await scene.theSentinels().master();
      scene.note('loss.begin');
      await master.kill();
      scene.note('loss.end');
      await replaced(scene, master);
      await master.restart();
      await deposed(scene, master);
    },
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F97',
    title: 'Sentinel: the same cut, where a master needs a replica to take writes',
    how: `min-replicas-to-write 1, min-replicas-max-lag ${HEARD_S}; the network cut as in F48`,
    wanted: `the master refuses writes <= ${REFUSES_MS / 1000} s after the cut; lost only of those acknowledged from 1.0 s before the cut until then; each partition goes on <= 5 s`,
    topology: {
      kind: 'parted',
      downAfterMs: 3000,
      settings: { 'min-replicas-to-write': '1', 'min-replicas-max-lag': String(HEARD_S) },
    },
    workload: LASTING,
    declaredLossMs: { none: LAG_MS },
    whole: true,
    async inject(scene) {
      const master = await scene.theSentinels().master();
      const begunMs = performance.now();
      let refusedMs = 0;
      scene.note('loss.begin');
      await parted(scene, master, async () => {
        await scene.until(
          async () => (await master.info('min_slaves_good_slaves').catch(() => '')) === '0',
          'the master misses its replicas',
        );
        refusedMs = performance.now() - begunMs;
        scene.note('loss.end');
      });
      return { refusedMs: Math.round(refusedMs) };
    },
    pass: (outcome) => [
      ...goesOn(outcome),
      ...atMost('ms until the master refused writes', outcome.noted.refusedMs ?? Number.POSITIVE_INFINITY, REFUSES_MS),
    ],
  },
];

/**
 * Cuts the network in two until the other side has a master of its own, repairs it, and waits until there is one alone.
 *
 * @param {Scene} scene
 * @param {import('../stage/topology.mjs').Node} master
 * @param {() => Promise<void>} meanwhile
 */
async function parted(scene, master, meanwhile) {
  const network = scene.theParting();
  const untilMs = Date.now() + PARTED_MS;
  network.cut();
  try {
    await meanwhile();
    await replaced(scene, master);
    await scene.sleep(Math.max(0, untilMs - Date.now()));
  } finally {
    network.repair();
  }
  await deposed(scene, master);
}
