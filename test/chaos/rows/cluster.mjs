/** Faults of a cluster of three primaries with a replica each. */
import {
  answeredWith,
  deposed,
  holdBack,
  isWhole,
  moveSlot,
  servedBy,
  shardOf,
  shardsOf,
  shuffled,
  stateOf,
  takenOver,
} from '../faults/failover.mjs';
import { grow, shrink } from '../faults/reshard.mjs';
import { PARTITIONS } from '../judge/dump.mjs';
import { atLeast, failedNone, forgot, goesOn, struck, undisturbed } from '../judge/predicates.mjs';
import { GRACE_TO_DIAL, STEADY } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */

/** A replica is behind by less than this, and so what was acknowledged earlier is never lost. */
const LAG_MS = 1000;
/** So long a replica misses all that its master takes, which is less than after which it counts as dead. */
const HELD_BACK_MS = 1500;
/** So long too few masters are there to decide anything, after they were missed. */
const MINORITY_MS = 3000;
/** Between the keys of a slot that moves. */
const KEY_PAUSE_MS = 100;
/** 400 jobs per second while a master comes; of those, a third is due while another one goes, and later. */
const FLOW = { ...STEADY, jobs: 10_000, callsMs: 25_000, nearMs: 1000, farMs: 40_000 };
const REDIRECTIONS = ['ASK', 'MOVED', 'TRYAGAIN'];
const MOVES = 3;
/**
 * Nothing is on disk: what a failover forgets is gone for good.
 *
 * @type {Pick<Row, 'topology' | 'mode' | 'workload' | 'env' | 'severs'>}
 */
const COMMON = {
  topology: { kind: 'cluster' },
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
export const clusterRows = [
  {
    ...COMMON,
    id: 'F52',
    title: 'Cluster: each shard fails over by command',
    how: 'CLUSTER FAILOVER to the replica of each of three masters, one after the other',
    wanted: 'lost 0; calls that fail 0; each partition goes on <= 5 s',
    inject: (scene) => failOver(scene, []),
    pass: (outcome) => [...goesOn(outcome), ...failedNone(outcome)],
  },
  {
    ...COMMON,
    id: 'F53',
    title: 'Cluster: the slots of live partitions move',
    how: `SETSLOT and MIGRATE key by key with ${KEY_PAUSE_MS} ms between, 3 partitions one after the other`,
    wanted: 'lost 0; calls that fail 0; ASK, MOVED and TRYAGAIN were answered; each partition goes on <= 5 s',
    severs: false,
    inject: moveSlots,
    pass: (outcome) => [
      ...goesOn(outcome),
      ...failedNone(outcome),
      ...REDIRECTIONS.flatMap((name) => atLeast(`answers ${name}`, outcome.noted[name] ?? 0, 1)),
    ],
  },
  {
    ...COMMON,
    id: 'F91',
    title: 'Cluster: a master is killed',
    how: 'SIGKILL to the master of a partition; started again when its replica has taken over',
    wanted: 'lost only what was acknowledged in the 1.0 s before; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    async inject(scene) {
      const shard = await shardOf(scene, shuffled(scene)[0] ?? 0);
      scene.note('loss.begin');
      await shard.master.kill();
      scene.note('loss.end');
      await takenOver(scene, shard);
      await shard.master.restart();
      await deposed(scene, shard.master);
    },
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F92',
    title: 'Cluster: replicas take over without asking their masters',
    how: 'CLUSTER FAILOVER FORCE to the replica of one master, TAKEOVER to that of another one',
    wanted:
      'lost only from 1.0 s before the first until the second master knows; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    inject: (scene) => failOver(scene, ['FORCE', 'TAKEOVER']),
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F93',
    title: 'Cluster: a master freezes, and wakes up when another one is master',
    how: 'SIGSTOP to the master of a partition; SIGCONT when its replica has taken over',
    wanted:
      'lost only from 1.0 s before until the old one is deposed; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    async inject(scene) {
      const shard = await shardOf(scene, shuffled(scene)[0] ?? 0);
      scene.note('loss.begin');
      shard.master.signal('SIGSTOP');
      await takenOver(scene, shard);
      shard.master.signal('SIGCONT');
      await deposed(scene, shard.master);
      scene.note('loss.end');
    },
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F94',
    title: 'Cluster: too few masters are there to elect another one',
    how: `SIGSTOP to two masters and their replicas until the third one gives up, and for ${MINORITY_MS / 1000} s more; SIGCONT`,
    wanted: 'lost 0; each partition goes on <= 5 s',
    inject: outnumber,
    pass: goesOn,
  },
  {
    ...COMMON,
    id: 'F95',
    title: 'Cluster: a master is killed while its replica lags',
    how: `SIGSTOP to the replica, its link closed; ${HELD_BACK_MS / 1000} s later SIGKILL to the master, SIGCONT`,
    wanted:
      'some are lost, only of those acknowledged since 1.0 s before the lag; replicated: lost 0; each partition goes on <= 5 s',
    ...ASYNCHRONOUS,
    whole: true,
    async inject(scene) {
      const shard = await shardOf(scene, shuffled(scene)[0] ?? 0);
      scene.note('loss.begin');
      await holdBack(shard.master, [shard.replica]);
      await scene.sleep(HELD_BACK_MS);
      await shard.master.kill();
      scene.note('loss.end');
      shard.replica.signal('SIGCONT');
      await takenOver(scene, shard);
      await shard.master.restart();
      await deposed(scene, shard.master);
    },
    pass: (outcome) => [...goesOn(outcome), ...forgot(outcome)],
  },
  {
    ...COMMON,
    id: 'F98',
    title: 'Cluster: a master is added and one removed under load',
    how: 'at 400 jobs/s a fourth master gets its share of the slots; then the master of a partition gives all of its slots away, is forgotten and ends',
    wanted: 'lost 0; calls that fail 0; each partition goes on <= 5 s',
    workload: FLOW,
    severs: false,
    async inject(scene) {
      const cluster = scene.theCluster();
      const added = await grow(cluster);
      const { master } = await servedBy(scene, shuffled(scene)[0] ?? 0);
      const removed = await shrink(cluster, master);
      return { slots: added.slots + removed.slots, keys: added.keys + removed.keys };
    },
    pass: (outcome) => [
      ...goesOn(outcome),
      ...failedNone(outcome),
      ...atLeast('keys that moved', outcome.noted.keys ?? 0, 1),
    ],
  },
  {
    ...COMMON,
    id: 'F99',
    title: 'Cluster: a master is killed, and the partitions of the others do not feel it',
    how: 'cluster-require-full-coverage no; SIGKILL to the master of a partition, started again when its replica has taken over',
    wanted:
      'start lateness p50 of other partitions <= 20 % or 5 ms above that before; lost only what was acknowledged in the 1.0 s before; each partition goes on <= 5 s',
    topology: { kind: 'cluster', settings: { 'cluster-require-full-coverage': 'no' } },
    declaredLossMs: { none: LAG_MS },
    async inject(scene) {
      const shard = await shardOf(scene, shuffled(scene)[0] ?? 0);
      const serving = await Promise.all(PARTITIONS.map((partition) => servedBy(scene, partition)));
      scene.note('loss.begin');
      await shard.master.kill();
      scene.note('loss.end');
      await takenOver(scene, shard);
      await shard.master.restart();
      await deposed(scene, shard.master);
      return struck(PARTITIONS.filter((partition) => serving[partition]?.master === shard.master));
    },
    pass: (outcome) => [...goesOn(outcome), ...undisturbed(outcome)],
  },
];

/**
 * In each way one shard fails over; without any, all of them do, in the way in which nothing is lost.
 *
 * @param {Scene} scene
 * @param {readonly string[]} ways
 */
async function failOver(scene, ways) {
  const shards = await shardsOf(scene);
  const steps = ways.length === 0 ? shards.map(() => []) : ways.map((way) => [way]);
  scene.note('loss.begin');
  for (const [at, how] of steps.entries()) {
    const shard = shards[at];
    if (!shard) throw new Error(`the partitions are on ${shards.length} masters`);
    await shard.replica.ask('CLUSTER', 'FAILOVER', ...how);
    await takenOver(scene, shard);
    await deposed(scene, shard.master);
  }
  scene.note('loss.end');
}

/** @param {Scene} scene */
async function moveSlots(scene) {
  let keys = 0;
  for (const partition of shuffled(scene).slice(0, MOVES))
    keys += await moveSlot(scene, await shardOf(scene, partition), KEY_PAUSE_MS);
  const counts = await Promise.all(REDIRECTIONS.map((name) => answeredWith(scene, name)));
  return { keys, ...Object.fromEntries(REDIRECTIONS.map((name, at) => [name, counts[at] ?? 0])) };
}

/** @param {Scene} scene */
async function outnumber(scene) {
  const [kept, ...others] = await shardsOf(scene);
  if (!kept) throw new Error('there is no shard');
  for (const { master, replica } of others) {
    replica.signal('SIGSTOP');
    master.signal('SIGSTOP');
  }
  await scene.until(async () => (await stateOf(kept.master)) === 'fail', 'the cluster is down');
  await scene.sleep(MINORITY_MS);
  for (const { master, replica } of others) {
    master.signal('SIGCONT');
    replica.signal('SIGCONT');
  }
  await scene.until(() => isWhole(scene), 'the cluster is whole again');
}
