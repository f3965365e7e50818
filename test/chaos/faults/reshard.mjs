/**
 * Slots move from one master to another while clients use them, a node comes and one goes: what `redis-cli --cluster`
 * does with `reshard`, `add-node` and `del-node`. A slot goes with all its keys, or has none; in between, clients are
 * sent on by ASK and MOVED, or told TRYAGAIN.
 */
import { Redis } from 'ioredis';

/** @typedef {import('../../../src/embedded/cluster.mjs').Cluster} Cluster */
/** @typedef {import('../../../src/embedded/topology.mjs').Node} Node */
/** @typedef {{ slots: number, keys: number }} Moved */

/** Keys that MIGRATE takes at once, and slots without keys that are named in one go. */
const KEYS_AT_ONCE = 10;
const SLOTS_AT_ONCE = 256;
const MIGRATE_TIMEOUT_MS = '10000';

/**
 * One more master, which gets an equal share of the slots of each other one, of those with keys as of those without.
 *
 * @param {Cluster} cluster
 * @returns {Promise<Moved & { node: Node }>}
 */
export async function grow(cluster) {
  const givers = await mastersOf(cluster);
  const node = await cluster.add();
  return withClients(cluster, async (clients) => {
    /** @type {Moved} */
    let moved = { slots: 0, keys: 0 };
    for (const from of givers) {
      const owned = await slotsOf(from, clients);
      const share = [...everyNth(owned.full, givers.length + 1), ...partOf(owned.empty, 0, givers.length + 1)];
      moved = sum(moved, await move(clients, { from, to: node, slots: share }));
    }
    return { ...moved, node };
  });
}

/**
 * A master gives its slots to the others, is forgotten by all, and ends.
 *
 * @param {Cluster} cluster
 * @param {Node} node
 * @returns {Promise<Moved>}
 */
export async function shrink(cluster, node) {
  const takers = (await mastersOf(cluster)).filter((one) => one !== node);
  return withClients(cluster, async (clients) => {
    /** @type {Moved} */
    let moved = { slots: 0, keys: 0 };
    const owned = await slotsOf(node, clients);
    for (const [nth, to] of takers.entries()) {
      const mine = owned.full.filter((_, at) => at % takers.length === nth);
      const share = [...mine, ...partOf(owned.empty, nth, takers.length)];
      moved = sum(moved, await move(clients, { from: node, to, slots: share }));
    }
    const id = String(await theClient(clients, node).call('CLUSTER', 'MYID'));
    const others = [...clients].filter(([one]) => one !== node);
    // One that follows the node does not forget it, and learns of its new master a moment later.
    await Promise.all(others.map(([, client]) => again(() => client.call('CLUSTER', 'FORGET', id))));
    await node.kill();
    return moved;
  });
}

/** @param {Cluster} cluster */
async function mastersOf({ nodes }) {
  const living = nodes.filter(({ isGone }) => !isGone);
  const roles = await Promise.all(living.map((node) => node.role()));
  return living.filter((_, at) => roles[at] === 'master');
}

/** @typedef {ReadonlyMap<Node, Redis>} Clients */

/** @template T @param {Cluster} cluster @param {(clients: Clients) => Promise<T>} act */
async function withClients({ nodes }, act) {
  const living = nodes.filter(({ isGone }) => !isGone);
  const clients = new Map(living.map((node) => [node, new Redis({ path: node.socketPath })]));
  for (const client of clients.values()) client.on('error', () => {});
  try {
    return await act(clients);
  } finally {
    for (const client of clients.values()) client.disconnect();
  }
}

/** @param {Clients} clients @param {Node} node */
function theClient(clients, node) {
  const client = clients.get(node);
  if (!client) throw new Error(`${node.name} is gone`);
  return client;
}

/** The slots that a master serves, with and without keys. @param {Node} node @param {Clients} clients */
async function slotsOf(node, clients) {
  const client = theClient(clients, node);
  const line = String(await client.call('CLUSTER', 'NODES'))
    .split('\n')
    .find((text) => text.includes('myself'));
  const slots = (line?.trim().split(' ').slice(8) ?? [])
    .filter((range) => /^\d/.test(range))
    .flatMap((range) => {
      const [from = 0, to = from] = range.split('-').map(Number);
      return Array.from({ length: to - from + 1 }, (_, at) => from + at);
    });
  const counts = await Promise.all(slots.map((slot) => client.call('CLUSTER', 'COUNTKEYSINSLOT', String(slot))));
  const isFull = (/** @type {unknown} */ _, /** @type {number} */ at) => Number(counts[at]) > 0;
  return { full: slots.filter(isFull), empty: slots.filter((slot, at) => !isFull(slot, at)) };
}

/** The first one and each nth after it: of few slots with keys, one at least. @param {readonly number[]} slots @param {number} nth */
const everyNth = (slots, nth) => slots.filter((_, at) => at % nth === 0);

/**
 * The nth of so many parts that lie side by side: a table of slots full of holes is a megabyte to every client.
 *
 * @param {readonly number[]} slots
 * @param {number} nth
 * @param {number} parts
 */
const partOf = (slots, nth, parts) =>
  slots.slice(Math.round((slots.length * nth) / parts), Math.round((slots.length * (nth + 1)) / parts));

/**
 * Slots with keys first and one by one; of those without, many at a time.
 *
 * @param {Clients} clients
 * @param {{ from: Node, to: Node, slots: readonly number[] }} what
 * @returns {Promise<Moved>}
 */
async function move(clients, { from, to, slots }) {
  const [giver, taker] = [theClient(clients, from), theClient(clients, to)];
  const [fromId, toId] = await Promise.all(
    [giver, taker].map(async (client) => String(await client.call('CLUSTER', 'MYID'))),
  );
  const told = async (
    /** @type {Redis} */ client,
    /** @type {readonly number[]} */ some,
    /** @type {string[]} */ ...how
  ) => Promise.all(some.map((slot) => client.call('CLUSTER', 'SETSLOT', String(slot), ...how)));
  let keys = 0;
  for (let at = 0; at < slots.length; ) {
    const first = slots[at] ?? 0;
    const isFull = Number(await giver.call('CLUSTER', 'COUNTKEYSINSLOT', String(first))) > 0;
    const some = isFull ? [first] : slots.slice(at, at + SLOTS_AT_ONCE);
    at += some.length;
    await told(taker, some, 'IMPORTING', fromId ?? '');
    await told(giver, some, 'MIGRATING', toId ?? '');
    for (const slot of some) keys += await emptied(giver, to, slot);
    // The taker first: with it the slot has an owner at every moment.
    await told(taker, some, 'NODE', toId ?? '');
    const others = [...clients].filter(([node]) => node !== to);
    await Promise.all(others.map(([, client]) => told(client, some, 'NODE', toId ?? '').catch(unlessReplica)));
  }
  return { slots: slots.length, keys };
}

/** A replica is told by its master, and one that has given its last slot away may follow the taker by now. @param {unknown} error */
function unlessReplica(error) {
  if (!/only with masters/.test(String(error))) throw error;
}

/** @param {Redis} giver @param {Node} to @param {number} slot */
async function emptied(giver, to, slot) {
  for (let keys = 0; ; ) {
    const some = /** @type {string[]} */ (
      await giver.call('CLUSTER', 'GETKEYSINSLOT', String(slot), String(KEYS_AT_ONCE))
    );
    if (some.length === 0) return keys;
    await giver.call('MIGRATE', to.host, String(to.port), '', '0', MIGRATE_TIMEOUT_MS, 'KEYS', ...some);
    keys += some.length;
  }
}

/** @param {() => Promise<unknown>} act */
async function again(act) {
  for (let left = 600; ; left -= 1) {
    try {
      return await act();
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** @param {Moved} one @param {Moved} other @returns {Moved} */
const sum = (one, other) => ({ slots: one.slots + other.slots, keys: one.keys + other.keys });
