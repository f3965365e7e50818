/**
 * Sends a command to the node of its key. A node that has not got the slot, or gives it away, sends it on (MOVED, ASK):
 * that node has carried nothing out, so the same command goes to the other one. Nothing else is ever sent twice: a lost
 * reply, TRYAGAIN and CLUSTERDOWN go to whoever waits for the command, as with one primary (`outage.ts`).
 */
import type { Command, Redis } from 'ioredis';
import { systemClock } from '../../../kernel/clock.ts';
import { messageOf } from '../../../kernel/errors.ts';
import type { Place } from '../address-url.ts';
import { ConnectionError } from '../connection-error.ts';
import type { Nodes } from './nodes.ts';
import { type NatMap, type Redirection, redirectionOf } from './slots.ts';

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
