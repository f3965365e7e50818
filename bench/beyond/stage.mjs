/** Where `bench:beyond` measures: a cluster or one primary of its own, and the processes that work on it. */
import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { startCluster } from '../../src/embedded/cluster.mjs';
import { routed } from '../../test/chaos/stage/foreign.mjs';
import { openGround, spentBy } from '../peers/ground.mjs';

/** @typedef {import('./child.mjs').Role} Role */
/** @typedef {import('./child.mjs').Starts} Starts */
/** @typedef {import('../../src/embedded/cluster.mjs').Cluster} Cluster */
/** @typedef {import('../../src/embedded/cluster.mjs').ClusterShape} ClusterShape */
/** @typedef {import('../../src/embedded/topology.mjs').Node} Node */
/** @typedef {Awaited<ReturnType<typeof startChild>>} Child */
/** @typedef {Awaited<ReturnType<typeof openStage>>} Stage */

const CHILD = fileURLToPath(new URL('./child.mjs', import.meta.url));
/** Far above need: a process that stands still must end the bench. */
const ANSWER_WITHIN_MS = 600_000;
const QUEUE = 'beyond';
const CONTROL = 'duestream:v1:{control}:queues';

/** @param {{ binary: string, partitions: number, shape?: ClusterShape & { settings?: Readonly<Record<string, string>> } }} wanted `shape`: of the cluster; without one there is one primary */
export async function openStage({ binary, partitions, shape }) {
  const cluster = shape ? await startCluster({ binary, ...shape }) : undefined;
  const ground = cluster ? undefined : await openGround({ binary });
  const url = cluster?.url ?? ground?.url ?? '';
  const masters = cluster
    ? cluster.nodes.slice(0, shape?.masters ?? 3).map(({ socketPath }) => new Redis({ path: socketPath }))
    : [];
  for (const redis of masters) redis.on('error', () => {});
  /** @type {Child[]} */
  const children = [];
  return {
    url,
    partitions,
    masters: ground ? [ground.redis] : masters,
    /** @returns {Cluster} */
    theCluster() {
      if (!cluster) throw new Error('this stage has one primary');
      return cluster;
    },
    /** @param {Role['role']} role @param {Pick<Role, 'workers' | 'concurrency'>} [more] */
    async start(role, more = {}) {
      const child = await startChild({ role, url, partitions, ...more });
      children.push(child);
      return child;
    },
    async close() {
      for (const child of children) child.kill();
      for (const redis of masters) redis.disconnect();
      await Promise.all([cluster?.close(), ground?.close()]);
    },
  };
}

/**
 * @template T
 * @param {Parameters<typeof openStage>[0]} wanted
 * @param {(stage: Stage) => Promise<T>} act
 */
export async function onStage(wanted, act) {
  const stage = await openStage(wanted);
  try {
    return await act(stage);
  } finally {
    await stage.close();
  }
}

/** @param {Role} role */
async function startChild(role) {
  const child = fork(CHILD, [JSON.stringify(role)], { serialization: 'advanced', execArgv: [] });
  /** @typedef {{ nth: number, told?: unknown, failed?: string }} Told */
  /** @type {Map<number, (told: Told) => void>} */
  const waiting = new Map();
  let nth = 0;
  let gone = false;
  child.once('exit', () => {
    gone = true;
    for (const settle of waiting.values()) settle({ nth: 0, failed: 'the process ended' });
  });
  child.on('message', (message) => {
    const told = /** @type {Told} */ (message);
    waiting.get(told.nth)?.(told);
    waiting.delete(told.nth);
  });
  /** @param {number} which @returns {Promise<unknown>} */
  const answer = async (which) => {
    const told = await new Promise((/** @type {(told: Told) => void} */ resolve) => {
      const fail = () => resolve({ nth: which, failed: `no answer within ${ANSWER_WITHIN_MS / 1000} s` });
      const timer = setTimeout(fail, ANSWER_WITHIN_MS);
      waiting.set(which, (one) => {
        clearTimeout(timer);
        resolve(one);
      });
    });
    if (told.failed !== undefined) throw new Error(`${role.role}: ${told.failed}`);
    return told.told;
  };
  await answer(0);
  /** @param {string} what @param {unknown} [how] */
  const ask = (what, how) => {
    nth += 1;
    const answered = answer(nth);
    child.send({ nth, what, how });
    return answered;
  };
  return {
    ask,
    kill: () => void (gone || child.kill('SIGKILL')),
    /** @param {'requests' | 'trips' | 'sockets' | 'count'} what */
    number: async (what) => Number(await ask(what)),
  };
}

/** Who serves each partition now, and the control keys. @param {Cluster} cluster @param {number} partitions */
export async function homesOf(cluster, partitions) {
  const any = cluster.nodes.find(({ isGone }) => !isGone);
  const slotOf = async (/** @type {string} */ key) => Number(await any?.ask('CLUSTER', 'KEYSLOT', key));
  const keys = Array.from({ length: partitions }, (_, partition) => keyOf(partition, 'ready'));
  const slots = await Promise.all([CONTROL, ...keys].map(slotOf));
  /** @type {Node[]} */
  const nodes = [];
  for (const slot of slots) nodes.push(await cluster.masterOf(slot));
  const [control, ...homes] = nodes;
  if (!control) throw new Error('nobody serves the control keys');
  return { control, homes, slots: slots.slice(1) };
}

/** @param {number} partition @param {string} name */
export const keyOf = (partition, name) => `duestream:v1:{${QUEUE}:${partition}}:${name}`;

/** The partition of a job by its number. @param {number} at @param {number} partitions */
export const partitionOf = (at, partitions) => routed(`job-${String(at).padStart(12, '0')}`, partitions);

/** The starts of several processes as one: how often each job was started, and when first. @param {readonly Child[]} children */
export async function startsOf(children) {
  /** @type {Map<number, { times: number, firstMs: number }>} */
  const all = new Map();
  for (const child of children) {
    const { ids, times, firstMs } = /** @type {Starts} */ (await child.ask('starts'));
    ids.forEach((id, nth) => {
      const seen = all.get(id);
      const ms = firstMs[nth] ?? 0;
      all.set(id, {
        times: (seen?.times ?? 0) + (times[nth] ?? 0),
        firstMs: Math.min(seen?.firstMs ?? Number.POSITIVE_INFINITY, ms),
      });
    });
  }
  return all;
}

/** How many jobs were started; one that two processes started counts twice. @param {readonly Child[]} children */
export async function countOf(children) {
  return (await Promise.all(children.map((child) => child.number('count')))).reduce((sum, one) => sum + one, 0);
}

/** What all primaries together did so far. @param {Stage} stage */
export async function spentByAll({ masters }) {
  const all = await Promise.all(masters.map(spentBy));
  const sum = (/** @type {'cpuMs' | 'commands'} */ name) => all.reduce((total, one) => total + one[name], 0);
  return { cpuMs: sum('cpuMs'), commands: sum('commands') };
}

/** @param {() => Promise<boolean>} holds @param {string} what @param {number} [forMs] */
export async function until(holds, what, forMs = ANSWER_WITHIN_MS) {
  const endMs = performance.now() + forMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${forMs / 1000} s`);
    await sleep(50);
  }
}

/** @param {readonly number[]} values */
export const total = (values) => values.reduce((sum, one) => sum + one, 0);

/** The greatest share beside an equal one; 1 is even. @param {readonly number[]} counts */
export const unevenness = (counts) => (Math.max(...counts) * counts.length) / total(counts);

/** @param {readonly number[]} values in any order @param {number} part 0.5: the median */
export function quantile(values, part) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
