/** What a row of the matrix has in its hands when it breaks something. */
import { setTimeout as sleep } from 'node:timers/promises';
import { keyOf, PARTITIONS } from '../judge/dump.mjs';

/** @typedef {ReturnType<typeof createScene>} Scene */

/** Far above need: a machine that does something else as well must not make a row red. */
const PATIENCE_MS = 60_000;

/**
 * @param {object} parts
 * @param {string} parts.product the folder whose `dist` and `lua` run
 * @param {import('./server.mjs').Mode} parts.mode
 * @param {import('ioredis').Redis} parts.redis not over the line
 * @param {import('./server.mjs').Server} parts.server
 * @param {import('./topology.mjs').Cluster | undefined} parts.cluster
 * @param {import('./topology.mjs').Sentinels | undefined} parts.sentinels
 * @param {import('./parted.mjs').Parting | undefined} parts.parting
 * @param {import('./cast.mjs').Cast} parts.cast
 * @param {import('../faults/line.mjs').Line | undefined} parts.line
 * @param {import('../faults/clocks.mjs').Clocks | undefined} parts.clocks
 * @param {string} parts.folder of the run
 * @param {string} parts.binary of redis-server
 * @param {() => number} parts.random
 * @param {ReturnType<typeof import('./history.mjs').createRecorder>} parts.note
 */
export function createScene(parts) {
  const { redis, cast, line, clocks, random, cluster, sentinels, parting } = parts;
  /** @type {import('./history.mjs').Event[]} */
  const foreign = [];

  /** @param {() => Promise<boolean> | boolean} holds @param {string} what */
  async function until(holds, what) {
    const untilMs = Date.now() + PATIENCE_MS;
    while (!(await holds())) {
      if (Date.now() > untilMs) throw new Error(`ran out of time after ${PATIENCE_MS / 1000} s: ${what}`);
      await sleep(5);
    }
  }

  /** The process of an id of ours. @param {string} id */
  async function pidOf(id) {
    const beat = await redis.get(`duestream:v1:{control}:beat:${id}`);
    return beat === null ? undefined : Number(JSON.parse(beat).pid);
  }

  /** The daemon that leads a partition, once there is one that lives. @param {number} partition */
  async function leaderOf(partition) {
    /** @type {import('./cast.mjs').Actor | undefined} */
    let found;
    await until(async () => {
      const term = await redis.get(keyOf(partition, 'leader'));
      const pid = term === null ? undefined : await pidOf(term.split(':')[0] ?? '');
      found = cast.living('daemon').find((actor) => actor.pid === pid);
      return found !== undefined;
    }, `a leader of partition ${partition}`);
    if (!found) throw new Error('nobody leads');
    return found;
  }

  /** How many started jobs a worker has not settled. @param {import('./cast.mjs').Actor} worker */
  async function runningOn(worker) {
    const runs = await Promise.all(PARTITIONS.map((partition) => redis.hvals(keyOf(partition, 'runs'))));
    const owners = runs.flat().map((run) => run.split(' ')[6] ?? '-');
    const pids = await Promise.all(owners.filter((owner) => owner !== '-').map(pidOf));
    return pids.filter((pid) => pid === worker.pid).length;
  }

  return {
    ...parts,
    sleep,
    until,
    pidOf,
    leaderOf,
    runningOn,
    /** A living worker, but not that one. @param {import('./cast.mjs').Actor} [except] */
    async anyWorker(except) {
      const workers = cast.living('worker').filter((one) => one !== except);
      const worker = workers[Math.floor(random() * workers.length)];
      if (!worker) throw new Error('no worker lives');
      return worker;
    },
    /** @returns {import('../faults/line.mjs').Line} */
    theLine() {
      if (!line) throw new Error('this row has no line');
      return line;
    },
    /** @returns {import('./topology.mjs').Cluster} */
    theCluster() {
      if (!cluster) throw new Error('this row has no cluster');
      return cluster;
    },
    /** @returns {import('./topology.mjs').Sentinels} */
    theSentinels() {
      if (!sentinels) throw new Error('this row has no Sentinels');
      return sentinels;
    },
    /** @returns {import('./parted.mjs').Parting} */
    theParting() {
      if (!parting) throw new Error('the network of this row cannot be cut');
      return parting;
    },
    /** The wrong clock of a process: `redis`, or the name of an actor. @param {string} name */
    clockOf(name) {
      if (!clocks) throw new Error('all clocks of this row are true');
      return clocks.of(name);
    },
    /** Does something again and again. @param {number} forMs @param {number} everyMs @param {() => Promise<unknown>} act */
    async repeatedly(forMs, everyMs, act) {
      const untilMs = Date.now() + forMs;
      let times = 0;
      while (Date.now() < untilMs) {
        await act();
        times += 1;
        await sleep(everyMs);
      }
      return times;
    },
    /**
     * Tells the judge that somebody who is not ours asked for a job.
     *
     * @param {string} id
     * @param {number} [timeoutMs] after which its handler is to be told to stop
     */
    asked(id, timeoutMs) {
      const us = Number(process.hrtime.bigint() / 1000n);
      const limit = timeoutMs === undefined ? {} : { timeoutMs };
      foreign.push({ ev: 'enq.call', us, ms: Date.now(), actor: 'foreign', pid: process.pid, id, due: 0, ...limit });
    },
    foreign: () => foreign,
  };
}
