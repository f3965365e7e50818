/**
 * A cluster that looks like one connection. The client library has a class for clusters, which re-sends commands whose
 * reply was lost, keeps others in a queue, and has no time-out of its own; so this is a connection of it that is never
 * dialled. It has all methods and all scripts, and a command that it would write to its socket goes to the node of the key
 * (`route`), over a connection like that to any single primary (`one.ts`).
 *
 * Its events: `ready` whenever a node comes up, for whoever subscribes or looks again after an outage; `close` when the
 * last one goes; `error` when none can be reached; `end`.
 *
 * A node that has not got the slot, or gives it away, sends the command on (MOVED, ASK): that node has carried nothing out,
 * so the same command goes to the other node. No other command is ever sent twice: the caller of a command gets its lost
 * reply, its TRYAGAIN or its CLUSTERDOWN, as with one primary (`outage.ts`).
 */
import { type Command, Redis, type RedisOptions } from 'ioredis';
import { systemClock } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { type Place, urlOf } from '../address.ts';
import { timeouts } from '../call-end.ts';
import { ConnectionError } from '../connection-error.ts';
import { redial } from '../dialing.ts';
import { type Manner, manyWait, openOne, optionsOf } from '../one.ts';
import { enlist } from './members.ts';
import { createNodes, type NatMap, type Nodes, type Redirection, redirectionOf, slotOf } from './nodes.ts';

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
  timeouts.set(cluster, manner.commandTimeoutMs);
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

export interface Route {
  readonly nodes: Nodes;
  readonly natMap: NatMap;
  /** Where the cluster is, for errors. */
  readonly where: string;
  /** How long a command waits for a connection that is being made. */
  readonly waitMs: number;
}

/** A slot that moves sends a command on twice; one that moves on and on is an outage. */
const REDIRECTIONS = 16;

export function route(of: Route, command: Command): Promise<unknown> {
  if (command.name === 'ping') return pingAll(of, command);
  const slot = command.getSlot();
  if (slot === null) throw new Error(`a cluster was asked ${command.name}, which names no key: ask one of its members`);
  const first = of.nodes.forSlot(slot);
  if (first) send(of, { command, refuse: command.reject, left: REDIRECTIONS, over: false }, first);
  else command.reject(notConnected(of, of.nodes.isMapped() ? `no node has slot ${slot}` : 'no node answers'));
  return command.promise;
}

/** A command on its way. */
interface Trip {
  readonly command: Command;
  readonly refuse: (error: Error) => void;
  left: number;
  over: boolean;
}

function send(of: Route, trip: Trip, node: Redis, asking = false): void {
  const { command } = trip;
  if (trip.over) return;
  // Each connection, and each script, hangs something of its own on it.
  const refuse = (error: Error) => answered(of, trip, node, error);
  command.reject = refuse;
  if (isDialling(node)) {
    whenUp(of, node, () => send(of, trip, node, asking));
    return;
  }
  if (asking) node.asking().catch(() => undefined);
  // Whoever sent the command has its promise; this one may be another that is rejected as well.
  Promise.resolve(node.sendCommand(command)).catch(() => undefined);
}

function answered(of: Route, trip: Trip, node: Redis, error: Error): void {
  const { host = '', port = 0 } = node.options;
  const asked: Place = { host, port };
  const redirection = redirectionOf(error, { asked, natMap: of.natMap });
  if (redirection === undefined || trip.left === 0) {
    trip.over = true;
    if (!/^(ERR|WRONGTYPE|NOSCRIPT|OOM)\b/.test(messageOf(error))) of.nodes.look();
    trip.refuse(redirection ? notConnected(of, `slot ${redirection.slot} moves on and on`) : error);
    return;
  }
  trip.left -= 1;
  follow(of, trip, redirection);
}

function follow(of: Route, trip: Trip, { kind, place }: Redirection): void {
  if (kind === 'moved') of.nodes.look();
  send(of, trip, of.nodes.at(place), kind === 'ask');
}

const isDialling = ({ status }: Redis) => status === 'connecting' || status === 'connect';

/** A connection that is being made, as after a slot moved, is waited for. Without one the command is refused. */
function whenUp({ waitMs }: Route, node: Redis, act: () => void): void {
  const done = () => {
    callOff();
    node.off('ready', done).off('close', done).off('end', done);
    act();
  };
  const callOff = systemClock.timer(waitMs, done);
  node.on('ready', done).on('close', done).on('end', done);
}

/** A cluster answers when each of its nodes does. */
function pingAll(of: Route, command: Command): Promise<unknown> {
  const members = of.nodes.every();
  const pings = of.nodes.isMapped()
    ? members.map((node) => node.ping())
    : [Promise.reject(notConnected(of, 'no node answers'))];
  Promise.all(pings).then(() => command.resolve('PONG'), command.reject);
  return command.promise;
}

const notConnected = ({ where }: Route, why: string) =>
  new ConnectionError(`not connected to Redis at ${where} (${why})`);
