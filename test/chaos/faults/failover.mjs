/** Other servers take over, or a slot moves: what the rows of a cluster and of Sentinels do and wait for. */
import { keyOf, PARTITIONS } from '../judge/dump.mjs';

/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('../stage/topology.mjs').Node} Node */
/** @typedef {{ slot: number, master: Node, replica: Node }} Shard */

/** Partitions in an order that the seed decides. @param {Scene} scene */
export function shuffled({ random }) {
  return PARTITIONS.map((partition) => ({ partition, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ partition }) => partition);
}

/** Who serves a partition of the cluster. @param {Scene} scene @param {number} partition */
export async function servedBy(scene, partition) {
  const cluster = scene.theCluster();
  const anyone = nodeOf(cluster.nodes.find(({ isGone }) => !isGone));
  const slot = Number(await anyone.ask('CLUSTER', 'KEYSLOT', keyOf(partition, 'ready')));
  return { slot, master: await cluster.masterOf(slot) };
}

/** The same, and who would take over. @param {Scene} scene @param {number} partition */
export async function shardOf(scene, partition) {
  const cluster = scene.theCluster();
  const { slot, master } = await servedBy(scene, partition);
  const followers = await Promise.all(cluster.nodes.map((node) => followsOn(node, master)));
  return { slot, master, replica: nodeOf(cluster.nodes.find((_, at) => followers[at])) };
}

/** One for each master that has partitions, in an order that the seed decides. @param {Scene} scene */
export async function shardsOf(scene) {
  /** @type {Map<string, Shard>} */
  const shards = new Map();
  for (const partition of shuffled(scene)) {
    const shard = await shardOf(scene, partition);
    if (!shards.has(shard.master.name)) shards.set(shard.master.name, shard);
  }
  return [...shards.values()];
}

/** Every living node of the cluster names another master of the slot, and serves. @param {Scene} scene @param {Shard} shard */
export async function takenOver(scene, { slot, master }) {
  const cluster = scene.theCluster();
  await scene.until(async () => {
    const now = await cluster.masterOf(slot).catch(() => master);
    return now !== master && (await now.role().catch(() => '')) === 'master' && (await isWhole(scene));
  }, `a new master of slot ${slot}`);
}

/** Every node of the cluster that answers says that all is well. @param {Scene} scene */
export async function isWhole(scene) {
  const nodes = scene.theCluster().nodes.filter(({ isGone }) => !isGone);
  return (await Promise.all(nodes.map(stateOf))).every((state) => (state ?? 'ok') === 'ok');
}

/** `ok` or `fail`, as a node of the cluster sees it; nothing of one that does not answer. @param {Node} node */
export async function stateOf(node) {
  const text = String(await node.ask('CLUSTER', 'INFO').catch(() => ''));
  return /^cluster_state:(\w+)/m.exec(text)?.[1];
}

/** The Sentinels name another one, and it takes writes. @param {Scene} scene @param {Node} old */
export async function replaced(scene, old) {
  const group = scene.theSentinels();
  await scene.until(async () => {
    const now = await group.master().catch(() => old);
    return now !== old && (await now.role().catch(() => '')) === 'master';
  }, `a primary besides ${old.name}`);
}

/** It was a master, and follows another one now. @param {Scene} scene @param {Node} node */
export async function deposed(scene, node) {
  await scene.until(async () => (await node.role().catch(() => '')) === 'replica', `${node.name} follows another one`);
  await scene.until(
    async () => (await node.info('master_link_status').catch(() => '')) === 'up',
    `${node.name} is in step`,
  );
}

/**
 * Makes replicas miss all that their master takes from now on: they are frozen, and their link is closed. A replica that
 * is only frozen misses nothing, for the kernel keeps for it what a killed master has sent.
 *
 * @param {Node} master
 * @param {readonly Node[]} replicas
 */
export async function holdBack(master, replicas) {
  for (const replica of replicas) replica.signal('SIGSTOP');
  await master.ask('CLIENT', 'KILL', 'TYPE', 'replica');
}

/**
 * Moves a slot to another master key by key, while clients use it.
 *
 * @param {Scene} scene
 * @param {Shard} shard
 * @param {number} pauseMs after each key
 * @returns {Promise<number>} how many keys were moved
 */
export async function moveSlot(scene, { slot, master: from }, pauseMs) {
  const cluster = scene.theCluster();
  const roles = await Promise.all(cluster.nodes.map((node) => node.role()));
  const masters = cluster.nodes.filter((_, at) => roles[at] === 'master');
  const to = nodeOf(masters.find((node) => node !== from));
  const [fromId, toId] = await Promise.all([from, to].map(async (node) => String(await node.ask('CLUSTER', 'MYID'))));
  const setSlot = (/** @type {Node} */ node, /** @type {string[]} */ ...how) =>
    node.ask('CLUSTER', 'SETSLOT', String(slot), ...how);
  await setSlot(to, 'IMPORTING', fromId ?? '');
  await setSlot(from, 'MIGRATING', toId ?? '');
  let moved = 0;
  for (;;) {
    const [key] = listOf(await from.ask('CLUSTER', 'GETKEYSINSLOT', String(slot), '1'));
    if (key === undefined) break;
    await from.ask('MIGRATE', to.host, String(to.port), key, '0', '5000');
    moved += 1;
    await scene.sleep(pauseMs);
  }
  for (const node of [to, from, ...masters]) await setSlot(node, 'NODE', toId ?? '');
  return moved;
}

/** How often the nodes have answered with an error of this name. @param {Scene} scene @param {string} name */
export async function answeredWith(scene, name) {
  const nodes = scene.theCluster().nodes;
  const counts = await Promise.all(nodes.map((node) => node.info(`errorstat_${name}`, 'errorstats')));
  return counts.reduce((total, text) => total + Number(/count=(\d+)/.exec(text)?.[1] ?? 0), 0);
}

/** @param {Node} node @param {Node} master */
async function followsOn(node, { port }) {
  if (node.isGone) return false;
  const [role, at] = await Promise.all([node.role(), node.info('master_port')]);
  return role === 'replica' && Number(at) === port;
}

/** @param {import('../../../src/embedded/ask.mjs').Reply} reply */
const listOf = (reply) => (Array.isArray(reply) ? reply.map(String) : []);

/** @param {Node | undefined} node */
export function nodeOf(node) {
  if (!node) throw new Error('there is no such node');
  return node;
}
