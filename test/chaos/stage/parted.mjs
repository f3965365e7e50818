/**
 * A primary with replicas and Sentinels whose network can be cut in two, as a switch that fails cuts it:
 *
 *     here: the primary and all clients   ║   there: the replicas and the Sentinels
 *
 * Every server is known to the others by the port of a relay before it. Those of there connect from an address of their own
 * (`bind-source-addr`), so that a relay knows on which side a connection begins. While the network is cut, what crosses it
 * is held: nothing arrives and nothing is closed; when it is repaired, what was under way arrives.
 */
import { connect, createServer } from 'node:net';
import { all, isInStep, named, openTopology, orClose, until } from '../../../src/embedded/topology.mjs';

/** @typedef {import('../../../src/embedded/topology.mjs').Node} Node */
/** @typedef {import('../../../src/embedded/sentinels.mjs').Sentinels} Sentinels */
/** @typedef {'here' | 'there'} Side */
/** @typedef {Awaited<ReturnType<typeof openRelay>>} Relay */
/** @typedef {{ cut: () => void, repair: () => void }} Parting */

const NAME = 'duestream';
const REPLICAS = 2;
const SENTINELS = 3;
const HERE = '127.0.0.1';
/** All of 127.0.0.0/8 is this machine. */
const THERE = '127.0.0.2';
const FAILOVER_TIMEOUT_MS = 3000;
/** How often Sentinels tell each other of themselves, and ask for roles. */
const FAST = ['publish-period', '200', 'info-period', '500'];

/**
 * @param {{ binary: string, downAfterMs?: number | undefined, settings?: Readonly<Record<string, string>> | undefined }} wanted
 * @returns {Promise<Sentinels & Parting>}
 */
export async function startParted({ binary, downAfterMs = 1000, settings = {} }) {
  const topology = await openTopology({ binary, settings });
  const { control } = topology;
  /** @type {Relay[]} */
  const relays = [];
  /** @type {Map<Node, Relay>} */
  const known = new Map();
  const close = async () => {
    for (const relay of relays) relay.close();
    await control.close();
  };
  /** @param {Side} side @param {(relay: Relay) => Promise<Node>} start */
  const behind = async (side, start) => {
    const relay = await openRelay(side);
    relays.push(relay);
    const node = await start(relay);
    relay.leadTo(node.port);
    known.set(node, relay);
    return node;
  };
  const portOf = (/** @type {Node} */ node) => known.get(node)?.port ?? 0;

  return orClose({ ...control, close }, async () => {
    const master = await behind('here', (relay) => topology.server('master-1', announced(relay)));
    const follow = { replicaof: `${HERE} ${portOf(master)}`, 'bind-source-addr': THERE };
    const replicas = await Promise.all(
      named('replica', REPLICAS).map((who) =>
        behind('there', (relay) => topology.server(who, { ...announced(relay), ...follow })),
      ),
    );
    const inStep = async () => (await master.info('connected_slaves')) === String(REPLICAS);
    await until('the replicas are in step', async () => (await inStep()) && (await all(replicas, isInStep)));
    const lines = [
      `sentinel monitor ${NAME} ${HERE} ${portOf(master)} ${Math.floor(SENTINELS / 2) + 1}`,
      `sentinel down-after-milliseconds ${NAME} ${downAfterMs}`,
      `sentinel failover-timeout ${NAME} ${FAILOVER_TIMEOUT_MS}`,
      ...['sentinel announce-ip 127.0.0.1', `bind-source-addr ${THERE}`],
    ];
    const sentinels = await Promise.all(
      named('sentinel', SENTINELS).map((who) =>
        behind('there', ({ port }) => topology.sentinel(who, [...lines, `sentinel announce-port ${port}`])),
      ),
    );
    await Promise.all(sentinels.map((node) => node.ask('SENTINEL', 'DEBUG', ...FAST)));
    await until('the Sentinels know everybody', () => all(sentinels, knowsAll));
    const nodes = [master, ...replicas];
    return {
      ...control,
      close,
      name: NAME,
      nodes,
      sentinels,
      url: `sentinel://${sentinels.map((node) => `${HERE}:${portOf(node)}`).join(',')}/${NAME}`,
      master: () => namedMaster(sentinels, (port) => nodes.find((node) => portOf(node) === port)),
      cut() {
        for (const relay of relays) relay.cut();
      },
      repair() {
        for (const relay of relays) relay.repair();
      },
    };
  });
}

/** @param {Relay} relay */
const announced = ({ port }) => ({ 'replica-announce-ip': HERE, 'replica-announce-port': String(port) });

/** @param {Node} node */
async function knowsAll(node) {
  const reply = await node.ask('SENTINEL', 'MASTER', NAME);
  const fields = Array.isArray(reply) ? reply : [];
  const count = (/** @type {string} */ field) => Number(fields[fields.indexOf(field) + 1]);
  const isWhole = count('num-slaves') === REPLICAS && count('num-other-sentinels') === SENTINELS - 1;
  return isWhole && /^OK/.test(String(await node.ask('SENTINEL', 'CKQUORUM', NAME)));
}

/** @param {readonly Node[]} sentinels @param {(port: number) => Node | undefined} nodeAt */
async function namedMaster(sentinels, nodeAt) {
  const ask = (/** @type {Node} */ node) => node.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME).catch(() => null);
  const ports = (await Promise.all(sentinels.map(ask))).flatMap((reply) =>
    Array.isArray(reply) ? Number(reply[1]) : [],
  );
  const most = ports.find((port) => ports.filter((one) => one === port).length * 2 > sentinels.length);
  const node = nodeAt(most ?? 0);
  if (!node) throw new Error(`the Sentinels do not agree who is the primary: ${ports.join(', ') || 'none answers'}`);
  return node;
}

/** @typedef {import('node:net').Socket} Socket */

/**
 * Stands before one server, on its side of the network.
 *
 * @param {Side} side
 */
async function openRelay(side) {
  let target = 0;
  let isCut = false;
  /** @type {Set<{ crosses: boolean, join: () => void, part: () => void, close: () => void }>} */
  const lines = new Set();
  const server = createServer({ pauseOnConnect: true }, (client) => {
    const crosses = (client.remoteAddress === THERE ? 'there' : 'here') !== side;
    const line = lineOf(client, { dial: () => connect({ host: HERE, port: target }), onOver: () => lines.delete(own) });
    const own = { crosses, ...line };
    lines.add(own);
    if (!(isCut && crosses)) line.join();
  });
  await new Promise((resolve) => server.listen(0, HERE, () => resolve(undefined)));
  const address = server.address();
  const crossing = () => [...lines].filter(({ crosses }) => crosses);
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    /** @param {number} port */
    leadTo(port) {
      target = port;
    },
    cut() {
      isCut = true;
      for (const line of crossing()) line.part();
    },
    repair() {
      isCut = false;
      for (const line of crossing()) line.join();
    },
    close() {
      server.close();
      for (const line of lines) line.close();
    },
  };
}

/**
 * From a client to the server. While it is parted it passes nothing on, neither bytes nor that an end is closed.
 *
 * @param {Socket} client paused
 * @param {{ dial: () => Socket, onOver: () => void }} how
 */
function lineOf(client, { dial, onOver }) {
  /** @type {Socket | undefined} */
  let upstream;
  let isOpen = false;
  let isOver = false;
  const close = () => {
    client.destroy();
    upstream?.destroy();
    onOver();
  };
  const watch = (/** @type {Socket} */ socket) =>
    socket
      .on('error', () => {})
      .once('close', () => {
        isOver = true;
        if (isOpen) close();
      });
  watch(client);
  return {
    close,
    join() {
      isOpen = true;
      if (isOver) return close();
      upstream ??= watch(dial());
      client.pipe(upstream).pipe(client);
    },
    part() {
      isOpen = false;
      if (!upstream) return;
      client.unpipe(upstream).pause();
      upstream.unpipe(client).pause();
    },
  };
}
