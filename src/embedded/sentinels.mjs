/**
 * A primary with replicas and the Sentinels that watch it, on this machine: real servers on free ports of 127.0.0.1, up
 * in about three seconds, gone when it is closed and when we are killed. The data are in memory and in a folder for
 * temporary files.
 *
 * The Sentinels start when the replicas are in step, so that their first look at the primary shows all of them. It is
 * handed out when every Sentinel knows the primary, each replica and each other Sentinel: a failover needs no more.
 */
import { all, isInStep, named, openTopology, orClose, until } from './topology.mjs';

const MASTER_NAME = 'duestream';
const DOWN_AFTER_MS = 1000;
/** A vote that nobody won is repeated after twice this. */
const FAILOVER_TIMEOUT_MS = 3000;

/** How often Sentinels tell each other of themselves, and ask for roles; by themselves they take 2 and 10 seconds. */
const FAST = ['publish-period', '200', 'info-period', '500'];

/** @typedef {import('./topology.mjs').Node} Node */
/** @typedef {import('./ask.mjs').Login} Login */
/**
 * @typedef {object} SentinelShape
 * @property {number} [replicas] default 2
 * @property {number} [sentinels] default 3, which is the least that outlives the loss of one
 * @property {string} [name] of the primary, as clients ask for it; default `duestream`
 * @property {number} [downAfterMs] without an answer for this long the primary counts as down; default 1000
 * @property {Login} [sentinelLogin] whom the Sentinels let in; default: everybody. It is no user of the data servers
 */
/**
 * @typedef {object} SentinelParts
 * @property {string} url `sentinel://host:port,…/name`, or `sentinels://` with TLS; with the client's user where there is
 *   one, and without what the Sentinels themselves want to know
 * @property {string} name
 * @property {readonly Node[]} nodes the servers with data, the primary first, as they were at the start
 * @property {readonly Node[]} sentinels
 * @property {() => Promise<Node>} master whom most Sentinels name now
 */
/** @typedef {import('./topology.mjs').Control & SentinelParts} Sentinels */

/**
 * @example const group = await startSentinels({ binary: '/usr/bin/redis-server' });
 *
 * @param {SentinelShape & import('./topology.mjs').TopologySettings} wanted
 * @returns {Promise<Sentinels>} rejects with an EmbeddedRedisError when a server does not start; nothing is left then
 */
export async function startSentinels({ replicas = 2, sentinels = 3, name = MASTER_NAME, ...wanted }) {
  const { downAfterMs = DOWN_AFTER_MS, sentinelLogin } = wanted;
  const topology = await openTopology(wanted);
  const { control } = topology;
  return orClose(control, async () => {
    const master = await topology.server('master-1', {});
    const follow = { replicaof: `${master.host} ${master.port}` };
    const followers = await Promise.all(named('replica', replicas).map((who) => topology.server(who, follow)));
    const inStep = async () => (await master.info('connected_slaves')) === String(replicas);
    await until('the replicas are in step', async () => (await inStep()) && (await all(followers, isInStep)));

    const quorum = Math.floor(sentinels / 2) + 1;
    const lines = [
      `sentinel monitor ${name} ${master.host} ${master.port} ${quorum}`,
      `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
      `sentinel failover-timeout ${name} ${FAILOVER_TIMEOUT_MS}`,
      'sentinel announce-ip 127.0.0.1',
      ...loginLines(name, control.login, sentinelLogin),
    ];
    const watchers = await Promise.all(
      named('sentinel', sentinels).map((who) => topology.sentinel(who, lines, sentinelLogin)),
    );
    await Promise.all(watchers.map((node) => node.ask('SENTINEL', 'DEBUG', ...FAST)));
    const known = { 'num-slaves': replicas, 'num-other-sentinels': sentinels - 1 };
    await until('the Sentinels know everybody', () => all(watchers, (node) => knows(node, name, known)));
    return {
      ...control,
      url: `${wanted.tls ? 'sentinels' : 'sentinel'}://${topology.hosts(watchers)}/${name}`,
      name,
      nodes: [master, ...followers],
      sentinels: watchers,
      master: () => namedMaster(watchers, [master, ...followers], name),
    };
  });
}

/**
 * As whom Sentinels come to the servers, and to each other.
 *
 * @param {string} name
 * @param {Login} [login]
 * @param {Login} [own]
 */
function loginLines(name, login, own) {
  const toServers = login
    ? [`sentinel auth-user ${name} ${login.username}`, `sentinel auth-pass ${name} ${login.password}`]
    : [];
  if (!own) return toServers;
  return [
    ...toServers,
    `user ${own.username} on >${own.password} ~* &* +@all`,
    ...(own.username === 'default' ? [] : ['user default off']),
    `sentinel sentinel-user ${own.username}`,
    `sentinel sentinel-pass ${own.password}`,
  ];
}

/**
 * @param {Node} node
 * @param {string} name
 * @param {Readonly<Record<string, number>>} counts
 */
async function knows(node, name, counts) {
  const reply = await node.ask('SENTINEL', 'MASTER', name);
  const fields = Array.isArray(reply) ? reply : [];
  return (
    Object.entries(counts).every(([field, count]) => fields[fields.indexOf(field) + 1] === String(count)) &&
    /^OK/.test(String(await node.ask('SENTINEL', 'CKQUORUM', name)))
  );
}

/**
 * @param {readonly Node[]} sentinels
 * @param {readonly Node[]} nodes
 * @param {string} name
 */
async function namedMaster(sentinels, nodes, name) {
  const ask = (/** @type {Node} */ node) => node.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name).catch(() => null);
  const replies = await Promise.all(sentinels.map(ask));
  const ports = replies.flatMap((reply) => (Array.isArray(reply) ? [Number(reply[1])] : []));
  const most = nodes.find(({ port }) => ports.filter((one) => one === port).length * 2 > sentinels.length);
  if (!most) throw new Error(`the Sentinels do not agree who is the primary: ${ports.join(', ') || 'none answers'}`);
  return most;
}
