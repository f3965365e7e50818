/**
 * A cluster that looks like one connection. The client library has a class for clusters, which re-sends commands whose
 * reply was lost, keeps others in a queue, and has no time-out of its own; so this is a connection of it that is never
 * dialled. It has all methods and all scripts, and what would be written to its socket is sent to the node of the key
 * (`route.ts`), over a connection like that to any single primary (`one.ts`).
 *
 * Its events: `ready` whenever a node comes up, for whoever subscribes or looks again after an outage; `close` when the
 * last one goes; `error` when none can be reached; `end`.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../../kernel/clock.ts';
import { urlOf } from '../address.ts';
import type { Place } from '../address-url.ts';
import { redial } from '../dialing.ts';
import { type Manner, manyWait, openOne, optionsOf } from '../one.ts';
import { enlist } from './members.ts';
import { createNodes, type Nodes } from './nodes.ts';
import { route } from './route.ts';
import { slotOf } from './slots.ts';

export interface ClusterParts {
  readonly seeds: readonly Place[];
  /** Of every node. */
  readonly options: RedisOptions;
  readonly manner: Manner;
  /** For SSUBSCRIBE: connections that cannot ask for the map. */
  readonly subscribes: boolean;
}

/**
 * A slot that moves drops its channels, and every subscription that an old map sends astray says so once more. All of that
 * is one piece of news: to subscribe everything anew for each of them made more of them than were answered, without end.
 */
const MOVED_GAP_MS = 50;

export function openCluster({ seeds, options, manner, subscribes }: ClusterParts): Redis {
  const { natMap, ...shared } = options;
  const cluster = manyWait(new Redis({ ...optionsOf(shared, manner), lazyConnect: true }));
  let callOff: (() => void) | undefined;
  const onMoved = () => {
    callOff ??= systemClock.timer(MOVED_GAP_MS, () => {
      callOff = undefined;
      cluster.emit('ready');
    });
  };
  const nodes = createNodes({
    seeds,
    natMap,
    subscribes,
    open(place) {
      const redis = openOne({ ...shared, ...place }, manner);
      redis.on('smessage', (channel: string, message: string) => void cluster.emit('smessage', channel, message));
      redis.on('moved', onMoved);
      redis.on('close', () => isDown(nodes) && setStatus(cluster, 'close'));
      return redis;
    },
    onChange(up) {
      if (isUp(nodes) && (up !== undefined || cluster.status !== 'ready')) setStatus(cluster, 'ready');
    },
    onTrouble: (error) => void cluster.emit('error', error),
  });
  const of = { nodes, natMap, where: urlOf({ options: shared, nodes: seeds }), waitMs: manner.connectTimeoutMs };
  cluster.on('error', () => undefined);
  cluster.sendCommand = (command) => route(of, command);
  cluster.disconnect = (again = false) => {
    if (again) for (const redis of nodes.every()) redial(redis);
    else {
      nodes.close();
      callOff?.();
    }
    setStatus(cluster, 'close');
    if (!again) setStatus(cluster, 'end');
  };
  enlist(cluster, { all: nodes.all, of: (key) => nodes.forSlot(slotOf(key)) });
  return cluster;
}

/** The library tells of a status by an event of its name. */
function setStatus(cluster: Redis, status: 'ready' | 'close' | 'end'): void {
  if (cluster.status === 'end') return;
  cluster.status = status;
  cluster.emit(status);
}

const isDown = (nodes: Nodes) => nodes.every().every(({ status }) => status !== 'ready');

/** For the first time when every node that is needed had its chance: one of three that is away must not hold up the others. */
function isUp(nodes: Nodes): boolean {
  if (!nodes.isMapped() || isDown(nodes)) return false;
  return nodes.all().every(({ status }) => status !== 'connecting' && status !== 'connect');
}
