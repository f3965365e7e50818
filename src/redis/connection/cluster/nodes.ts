/**
 * The connections to a cluster, and the map of its slots. Any node that answers draws the map: the seeds of the address
 * at first, later every node that it names. It is drawn anew when a connection comes or goes, when a command is sent on
 * (MOVED), and several times a second for as long as a master of it is not connected: that is how a failover is seen.
 *
 *  commands, nudges    one connection per master
 *  reads that wait     one per slot: a read of several slots is refused, and a connection that waits serves nobody else.
 *                      Besides one that draws the map
 */
import type { Redis } from 'ioredis';
import { systemClock } from '../../../core/clock.ts';
import { hostPort, type Place } from '../address-url.ts';
import { close } from '../closing.ts';
import { type NatMap, type Span, spansOf } from './slots.ts';

export interface NodesParts {
  readonly seeds: readonly Place[];
  readonly natMap: NatMap;
  /** One connection per slot. */
  readonly waits: boolean;
  readonly open: (place: Place) => Redis;
  /** A connection came up, or the map changed: look whether all is well. */
  readonly onChange: (up: Redis | undefined) => void;
  /** No node answers, and this is why. */
  readonly onTrouble: (error: Error) => void;
}

export interface Nodes {
  /** The connection for a slot. Undefined without a map, or where nobody has that slot. */
  readonly forSlot: (slot: number) => Redis | undefined;
  /** The connection to a place that a node named. */
  readonly at: (place: Place, slot: number) => Redis;
  /** To each master; or those that wait. */
  readonly all: () => readonly Redis[];
  /** Every one there is. */
  readonly every: () => readonly Redis[];
  readonly isMapped: () => boolean;
  /** The map may be out of date. */
  readonly look: () => void;
  readonly close: () => void;
}

interface State extends NodesParts {
  /** By host and port; those that wait by their slot as well. */
  readonly connections: Map<string, Redis>;
  /** Why a connection is not up. */
  readonly troubles: Map<Redis, Error>;
  spans: readonly Span[];
  looking: Promise<void> | undefined;
  /** Calls off the next drawing. */
  again: (() => void) | undefined;
  isClosed: boolean;
}

/** While a master is away, the map is drawn this often. */
const UNWELL_MS = 250;
/** Many commands are sent on at one moment. */
const LOOK_GAP_MS = 50;

export function createNodes(parts: NodesParts): Nodes {
  const connections = new Map<string, Redis>();
  const none = { spans: [], looking: undefined, again: undefined, isClosed: false };
  const state: State = { ...parts, connections, troubles: new Map(), ...none };
  for (const seed of parts.seeds) connect(state, seed);
  return {
    forSlot(slot) {
      const span = state.spans.find(({ from, to }) => slot >= from && slot <= to);
      return span && connect(state, span.master, slot);
    },
    at: (place, slot) => connect(state, place, slot),
    all: () => (parts.waits ? waiting(state) : mastersOf(state).map((place) => connect(state, place))),
    every: () => [...connections.values()],
    isMapped: () => state.spans.length > 0,
    look: () => soon(state, LOOK_GAP_MS),
    close() {
      state.isClosed = true;
      state.again?.();
      for (const redis of connections.values()) close(redis);
    },
  };
}

function connect(state: State, place: Place, slot?: number): Redis {
  const name = slot !== undefined && state.waits ? `${hostPort(place)}/${slot}` : hostPort(place);
  const known = state.connections.get(name);
  if (known) return known;
  const redis = state.open(place);
  state.connections.set(name, redis);
  redis.on('ready', () => {
    state.troubles.delete(redis);
    state.onChange(redis);
    soon(state, 0);
  });
  // One that was left is no news: to draw the map for it may open others that are left in turn, on and on.
  redis.on('close', () => state.connections.get(name) === redis && soon(state, 0));
  redis.on('error', (error: Error) => {
    state.troubles.set(redis, error);
    const all = [...state.connections.values()];
    if (all.every((one) => state.troubles.has(one))) state.onTrouble(error);
  });
  return redis;
}

/** Draws the map after a while, unless that is to happen sooner. */
function soon(state: State, ms: number): void {
  if (state.isClosed || (state.again && ms > 0)) return;
  state.again?.();
  state.again = systemClock.timer(ms, () => {
    state.again = undefined;
    state.looking ??= look(state).finally(() => {
      state.looking = undefined;
      if (!isWell(state)) soon(state, UNWELL_MS);
    });
  });
}

async function look(state: State): Promise<void> {
  for (const [name, redis] of state.connections) {
    // One that waits would answer when its wait is over.
    if (redis.status !== 'ready' || name.includes('/')) continue;
    const asked = { host: redis.options.host ?? '', port: redis.options.port ?? 0 };
    const reply = await redis.call('CLUSTER', 'SLOTS').catch(() => undefined);
    const spans = spansOf(reply, { asked, natMap: state.natMap });
    if (state.isClosed) return;
    if (spans.length > 0) return follow(state, spans);
  }
  for (const place of [...mastersOf(state), ...state.seeds]) connect(state, place);
}

/** Connects to whom the map names, and leaves whom it does not. */
function follow(state: State, spans: readonly Span[]): void {
  state.spans = spans;
  const wanted = new Set<Redis>();
  if (state.waits) {
    for (const name of [...state.connections.keys()]) {
      const slot = Number(name.split('/')[1] ?? Number.NaN);
      const span = spans.find(({ from, to }) => slot >= from && slot <= to);
      if (span) wanted.add(connect(state, span.master, slot));
    }
    const [guide] = [...state.connections].filter(([name, { status }]) => !name.includes('/') && status === 'ready');
    if (guide) wanted.add(guide[1]);
  } else for (const place of mastersOf(state)) wanted.add(connect(state, place));
  for (const [name, redis] of state.connections) if (!wanted.has(redis)) leave(state, name, redis);
  state.onChange(undefined);
}

/** What was sent is answered still; one that is not connected has nothing to wait for. */
function leave(state: State, name: string, redis: Redis): void {
  state.connections.delete(name);
  state.troubles.delete(redis);
  const bye = redis.status === 'ready' ? redis.quit() : Promise.resolve();
  void bye.catch(() => undefined).finally(() => close(redis));
}

const waiting = ({ connections }: State) =>
  [...connections].flatMap(([name, redis]) => (name.includes('/') ? redis : []));

function mastersOf({ spans }: State): readonly Place[] {
  return [...new Map(spans.map(({ master }) => [hostPort(master), master])).values()];
}

function isWell(state: State): boolean {
  return state.spans.length > 0 && [...state.connections.values()].every(({ status }) => status === 'ready');
}
