/**
 * Several Redis servers for one run, instead of one: a cluster of three primaries with a replica each, or a primary with
 * replicas and three Sentinels. Nothing is on disk, so what a failover forgets is gone. They cannot outlive us.
 */
import { join } from 'node:path';
import { Redis, Cluster as Routed } from 'ioredis';
import { startCluster } from '../../../src/embedded/cluster.mjs';
import { startSentinels } from '../../../src/embedded/sentinels.mjs';
import { startParted } from './parted.mjs';

/** @typedef {import('../../../src/embedded/cluster.mjs').Cluster} Cluster */
/** @typedef {import('../../../src/embedded/sentinels.mjs').Sentinels} Sentinels */
/** @typedef {import('../../../src/embedded/topology.mjs').Node} Node */
/**
 * @typedef {object} Topology
 * @property {'cluster' | 'sentinel' | 'parted'} kind parted: with Sentinels, over a network that can be cut in two
 * @property {number} [replicas] default 3 in a cluster, 2 with Sentinels
 * @property {Readonly<Record<string, string>>} [settings] of every server with data
 * @property {number} [downAfterMs] of Sentinels: without an answer for so long the primary counts as down
 */
/**
 * @typedef {object} Ground what a run stands on, whatever there is under it
 * @property {string} url for the actors
 * @property {import('./server.mjs').Server} server
 * @property {Redis} redis for who looks on: it reads, and asks again until somebody answers
 * @property {Cluster | undefined} cluster
 * @property {Sentinels | undefined} sentinels
 * @property {import('./parted.mjs').Parting | undefined} parting
 */

const PAUSE_MS = 100;
/** Who has which slots, for one that only reads and so may not be told. */
const LOOKS_MS = 1000;
/** So many pauses are longer than a row may take. */
const REDIRECTIONS = 3000;

/**
 * @param {Topology} topology
 * @param {{ binary: string, folder: string, endings: (() => unknown)[] }} run
 * @returns {Promise<Ground>}
 */
export async function startTopology({ kind, ...shape }, { binary, folder, endings }) {
  const cluster = kind === 'cluster' ? await startCluster({ binary, ...shape }) : undefined;
  const parted = kind === 'parted' ? await startParted({ binary, ...shape }) : undefined;
  const sentinels = kind === 'sentinel' ? await startSentinels({ binary, ...shape }) : parted;
  endings.push(
    () => cluster?.close(),
    () => sentinels?.close(),
  );
  const redis = cluster
    ? throughCluster(cluster, endings)
    : throughSentinels(sentinels?.sentinels ?? [], sentinels?.name ?? '');
  redis.on('error', () => {});
  endings.push(() => redis.disconnect());
  const url = cluster?.url ?? sentinels?.url ?? '';
  return { url, server: nobody(url, folder), redis, cluster, sentinels, parting: parted };
}

/** @param {Cluster} cluster @param {(() => unknown)[]} endings */
function throughCluster({ nodes }, endings) {
  const routed = new Routed(
    nodes.map(({ host, port }) => ({ host, port })),
    {
      maxRedirections: REDIRECTIONS,
      clusterRetryStrategy: () => PAUSE_MS,
      retryDelayOnClusterDown: PAUSE_MS,
      retryDelayOnFailover: PAUSE_MS,
      retryDelayOnTryAgain: PAUSE_MS,
    },
  );
  // Its own option for this starts another timer when it is closed meanwhile, and no process would end.
  const looks = setInterval(() => routed.refreshSlotsCache(), LOOKS_MS);
  endings.push(() => clearInterval(looks));
  // It has every command that one key goes with, and the judge sends no others.
  return /** @type {Redis} */ (/** @type {unknown} */ (routed));
}

/** @param {readonly Node[]} sentinels @param {string} name */
function throughSentinels(sentinels, name) {
  return new Redis({
    sentinels: sentinels.map(({ host, port }) => ({ host, port })),
    name,
    maxRetriesPerRequest: null,
    sentinelRetryStrategy: () => PAUSE_MS,
    retryStrategy: () => PAUSE_MS,
  });
}

/**
 * Stands where other rows have their one server.
 *
 * @param {string} url
 * @param {string} folder
 * @returns {import('./server.mjs').Server}
 */
function nobody(url, folder) {
  const refuse = () => {
    throw new Error('this row has several servers: name the one that is meant');
  };
  return {
    url,
    dir: folder,
    socketPath: join(folder, 'r.sock'),
    pid: () => undefined,
    isGone: () => false,
    signal: refuse,
    begin: refuse,
    ended: refuse,
    start: refuse,
    answering: refuse,
    stop: async () => {},
  };
}
