/**
 * A Redis Cluster on this machine: real servers on free ports of 127.0.0.1, up in about three seconds, gone when it is
 * closed and when we are killed. The data are in memory and in a folder for temporary files.
 *
 * It is put together as by hand. Each primary gets its share of the 16384 slots and an epoch of its own, all nodes meet
 * each other, and each replica is told whom to follow. It is handed out when every node knows all of that, and every
 * replica is in step; before, a client could learn of half a cluster.
 */
import { all, isInStep, named, openTopology, orClose, until } from './topology.mjs';

const SLOTS = 16_384;
const NODE_TIMEOUT_MS = 2000;

/** @typedef {import('./topology.mjs').Node} Node */
/**
 * @typedef {object} ClusterShape
 * @property {number} [masters] default 3, which is the least that can elect a new one
 * @property {number} [replicas] of all masters together, shared out in turns; default 3
 * @property {number} [nodeTimeoutMs] `cluster-node-timeout`; default 2000
 */
/**
 * @typedef {object} ClusterParts
 * @property {string} url `cluster://host:port,…`, or `clusters://` with TLS; with the client's user where there is one
 * @property {readonly Node[]} nodes masters first, as they were at the start
 * @property {(slot: number) => Promise<Node>} masterOf who serves a slot now, as most of the others say
 * @property {() => Promise<Node>} add one more primary, known to all and without slots; it is the last of `nodes` then
 */
/** @typedef {import('./topology.mjs').Control & ClusterParts} Cluster */

/**
 * @example const cluster = await startCluster({ binary: '/usr/bin/redis-server' });
 *
 * @param {ClusterShape & import('./topology.mjs').TopologySettings} wanted
 * @returns {Promise<Cluster>} rejects with an EmbeddedRedisError when a server does not start; nothing is left then
 */
export async function startCluster({ masters = 3, replicas = 3, nodeTimeoutMs = NODE_TIMEOUT_MS, ...wanted }) {
  const topology = await openTopology(wanted);
  const { control } = topology;
  const own = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-announce-ip': '127.0.0.1',
    'cluster-node-timeout': String(nodeTimeoutMs),
    'tls-cluster': wanted.tls ? 'yes' : 'no',
    // A replica stays with its primary, so that who replaces whom is known beforehand.
    'cluster-migration-barrier': '1000',
  };
  return orClose(control, async () => {
    const names = [...named('master', masters), ...named('replica', replicas)];
    const nodes = await Promise.all(names.map((name) => topology.server(name, own)));
    await form(nodes.slice(0, masters), nodes.slice(masters));
    return {
      ...control,
      url: `${wanted.tls ? 'clusters' : 'cluster'}://${topology.hosts(nodes)}`,
      nodes,
      masterOf: (slot) => masterOf(nodes, slot),
      async add() {
        const node = await topology.server(`added-${nodes.length - names.length + 1}`, own);
        await join(node, nodes);
        nodes.push(node);
        return node;
      },
    };
  });
}

/**
 * @param {readonly Node[]} masters
 * @param {readonly Node[]} replicas
 */
async function form(masters, replicas) {
  const nodes = [...masters, ...replicas];
  const ids = await Promise.all(nodes.map(idOf));
  const share = (/** @type {number} */ at) => Math.floor((SLOTS * at) / masters.length);
  await Promise.all(
    masters.map((node, at) => node.ask('CLUSTER', 'ADDSLOTSRANGE', String(share(at)), String(share(at + 1) - 1))),
  );
  // Equal epochs are told apart later, by taking new ones, while clients are there already.
  await Promise.all(nodes.map((node, at) => node.ask('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))));
  const pairs = nodes.flatMap((one, at) => nodes.slice(at + 1).map((other) => /** @type {const} */ ([one, other])));
  await Promise.all(pairs.map(([one, other]) => one.ask('CLUSTER', 'MEET', other.host, String(other.port))));
  await until('the nodes of the cluster meet', () => all(nodes, (node) => knows(node, ids)));
  await Promise.all(replicas.map((node, at) => node.ask('CLUSTER', 'REPLICATE', ids[at % masters.length] ?? '')));
  await until('the cluster is whole', () => all(nodes, (node) => seesAll(node, replicas.length)));
  await until('the replicas are in step', () => all(replicas, isInStep));
}

/**
 * @param {Node} node
 * @param {readonly Node[]} nodes
 */
async function join(node, nodes) {
  const alive = nodes.filter(({ isGone }) => !isGone);
  const [own, ...others] = await Promise.all([node, ...alive].map(idOf));
  await Promise.all(alive.map((other) => other.ask('CLUSTER', 'MEET', node.host, String(node.port))));
  await until('the nodes know the new one', () => all(alive, (other) => knows(other, [own ?? ''])));
  await until('the new node knows the others', () => knows(node, others));
  await until('the new node joins in', async () =>
    /^cluster_state:ok/m.test(String(await node.ask('CLUSTER', 'INFO'))),
  );
}

/** @param {Node} node */
async function idOf(node) {
  return String(await node.ask('CLUSTER', 'MYID'));
}

/**
 * @param {Node} node
 * @param {readonly string[]} ids
 */
async function knows(node, ids) {
  const lines = linesOf(await node.ask('CLUSTER', 'NODES'));
  return ids.every((id) => lines.some((line) => line.id === id && !line.flags.includes('handshake')));
}

/** @param {Node} node @param {number} replicas */
async function seesAll(node, replicas) {
  const state = String(await node.ask('CLUSTER', 'INFO'));
  if (!/^cluster_state:ok/m.test(state) || !state.includes(`cluster_slots_ok:${SLOTS}`)) return false;
  const lines = linesOf(await node.ask('CLUSTER', 'NODES'));
  return lines.filter(({ flags }) => flags.includes('slave')).length === replicas;
}

/**
 * @param {readonly Node[]} nodes
 * @param {number} slot
 */
async function masterOf(nodes, slot) {
  /** @type {Map<number, number>} */
  const votes = new Map();
  const views = await Promise.all(nodes.map((node) => node.ask('CLUSTER', 'NODES').then(linesOf, () => [])));
  for (const view of views) {
    const line = view.find(({ slots }) => slots.some(([from, to]) => from <= slot && slot <= to));
    if (line) votes.set(line.port, (votes.get(line.port) ?? 0) + 1);
  }
  const [winner] = [...votes].sort(([, a], [, b]) => b - a);
  const found = nodes.find(({ port }) => port === winner?.[0]);
  if (!found) throw new Error(`no node says who serves slot ${slot}`);
  return found;
}

/**
 * `id 127.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460`; a host name may follow the bus after a comma.
 *
 * @param {import('./ask.mjs').Reply} reply
 */
function linesOf(reply) {
  return String(reply)
    .trim()
    .split('\n')
    .map((line) => {
      const [id = '', place = '', flags = '', , , , , , ...ranges] = line.trim().split(' ');
      const slots = ranges
        .filter((range) => /^\d/.test(range))
        .map((range) => {
          const [from = '', to = from] = range.split('-');
          return /** @type {const} */ ([Number(from), Number(to)]);
        });
      return { id, port: Number(/:(\d+)@/.exec(place)?.[1]), flags: flags.split(','), slots };
    });
}
